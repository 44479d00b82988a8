#!/usr/bin/env python3
"""Hostile datagrams: a datagram that an attacker with a socket sends to a running program is counted by its reason, never changes
anything, and the program's own traffic continues. The attacker may have the address and the knowledge of the peer; if the
protocol lets such a peer end the connection (by a request that breaks a rule), that queue pair ends and no other."""
import contextlib
import ctypes
import json
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import time
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# pylint: disable=wrong-import-position
from clients import Failure, free_port
from network.capture import tshark
from network.wire import ADDRESSES, CLIENT, GID_INDEX, HERE, INSIDE, SERVER, Wire, enter_namespaces, ip, make_hosts
from patience import until

ATTACKED_SERVER = f"{HERE}/attacked_server.py"
STRANGER = {4: "10.91.0.77", 6: "fd91::77"}
ROCE, PARTITION, QKEY, NEW_NETWORK = 4791, 0xffff, 0x11111111, 0x40000000
SEND_FIRST, SEND_MIDDLE, SEND_ONLY, WRITE_ONLY, READ_REQUEST, ACKNOWLEDGE, FETCH_ADD = 0, 1, 4, 10, 12, 17, 20
RC, UC, UD, XRC, SRD, DC = 0, 1 << 5, 3 << 5, 5 << 5, 6 << 5, 7 << 5
TRUNCATED, VERSION, OPCODE, PAD, PAYLOAD, ICRC, NO_QP, SERVICE, BAD_PKEY, BAD_QKEY, SOURCE, PSN, STALE, SEQUENCE, NO_RECEIVE, \
    TOO_LONG, MEMORY, MAD_LENGTH, MAD_CLASS, MAD_MESSAGE, MAD_UNSOLICITED, TOO_MANY = \
    1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 22, 23, 24, 25, 30
REMOTE_KEY, REMOTE_RANGE, ALIGNMENT, LENGTH, ILLEGAL = 205, 207, 210, 212, 214  # what ends a connection
ALIVE = 25  # datagrams of each kind
FLOOD = 100_000
GROWTH = 4096  # KiB that a flood may leave in use


def transport(opcode, pair, psn=0, headers=b"", payload=b"", pkey=PARTITION, version=0, pad=None):
    """BTH, other headers, payload and pad."""
    pad = -len(payload) & 3 if pad is None else pad
    return struct.pack(">BBHII", opcode, 0x40 | pad << 4 | version, pkey, pair, 1 << 31 | psn & 0xffffff) + headers + payload + \
        b"\0" * (-len(payload) & 3)


def write_headers(address, rkey, length):
    return struct.pack(">QII", address, rkey, length)


class Attacker:
    """A socket on the client's host or another one, with the client's address or another one of that host."""

    def __init__(self, version, address=None, host=CLIENT, target=None):
        self.version, self.family = version, socket.AF_INET if version == 4 else socket.AF_INET6
        self.target = target or ADDRESSES[SERVER][version == 6]
        self.source = address or ADDRESSES[CLIENT][version == 6]
        self.socket = socket_on(host, self.family, socket.SOCK_DGRAM)
        if version == 4:
            self.socket.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER, IP_PMTUDISC_DO: identification 0
        self.socket.bind((self.source, 0))
        self.socket.connect((self.target, ROCE))
        self.port = self.socket.getsockname()[1]

    def below(self, length):
        """The bytes that the ICRC covers below the BTH (RoCEv2 annex, A17.3.3): fields that routers may change count as ones."""
        source, target = [socket.inet_pton(self.family, address) for address in (self.source, self.target)]
        udp = struct.pack(">HHHH", self.port, ROCE, 8 + length, 0xffff)
        if self.version == 4:
            return struct.pack(">BBHHHBBH", 0x45, 0xff, 28 + length, 0, 0x4000, 0xff, 17, 0xffff) + source + target + udp
        return struct.pack(">IHBB", 0x6fffffff, 8 + length, 17, 0xff) + source + target + udp

    def seal(self, packet):
        covered = b"\xff" * 8 + self.below(len(packet) + 4) + packet[:4] + b"\xff" + packet[5:]
        return packet + struct.pack("<I", zlib.crc32(covered))

    def send(self, packet):
        self.socket.send(packet)


