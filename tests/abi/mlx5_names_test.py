#!/usr/bin/env python3
"""Compares the names of src/calls/mlx5.def with those that libmlx5 exports, and counts them; prints TAP.

Usage: mlx5_names_test.py SYMBOLS CALLS
"""
import re
import sys

from symbols_test import listed


def main():
    symbols, calls = sys.argv[1:]
    with open(calls, encoding="ascii") as file:
        names = re.findall(r"^(?:VENDOR\(\w+, [^,]+,|PART\([^,]+,|ABSENT\(\w+,)\s+(\w+)", file.read(), re.M)
    every = {name.partition("@")[0] for name in listed(symbols)[0]}
    results = (("each name is in both lists", sorted(every ^ set(names))),
               ("no name stands twice", sorted({name for name in names if names.count(name) > 1})),
               ("there are the 142 of release 65", [] if len(every) == 142 else [str(len(every))]))
    print(f"1..{len(results)}")
    for number, (name, wrong) in enumerate(results, 1):
        print(f"{'not ' if wrong else ''}ok {number} - {name}", *wrong)
    return any(wrong for _, wrong in results)


if __name__ == "__main__":
    sys.exit(main())
