#!/usr/bin/env python3
"""A host on two networks: what arrives over the one, or at its address there, is nothing for a connection on the other,
whatever source address it bears, and nothing for a datagram's receiver there (IBA 9.6.1; the kernel's rxe compares the same).
The attacker has the peer's address and knows all numbers."""
import contextlib
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# pylint: disable=wrong-import-position
from network.hostile import ALIVE, RC, SEND_ONLY, UC, Attacker, attack, captured, counted_on_server, datagram, dropped, transport, vault_write
from network.wire import ADDRESSES, CLIENT, GID_INDEX, INSIDE, LISTENER, SERVER, Wire, configure, enter_namespaces, ip, make_hosts
from patience import patience

OUTSIDE = "outside"  # a host of the other network
THERE = {SERVER: ("10.92.0.1", "fd92::1"), OUTSIDE: ("10.92.0.2", "fd92::2")}
DESTINATION = 27


def hardware_address(host, interface):
    shown = subprocess.run(["ip", "-n", host, "-json", "link", "show", interface], capture_output=True, check=True)
    return json.loads(shown.stdout)[0]["address"]


def make_other_network():
    ip("netns", "add", OUTSIDE)
    ip("link", "add", "eth1", "netns", SERVER, "type", "veth", "peer", "name", "eth0", "netns", OUTSIDE)
    ip("link", "add", "eth1", "netns", CLIENT, "type", "veth", "peer", "name", "eth2", "netns", CLIENT) # programs have the same options
    for host, interface in ((SERVER, "eth1"), (OUTSIDE, "eth0")):
        ip("-n", host, "link", "set", interface, "up")
        for address, length in zip(THERE[host], ("24", "64")):
            ip("-n", host, "address", "add", f"{address}/{length}", "dev", interface, *(["nodad"] if ":" in address else []))
    for number, (peer, victim, gate) in enumerate(zip(ADDRESSES[CLIENT], ADDRESSES[SERVER], THERE[SERVER])):
        family = "-6" if number else "-4"
        ip("-n", OUTSIDE, "address", "add", f"{peer}/{128 if number else 32}", "dev", "eth0", *(["nodad"] if number else []))
        ip("-n", OUTSIDE, family, "route", "add", victim, "dev", "eth0")
        ip("-n", CLIENT, family, "route", "add", gate, "via", victim)
        for address in (victim, gate):
            ip("-n", OUTSIDE, "neighbour", "replace", address, "lladdr", hardware_address(SERVER, "eth1"), "dev", "eth0")


def refuse_nothing():
    """The server's kernel takes a packet over any interface, as many do."""
    configure(SERVER, *(f"net.ipv4.conf.{interface}.rp_filter=0" for interface in ("all", "eth0", "eth1")))


class Elsewhere(Attacker):
    """The client's address, on a host, to one of the server's addresses."""

    def __init__(self, version, host, target):
        super().__init__(version, host=host, target=target[version == 6])


WAYS = {"to the other network's address, from there": (OUTSIDE, THERE[SERVER]),
        "to the right address, from the other network": (OUTSIDE, ADDRESSES[SERVER]),
        "to the other network's address, from the peer's host": (CLIENT, THERE[SERVER])}


@contextlib.contextmanager
def process_there(suite):
    """Another process of the host, of the same directory, that is on the other network."""
    command = ["ip", "netns", "exec", SERVER, f"{suite.root}/softverbs", "run", "--net", "eth1", "--", "/usr/bin/python3", LISTENER, "1"]
    os.makedirs(f"{suite.directory}/{SERVER}", mode=0o700, exist_ok=True)
    with subprocess.Popen(command, env=suite.host_environment(SERVER), text=True, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        try:
            yield
        finally:
            process.communicate("\n", timeout=patience(20))


def does_not_cross(suite, way, other_process):
    with process_there(suite) if other_process else contextlib.nullcontext(), captured(suite) as attacked:
        attacked.dropped = lambda: dropped(counted_on_server(attacked.suite))
        attacker = Elsewhere(suite.version, *WAYS[way])
        number = attacked.numbers["rc"]
        packets = [vault_write(attacked), vault_write(attacked, pair="uc", service=UC), datagram(attacked),
                   transport(RC | SEND_ONLY, number, attacked.psn, payload=b"EVIL"), transport(0x81, number, payload=bytes(16))]
        attack(attacked, attacker, [attacker.seal(packet) for packet in packets] * ALIVE, {DESTINATION: len(packets) * ALIVE})
    return f"{len(packets) * ALIVE} datagrams"


def main():
    if not os.environ.get(INSIDE):
        enter_namespaces()
    make_hosts()
    make_other_network()
    refuse_nothing()
    suite = Wire()
    for version in GID_INDEX:
        for way in WAYS:
            suite.at(1500, version, f"{way}, by way of another process", lambda way=way: does_not_cross(suite, way, True))
            suite.at(1500, version, f"{way}, within a process on both", lambda way=way: does_not_cross(suite, way, False),
                     ["--net", "eth0,eth1"])
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
