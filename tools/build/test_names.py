#!/usr/bin/env python3
"""Checks that no two tests that print TAP have one name, as meson writes a report of them by name; prints TAP.

Usage: test_names.py BUILD
"""
import collections
import json
import os
import sys

sys.dont_write_bytecode = True
from tree import report


def main():
    with open(os.path.join(sys.argv[1], "meson-info/intro-tests.json"), encoding="utf-8") as file:
        tests = json.load(file)
    times = collections.Counter(test["name"] for test in tests if test["protocol"] == "tap")
    twice = [f"{name}: {count} tests; `meson test` ends with \"duplicate suite\" where both run" for name, count in times.items() if count > 1]
    print("1..1")
    report(1, f"{len(times)} tests that print TAP have names of their own", twice)
    return 1 if twice else 0


if __name__ == "__main__":
    sys.exit(main())
