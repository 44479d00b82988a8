#!/usr/bin/env python3
"""The errors that a program gets for a host that is not there, and that a host beyond a router is reached whatever hop limit the
program asks for: two hosts with a router between them (the namespaces of ping.py)."""
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# pylint: disable=wrong-import-position
from clients import BUILD, Failure, Suite, free_port, need, serve
from network.ping import ADDRESSES, CLIENT, GATEWAYS, ROUTER, SERVER, UNREACHABLE, make_hosts
from network.wire import GID_INDEX, INSIDE, enter_namespaces, ip
from patience import patience

REACH = f"{BUILD}/tests/clients/unreachable_host"
CHANGED = f"{BUILD}/tests/clients/changed_path"
MISSING = {4: "10.91.0.77", 6: "fd91::77"}  # on the client's network
NOBODY = "fe80::dead:beef"
ELSEWHERE = "10.93.0.2"  # a second network of the router and the client, with a client's address only


class Routed(Suite):
    def command(self, host, command, *options):
        os.makedirs(f"{self.directory}/{host}", mode=0o700, exist_ok=True)
        return ["ip", "netns", "exec", host, f"{self.root}/softverbs", "run", "--log", "info", *options, "--", *command]

    def host_environment(self, host):
        return self.environment({"SOFTVERBS_DIR": f"{self.directory}/{host}"})

    def reach(self, *words, net=True, host=CLIENT):
        """The lines of the program, and the lines of the library."""
        command = self.command(host, [REACH, *map(str, words)], *(["--net", "eth0"] if net else []))
        done = subprocess.run(command, env=self.host_environment(host), capture_output=True, text=True, timeout=patience(60), check=False)
        if done.returncode:
            raise Failure(done.stdout + done.stderr)
        return done.stdout.splitlines(), done.stderr

    def pingpong(self, program, version, *options):
        """Ping-pong over the router. All programs of ibverbs-utils ask for a hop limit of 1."""
        port = free_port()
        command = [need(f"ibv_{program}_pingpong"), "-g", GID_INDEX[version], "-s", "2000", "-n", "20", "-m", "512", "-c",
                   "-p", str(port), *options]
        serve(self.command(SERVER, command, "--net", "eth0"),
              [*self.command(CLIENT, command, "--net", "eth0"), ADDRESSES[SERVER][0]], port,
              self.host_environment(SERVER), 30, self.host_environment(CLIENT), elsewhere=True)


def expect(line, pattern, at_least=0, below=1e9):
    """The line is as it should be, and these milliseconds have passed."""
    found = re.fullmatch(pattern, line)
    if not found or (found.groups() and not at_least <= int(found.group(1)) < below):
        raise Failure(f"{line!r} is not {pattern}, from {at_least} to {below} ms")


def told(lines, *parts):
    if not any(all(part in line for part in parts) for line in lines.splitlines()):
        raise Failure(f"no line with {parts} in\n{lines}")


def goes_to_rtr(suite, version):
    """(reason 359) for a host that answers no ARP and no neighbour discovery; a router, and a host beyond it, is found at once."""
    there = ADDRESSES[SERVER][version == 6]
    lines, log = suite.reach("rtr", GID_INDEX[version], MISSING[version], there)
    expect(lines[0], rf"{MISSING[version]}: Connection timed out, (\d+) ms, hop limit 0", 990)
    expect(lines[1], rf"{there}: done, (\d+) ms, hop limit 64", 0, 900)
    told(log, f"INIT to RTR: dgid {MISSING[version]}, interface eth0", "(reason 359)")


def makes_a_handle(suite):
    """The handle's hop limit is the program's, as with libmlx5."""
    lines, log = suite.reach("ah", GID_INDEX[4], MISSING[4], ADDRESSES[SERVER][0])
    expect(lines[0], rf"{MISSING[4]}: Connection timed out, (\d+) ms, hop limit 1", 990)
    expect(lines[1], rf"{ADDRESSES[SERVER][0]}: done, (\d+) ms, hop limit 1", 0, 900)
    told(log, f"ibv_create_ah: dgid {MISSING[4]}", "(reason 359)")