def socket_on(host, *kind):
    """A socket in another network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net", "rb") as own, open(f"/run/netns/{host}", "rb") as other:
        if libc.setns(other.fileno(), NEW_NETWORK):
            raise OSError(ctypes.get_errno(), "setns")
        try:
            return socket.socket(*kind)
        finally:
            libc.setns(own.fileno(), NEW_NETWORK)


def counted_on_server(suite):
    """The counts of each process of the server's host. One that waits for a processor of a busy machine is asked again."""
    command, deadline = [f"{suite.root}/softverbs", "stat", "--once", "--json"], until(20)
    while True:
        done = subprocess.run(command, env=suite.host_environment(SERVER), capture_output=True, check=True)
        reports = json.loads(done.stdout)
        if all("traffic" in report for report in reports) or time.monotonic() > deadline:
            return reports


def dropped(reports):
    """Packets, by reason."""
    sums = {}
    for report in reports:
        for traffic in [*report["traffic"], report["strays"]]:
            for reason, count in traffic["dropped"].items():
                sums[int(reason)] = sums.get(int(reason), 0) + count
    return sums


class Attacked:
    """The server and its peer."""

    def __init__(self, suite):
        self.suite, port = suite, str(free_port())
        self.psn = 0  # that the server's RC queue pair expects
        command = ["/usr/bin/python3", ATTACKED_SERVER, suite.gid, port]
        options = {"text": True, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.server = subprocess.Popen(suite.on(SERVER, command), env=suite.host_environment(SERVER), **options)
        deadline = until(30)
        while not self.listens(int(port)):
            if time.monotonic() > deadline:
                raise Failure("the server does not listen")
            time.sleep(0.02)
        self.client = subprocess.Popen([*suite.on(CLIENT, command), ADDRESSES[SERVER][0]], env=suite.host_environment(CLIENT), **options)
        self.numbers = json.loads(self.line(self.server))

    def listens(self, port):
        with open(f"/proc/{self.server.pid}/net/tcp", encoding="ascii") as lines:
            return any(f":{port:04X} " in line and " 0A " in line for line in lines)

    def line(self, process):
        """The next line of a process; a process that says nothing for long is stuck."""
        if not select.select([process.stdout], [], [], 120)[0]:
            raise Failure("the programs are stuck")
        return process.stdout.readline()

    def ask(self, count, length, *services):
        self.client.stdin.write(f"{count} {length} {' '.join(services)}\n")
        self.client.stdin.flush()
        answer = self.line(self.client).strip()
        if answer != "fine":
            raise Failure(f"after it the programs say: {answer or 'nothing'}")
        if "rc" in services:
            self.psn += count * max(1, -(-length // 1024))

    def dropped(self):
        """The server's counters: reason -> packets, of all its queue pairs and of packets for no queue pair."""
        report, = counted_on_server(self.suite)
        return dropped([report])

    def settle(self):
        """Waits until what is in the server's sockets has been read; unreliable messages find no room there before."""
        before, now = None, self.dropped()
        while now != before:
            time.sleep(0.3)
            before, now = now, self.dropped()

    def memory(self):
        with open(f"/proc/{self.server.pid}/status", encoding="ascii") as lines:
            return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))

    def close(self):
        for process in (self.client, self.server):
            process.stdin.close()
        statuses = []
        for process in (self.client, self.server):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            statuses.append(process.poll())
            process.kill()
        return statuses


def counted(attacked, before, expected):
    """Waits until the counters have gone up by this, and no more. Some are in the interface for a moment."""
    deadline = until(10)
    while True:
        now = attacked.dropped()
        more = {reason: count - before.get(reason, 0) for reason, count in now.items() if count != before.get(reason, 0)}
        if more == expected:
            return
        if time.monotonic() > deadline:
            raise Failure(f"dropped, by reason: {more}, expected {expected}")
        time.sleep(0.05)


def attack(attacked, attacker, packets, expected):
    """Sends, looks at the counters, and at the programs."""
    before = attacked.dropped()
    for packet in packets:
        attacker.send(packet)
    counted(attacked, before, expected)
    attacked.ask(3, 1000, "rc", "uc", "ud")


# --- what is sent: each gives datagrams, and how often they are to be counted by which reason


def flipped(packet, at):
    return packet[:at] + bytes([packet[at] ^ 1]) + packet[at + 1:]


def vault_write(attacked, psn=0, pkey=PARTITION, pair="rc", service=RC, rkey=None, payload=b"\xee" * 64):
    numbers = attacked.numbers
    headers = write_headers(numbers["vault"], numbers["rkey"] if rkey is None else rkey, len(payload))
    return transport(service | WRITE_ONLY, numbers[pair] if isinstance(pair, str) else pair, attacked.psn + psn, headers, payload, pkey)


def datagram(attacked, qkey=QKEY, pkey=PARTITION, payload=b"\xee" * 64):
    return transport(UD | SEND_ONLY, attacked.numbers["ud"], 0, struct.pack(">II", qkey, 5), payload, pkey)


def wrong_icrc(attacked, attacker):
    """A flipped bit in each place but the one that no ICRC covers; the same bit always makes the same difference, so whether an
    identification of IPv4 explains it does not change from run to run."""
    packet = attacker.seal(vault_write(attacked))
    wrong = [flipped(packet, at) for at in range(len(packet)) if at != 4]
    return wrong, {ICRC: len(wrong)}


def truncated(attacked, attacker):
    """Datagrams cut at each length, with the ICRC of the whole, and with their own."""
    whole = vault_write(attacked)
    own = [attacker.seal(whole[:length]) for length in range(12, 28)]
    return [whole[:length] for length in range(16)] + own, {TRUNCATED: 16 + len(own)}


def cut_behind_its_headers(attacked, attacker):
    """A payload that is not a multiple of four, or more pad than payload."""
    cut = [attacker.seal(datagram(attacked)[:length]) for length in range(21, 60) if length % 4]
    padded = [attacker.seal(transport(UD | SEND_ONLY, attacked.numbers["ud"], 0, struct.pack(">II", QKEY, 5), b"", pad=3))]
    return cut + padded, {PAD: len(cut) + 1}


def longer_than_the_path_mtu(attacked, attacker):
    return [attacker.seal(datagram(attacked, payload=b"\xee" * 1400))] * ALIVE, {TOO_LONG: ALIVE}


def another_version(attacked, attacker):
    packets = [transport(RC | SEND_ONLY, attacked.numbers["rc"], attacked.psn, version=version) for version in range(1, 16)]
    return [attacker.seal(packet) for packet in packets], {VERSION: 15}


def reserved_operations(attacked, attacker):
    """All of RD, of what has no service, and what is left of the others."""
    known = {RC: set(range(21)) | {22, 23, 28, 29}, UC: set(range(12)), UD: {4, 5}, XRC: set(range(21)) | {22, 23, 28, 29}, 4 << 5: {1},
             SRD: {4, 5, 10, 11, 12, 16, 17, 24, 25}, DC: {24, 25}}
    opcodes = [opcode for opcode in range(256) if opcode & 31 not in known.get(opcode & 0xe0, set())]
    packets = [transport(opcode, attacked.numbers["rc"], attacked.psn, payload=b"\xee" * 64) for opcode in opcodes]
    return [attacker.seal(packet) for packet in packets], {OPCODE: len(opcodes)}


def payload_where_there_is_none(attacked, attacker):
    packet = transport(RC | ACKNOWLEDGE, attacked.numbers["rc"], attacked.psn, struct.pack(">I", 0x1f << 24), b"\xee" * 64)
    return [attacker.seal(packet)] * ALIVE, {PAYLOAD: ALIVE}


def unknown_queue_pairs(attacked, attacker):
    numbers = [number for number in (0, 2, 0xabcde, 0xfffffe, attacked.numbers["spares"][-1] + 100)]
    return [attacker.seal(vault_write(attacked, pair=number)) for number in numbers], {NO_QP: len(numbers)}


def another_service(attacked, attacker):
    packets = [vault_write(attacked, service=UC), vault_write(attacked, pair="uc"), vault_write(attacked, pair="ud")]
    return [attacker.seal(packet) for packet in packets] * ALIVE, {SERVICE: 3 * ALIVE}


def wrong_partition(attacked, attacker):
    packets = [vault_write(attacked, pkey=pkey, pair=pair, service=service) for pkey in (0, 0x8000, 0x8001, 0x7ffe)
               for pair, service in (("rc", RC), ("uc", UC))] + [datagram(attacked, pkey=0x8001)]
    return [attacker.seal(packet) for packet in packets] * ALIVE, {BAD_PKEY: 9 * ALIVE}


def wrong_qkey(attacked, attacker):
    return [attacker.seal(datagram(attacked, qkey=qkey)) for qkey in (0, 1, QKEY ^ 1, 0x80010000)] * ALIVE, {BAD_QKEY: 4 * ALIVE}


def ahead_of_the_window(attacked, attacker):
    """Up to half of the circle away; with operations that would write, read and add."""
    numbers, packets = attacked.numbers, []
    for psn in (1, 2, 1000, 0x10000, 0x7ffffe):
        packets.append(vault_write(attacked, psn))
        packets.append(transport(READ_REQUEST, numbers["rc"], attacked.psn + psn, write_headers(numbers["vault"], numbers["rkey"], 64)))
        packets.append(transport(FETCH_ADD, numbers["rc"], attacked.psn + psn,
                                 struct.pack(">QIQQ", numbers["vault"], numbers["rkey"], 1, 0)))
    return [attacker.seal(packet) for packet in packets] * 2, {PSN: 2 * len(packets)}


def behind_the_window(attacked, attacker):
    """READs and atomics that were never executed; a WRITE from there is a repeat, which is acknowledged and not executed."""
    numbers = attacked.numbers
    packets = [transport(READ_REQUEST, numbers["rc"], attacked.psn - 1, write_headers(numbers["vault"], numbers["rkey"], 64)),
               transport(FETCH_ADD, numbers["rc"], attacked.psn - 2, struct.pack(">QIQQ", numbers["vault"], numbers["rkey"], 1, 0)),
               vault_write(attacked, -1), vault_write(attacked, -0x7fffff)]
    return [attacker.seal(packet) for packet in packets] * ALIVE, {PSN: 2 * ALIVE}


def answers_to_nothing(attacked, attacker):
    packets = [transport(RC | ACKNOWLEDGE, attacked.numbers["rc"], psn, struct.pack(">I", syndrome << 24))
               for psn in (0, 1, 0x7fffff, 0x800000) for syndrome in (0x1f, 0x20, 0x60, 0x62, 0x40)]
    return [attacker.seal(packet) for packet in packets], {STALE: len(packets)}


def middles_without_a_first(attacked, attacker):
    """Unreliable messages: one with a gap, one that never began."""
    number = attacked.numbers["uc"]
    packets = [transport(UC | SEND_MIDDLE, number, psn + 0x400000, payload=b"\xee" * 64) for psn in range(ALIVE)]
    return [attacker.seal(packet) for packet in packets], {PSN: ALIVE}


def datagrams_that_nobody_waits_for(attacked, attacker):
    messages = [datagram(attacked), transport(UC | SEND_ONLY, attacked.numbers["uc"], 7, payload=b"\xee" * 64)]
    return [attacker.seal(packet) for packet in messages] * ALIVE, {NO_RECEIVE: 2 * ALIVE}


def wrong_rkey_of_an_unreliable_write(attacked, attacker):
    rkey = attacked.numbers["rkey"]
    packets = [vault_write(attacked, pair="uc", service=UC, rkey=wrong) for wrong in (0, rkey ^ 1, rkey + 0x100, 0xffffffff)]
    beyond = transport(UC | WRITE_ONLY, attacked.numbers["uc"], 0, write_headers(attacked.numbers["vault"] + 4090, rkey, 64), b"\xee" * 64)
    return [attacker.seal(packet) for packet in [*packets, beyond]] * ALIVE, {MEMORY: 5 * ALIVE}


def nonsense_for_queue_pair_1(attacked, attacker):
    """A wrong Q_Key, another service, too short, of another class, a message that RoCE does not have (LAP), replies without a
    request."""
    def management(attribute, request=0, head=b"\1\7\2\3", length=256, qkey=0x80010000):
        payload = head + bytes(12) + struct.pack(">HHII", attribute, 0, 0, request)
        return transport(UD | SEND_ONLY, 1, 0, struct.pack(">II", qkey, 1), payload + bytes(length - len(payload)))
    packets = [management(0x17, qkey=QKEY), transport(RC | SEND_ONLY, 1), management(0x17, length=252), management(0x17, head=bytes(4)),
               management(0x19), management(0x18), management(0x18, attacked.numbers["rc"])]
    expected = {BAD_QKEY: ALIVE, SERVICE: ALIVE, MAD_LENGTH: ALIVE, MAD_CLASS: ALIVE, MAD_MESSAGE: ALIVE, MAD_UNSOLICITED: 2 * ALIVE}
    return [attacker.seal(packet) for packet in packets] * ALIVE, expected


def right_but_from_a_stranger(attacked, attacker):
    """Number, PSN, keys: everything but the address."""
    stranger = Attacker(attacker.version, STRANGER[attacker.version])
    packets = [vault_write(attacked), vault_write(attacked, pair="uc", service=UC),
               transport(RC | ACKNOWLEDGE, attacked.numbers["rc"], 0, struct.pack(">I", 0x62 << 24)),
               transport(READ_REQUEST, attacked.numbers["rc"], attacked.psn,
                         write_headers(attacked.numbers["vault"], attacked.numbers["rkey"], 64))]
    attacker.send = stranger.send
    return [stranger.seal(packet) for packet in packets] * ALIVE, {SOURCE: 4 * ALIVE}


KINDS = (wrong_icrc, truncated, right_but_from_a_stranger, ahead_of_the_window, cut_behind_its_headers, longer_than_the_path_mtu,
         another_version, reserved_operations, payload_where_there_is_none, unknown_queue_pairs, another_service, wrong_partition,
         wrong_qkey, behind_the_window, answers_to_nothing, middles_without_a_first, datagrams_that_nobody_waits_for,
         wrong_rkey_of_an_unreliable_write, nonsense_for_queue_pair_1)


# --- the tests


@contextlib.contextmanager
def captured(suite):
    """Runs two programs, and then adds the address of a third party on the client's host; the programs must still end well when
    all is over."""
    address = [f"{STRANGER[suite.version]}/{24 if suite.version == 4 else 64}", "dev", "eth0"]
    attacked, well = Attacked(suite), False
    try:
        attacked.ask(3, 1000, "rc", "uc", "ud")
        ip("-n", CLIENT, "address", "add", *address, *(["nodad"] if suite.version == 6 else []))
        try:
            yield attacked
        finally:
            ip("-n", CLIENT, "address", "delete", *address)
        well = True
    finally:
        statuses = attacked.close()
    if well and statuses != [0, 0]:
        raise Failure(f"the programs end with {statuses}")


def are_counted(suite, kind):
    with captured(suite) as attacked:
        attacker = Attacker(suite.version)
        packets, expected = kind(attacked, attacker)
        attack(attacked, attacker, packets, expected)
    return f"{len(packets)} datagrams"


def ends_its_own_connection(suite):
    """A peer breaks a rule: each of these ends the queue pair that it reached, as the specification has it, and the others
    work on."""
    with captured(suite) as attacked:
        attacker, numbers = Attacker(suite.version), attacked.numbers
        target = write_headers(numbers["vault"], numbers["rkey"], 64)
        bad = (transport(WRITE_ONLY, numbers["spares"][0], 0, write_headers(numbers["vault"], numbers["rkey"] ^ 1, 64), b"\xee" * 64),
               transport(WRITE_ONLY, numbers["spares"][1], 0, write_headers(numbers["vault"] + 4090, numbers["rkey"], 64), b"\xee" * 64),
               transport(WRITE_ONLY, numbers["spares"][2], 0, target, b"\xee" * 60),
               transport(SEND_MIDDLE, numbers["spares"][3], 0, payload=b"\xee" * 64),
               transport(READ_REQUEST, numbers["spares"][4], 0, write_headers(numbers["vault"], numbers["rkey"], 1 << 31)),
               transport(WRITE_ONLY, numbers["spares"][6], 0, write_headers(numbers["vault"], numbers["rkey"], 1400), b"\xee" * 1400),
               transport(FETCH_ADD, numbers["spares"][5], 0, struct.pack(">QIQQ", numbers["vault"] + 1, numbers["rkey"], 1, 0)))
        attack(attacked, attacker, [attacker.seal(packet) for packet in bad],
               {REMOTE_KEY: 1, REMOTE_RANGE: 2, ALIGNMENT: 1, LENGTH: 2, ILLEGAL: 1})
        attack(attacked, attacker, [attacker.seal(packet) for packet in bad], {8: len(bad)})
    return f"{len(bad)} ways"


def are_captured(suite):
    """The capture has a datagram that can't be decoded unchanged, with a comment that says what is wrong with it."""
    with captured(suite) as attacked:
        attacker, sent = Attacker(suite.version), []
        for kind in (wrong_icrc, truncated, cut_behind_its_headers, another_version, reserved_operations):
            sent += kind(attacked, attacker)[0]
        before = sum(attacked.dropped().values())
        for packet in sent:
            attacker.send(packet)
        deadline = until(10)
        while sum(attacked.dropped().values()) < before + len(sent) and time.monotonic() < deadline:
            time.sleep(0.05)
        path = f"{suite.directory}/{attacked.server.pid}.pcapng"
    found = [bytes.fromhex(payload) for port, payload, comment, checksum in
             tshark(path, "udp.srcport", "udp.payload", "frame.comment", "udp.checksum.status")
             if "; not taken: " in comment and port == str(attacker.port) and checksum == "1"]
    if found != sent:
        raise Failure(f"{len(sent)} datagrams sent that can't be decoded, {len(found)} captured")
    return f"{len(sent)} datagrams"


def questions_have_an_end(suite):
    """Each answer is sent to the address that the question names as its sender. All of them are answered or counted."""
    with captured(suite) as attacked:
        attacker, before, count = Attacker(suite.version), attacked.dropped(), 5000
        question = attacker.seal(transport(UD | SEND_ONLY, 1, 0, struct.pack(">II", 0x80010000, 1),
                                           b"\1\7\2\3" + bytes(12) + struct.pack(">HHII", 0x17, 0, 0, 7) + bytes(228)))
        began = time.monotonic()
        for _ in range(count):
            attacker.send(question)
        attacked.settle()
        most = 256 + (time.monotonic() - began) * 1000
        omitted = attacked.dropped().get(TOO_MANY, 0) - before.get(TOO_MANY, 0)
        if not count - most <= omitted < count:
            raise Failure(f"of {count} questions {omitted} were not answered; at least {count - most:.0f} should not be")
        attacked.ask(3, 1000, "rc", "uc", "ud")
    return f"{count - omitted} of {count} were answered"


def lengths_that_lie(suite):
    """UDP lengths below and above the truth, made by hand. The kernel cuts the first and drops the second."""
    with captured(suite) as attacked:
        attacker, before = Attacker(suite.version), attacked.dropped()
        raw = socket_on(CLIENT, socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
        raw.bind((attacker.source, 0))
        packet = attacker.seal(vault_write(attacked))
        for length in (8, 9, 20, 24, 40, 8 + len(packet) - 1):
            raw.sendto(struct.pack(">HHHH", attacker.port, ROCE, length, 0) + packet, (attacker.target, 0))
        for length in (0, 7, 8 + len(packet) + 1, 2000, 65535):
            raw.sendto(struct.pack(">HHHH", attacker.port, ROCE, length, 0) + packet, (attacker.target, 0))
        attacker.socket.setsockopt(socket.IPPROTO_IP, 10, 0)  # it may be sent in fragments
        attacker.send(attacker.seal(datagram(attacked, payload=b"\xee" * 60000)))
        counted(attacked, before, {TRUNCATED: 3, ICRC: 3, TOO_LONG: 1})  # 0, 1 and 12 bytes; 16, 32, all but one; the fragments
        attacked.ask(3, 1000, "rc", "uc", "ud")


def flood(attacked, attacker, stranger, sent):
    """A bit of everything, as fast as a socket takes it."""
    kinds = [attacker.seal(packet) for packet in (vault_write(attacked, 0x300000), vault_write(attacked, pair=0xabcde),
                                                  datagram(attacked, qkey=1), vault_write(attacked, pkey=0x8001),
                                                  transport(0xff, attacked.numbers["rc"], 0))]
    kinds += [flipped(kinds[0], 20), kinds[0][:11], b"\xee" * 1400]
    strange = stranger.seal(vault_write(attacked))
    with contextlib.suppress(ConnectionError): # when no process is there any more
        for _ in range(FLOOD // 10):
            for packet in kinds:
                attacker.send(packet)
            stranger.send(strange)
            stranger.send(strange)
        sent.append(FLOOD)


def survives_a_flood(suite):
    """During a transfer, which has to end well; and the program needs no more memory for it."""
    with captured(suite) as attacked:
        attacker, stranger, sent = Attacker(suite.version), Attacker(suite.version, STRANGER[suite.version]), []
        attacked.ask(64, 8000, "rc")  # so that what a transfer needs is there
        memory, before = attacked.memory(), sum(attacked.dropped().values())
        thread = threading.Thread(target=flood, args=(attacked, attacker, stranger, sent))
        thread.start()
        transfers = 0
        while thread.is_alive() or not transfers:
            attacked.ask(320, 8000, "rc")
            transfers += 1
        thread.join()
        attacked.settle()
        attacked.ask(3, 1000, "rc", "uc", "ud")
        dropped, growth = sum(attacked.dropped().values()) - before, attacked.memory() - memory
        if sent != [FLOOD] or dropped < FLOOD // 50 or growth > GROWTH:
            raise Failure(f"{sent} datagrams sent, {dropped} dropped by the program; its memory grew by {growth} KiB")
    return f"{dropped} of {FLOOD} reached it, beside {transfers * 320 * 8000 >> 10} KiB of its own; {growth} KiB more memory"


def main():
    if not os.environ.get(INSIDE):
        enter_namespaces()
    make_hosts()
    suite = Wire()
    for version in GID_INDEX:
        for kind in KINDS if version == 4 else KINDS[:4]:
            suite.at(1500, version, kind.__name__.replace("_", " "), lambda kind=kind: are_counted(suite, kind))
        suite.at(1500, version, "a transfer survives a flood", lambda: survives_a_flood(suite))
    for version in GID_INDEX:
        suite.at(1500, version, "what can't be decoded is captured as it came", lambda: are_captured(suite),
                 ["--capture", f"{suite.directory}/%p.pcapng"])
    suite.at(1500, 4, "a peer who breaks a rule ends his own connection", lambda: ends_its_own_connection(suite))
    suite.at(1500, 4, "questions are answered so often and not more", lambda: questions_have_an_end(suite))
    suite.at(1500, 4, "lengths of UDP that lie, and fragments", lambda: lengths_that_lie(suite))
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
