#!/usr/bin/env python3
"""Captures, counters and faults between two hosts (the namespaces of wire.py)."""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# pylint: disable=wrong-import-position
from clients import BUILD, Failure, Program, free_port, listening
from network.capture import session
from network.fates import are_those_of_the_seed, on_a_network
from network.wire import ADDRESSES, CLIENT, GID_INDEX, INSIDE, SERVER, Wire, enter_namespaces, ip, make_hosts
from patience import patience, until
from programs.perftest import measures

BAD, WRONG = "drop=5%,reorder=5%,dup=1%,seed=7", "corrupt=1%,seed=7"

SESSIONS = (
    ("ib_send_bw", "-F", "-n", "200", "-c", "RC", "-s", "20001"),
    ("ib_send_bw", "-F", "-n", "50", "-c", "UD", "-s", "1000"),
    ("ib_write_lat", "-F", "-n", "100", "-c", "UC", "-s", "3001"),
    ("ib_read_bw", "-F", "-n", "100", "-s", "20000"),
    ("ib_atomic_bw", "-F", "-n", "100"),
)


class Network(Wire):
    """Pairs of programs that take environment variables."""

    more = {}

    def host_environment(self, host):
        return {**super().host_environment(host), **self.more}

    def pair(self, command, server_options=(), client_options=(), timeout=120, extra=None):
        if extra:
            self.more = extra
        return super().pair(command, server_options, client_options, timeout)

    def pair_with(self, command, more):
        return self.pair(command, extra=more)


def catches_what_is_corrupted(suite):
    """One of 65536 corrupted datagrams over IPv4 has an ICRC that fits another identification; here, some hundreds. One or two
    may arrive when the receiver has already ended."""
    with tempfile.NamedTemporaryFile() as file:
        suite.more = {"SOFTVERBS_FAULT": "corrupt=5%,seed=7", "SOFTVERBS_COUNTERS": file.name}
        measures(suite, "ib_write_bw", ["-s", "20000"], [20000], 200)
        reports = [json.loads(line) for line in file]
    corrupted = sum(report["traffic"][0]["faults"] for report in reports)
    caught = sum(report["strays"]["dropped"].get("6", 0) for report in reports)
    if corrupted < 20 or not corrupted - 2 <= caught <= corrupted:
        raise Failure(f"{corrupted} datagrams corrupted, {caught} dropped for their ICRC")
    return f"{corrupted} datagrams"


def measures_in_spite(suite, program, options, size):
    suite.more = {"SOFTVERBS_FAULT": BAD}
    measures(suite, program, options, [size], 200)


def is_faithful(suite, service, faults):
    """Our own program looks at each byte. Of what is not repeated something must be lost, or there were no faults."""
    with tempfile.NamedTemporaryFile() as file:
        suite.more = {"SOFTVERBS_FAULT": faults, "SOFTVERBS_COUNTERS": file.name, "ENDPOINT_GID": suite.gid}
        said = suite.run_here(f"{BUILD}/tests/clients/integrity_lossy", CLIENT, SERVER, service, "1000").strip()
        reports = [json.loads(line) for line in file]
    corrupted = sum(report["traffic"][0]["faults"] for report in reports)
    caught = sum(report["strays"]["dropped"].get("6", 0) for report in reports)
    if not corrupted or (faults == WRONG and caught != corrupted):
        raise Failure(f"{corrupted} datagrams lost or corrupted, {caught} dropped for their ICRC")
    came = re.match(r"(\d+) of 1000 ", said)
    if came and not 100 < int(came.group(1)) < {"uc": 750, "ud": 1000}[service]:
        raise Failure(said)
    return said


def add_faithful(suite):
    for faults in (BAD, WRONG):
        for service in ("rc", "uc", "ud"):
            for mtu, version in ((1500, 4), (9000, 6)) if service != "rc" else ((1500, 4), (1500, 6), (9000, 4), (9000, 6)):
                suite.at(mtu, version, f"what arrives over {service.upper()} is what was sent with {faults}",
                         lambda service=service, faults=faults: is_faithful(suite, service, faults))