def knows_no_route(suite):
    """(reason 358) at once, of the two kinds. An IPv4 kernel takes what no route leads to for a neighbour, where an interface is
    named, as it does for adapters."""
    ip("-n", CLIENT, "-6", "route", "delete", "default")
    ip("-n", CLIENT, "-6", "route", "add", "unreachable", "fd97::/64")
    lines, log = suite.reach("rtr", GID_INDEX[6], "fd99::1", "fd97::1")
    ip("-n", CLIENT, "-6", "route", "delete", "unreachable", "fd97::/64")
    ip("-n", CLIENT, "-6", "route", "add", "default", "via", "fd91::1")
    for line, error in zip(lines, (r"fd99::1: Network is unreachable", r"fd97::1: No route to host")):
        expect(line, error + r", (\d+) ms, hop limit 0", 0, 500)
    told(log, "INIT to RTR: dgid fd99::1, interface eth0", "(reason 358)")
    lines, _ = suite.reach("rtr", GID_INDEX[4], UNREACHABLE)
    expect(lines[0], rf"{UNREACHABLE}: Connection timed out, (\d+) ms, hop limit 0", 990)


def names_the_router(suite):
    """A next hop that is dead: the router's name is beside the destination's."""
    ip("-n", CLIENT, "route", "add", "10.98.0.0/16", "via", MISSING[4])
    lines, log = suite.reach("rtr", GID_INDEX[4], "10.98.0.1")
    ip("-n", CLIENT, "route", "delete", "10.98.0.0/16")
    expect(lines[0], r"10\.98\.0\.1: Connection timed out, (\d+) ms, hop limit 0", 990)
    told(log, "dgid 10.98.0.1, interface eth0, by the router 10.91.0.77", "(reason 359)")


def takes_the_limit_of_the_route(suite):
    ip("-n", CLIENT, "route", "add", "10.92.0.0/24", "via", "10.91.0.1", "hoplimit", "7")
    lines, _ = suite.reach("rtr", GID_INDEX[4], ADDRESSES[SERVER][0])
    ip("-n", CLIENT, "route", "delete", "10.92.0.0/24")
    expect(lines[0], rf"{ADDRESSES[SERVER][0]}: done, (\d+) ms, hop limit 7")


FAR = {4: "10.94.0.1", 6: "fd94::1"}  # the router knows no way
PORT = {4: "type 3, code 3", 6: "type 1, code 4"}
REFUSED = {4: "type 3, code 1): host unreachable", 6: "type 1, code 0): network unreachable"}  # for the same kind of route
TIME = {4: "type 11, code 0", 6: "type 3, code 0"}


def says_what_was_answered(suite, version):
    """(reason 105) The host is there and no program has a device open; a router knows no way; the hop limit ends at a router."""
    there, router, far = ADDRESSES[SERVER][version == 6], GATEWAYS[CLIENT][version == 6], FAR[version]
    route = ["-n", ROUTER, f"-{version}", "route"]
    ip(*route, "add", "unreachable", far)
    lines, log = suite.reach("send", GID_INDEX[version], there, far)
    ip(*route, "delete", "unreachable", far)
    ours = ["-n", CLIENT, f"-{version}", "route"]
    ip(*ours, "add", there, "via", router, "hoplimit", "1")
    ended, end_log = suite.reach("send", GID_INDEX[version], there)
    ip(*ours, "delete", there)
    for line in lines + ended:
        expect(line, r".*: transport retry counter exceeded, vendor_err 105")
    for text, who, words in ((log, there, f"{PORT[version]}): port unreachable"), (log, router, REFUSED[version]),
                             (end_log, router, f"{TIME[version]}): time exceeded")):
        told(text, f"RETRY_EXC_ERR; {who} answered (ICMP {words}", "(reason 105)")


def stays_within_the_host(suite):
    """(reason 396) Without a network only devices of this host can be meant, also of other processes."""
    known = ["127.0.0.1", "127.0.0.9", "127.44.0.1"]
    lines, log = suite.reach("rtr", 1, NOBODY, "10.9.8.7", *known, net=False)
    expect(lines[0], rf"{NOBODY}: Network is unreachable, (\d+) ms, hop limit 0", 0, 500)
    expect(lines[1], r"10\.9\.8\.7: Network is unreachable, (\d+) ms, hop limit 0", 0, 500)
    for address, line in zip(known, lines[2:]):
        expect(line, rf"{address}: done, (\d+) ms, hop limit 64", 0, 500)
    told(log, f"dgid {NOBODY}", "(reason 396)")


