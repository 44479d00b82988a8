#!/usr/bin/env python3
"""Datagrams from an unknown host to a device on a network fill neither a log nor a disk."""
import os
import re
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import PYTHON, SOFTVERBS, TEMPORARY

WAIT = "from pyverbs.device import Context; context = Context(name='soft0'); print('open', flush=True); input()"
DATAGRAMS, A_SECOND, MIB = 20_000, 100, 1 << 20


class _Victim:
    """A program with a device on lo."""

    def __init__(self, *options, **environment):
        self.process = subprocess.Popen([SOFTVERBS, "run", "--net", "lo", *options, "--", PYTHON, "-c", WAIT],  # pylint: disable=consider-using-with
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=cases.environment(**environment))
        if self.process.stdout.readline() != b"open\n":
            raise cases.Skip(f"no program on lo: {self.process.communicate()[1].decode()[-200:]}")

    def flood(self, length, seconds=0):
        """DATAGRAMS datagrams that are not packets, and then one each 50 ms for `seconds`."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for number in range(DATAGRAMS):
                sender.sendto(b"\xee" * length, ("127.0.0.1", 4791))
                if number % 200 == 0:
                    time.sleep(0.002)  # the socket of the program has room for some 200
            for _ in range(seconds * 20):
                time.sleep(0.05)  # the pace of later datagrams
                sender.sendto(b"\xee" * length, ("127.0.0.1", 4791))

    def end(self):
        out, err = self.process.communicate(b"\n", timeout=cases.patience(30))
        assert self.process.returncode == 0, (out, err)


def a_flood_fills_no_log():
    log, begin = f"{TEMPORARY}/log", time.monotonic()
    victim = _Victim("--log", "warn", "--log-file", log)
    victim.flood(20, seconds=2)
    victim.end()
    with open(log, encoding="utf-8") as lines:
        lines = lines.readlines()
    most = (time.monotonic() - begin + 1) * (A_SECOND + 1)
    assert A_SECOND <= len(lines) <= most, (len(lines), most, lines[-3:])
    omitted = sum(int(found.group(1)) for line in lines if (found := re.search(r"\] (\d+) more lines", line)))
    assert omitted > DATAGRAMS / 4, (omitted, lines[-3:])


def a_capture_ends_at_its_largest_size():
    path = f"{TEMPORARY}/flood.pcapng"
    log = f"{TEMPORARY}/capture-log"
    victim = _Victim("--capture", path, "--log", "error", "--log-file", log, SOFTVERBS_CAPTURE_MAX="2")
    victim.flood(1400)
    victim.end()
    size = os.path.getsize(path)
    assert MIB < size < 4 * MIB, size
    with open(log, encoding="utf-8") as lines:
        assert "SOFTVERBS_CAPTURE_MAX" in lines.read()
    assert subprocess.run([SOFTVERBS, "decode", path], capture_output=True, check=False).returncode in (0, 1)


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
