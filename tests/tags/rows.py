#!/usr/bin/env python3
"""Do the tests exist that docs/tag-matching.md names? Prints TAP.

Usage: rows.py DIRECTORY

Every row of its tables of tests names one at least, each that is named runs in some test program (or is a test of
meson's), and every question that the documents leave open has a row.
"""
import os
import re
import sys

PAGE = "docs/tag-matching.md"
RUNS = re.compile(r"\b(?:script|cmocka_unit_test\w*)\(\s*(\w+)|^\s*test\('([^']+)'", re.MULTILINE)


def running(top):
    """The tests that programs list in their main function, and those that meson knows by a name."""
    names = set()
    for place in ("src/transport", "tests"):
        for folder, _, files in os.walk(os.path.join(top, place)):
            for name in files:
                if name.endswith("_test.c") or name == "meson.build":
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        text = file.read()
                    start = text.find("int main(void)") if name.endswith(".c") else 0
                    names.update(first or second for first, second in RUNS.findall(text[max(start, 0):]))
    return names


def rows(page, title):
    """The cells of the table whose first column has this title, once for each such table."""
    for table in re.findall(rf"^\| {title} \|.*\n\|[-|]+\n((?:\|.*\n)+)", page, re.MULTILINE):
        yield [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table.splitlines()]


def wrong(page, known):
    answers, tests = rows(page, "question")
    rules, = rows(page, "rule")
    asked, shown = [row[0] for row in answers], [row[0] for row in tests]
    yield from (f"no row of tests for the question: {question}" for question in asked if question not in shown)
    yield from (f"no such question: {question}" for question in shown if question not in asked)
    for what, named in rules + tests:
        names = re.findall(r"`([^`]+)`", named)
        if not names and not what.startswith("**"):
            yield f"no test is named for: {what}"
        yield from (f"no test runs that is called {name}" for name in names if name not in known)


def main():
    top = sys.argv[1]
    with open(os.path.join(top, PAGE), encoding="utf-8") as file:
        faults = list(wrong(file.read(), running(top)))
    for fault in faults:
        print(f"# {PAGE}: {fault}")
    print("1..1\nok 1" if not faults else "1..1\nnot ok 1", "- every rule and every question names tests that run")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
