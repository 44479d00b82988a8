#!/usr/bin/env python3
"""The data of rendezvous are read by the receiving process itself, without packets, where the other process lets it; prints TAP.

Usage: read_at_once.py SOFTVERBS RANKS
"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../clients"))
from patience import patience  # pylint: disable=wrong-import-position

SOFTVERBS, RANKS = sys.argv[1:]


def direct_reads(permits):
    """READs that two ranks did without a packet, and READs that were sent as packets: the first of a connection, READs of more than 1 MiB, READs
    after work that the other rank has not acknowledged yet. How many these are is the scheduler's choice."""
    with tempfile.TemporaryDirectory() as directory:
        counters = os.path.join(directory, "counters")
        environment = {**os.environ, "SOFTVERBS_COUNTERS": counters, "SOFTVERBS_DIRECT": permits}
        subprocess.run([SOFTVERBS, "run", "--", RANKS, "2", "200"], env=environment, check=True, capture_output=True, timeout=patience(120))
        with open(counters, encoding="ascii") as lines:
            traffic = [each for line in lines for each in json.loads(line)["traffic"]]
    return sum(each["direct"]["READ"] for each in traffic), sum(each["sent"].get("RC READ_REQUEST", 0) for each in traffic)


def main():
    print("1..2")
    by_itself, as_packets = direct_reads("1")
    print(f"{'ok' if by_itself else 'not ok'} 1 - of the READs of rendezvous {by_itself} need no packet and {as_packets} do")
    by_itself, as_packets = direct_reads("0")
    print(f"{'ok' if not by_itself and as_packets else 'not ok'} 2 - where peers forbid it {by_itself} need no packet and {as_packets} do")


if __name__ == "__main__":
    main()
