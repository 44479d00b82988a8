#!/usr/bin/env python3
"""Checks that docs/reference/checker.md has the rules as src/check/rules.def has them; prints TAP.

Usage: rules.py DIRECTORY [--write]

--write makes the page's part behind "## The rules" anew. A rule has a faulty program, its twin and a neighbour in tests/check/mistakes.c.
"""
import os
import re
import sys

sys.dont_write_bytecode = True
from settings import entries
from tree import made, read, report, with_part

FIELDS = ("name", "id", "level", "seen", "what", "why", "bites", "cure")
PAGE = "docs/reference/checker.md"
HEAD = "## The rules\n"
UNSEEN = "\n## What the checker can't see\n\n| mistake | what shows it |\n|---|---|\n"
LEVELS = {"ERROR": "error", "ADAPTER": "adapter", "NOTE": "note"}
SEEN = {"SEES": "always", "PARTLY": "partly, as the text says", "FILL": "only with `--check=fill`", "PAGES": "only with `--check=pages`"}


def rules(top):
    return [dict(zip(FIELDS, row)) for row in entries(os.path.join(top, "src/check/rules.def"), "RULE")]


def part(top):
    """The text behind the heading."""
    lines = rules(top)
    text = "\n| rule | level | seen |\n|---|---|---|\n"
    text += "".join(f"| [{line['id']}](#{line['id']}) | {LEVELS[line['level']]} | {SEEN[line['seen']]} |\n" for line in lines)
    for line in lines:
        text += f"\n### {line['id']}\n\n{line['what']}.\n\n- **Why:** {line['why']}.\n- **Bites:** {line['bites']}.\n- **Cure:** {line['cure']}.\n"
    return text + UNSEEN + "".join(f"| {what} | {instead} |\n" for what, instead in entries(os.path.join(top, "src/check/rules.def"), "UNSEEN"))


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
    stale = made(top, PAGE, with_part(top, PAGE, HEAD, part(top)))
    missing = list(untested(top))
    print("1..2")
    report(1, f"{PAGE} has the {len(rules(top))} rules of the list", stale)
    report(2, "each rule has its programs in tests/check/mistakes*.c", missing)
    return 1 if stale or missing else 0


if __name__ == "__main__":
    sys.exit(main())