def resolves(suite, version):
    """(reason 616) ADDR_ERROR after the program's timeout, as Linux has it; a host that is there answers at once."""
    there = ADDRESSES[SERVER][version == 6]
    lines, log = suite.reach("resolve", 700, MISSING[version], there)
    expect(lines[0], rf"{MISSING[version]}: RDMA_CM_EVENT_ADDR_ERROR, status -110, (\d+) ms", 690, 1500)
    expect(lines[1], rf"{there}: RDMA_CM_EVENT_ADDR_RESOLVED, status 0, (\d+) ms", 0, 600)
    told(log, "status -110", "(reason 616)")


def resolves_who_comes_late(suite):
    """The host is not there when it is asked for, and starts while the program waits."""
    late = "10.91.0.78"
    command = suite.command(CLIENT, [REACH, "resolve", "20000", late], "--net", "eth0")
    with subprocess.Popen(command, env=suite.host_environment(CLIENT), text=True, stdout=subprocess.PIPE) as program:
        time.sleep(1)  # the host is late: what is tested
        ip("-n", ROUTER, "address", "add", f"{late}/24", "dev", CLIENT)
        try:
            out = program.communicate(timeout=patience(30))[0]
        finally:
            ip("-n", ROUTER, "address", "delete", f"{late}/24", "dev", CLIENT)
    expect(out.strip(), rf"{late}: RDMA_CM_EVENT_ADDR_RESOLVED, status 0, (\d+) ms", 900, 10000)


def binds_what_was_found(suite):
    """A link-local source has the scope of the destination."""
    shown = subprocess.run(["ip", "-n", ROUTER, "-6", "-o", "address", "show", "dev", CLIENT, "scope", "link"],
                           capture_output=True, text=True, check=True).stdout
    address = re.search(r"(fe80::[0-9a-f:]+)/", shown).group(1) + "%eth0"
    lines, _ = suite.reach("again", address)
    for line in lines:
        expect(line, rf"{address}: RDMA_CM_EVENT_ADDR_RESOLVED, status 0, (\d+) ms")
    if len(lines) != 2:
        raise Failure(lines)


def changes_its_way(suite):
    """(reason 838) In SQD, with work begun."""
    command = suite.command(CLIENT, [CHANGED, ADDRESSES[SERVER][0]], "--net", "eth0")
    environment = {**suite.host_environment(CLIENT), "ENDPOINT_GID": GID_INDEX[4]}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=patience(60), check=False)
    if done.returncode:
        raise Failure(done.stdout + done.stderr)
    told(done.stderr, "SQD to SQD: dgid leads to another host, and work has begun by the way to this host", "(reason 838)")
    told(done.stderr, "SQD to SQD: dgid leads to this host, and work has begun by the way to another host", "(reason 838)")


def main():
    if not os.environ.get(INSIDE):
        enter_namespaces()
    make_hosts()
    suite = Routed()
    for version in GID_INDEX:
        suite.add(f"a host that is not there ends INIT to RTR (IPv{version})", lambda version=version: goes_to_rtr(suite, version))
        suite.add(f"rdma_resolve_addr obeys its timeout (IPv{version})", lambda version=version: resolves(suite, version))
        suite.add(f"what a host or a router answers is told with 105 (IPv{version})",
                  lambda version=version: says_what_was_answered(suite, version))
        for program in ("rc", "uc"):
            suite.add(f"ibv_{program}_pingpong crosses a router (IPv{version})",
                      lambda program=program, version=version: suite.pingpong(program, version))
    suite.add("ibv_create_ah asks for the neighbour, too", lambda: makes_a_handle(suite))
    suite.add("an address that no route leads to is refused at once", lambda: knows_no_route(suite))
    suite.add("a router that is dead is named", lambda: names_the_router(suite))
    suite.add("the hop limit is the route's", lambda: takes_the_limit_of_the_route(suite))
    suite.add("without a network only GIDs of this host can be reached", lambda: stays_within_the_host(suite))
    suite.add("who comes while it is asked for is found", lambda: resolves_who_comes_late(suite))
    suite.add("begun work keeps its way, or is sent again by another", lambda: changes_its_way(suite))
    suite.add("the source that was found can be bound", lambda: binds_what_was_found(suite))
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
