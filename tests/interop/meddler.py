#!/usr/bin/env python3
"""meddler.py ONE OTHER [lose=NAME]... [again=SECONDS]... [hold=SECONDS] [spare=NAME]: hands frames on between two interfaces, as
a cable would, until it is terminated. The first message NAME of the connection manager (REQ, DREQ, ...), from either side, is
lost. Each message, except spare=NAME, is handed on once more SECONDS after it arrived; a REQ or SIDR_REQ after SECONDS
(hold) at the earliest. Prints a line when it has begun, and one for each that it lost or repeated."""
import heapq
import itertools
import select
import signal
import socket
import struct
import sys
import time

NAMES = {0x10: "REQ", 0x11: "MRA", 0x12: "REJ", 0x13: "REP", 0x14: "RTU", 0x15: "DREQ", 0x16: "DREP", 0x17: "SIDR_REQ", 0x18: "SIDR_REP"}
ALL_PROTOCOLS, SOL_PACKET, PACKET_IGNORE_OUTGOING = 3, 263, 23
NUMBERS = itertools.count()
ROCE, UDP, UD_SEND_ONLY, MAD_QP, CM_CLASS = 4791, 17, 0x64, 1, 7
ETHERNET, UDP_BYTES, BTH, DETH, CLASS_AT, ATTRIBUTE_AT = 14, 8, 12, 8, 1, 16


def message_name(frame):
    """None when it is not a message of the connection manager."""
    kind, = struct.unpack_from(">H", frame, 12)
    if kind == 0x0800 and frame[ETHERNET + 9] == UDP:
        at = ETHERNET + (frame[ETHERNET] & 15) * 4
    elif kind == 0x86dd and frame[ETHERNET + 6] == UDP:
        at = ETHERNET + 40
    else:
        return None
    mad = at + UDP_BYTES + BTH + DETH
    if len(frame) < mad + 256 or struct.unpack_from(">H", frame, at + 2) != (ROCE,):
        return None
    bth = frame[at + UDP_BYTES:]
    if bth[0] != UD_SEND_ONLY or int.from_bytes(bth[5:8], "big") != MAD_QP or frame[mad + CLASS_AT] != CM_CLASS:
        return None
    return NAMES.get(struct.unpack_from(">H", frame, mad + ATTRIBUTE_AT)[0])


def open_interface(name):
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
    wire.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    wire.bind((name, 0))
    return wire


def hand_on(frame, to, lose, delays, hold, spare, later):
    def send_later(delay):
        heapq.heappush(later, (time.monotonic() + delay, next(NUMBERS), to, frame))

    name = message_name(frame)
    if name in lose:
        lose.remove(name)
        print(f"lost {name}", flush=True)
        return
    if name in ("REQ", "SIDR_REQ") and hold:
        send_later(hold)
    else:
        to.send(frame)
    for delay in delays if name and name not in spare else ():
        send_later(delay)
        print(f"repeated {name}", flush=True)


def main(one, other, *rules):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    ends = [open_interface(name) for name in (one, other)]
    across = dict(zip(ends, reversed(ends)))
    lose = [rule[5:] for rule in rules if rule.startswith("lose=")]
    delays = [float(rule[6:]) for rule in rules if rule.startswith("again=")]
    hold = sum(float(rule[5:]) for rule in rules if rule.startswith("hold="))
    spare = [rule[6:] for rule in rules if rule.startswith("spare=")]
    later = []
    print("begun", flush=True)
    while True:
        wait = max(0, later[0][0] - time.monotonic()) if later else None
        for end in select.select(ends, [], [], wait)[0]:
            hand_on(end.recv(65535), across[end], lose, delays, hold, spare, later)
        while later and later[0][0] <= time.monotonic():
            _, _, to, frame = heapq.heappop(later)
            to.send(frame)


if __name__ == "__main__":
    main(*sys.argv[1:])
