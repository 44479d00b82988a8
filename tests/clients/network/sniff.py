#!/usr/bin/env python3
"""sniff.py INTERFACE FILE: writes what crosses the interface to a pcap file, until it is terminated. Prints a line when it
has begun."""
import signal
import socket
import struct
import sys
import time


def main(interface, path):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as wire, open(path, "wb", buffering=0) as file:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        wire.bind((interface, 0))
        file.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        print("begun", flush=True)
        while True:
            frame, now = wire.recv(65535), time.time()
            file.write(struct.pack("<IIII", int(now), int(now % 1 * 1e6), len(frame), len(frame)) + frame)


if __name__ == "__main__":
    main(*sys.argv[1:])
