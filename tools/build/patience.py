#!/usr/bin/env python3
"""Checks that tests wait and try by one scale; prints TAP.

Usage: patience.py DIRECTORY

src/base/testing/patience.h and tests/clients/patience.py set how long a test waits for what must come, which TEST_PATIENCE
multiplies; a test that needs several tries has them from there, so that their number is shown. So no other file of tests, nor of bench/,
defines a constant of that name.
"""
import os
import re
import sys

sys.dont_write_bytecode = True
from tree import SUPPORT, report

OWNERS = ("src/base/testing/patience.h", "tests/clients/patience.py")
CONSTANT = re.compile(r"\b(\w*PATIEN(?:CE|T)\w*|patience|(?:\w+_)?(?:TRIES|ATTEMPTS)(?:_\w+)?|tries|attempts)\s*=\s*[\d.]+", re.M)


def sources(top):
    for place in ("src", "tests", "bench"):
        for folder, _, names in os.walk(os.path.join(top, place)):
            for name in sorted(names):
                path = os.path.relpath(os.path.join(folder, name), top)
                if name.endswith((".c", ".h", ".py")) and (place != "src" or SUPPORT.search(path)) and path not in OWNERS:
                    yield path


def main():
    top, faults, count = sys.argv[1], [], 0
    for path in sources(top):
        count += 1
        with open(os.path.join(top, path), encoding="utf-8") as file:
            faults += [f"{path}: {name} is a scale of its own" for name in CONSTANT.findall(file.read())]
    print("1..1")
    report(1, f"none of {count} files of tests waits or tries by a scale of its own", faults)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
