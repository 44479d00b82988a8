#!/usr/bin/env python3
"""Checks that each behaviour of src/adverse/adverse.def has an outcome in tests/adverse/litmus*.def that never happens without it, and that
few files of code name the adverse adapter; and that the switches of the first table of docs/reference/choices.md exist; prints TAP.

Usage: adverse.py DIRECTORY

What disturbs is in one room, src/verbs/disturb/, which the code around it asks by one table of hooks (src/verbs/object/disturbance.h).
Files that name the adapter outside of it and of src/adverse/ are counted, except tests and what programs get as answers to calls
(ANSWERS). Lists of words for users (*.def) are no code.

`part` is the list of docs/reference/adverse.md (made_pages.py).
"""
import glob
import os
import re
import sys

sys.dont_write_bytecode = True
from settings import entries
from tree import SUPPORT, judged, read

PAGE, HEADING = "docs/reference/choices.md", "## Where softverbs is kinder"
NO_SWITCH = "none, as "  # and the reason
FIELDS = ("number", "name", "word", "standard", "meaning", "bound", "shows")
LIST, LITMUS = "src/adverse/adverse.def", "tests/adverse/litmus*.def"
ROOMS, FILES_MOST = ("src/adverse/", "src/verbs/disturb/"), 6
# Files whose answers to calls a behaviour changes, and which answers these are.
ANSWERS = {
    "src/config/config.c": "the table of GIDs",
    "src/verbs/context/device.c": "notes that an index of the table of GIDs was asked for",
    "src/verbs/create/mr_register.c": "the two keys of a region",
    "src/verbs/life/qp_create.c": "max_inline_data",
    "src/verbs/queue/cq_ex.c": "the readers of a completion queue",
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
    outcomes = {row[2] for path in glob.glob(os.path.join(top, LITMUS)) for row in entries(path, "LITMUS")}
    for line in behaviours(top):
        if line["word"] not in outcomes:
            yield f"{line['word']}: no outcome of {LITMUS} is gone without it"


def leniencies(top):
    """(what softverbs is kinder in, the cell of its switches) of each row of the page."""
    section = read(top, PAGE).partition(HEADING)[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")]
    return [(row[0], row[-1]) for row in rows[2:]]


def is_switch(top, text, words, rules):
    """Returns whether the text in backquotes of a row switches something on: an option of `softverbs run`, a rule, or a rule of a script."""
    option, _, value = text.partition(" ")
    if option == "--profile":
        return os.path.exists(os.path.join(top, "profiles", f"{value}.profile"))
    if option == "--inject":
        happening = re.match(r"'when (\w+)[:,]", value)
        return bool(happening) and happening[1] in {row[0] for row in entries(os.path.join(top, "src/script/words.def"), "HAPPENING")}
    word = re.fullmatch(r"--adverse=with=([\w-]+)", text)
    return word[1] in words if word else text == "--adverse" or text in rules


def unswitched(top):
    words = {line["word"] for line in behaviours(top)}
    rules = {row[1] for row in entries(os.path.join(top, "src/check/rules.def"), "RULE")}
    for what, cell in leniencies(top):
        switches = re.findall(r"`([^`]+)`", cell)
        if not switches and not cell.startswith(NO_SWITCH):
            yield f"{PAGE}: \"{what}\" has no switch, and no reason (\"{NO_SWITCH}...\")"
        for text in switches:
            if not is_switch(top, text, words, rules):
                yield f"{PAGE}: \"{what}\" has the switch `{text}`, which does not exist"


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
                  (f"each of {len(ANSWERS)} files of answers names it", idle),
                  (f"each switch of {len(leniencies(top))} rows of {PAGE} exists", list(unswitched(top))))


if __name__ == "__main__":
    sys.exit(main())
