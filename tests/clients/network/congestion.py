#!/usr/bin/env python3
"""Marks of congestion between two hosts (the namespaces of wire.py): the receiver of a marked packet notifies the sender, which
sends less at a time."""
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# pylint: disable=wrong-import-position
from clients import BUILD, Failure
from network.capture import COMMENT, has_no_complaint, tshark
from network.wire import CLIENT, GID_INDEX, INSIDE, SERVER, SNIFF, add_addresses, enter_namespaces, ip, set_mtu
from network.wire_faults import Network

ECN_ROUTER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ecn_router.py")
CNP, ACK, WRITES = 0x81, 0x11, range(0x06, 0x0c)
SENT, PSN_MASK = 2, 0xffffff
MESSAGES, SIZE = 150, 65536
PORTS = {CLIENT: "left", SERVER: "right"}  # of what is in between, where this script runs


def make_hosts():
    """Joined by what is ecn_router.py's to do."""
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)  # where "ip netns" keeps its names
    for host, port in PORTS.items():
        ip("netns", "add", host)
        ip("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", host)
        ip("link", "set", port, "up")
    add_addresses()
    set_mtu(1500)
    for host in PORTS:  # older kernels don't show a packet socket what is still to be cut up
        ip("-n", host, "link", "set", "eth0", "gso_max_segs", "1")


@contextlib.contextmanager
def running(*command):
    """A script that prints a line when it has begun."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            process.stdout.readline()
            yield
        finally:
            process.terminate()


def writes(suite, directory, marks):
    """ib_write_bw from client to server; what the client and the server counted."""
    counters = f"{directory}/counters"
    suite.more = {"SOFTVERBS_CAPTURE": f"{directory}/%p.pcapng", "SOFTVERBS_COUNTERS": counters}
    with running(sys.executable, ECN_ROUTER, "left", "right", *marks):
        suite.pair(["ib_write_bw", "-F", "-n", str(MESSAGES), "-s", str(SIZE)])
    with open(counters, encoding="ascii") as lines:
        reports = {json.loads(line)["pid"]: json.loads(line)["traffic"][0] for line in lines}
    client = next(pid for pid, report in reports.items() if report["bytes_sent"] >= MESSAGES * SIZE)
    return client, reports.pop(client), reports.popitem()[1]


def under_way(path):
    """The median of the packets that were on the way at a time, in the second half of what was sent."""
    newest = acknowledged = None
    found = []
    for opcode, psn, flags in tshark(path, "infiniband.bth.opcode", "infiniband.bth.psn", "frame.packet_flags"):
        opcode, psn, sent = int(opcode), int(psn), int(flags, 0) & 3 == SENT
        if sent and opcode in WRITES:
            acknowledged = (psn - 1) & PSN_MASK if acknowledged is None else acknowledged
            newest = psn
            found.append((newest - acknowledged) & PSN_MASK)
        elif not sent and opcode == ACK:
            acknowledged = psn
    return statistics.median_low(found[len(found) // 2:])


def slows_down(suite):
    with tempfile.TemporaryDirectory() as directory:
        client, sender, receiver = writes(suite, directory, [])
        told, free = sender["cnps_received"] + receiver["cnps_sent"], under_way(f"{directory}/{client}.pcapng")
    if told:
        raise Failure(f"{told} notifications without a mark")
    with tempfile.TemporaryDirectory() as directory:
        client, sender, receiver = writes(suite, directory, ["mark"])
        fewer = under_way(f"{directory}/{client}.pcapng")
        has_no_complaint(f"{directory}/{client}.pcapng")
    told = f"{receiver['cnps_sent']} notifications were sent, {sender['cnps_received']} came, {fewer} packets are under way, not {free}"
    if sender["cnps_received"] < 20 or receiver["cnps_sent"] != sender["cnps_received"] or fewer > min(40, free / 2):
        raise Failure(told)
    return told


def is_right_on_the_wire(suite):
    """tshark has no complaint about the packets on the wire, and marks on the way harm no ICRC. The sniffer may miss some
    packets."""
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/wire.pcap"
        with running("ip", "netns", "exec", SERVER, sys.executable, SNIFF, "eth0", path):
            _, _, receiver = writes(suite, directory, ["mark"])
        found = tshark(path, "infiniband.bth.opcode", "_ws.malformed", "_ws.expert.severity", "ip.dsfield.ecn",
                       "ipv6.tclass.ecn", checksums=False)
        shown = subprocess.run([f"{BUILD}/softverbs", "decode", path], capture_output=True, text=True, check=False)
    notifications = [row for row in found if row[0] == str(CNP)]
    complaints = [row for row in notifications if row[1] or (row[2] and max(map(int, row[2].split(","))) > COMMENT)]
    marked = sum("3" in row[3:] for row in found)
    told = receiver["cnps_sent"]
    if not told / 2 < len(notifications) <= told or complaints or marked < MESSAGES * SIZE / 2048 or shown.returncode:
        raise Failure(f"{len(notifications)} notifications on the wire, not {told}; {marked} marked packets; "
                      f"{complaints[:1]}\n{shown.stdout[-500:]}{shown.stderr}")
    return f"{len(notifications)} notifications"


def main():
    if not os.environ.get(INSIDE):
        enter_namespaces()
    make_hosts()
    suite = Network()
    for version in GID_INDEX:
        suite.at(1500, version, "who is told of congestion sends less at a time", lambda: slows_down(suite))
        suite.at(1500, version, "marks and notifications are right on the wire", lambda: is_right_on_the_wire(suite))
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
