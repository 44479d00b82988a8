#!/usr/bin/env python3
"""The datagrams that other hosts get from the cleanup process of a program that has ended (src/gsi/cleanup): an answer to the
DREQ of a connection that the program had, for 5 s, and nothing else. Between the namespaces of wire.py."""
import collections
import contextlib
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# pylint: disable=wrong-import-position
from clients import Failure
from librdmacm.connections import Hosts
from librdmacm.process_end import ENDING, Cleanup, named, stays, wait_until
from librdmacm.rdmacm import choose_port
from network.hostile import RC, ROCE, SEND_ONLY, STRANGER, UD, Attacker, socket_on, transport
from network.wire import ADDRESSES, CLIENT, INSIDE, SERVER, enter_namespaces, ip, make_hosts

REQ, MRA, REJ, REP, RTU, DREQ, DREP, SIDR_REQ, LAP = 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x19
ANOTHER = "10.91.0.78"  # of the server's host
LASTS, SOONER, LATER = 5, 0.5, 3  # seconds: until the process ends; by how much that may differ
QUIET = 0.3  # seconds within which an answer would have arrived
REPEATED = 3  # how often an answer is sent, as the peer may not ask again before the process ends
TRANSACTION, QKEY, CLASS, PERFORMANCE = 0x5eed, 0x80010000, 7, 4

Message = collections.namedtuple("Message", "transaction attribute local remote")


def message(attribute, local, remote, management_class=CLASS):
    """A MAD with both communication IDs, for queue pair 1."""
    payload = struct.pack(">4BIQHHIII", 1, management_class, 2, 3, 0, TRANSACTION, attribute, 0, 0, local, remote)
    return transport(UD | SEND_ONLY, 1, 0, struct.pack(">II", QKEY, 1), payload + bytes(256 - len(payload)))


def told(packet):
    """A MAD for queue pair 1 as a message, another packet as its bytes."""
    if len(packet) < 52 or packet[0] != UD | SEND_ONLY or packet[5:8] != bytes((0, 0, 1)):
        return packet
    return Message(*struct.unpack_from(">QHxxxxxxII", packet, 20 + 8))


