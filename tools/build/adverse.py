#!/usr/bin/env python3
"""Checks that each behaviour of src/adverse/adverse.def has an outcome in tests/adverse/litmus.def, which is gone without it, and that
few files of code name the adverse adapter; prints TAP.

Usage: adverse.py DIRECTORY

What disturbs is in one room, src/verbs/disturb/, which the code around it asks by one table of hooks (src/verbs/object/disturbance.h).
Files that name the adapter outside of it and of src/adverse/ are counted, except tests and what programs get as answers to calls
(ANSWERS). Lists of words for users (*.def) are no code.

`part` is the list of docs/reference/adverse.md (made_pages.py).
"""
import os
import sys

sys.dont_write_bytecode = True
from settings import entries
from tree import SUPPORT, judged, read

FIELDS = ("number", "name", "word", "standard", "meaning", "bound", "shows")
LIST, LITMUS = "src/adverse/adverse.def", "tests/adverse/litmus.def"
ROOMS, FILES_MOST = ("src/adverse/", "src/verbs/disturb/"), 6
# Files whose answers to calls a behaviour changes, and which answers these are.
ANSWERS = {
    "src/config/config.c": "the table of GIDs",
    "src/verbs/context/device.c": "notes that an index of it was asked for",
    "src/verbs/create/mr_register.c": "the two keys of a region",
    "src/verbs/life/qp_create.c": "max_inline_data",
}


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


def naming(top):
    """The files of code outside the rooms that name the adapter."""
    for folder, _, names in sorted(os.walk(os.path.join(top, "src"))):
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), top)
            if name.endswith((".c", ".h")) and not path.startswith(ROOMS) and not SUPPORT.search(path) and "adverse" in read(top, path).lower():
                yield path


def main():
    top = sys.argv[1]
    missing, named = list(untested(top)), set(naming(top))
    counted, idle = sorted(named - ANSWERS.keys()), sorted(ANSWERS.keys() - named)
    many = counted if len(counted) > FILES_MOST else []
    return judged((f"each of {len(behaviours(top))} behaviours has a test", missing),
                  (f"{len(counted)} files outside the room of disturbing and of answers name the adverse adapter, at most {FILES_MOST}", many),
                  (f"each of {len(ANSWERS)} files of answers names it", idle))


if __name__ == "__main__":
    sys.exit(main())
