#!/usr/bin/env python3
"""Checks that each behaviour of src/adverse/adverse.def has an outcome in tests/adverse/litmus.def, which is gone without it; prints TAP.

Usage: adverse.py DIRECTORY

`part` is the list of docs/reference/adverse.md (made_pages.py).
"""
import os
import sys

sys.dont_write_bytecode = True
from settings import entries
from tree import report

FIELDS = ("number", "name", "word", "standard", "meaning", "bound", "shows")
LIST, LITMUS = "src/adverse/adverse.def", "tests/adverse/litmus.def"


def behaviours(top):
    return [dict(zip(FIELDS, row)) for row in entries(os.path.join(top, LIST), "ADVERSE")]


def part(top):
    text = "| number | word | without being named | what the adapter does | what bounds it | what bug it shows |\n|---|---|---|---|---|---|\n"
    for line in behaviours(top):
        shown = "on" if line["standard"] == "1" else "off"
        text += f"| {line['number']} | `{line['word']}` | {shown} | {line['meaning']} | {line['bound']} | {line['shows']} |\n"
    return text


def untested(top):
    outcomes = {row[2] for row in entries(os.path.join(top, LITMUS), "LITMUS")}
    for line in behaviours(top):
        if line["word"] not in outcomes:
            yield f"{line['word']}: no outcome of {LITMUS} is gone without it"


def main():
    top = sys.argv[1]
    missing = list(untested(top))
    print("1..1")
    report(1, f"each of {len(behaviours(top))} behaviours has a test", missing)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