def introduce(host, to):
    """Makes the link-local address that follows from the host's MAC a neighbour of the other, which it would not find."""
    shown = subprocess.run(["ip", "-n", host, "-json", "link", "show", "eth0"], capture_output=True, check=True)
    mac = json.loads(shown.stdout)[0]["address"]
    a, b, c, d, e, f = (int(byte, 16) for byte in mac.split(":"))
    address = f"fe80::{a ^ 2:02x}{b:02x}:{c:02x}ff:fe{d:02x}:{e:02x}{f:02x}"
    ip("-n", to, "neighbour", "replace", address, "lladdr", mac, "dev", "eth0")


def without_its_address(suite, program):
    """A server and a client of ibverbs-utils. The client's first GID follows from its interface's MAC, whether or not the
    interface has the address (yet); here it has no address, only a route."""
    ip("-n", CLIENT, "address", "flush", "dev", "eth0", "scope", "link")
    ip("-n", CLIENT, "-6", "route", "replace", "fe80::/64", "dev", "eth0")
    introduce(CLIENT, SERVER)
    suite.more = {"SOFTVERBS_LOG": "info"}
    port = str(free_port())
    command = [program, "-g", "0", "-s", "1000", "-p", port]
    server = Program(suite.on(SERVER, command), suite.host_environment(SERVER))
    while not listening(int(port), server.process.pid):
        time.sleep(0.01)
    return [server, Program(suite.on(CLIENT, [*command, ADDRESSES[SERVER][0]]), suite.host_environment(CLIENT))]


def counts_what_the_kernel_refuses(suite):
    """A program that sends without reaching a peer sees the cause in its counters and in the log."""
    programs = without_its_address(suite, "ibv_uc_pingpong")
    try:
        wait_for_counter(suite, programs[1], lambda report: report["traffic"][0]["dropped"] == {"32": 1} and
                         report["traffic"][0]["reasons"] == {"PACKET_UNSENT": 1})
        told = os.pread(programs[1].err.fileno(), 1 << 16, 0).decode()
        if "(reason 32)" not in told or "Invalid argument" not in told:
            raise Failure(told)
    finally:
        for program in programs:
            program.kill()


def does_not_blame_the_peer(suite):
    """A connection whose packets never leave this host."""
    server, client = without_its_address(suite, "ibv_rc_pingpong")
    try:
        done = client.finish(until(60))
        if done.status == 0 or not re.search(r"RETRY_EXC.*\(reason 119\)", done.err):
            raise Failure(str(done))
    finally:
        server.kill()


def _pair_apart(suite, address):
    """A ping-pong whose packets to this address are lost: how its server and its client ended, and what they counted in that order."""
    port, ends = str(free_port()), []
    command = ["ibv_rc_pingpong", "-g", suite.gid, "-n", "20", "-p", port]
    with tempfile.NamedTemporaryFile() as file:
        suite.more = {"SOFTVERBS_INJECT": f"when packet, peer {address}: drop", "SOFTVERBS_LOG": "info", "SOFTVERBS_COUNTERS": file.name}
        programs = [Program(suite.on(SERVER, command), suite.host_environment(SERVER))]
        try:
            while not listening(int(port), programs[0].process.pid):
                time.sleep(0.01)
            programs.append(Program(suite.on(CLIENT, [*command, ADDRESSES[SERVER][0]]), suite.host_environment(CLIENT)))
            ends = [program.finish(until(60)) for program in programs]
        finally:
            for program in programs:
                program.kill()
        reports = {report["pid"]: report for report in map(json.loads, file)}
    return ends, [reports[program.process.pid] for program in programs]


def parts_one_direction(suite):
    """The packets of the client arrive, the server's are lost, and both give up."""
    ends, (server, client) = _pair_apart(suite, ADDRESSES[CLIENT][0])
    for done in ends:
        if done.status == 0 or not re.search(r"RETRY_EXC.*\(reason 105\)", done.err):
            raise Failure(str(done))
    arrived, lost = sum(server["traffic"][0]["received"].values()), server["traffic"][0]["fault_kinds"].get("drop", 0)
    if not arrived or not lost or server["calls"]["scripted"] != {"drop": lost} or client["calls"]["scripted"] or client["traffic"][0]["received"]:
        raise Failure(json.dumps([server, client]))
    return f"{arrived} packets arrived, {lost} were lost"


