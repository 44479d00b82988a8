#!/usr/bin/env python3
"""Checks that the files exist that the manual names; prints TAP.

Usage: paths.py DIRECTORY

A page is any *.md but those of docs/evidence, which say what was at their time; a path is what stands between ` and `, and begins with a
folder of the tree. tests/README.md, which says which harness is for which question, names each header of tests/api/harness.
"""
import glob
import os
import re
import sys

sys.dont_write_bytecode = True
from tree import report

FOLDERS = ("src", "tests", "tools", "bench", "docs", "examples", "packaging", "debian", "lib")
PATH = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[\w./*-]+)`")
HARNESSES = "tests/README.md"


def pages(top):
    for folder, folders, names in os.walk(top):
        at_top = folder == top
        folders[:] = [name for name in folders if (name in FOLDERS if at_top else name not in ("evidence",))]
        yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(".md"))


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def missing(top):
    """Each path that a page names in vain."""
    for page in pages(top):
        for path in sorted(set(PATH.findall(read(page)))):
            if not glob.glob(os.path.join(top, path)):
                yield f"{os.path.relpath(page, top)} names {path}, which is not there"


def unexplained(top):
    """Each harness without a place on its page."""
    page = os.path.join(top, HARNESSES)
    named = set(PATH.findall(read(page))) if os.path.exists(page) else set()
    for path in sorted(glob.glob(os.path.join(top, "tests/api/harness/*.h"))):
        if os.path.relpath(path, top) not in named:
            yield f"{HARNESSES} does not name {os.path.relpath(path, top)}"


def main():
    top = sys.argv[1].rstrip("/")
    faults = [sorted(missing(top)), sorted(unexplained(top))]
    print("1..2")
    report(1, "each file exists that a page names", faults[0])
    report(2, "each harness of tests/api is explained", faults[1])
    return 1 if any(faults) else 0


if __name__ == "__main__":
    sys.exit(main())
