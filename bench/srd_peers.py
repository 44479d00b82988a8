#!/usr/bin/env python3
"""The cost of a message of SRD, by the number of peers of its queue pair.

Usage: srd_peers.py SOFTVERBS

In instructions, which callgrind counts, where the peers belong to the sender's process: a message's whole way, post and
poll, of both sides; and its post alone. In time, where 40 processes sleep that have 1, 25 and 250 queue pairs each. Nothing
here passes or fails; docs/evidence/costs.md has the numbers."""
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

from bench import IS_TEST, SOFTVERBS

PROGRAM = os.path.join(os.path.dirname(SOFTVERBS), "bench/srd_peers")
STEPS = 64  # as in srd_peers.c
FUNCTIONS = {"count_messages": "post and poll", "count_posts": "post alone",
             "count_beside": "post and poll, beside a message that waits for a receive"}
COUNTS, EACH, PROCESSES = ((10, 20), (1,), 2) if IS_TEST else ((10, 100, 1000, 10000), (1, 25, 250), 40)


def run(directory, peers, *processes, before=()):
    """Under the profile of an EFA whose device has queue pairs enough."""
    environment = {**os.environ, "SOFTVERBS_DIR": directory, "SOFTVERBS_LIMITS": "max_qp=20000"}
    command = [SOFTVERBS, "run", "--profile", "efa", "--", *before, PROGRAM, str(peers), *map(str, processes)]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=None if not before else subprocess.DEVNULL,
                          text=True, timeout=600, check=True).stdout


def count(peers):
    """The median of the batches, in instructions of a message, by function."""
    found = {}
    with tempfile.TemporaryDirectory() as directory:
        run(directory, peers, before=["valgrind", "--tool=callgrind", "--collect-atstart=no", "--toggle-collect=count_*",
                                      *(f"--dump-after={name}" for name in FUNCTIONS), f"--callgrind-out-file={directory}/out"])
        for name in os.listdir(directory):
            if not name.startswith("out."):
                continue
            with open(f"{directory}/{name}", encoding="utf-8", errors="replace") as file:
                text = file.read()
            trigger, total = (re.search(rf"{word}(\w+)$", text, re.MULTILINE) for word in ("--dump-after=", "^summary: "))
            if trigger and total:
                found.setdefault(trigger[1], []).append(int(total[1]) / STEPS)
    return {name: statistics.median(found[name]) for name in FUNCTIONS}


def show_counts():
    counts = {peers: count(peers) for peers in COUNTS}
    print("| peers, instructions | " + " | ".join(f"{peers:,}" for peers in counts) + " |\n|---" + "|---:" * len(counts) + "|")
    for name, title in FUNCTIONS.items():
        first = counts[COUNTS[0]][name]
        print(f"| {title} | " + " | ".join(f"{each[name]:,.0f} ({each[name] / first:.2f})" for each in counts.values()) + " |")


def show_times():
    print(f"\n| peers in {PROCESSES} processes | " + " | ".join(f"{each * PROCESSES:,}" for each in EACH) + " |\n|---" + "|---:" * len(EACH) + "|")
    with tempfile.TemporaryDirectory() as directory:
        times = [run(directory, each * PROCESSES, PROCESSES).split()[1] for each in EACH]
    print("| a message and its answer, us | " + " | ".join(times) + " |")


if __name__ == "__main__":
    if shutil.which("valgrind"):
        show_counts()
    else:
        print("srd_peers.py: without valgrind nothing counts instructions", file=sys.stderr)
    show_times()
