#!/usr/bin/env python3
"""Compares what our library of a vendor exports with the list of all releases, and with the distribution's, if that is there; prints TAP.

Usage: vendor_symbols_test.py OURS THEIRS LIST
"""
import os
import sys

from symbols_test import listed, symbols


def main():
    ours, theirs, path = sys.argv[1:]
    every, _ = listed(path)
    wrong = sorted(every ^ set(symbols(ours)))
    print("1..2")
    print(f"{'not ' if wrong else ''}ok 1 - {os.path.basename(theirs)} exports what the list has", *wrong)
    if not os.path.exists(theirs):
        print(f"ok 2 - what the distribution's exports # SKIP there is no {theirs}")
        return bool(wrong)
    missing = sorted(set(symbols(theirs)) - set(symbols(ours)))
    print(f"{'not ' if missing else ''}ok 2 - what the distribution's exports", *missing)
    return bool(wrong or missing)


if __name__ == "__main__":
    sys.exit(main())