def parts_nothing(suite):
    for done, report in zip(*_pair_apart(suite, "10.91.0.9")):
        done.check()
        if "reason 700" in done.err or report["calls"]["scripted"]:
            raise Failure(str(done))


def counts_refused_messages(suite):
    """A client whose request gets no reply, as no device is open there; its retransmission has no source address any more."""
    suite.more = {"SOFTVERBS_LOG": "info"}
    mine = f"{ADDRESSES[CLIENT][0]}/24"
    client = Program(suite.on(CLIENT, ["rping", "-c", "-a", ADDRESSES[SERVER][0], "-p", "20000"]), suite.host_environment(CLIENT))
    try:
        wait_for_counter(suite, client, lambda report: report.get("messages", {}).get("sent", {}).get("REQ") == 1)
        ip("-n", CLIENT, "address", "delete", mine, "dev", "eth0")
        wait_for_counter(suite, client, lambda report: report["messages"]["reasons"].get("CM_UNSENT") and
                         report["messages"]["sent"]["REQ"] == 1)
        told = os.pread(client.err.fileno(), 1 << 16, 0).decode()
        if "(reason 613)" not in told:
            raise Failure(told)
    finally:
        client.kill()
        ip("-n", CLIENT, "address", "replace", mine, "dev", "eth0")


def wait_for_counter(suite, program, holds):
    """The counters of its process in `softverbs stat`."""
    deadline, reports = until(30), {}
    while time.monotonic() < deadline and program.process.poll() is None:
        done = subprocess.run([f"{suite.root}/softverbs", "stat", "--once", "--json"], env=suite.host_environment(CLIENT), capture_output=True,
                              text=True, check=True)
        reports = {report["pid"]: report for report in json.loads(done.stdout)}
        if program.process.pid in reports and holds(reports[program.process.pid]):
            return
        time.sleep(0.05)
    raise Failure(f"{json.dumps(reports.get(program.process.pid))}\n{program.finish(time.monotonic())}")


def falls_silent(suite):
    """Of SRD: the codes 13, 15 and 9, each after its time."""
    done = subprocess.run(suite.on(SERVER, [f"{BUILD}/tests/clients/killed_srd", "5", "3", SERVER, CLIENT]), env=suite.environment(),
                          capture_output=True, text=True, timeout=patience(120), check=False)
    if done.returncode:
        raise Failure(done.stdout + done.stderr)
    return done.stdout.strip()


def main():
    if not os.environ.get(INSIDE):
        enter_namespaces()
    make_hosts()
    suite = Network()
    for number, command in enumerate(SESSIONS):
        suite.at(1500, (4, 6)[number % 2], f"tshark has nothing to say to {' '.join(command)}, and its packets are those counted",
                 lambda command=command: session(suite, command))
    for version in GID_INDEX:
        suite.at(1500, version, "what is corrupted on the way is dropped for its ICRC", lambda: catches_what_is_corrupted(suite))
    for program, options, size in (("ib_send_bw", ["-c", "RC", "-s", "10000"], 10000), ("ib_read_bw", ["-s", "10000"], 10000),
                                   ("ib_atomic_lat", [], 8)):
        suite.at(1500, 4, f"{program} with 5 % loss, 5 % reordering and 1 % duplication",
                 lambda program=program, options=options, size=size: measures_in_spite(suite, program, options, size))
    add_faithful(suite)
    suite.at(1500, 4, "with the same seed a script does the same to each packet of each queue pair", lambda: are_those_of_the_seed(suite.pair_with, on_a_network))
    suite.at(1500, 4, "a partition of one direction leaves the other", lambda: parts_one_direction(suite))
    suite.at(1500, 4, "a rule for another address parts nothing", lambda: parts_nothing(suite))
    suite.at(1500, 4, "a message of the connection manager that the kernel refuses is counted (reason 613)", lambda: counts_refused_messages(suite))
    suite.at(1500, 6, "a datagram that the kernel refuses is counted (reason 32)", lambda: counts_what_the_kernel_refuses(suite))
    suite.at(1500, 6, "work of which nothing leaves the host fails for that (reason 119)", lambda: does_not_blame_the_peer(suite))
    suite.at(1500, 6, "SRD: a host is silent, or nobody has its port", lambda: falls_silent(suite), ["--profile", "efa3"])
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
