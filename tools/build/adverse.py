#!/usr/bin/env python3
"""Checks that docs/reference/adverse.md has the behaviours as src/adverse/adverse.def has them; prints TAP.

Usage: adverse.py DIRECTORY [--write]

--write makes the page's part behind "## The behaviours" anew. Each behaviour is that of an outcome of
tests/adverse/litmus.def, which is gone without it.
"""
import os
import sys

sys.dont_write_bytecode = True
from settings import entries
from tree import made, report, with_part

FIELDS = ("number", "name", "word", "standard", "meaning", "bound", "shows")
LIST, PAGE, HEAD, LITMUS = "src/adverse/adverse.def", "docs/reference/adverse.md", "## The behaviours\n", "tests/adverse/litmus.def"


def behaviours(top):
    return [dict(zip(FIELDS, row)) for row in entries(os.path.join(top, LIST), "ADVERSE")]


def part(top):
    """The text behind the heading."""
    text = "\n| number | word | without being named | what the adapter does | what bounds it | what bug it shows |\n|---|---|---|---|---|---|\n"
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
    stale = made(top, PAGE, with_part(top, PAGE, HEAD, part(top)))
    missing = list(untested(top))
    print("1..2")
    report(1, f"{PAGE} has the {len(behaviours(top))} behaviours of the list", stale)
    report(2, "each behaviour has a test", missing)
    return 1 if stale or missing else 0


if __name__ == "__main__":
    sys.exit(main())
