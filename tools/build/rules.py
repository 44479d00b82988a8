#!/usr/bin/env python3
"""Checks that each rule of src/check/rules.def has a case in tests/check/mistakes*.c, with a line marked for its faulty variant and one for
its neighbour; prints TAP.

Usage: rules.py DIRECTORY

`part` and `unseen` are the lists of docs/reference/checker.md (made_pages.py).
"""
import os
import re
import sys

sys.dont_write_bytecode = True
from settings import entries
from tree import judged, read

FIELDS = ("name", "id", "level", "seen", "what", "why", "bites", "cure")
LEVELS = {"ERROR": "error", "ADAPTER": "adapter", "FAILED": "failed", "NOTE": "note"}
SEEN = {"SEES": "always", "PARTLY": "partly, as the text says", "FILL": "only with `--check=fill`", "PAGES": "only with `--check=pages`"}


def rules(top):
    return [dict(zip(FIELDS, row)) for row in entries(os.path.join(top, "src/check/rules.def"), "RULE")]


def part(top):
    lines = rules(top)
    text = "\n| rule | level | seen |\n|---|---|---|\n"
    text += "".join(f"| [{line['id']}](#{line['id']}) | {LEVELS[line['level']]} | {SEEN[line['seen']]} |\n" for line in lines)
    for line in lines:
        text += f"\n### {line['id']}\n\n{line['what']}.\n\n- **Why:** {line['why']}.\n- **Bites:** {line['bites']}.\n- **Cure:** {line['cure']}.\n"
    return text


def unseen(top):
    """The rows of the mistakes that the checker can't see."""
    return "".join(f"| {what} | {instead} |\n" for what, instead in entries(os.path.join(top, "src/check/rules.def"), "UNSEEN"))


def untested(top):
    text = "".join(read(top, f"tests/check/{name}") for name in sorted(os.listdir(os.path.join(top, "tests/check"))) if name.startswith("mistakes"))
    for line in rules(top):
        for variant in ("faulty", "neighbour"):
            if len(re.findall(rf"/\* {line['id']} {variant} \*/", text)) != 1:
                yield f"{line['id']}: no line of tests/check/mistakes*.c is marked for {variant}"
        if f'{{"{line["id"]}",' not in text:
            yield f"{line['id']}: no case of tests/check/mistakes*.c"


def main():
    top = sys.argv[1]
    missing = list(untested(top))
    return judged((f"each of {len(rules(top))} rules has its programs in tests/check/mistakes*.c", missing))


if __name__ == "__main__":
    sys.exit(main())
