#!/usr/bin/env python3
"""Prints the lines of production code in src, tools and lib, with the numbers of commit 8b27331f beside them.

Usage: lines.py [DIRECTORY]

Production is what is installed, or linked into it: tests, their rigs and what builds and checks the tree are left out.
"""
import os
import sys

sys.dont_write_bytecode = True
from tree import SUPPORT

KINDS = (".c", ".h", ".def", ".py", ".sh", ".lua", ".js", ".css", ".html")
BEFORE = {"src": 82240, "tools": 29453, "lib": 726}


def count(top, place):
    lines = 0
    for folder, _, names in os.walk(os.path.join(top, place)):
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith(KINDS) and not SUPPORT.search(os.path.relpath(path, top)):
                with open(path, "rb") as file:
                    lines += sum(1 for _ in file)
    return lines


def main():
    top = sys.argv[1] if len(sys.argv) > 1 else "."
    now = {place: count(top, place) for place in BEFORE}
    parts = ", ".join(f"{place} {now[place]:,} ({now[place] - BEFORE[place]:+,})" for place in BEFORE)
    print(f"Production lines: {sum(now.values()):,} ({sum(now.values()) - sum(BEFORE.values()):+,} since 8b27331f): {parts}.")


if __name__ == "__main__":
    main()
