#!/usr/bin/env python3
"""Devices follow the network interface below them while programs run: addresses, link, MTU and MAC of it change, between two
hosts that are network namespaces of our own. The programs are interface_state.c's."""
import contextlib
import glob
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# pylint: disable=wrong-import-position
from clients import BUILD, Failure, Suite, free_port, listening
from network.wire import ADDRESSES, CLIENT, INSIDE, SERVER, enter_namespaces, ip, make_hosts
from patience import patience, until

FLOATING, SECOND = "10.91.0.50", "fd91::50"
GID_CHANGE, PORT_ACTIVE, PORT_ERR = "18", "9", "10"  # enum ibv_event_type


class Follower:
    """One follower on a host, which answers what it is asked."""

    def __init__(self, suite, host, network="eth0", environment=None):
        directory = f"{suite.directory}/{host}"
        os.makedirs(directory, mode=0o700, exist_ok=True)
        options = ["--net", network] if network else []
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", host, f"{suite.root}/softverbs", "run", *options, "--", f"{BUILD}/tests/clients/interface_state"],
            env={**suite.environment(), "SOFTVERBS_DIR": directory, "SOFTVERBS_LOG": "warn", **(environment or {})}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.ask("state")

    def send(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def hear(self):
        line = self.process.stdout.readline()
        if not line:
            raise Failure(f"the program has ended: {self.process.wait()}\n{self.process.stderr.read()}")
        return line.strip()

    def ask(self, command):
        self.send(command)
        return self.hear()

    def events(self):
        return self.ask("events").split()

    def end(self):
        self.process.stdin.close()
        self.process.wait(20)
        return self.process.stderr.read()

    def state(self):
        """State of the port, active MTU, the GIDs by their places."""
        state, mtu, *gids = self.ask("state").split()
        return state, int(mtu), dict(gid.split("=") for gid in gids)

    def await_state(self, *expected):
        """A change that the kernel reports by netlink is seen within a moment."""
        deadline, state = until(5), None
        while time.monotonic() < deadline:
            state = self.state()
            if all(part == wanted for part, wanted in zip(state, expected) if wanted is not None):
                return state
            time.sleep(0.01)
        raise Failure(f"{state} where {expected} should be")


@contextlib.contextmanager
def followers(*all_of_them):
    try:
        yield all_of_them
    finally:
        for each in all_of_them:
            each.process.kill()
            each.process.wait()


def expect(what, expected, told=""):
    if what != expected:
        raise Failure(f"{what} where {expected} should be\n{told}")


def address(host, verb, text, interface="eth0"):
    ip("-n", host, "address", verb, f"{text}/{64 if ':' in text else 24}", "dev", interface, *(["nodad"] if ":" in text and verb == "add" else []))


def restore():
    """Both hosts as they were."""
    for host, (ipv4, ipv6) in ADDRESSES.items():
        ip("-n", host, "address", "flush", "dev", "eth0")
        ip("-n", host, "link", "set", "eth0", "mtu", "1500", "up")
        address(host, "add", ipv4)
        address(host, "add", ipv6)


def tells_of_addresses(suite):
    """A GID for each address, at a place that it keeps, and an event for each change."""
    with followers(Follower(suite, SERVER)) as (one,):
        before = one.state()[2]
        for version, text in (("IPv4", f"::ffff:{FLOATING}"), ("IPv6", SECOND)):
            address(SERVER, "add", text.removeprefix("::ffff:"))
            expect(one.events(), [GID_CHANGE])
            last = str(max(map(int, before)) + 1)
            expect(one.state()[2], {**before, last: text}, version)
            address(SERVER, "del", text.removeprefix("::ffff:"))
            expect(one.events(), [GID_CHANGE])
            expect(one.state()[2], before)


def keeps_places(suite):
    """An address that is removed leaves its place empty, and the others keep theirs; the next takes it."""
    with followers(Follower(suite, SERVER)) as (one,):
        before = one.state()[2]
        place = next(place for place, gid in before.items() if gid == f"::ffff:{ADDRESSES[SERVER][0]}")
        address(SERVER, "add", SECOND)
        expect(one.events(), [GID_CHANGE])
        after = one.state()[2]
        address(SERVER, "del", ADDRESSES[SERVER][0])
        expect(one.events(), [GID_CHANGE])
        expect(one.state()[2], {key: gid for key, gid in after.items() if key != place})
        address(SERVER, "add", FLOATING)
        expect(one.events(), [GID_CHANGE])
        expect(one.state()[2], {**after, place: f"::ffff:{FLOATING}"})


def tells_of_the_link(suite):
    """Down and up, by the interface's own switch and by the carrier; an interface that is down has no IPv6 addresses."""
    with followers(Follower(suite, SERVER)) as (one,):
        before = one.state()
        for host, keeps in ((SERVER, False), (CLIENT, True)):
            ip("-n", host, "link", "set", "eth0", "down")
            events = one.events()
            expect(events[:1], [PORT_ERR])
            one.await_state("down", before[1])
            ip("-n", host, "link", "set", "eth0", "up")
            events = one.events()
            if PORT_ACTIVE not in events or (keeps and events != [PORT_ACTIVE]):
                raise Failure(f"events {events}")
            one.await_state("active", before[1])


def hears_late(suite):
    """A change that happened while the program had no free descriptor to ask the kernel with is seen when it has some again,
    though nothing changes any more: a link that went down, and one that came up."""
    with followers(Follower(suite, SERVER)) as (one,):
        before = one.state()
        for verb, state, event in (("down", "down", PORT_ERR), ("up", "active", PORT_ACTIVE)):
            expect(one.ask("files none"), "done")
            ip("-n", SERVER, "link", "set", "eth0", verb)
            time.sleep(0.2)  # so that the helper asks in vain; where it gets no processor until then, the test proves less
            expect(one.ask("files all"), "done")
            one.await_state(state, before[1])
            if event not in one.events():
                raise Failure(f"no event {event}")
        expect(one.ask("files none"), "done")
        ip("-n", SERVER, "link", "set", "eth0", "down")
        taken = int(one.ask("rest 500"))
        if taken > 20000:
            raise Failure(f"{taken} us of the processor in half a second without descriptors")


def tells_of_the_mtu(suite):
    with followers(Follower(suite, SERVER)) as (one,):
        for mtu, fits in ((9000, 4096), (700, 512), (1500, 1024)):
            ip("-n", SERVER, "link", "set", "eth0", "mtu", str(mtu))
            one.await_state(None, fits)


def tells_of_the_mac(suite):
    """The first GID is made of it."""
    shown = subprocess.run(["ip", "-n", SERVER, "-j", "link", "show", "eth0"], capture_output=True, text=True, check=True)
    mac = json.loads(shown.stdout)[0]["address"]
    with followers(Follower(suite, SERVER)) as (one,):
        before = one.state()[2]
        ip("-n", SERVER, "link", "set", "eth0", "address", "02:00:00:00:12:34")
        expect(one.events(), [GID_CHANGE])
        expect(one.state()[2], {**before, "0": "fe80::ff:fe00:1234"})
        ip("-n", SERVER, "link", "set", "eth0", "address", mac)
        expect(one.events(), [GID_CHANGE])
        expect(one.state()[2], before)


def serves_later_addresses(suite):
    """A program that listens at all addresses, or at an address that was added later, receives its requests."""
    port, other = free_port(), free_port()
    with followers(Follower(suite, SERVER), Follower(suite, CLIENT)) as (server, client):
        expect(server.ask(f"bind 0.0.0.0 {port}"), "bound")
        address(SERVER, "add", FLOATING)
        expect(server.events(), [GID_CHANGE])
        place = next(place for place, gid in server.state()[2].items() if gid == f"::ffff:{FLOATING}")
        for number in (port, other):
            if number == other:
                expect(server.ask(f"bind {FLOATING} {other}"), "bound")
            server.send("serve")
            expect(client.ask(f"connect {FLOATING} {number}"), "connected")
            expect(server.hear(), f"{FLOATING} {place}")


def lets_an_address_float(suite):
    """An address moves from one host to the other, and back: a listener at all addresses of a host serves it there."""
    port = free_port()
    with followers(Follower(suite, SERVER), Follower(suite, CLIENT)) as pair:
        for one in pair:
            expect(one.ask(f"bind 0.0.0.0 {port}"), "bound")
        hosts = (SERVER, CLIENT)
        for round_number in range(4):
            here, there = round_number % 2, 1 - round_number % 2
            address(hosts[here], "add", FLOATING)
            pair[here].events()
            ip("-n", hosts[there], "neigh", "flush", "dev", "eth0")
            pair[here].send("serve")
            expect(pair[there].ask(f"connect {FLOATING} {port}"), "connected")
            expect(pair[here].hear().split()[0], FLOATING)
            address(hosts[here], "del", FLOATING)
            pair[here].events()


def binds_to_what_is_reached(suite):
    """rdma_bind_addr refuses an address that no device has as its own: no process on another host could reach a listener there."""
    many = [f"10.91.1.{number}" for number in range(1, 21)]
    lone = Follower(suite, SERVER, environment={"SOFTVERBS_LOG": "info"})
    beside = Follower(suite, SERVER, environment={"SOFTVERBS_DEVICES": "2", "SOFTVERBS_LOG": "info"})  # soft1 is on no network
    address(SERVER, "add", "10.99.0.1", "lo")
    try:
        for text in many:
            address(SERVER, "add", text)
        with followers(lone, beside):
            for one in (lone, beside):
                one.events()
                expect([one.ask(f"bind {text} {free_port()}") for text in (ADDRESSES[SERVER][0], "127.0.0.1", many[0], many[-1])],
                       ["bound", "bound", "bound", "ENODEV"])
            expect([one.ask(f"bind 10.99.0.1 {free_port()}") for one in (lone, beside)], ["ENODEV", "bound"])
            told = [one.end().count("(reason 617)") for one in (lone, beside)]
        expect(told, [2, 1])
    finally:
        address(SERVER, "del", "10.99.0.1", "lo")


def survives_a_pause(suite):
    """Queue pairs in use continue after a pause of the link, or of the address that they are connected by."""
    for change, back in ((lambda: ip("-n", SERVER, "link", "set", "eth0", "down"), lambda: ip("-n", SERVER, "link", "set", "eth0", "up")),
                         (lambda: address(SERVER, "del", ADDRESSES[SERVER][0]), lambda: address(SERVER, "add", ADDRESSES[SERVER][0]))):
        port = free_port()
        command = ["ib_write_bw", "-F", "-D", "1", "-s", "65536", "-x", "1", "--report_gbits", "-p", str(port)]
        programs = []
        for host, peer in ((SERVER, []), (CLIENT, [ADDRESSES[SERVER][0]])):
            directory = f"{suite.directory}/{host}"
            os.makedirs(directory, mode=0o700, exist_ok=True)
            programs.append(subprocess.Popen(
                ["ip", "netns", "exec", host, f"{suite.root}/softverbs", "run", "--net", "eth0", "--", *command, *peer],
                env={**suite.environment(), "SOFTVERBS_DIR": directory}, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
            deadline = until(20)
            while not peer and not listening(port, programs[0].pid) and programs[0].poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
        time.sleep(0.5)  # the queue pairs are in use
        change()
        time.sleep(0.2)  # the pause
        back()
        told = [program.communicate(timeout=patience(60))[0] for program in programs]
        if any(program.returncode for program in programs):
            raise Failure("\n".join(told))


def sockets_of(process):
    """How many netlink sockets a program has."""
    inodes = set()
    for link in glob.glob(f"/proc/{process.pid}/fd/*"):
        with contextlib.suppress(OSError):
            inodes.add(os.readlink(link).removeprefix("socket:[").removesuffix("]"))
    with open(f"/proc/{process.pid}/net/netlink", encoding="ascii") as table:
        return sum(line.split()[-1] in inodes for line in table)


def rests(suite):
    """A process has a socket for changes only if a device is on a network, and sleeps while nothing changes, or what changes
    is not its interface's."""
    with followers(Follower(suite, SERVER), Follower(suite, SERVER, network=None)) as (public, private):
        expect((sockets_of(public.process), sockets_of(private.process)), (1, 0))
        address(SERVER, "add", "10.99.0.1", "lo")
        address(SERVER, "del", "10.99.0.1", "lo")
        taken = int(public.ask("rest 500"))
        if taken > 5000:
            raise Failure(f"{taken} us of the processor in half a second")


def main():
    if not os.environ.get(INSIDE):
        enter_namespaces()
    make_hosts()
    suite = Suite()
    for name, test in (("each address has a GID, and each change an event", tells_of_addresses),
                       ("GIDs keep their places", keeps_places),
                       ("the port goes down and up with the link", tells_of_the_link),
                       ("the link that changed while there was no descriptor", hears_late),
                       ("the active MTU is what fits", tells_of_the_mtu),
                       ("the first GID follows the MAC", tells_of_the_mac),
                       ("requests for addresses that came later are served", serves_later_addresses),
                       ("an address floats between hosts", lets_an_address_float),
                       ("binding to what can't be reached fails", binds_to_what_is_reached),
                       ("queue pairs survive a pause", survives_a_pause),
                       ("nothing is heard of without a network, and nothing costs time", rests)):
        def restored(test=test):
            try:
                return test(suite)
            finally:
                restore()
        suite.add(name, restored)
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
