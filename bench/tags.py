#!/usr/bin/env python3
"""Tag matching in numbers: time to match as the list grows, and bandwidth beside plain SEND and READ.

Usage: tags.py SOFTVERBS [ROUNDS]

Everything is measured ROUNDS times over (3), in turn; medians are shown. Nothing here passes or fails; the aim for exact
tags is a ratio of at most 2 to the list with one entry.
"""
import os
import statistics
import subprocess
import sys

COUNTS = (1, 100, 10000, 100000)
SOFTVERBS = os.path.abspath(sys.argv[1])
PROGRAM = os.path.join(os.path.dirname(SOFTVERBS), "bench/tag_matching_bench")


def run(mode):
    command = [SOFTVERBS, "run", "--", PROGRAM, mode]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    lines = done.stdout.splitlines()
    if done.returncode:
        sys.exit(f"tags.py: {mode} failed with {done.returncode} after {lines[-1:]}:\n{done.stderr}")
    return {tuple(fields[:-1]): float(fields[-1]) for fields in map(str.split, lines)}


def measure(mode, rounds):
    runs = [run(mode) for _ in range(rounds)]
    return {key: statistics.median(each[key] for each in runs) for key in runs[0]}


def show_matching(values, mode, title, unit):
    print(f"{title}, {unit}; in brackets: divided by that of one tag")
    print(f"    {'':20}" + "".join(f"{count:>18}" for count in COUNTS))
    for kind in ("exact", "wildcard"):
        for place in ("first", "middle", "last", "none"):
            row = [values[mode, kind, place, str(count)] for count in COUNTS]
            print(f"    {kind + ', ' + place:20}" + "".join(f"{value:10.2f} ({value / row[0]:5.2f})" for value in row))


def show_bandwidth(values):
    ways = ("eager", "unexpected", "send", "rendezvous", "read")
    print("Bandwidth between two processes, GB/s; eager messages, expected and not, beside SEND, rendezvous beside READ")
    print(f"    {'':10}" + "".join(f"{way:>12}" for way in ways))
    for size in (4096, 65536, 1048576):
        print(f"    {size:<10}" + "".join(f"{values['bandwidth', way, str(size)]:12.2f}" for way in ways))


def main():
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    show_matching(measure("list", rounds), "list", "One search in the list, with posting again what was found", "ns")
    show_matching(measure("match", rounds), "match", "One eager message of 8 bytes, from posting to completion", "us")
    show_bandwidth(measure("bandwidth", rounds))


if __name__ == "__main__":
    main()