class Sniffer:
    """The datagrams that the server's host sends by UDP and IPv4."""

    def __init__(self):
        self.socket = socket_on(CLIENT, socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
        self.socket.bind(("eth0", 0x0800))
        self.socket.setblocking(False)
        self.seen = []

    def look(self):
        with contextlib.suppress(BlockingIOError):
            while frame := self.socket.recv(65535):
                if frame[23] == socket.IPPROTO_UDP and socket.inet_ntoa(frame[26:30]) in (ADDRESSES[SERVER][0], ANOTHER):
                    self.seen.append(told(frame[42:]))
        return self.seen

    def other_than(self, attribute):
        return [one for one in self.look() if not isinstance(one, Message) or one.attribute != attribute]

    def of(self, attribute):
        return [one for one in self.look() if isinstance(one, Message) and one.attribute == attribute]


def listens(sender):
    """False: the port is closed. The kernel says so when the second of two packets is sent."""
    with contextlib.suppress(ConnectionRefusedError):
        sender.send(b"nothing")
        select.select([sender.socket], [], [], 0.05)  # the kernel's refusal of the first is an event
        sender.send(b"nothing")
        return True
    return False


def has_port():
    """A process of the server's host has the port of RoCE."""
    table = subprocess.run(["ip", "netns", "exec", SERVER, "cat", "/proc/net/udp"], capture_output=True, text=True, check=True).stdout
    return f":{ROCE:04X} " in table


@contextlib.contextmanager
def ended(suite, sniffer, count):
    """A server that is killed when it has an idle connection with each of `count` clients, which are stopped by then. Gives
    the communication IDs of each connection, the server's first."""
    port, programs = choose_port(), []
    try:
        programs.append(suite.start_server([ENDING, "server", suite.address, port, ""]))
        programs[0].wait_for("listens")
        for _ in range(count):
            programs.append(suite.start_client([ENDING, "client", suite.address, port]))
            programs[-1].wait_for("connected")
        programs[0].wait_for("connected\n" * count)
        for pid in named(CLIENT, "idle_connection"):
            os.kill(pid, signal.SIGSTOP)
        numbers = sorted({(one.local, one.remote) for one in sniffer.of(REP)})
        os.kill(named(SERVER, "idle_connection")[0], signal.SIGKILL)
        sniffer.seen.clear()
        yield numbers
    finally:
        for program in programs:
            program.kill()


@contextlib.contextmanager
def more_addresses():
    """Adds an address of a third party on the client's host, and a second one on the server's host."""
    for host, address in ((CLIENT, STRANGER[4]), (SERVER, ANOTHER)):
        ip("-n", host, "address", "add", f"{address}/24", "dev", "eth0")
    try:
        yield
    finally:
        for host, address in ((CLIENT, STRANGER[4]), (SERVER, ANOTHER)):
            ip("-n", host, "address", "delete", f"{address}/24", "dev", "eth0")


def without_right(numbers):
    """Packets that get no answer, each with its sender."""
    (server, client), (other_server, other_client) = numbers
    peer, stranger, elsewhere = Attacker(4), Attacker(4, STRANGER[4]), Attacker(4, target=ANOTHER)
    wrong = [(client, server ^ 1), (client ^ 1, server), (client, other_server), (other_client, server), (server, client), (client, 0),
             (0, server), (0, 0)]
    packets = [(peer, message(DREQ, *pair)) for pair in wrong]
    packets += [(who, message(DREQ, client, server)) for who in (stranger, elsewhere)]
    packets += [(peer, message(attribute, client, server)) for attribute in (REQ, MRA, REJ, REP, RTU, SIDR_REQ, LAP)]
    packets += [(peer, message(DREQ, client, server, PERFORMANCE)), (peer, transport(RC | SEND_ONLY, 17, payload=bytes(16)))]
    return packets


def answers_one_thing(suite):
    sniffer, cleanup = Sniffer(), Cleanup(SERVER)
    with more_addresses(), ended(suite, sniffer, 2) as numbers:
        end, (server, client) = time.monotonic(), numbers[0]
        wait_until(lambda: len({one.local for one in sniffer.of(DREQ)}) == 2, "both clients get a DREQ")
        wait_until(lambda: listens(Attacker(4)), "the cleanup process listens", 1)
        packets = without_right(numbers)
        for sender, packet in packets:
            sender.send(sender.seal(packet))
        stays(lambda: not sniffer.other_than(DREQ), "what deserves no answer gets none", QUIET)
        peer = Attacker(4)
        peer.send(peer.seal(message(DREQ, client, server)))
        wait_until(lambda: sniffer.other_than(DREQ), "the answer to the right DREQ")
        wait_until(lambda: not cleanup.there(), "the cleanup process ends", LASTS + LATER)
        lasted = time.monotonic() - end
        answers, right = sniffer.other_than(DREQ), Message(TRANSACTION, DREP, server, client)
        if answers != REPEATED * [right]:
            raise Failure(f"the answers are {answers}, not {right} {REPEATED} times")
        if lasted < LASTS - SOONER:
            raise Failure(f"the cleanup process lasted {lasted:.1f} s")
        before = len(sniffer.look())
        peer.send(peer.seal(message(DREQ, *reversed(numbers[1]))))
        stays(lambda: len(sniffer.look()) == before, "nothing answers after its end", QUIET)
    return f"an answer {REPEATED} times, {len(packets)} packets without one, {lasted:.1f} s"


def answers_of(sniffer, local):
    return [one for one in sniffer.of(DREP) if one.local == local]


def answers_again_without_a_port(suite):
    """A server that is killed when it has answered the client's DREQ: the answer may be lost, so it is sent again; no later
    message would change that, so another user can have the port."""
    sniffer, cleanup, port, programs = Sniffer(), Cleanup(SERVER), choose_port(), []
    try:
        programs.append(suite.start_server([ENDING, "server", suite.address, port, ""]))
        programs[0].wait_for("listens")
        programs.append(suite.start_client([ENDING, "client", suite.address, port]))
        programs[1].wait_for("connected")
        programs[0].wait_for("connected")
        os.kill(named(CLIENT, "idle_connection")[0], signal.SIGUSR1)
        programs[1].wait_for("disconnected")
        server = sniffer.of(REP)[-1].local
        if not has_port():
            raise Failure("the program does not have the port")
        os.kill(named(SERVER, "idle_connection")[0], signal.SIGKILL)
        wait_until(lambda: len(answers_of(sniffer, server)) == 1 + REPEATED, f"the answer comes {REPEATED} times more")
        if has_port():
            raise Failure("the port is kept")
        if len(set(answers_of(sniffer, server))) != 1:
            raise Failure(f"the answers are {answers_of(sniffer, server)}")
        wait_until(lambda: not cleanup.there(), "the cleanup process ends", LASTS + LATER)
    finally:
        for program in programs:
            program.kill()


def main():
    if not os.environ.get(INSIDE):
        enter_namespaces()
    make_hosts()
    suite = Hosts()
    suite.add("a DREQ with both IDs and addresses is answered for 5 s, and nothing else", lambda: answers_one_thing(suite))
    suite.add("an answer is sent again after the end, and no port is kept for it", lambda: answers_again_without_a_port(suite))
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
