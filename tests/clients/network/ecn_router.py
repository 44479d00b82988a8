#!/usr/bin/env python3
"""ecn_router.py LEFT RIGHT [mark]: joins two interfaces like a cable; with "mark" like a crowded router, which sets the mark for
congestion (ECN: CE) in every packet of RoCE that goes from left to right, if its sender said that it understands it. Prints a line
when it has begun; needs the right to open packet sockets."""
import select
import socket
import struct
import sys

PACKET_ADD_MEMBERSHIP, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING, PROMISCUOUS = 1, 15, 23, 1
SOL_PACKET, VNET, ETHERNET = 263, 10, 14
ROCE, UDP, CONGESTED = 4791, 17, 3


def attach(interface):
    """Each packet read and written has a header with which the kernel says what it has left to the adapter (checksums)."""
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    end.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    end.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    end.bind((interface, 0))
    request = struct.pack("iHH8s", socket.if_nametoindex(interface), PROMISCUOUS, 0, b"")
    end.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, request)
    return end


def checksum(header):
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total >> 16:
        total = (total >> 16) + (total & 0xffff)
    return ~total & 0xffff


def mark_ipv4(frame, at):
    if frame[at + 9] == UDP and struct.unpack_from(">H", frame, at + 22)[0] == ROCE and frame[at + 1] & CONGESTED:
        frame[at + 1] |= CONGESTED
        struct.pack_into(">H", frame, at + 10, 0)
        struct.pack_into(">H", frame, at + 10, checksum(frame[at:at + 20]))


def mark_ipv6(frame, at):
    if frame[at + 6] == UDP and struct.unpack_from(">H", frame, at + 42)[0] == ROCE and frame[at + 1] >> 4 & CONGESTED:
        frame[at + 1] |= CONGESTED << 4


def mark(frame):
    kind = struct.unpack_from(">H", frame, VNET + 12)[0]
    if kind == 0x0800:
        mark_ipv4(frame, VNET + ETHERNET)
    elif kind == 0x86dd:
        mark_ipv6(frame, VNET + ETHERNET)


def main(left, right, marks=None):
    left, right = attach(left), attach(right)
    print("begun", flush=True)
    while True:
        for end in select.select([left, right], [], [])[0]:
            frame = bytearray(end.recv(VNET + 70000))
            if marks and end is left:
                mark(frame)
            (right if end is left else left).send(frame)


if __name__ == "__main__":
    main(*sys.argv[1:])
