#!/usr/bin/env python3
"""Checks that what processes of two releases share is known by one number; prints TAP.

Usage: layouts.py DIRECTORY

Processes compare only the layout of the directory where they meet. So each layout of what they share is in a line of docs/reference/compatibility.md, newest first, and two
lines have different layouts of the directory: a change of any layout also changes the directory's.
"""
import re
import sys

sys.dont_write_bytecode = True
from tree import judged, read

PAGE = "docs/reference/compatibility.md"
PLACES = {"directory": ("src/ipc/table_head.h", "TABLE_LAYOUT"), "rings": ("src/link/ring_layout.h", "RING_LAYOUT"),
          "messages between processes": ("src/link/control.h", "CONTROL_LAYOUT"), "published memory": ("src/link/published.c", "PUBLISHED_LAYOUT"),
          "recordings": ("src/record/record.h", "RECORDING_VERSION")}


def rows(top):
    """The lines of the page's table, each by the heads of its columns."""
    lines = re.findall(r"^\| (.*) \|$", read(top, PAGE).partition("\n## Layouts\n")[2], re.M)
    cells = [line.split(" | ") for line in lines]
    return [dict(zip(cells[0], line)) for line in cells[1:]] if cells else []


def number(top, path, name):
    found = re.search(rf"\b{name} = (\d+)", read(top, path))
    return found[1] if found else "none"


def main():
    top = sys.argv[1]
    listed = rows(top)
    newest = listed[0] if listed else {}
    wrong = [f"{PAGE}: {what} {newest.get(what, 'none')}, but {path} has {number(top, path, name)}" for what, (path, name) in PLACES.items()
             if newest.get(what) != number(top, path, name)]
    directories = [row["directory"] for row in listed if "directory" in row]
    twice = [f"{PAGE}: layout {directory} of the directory stands in two lines" for directory in sorted(set(directories)) if directories.count(directory) > 1]
    return judged(("the newest line has the layouts of the tree", wrong),
                  (f"{len(directories)} lines have layouts of the directory of their own", twice))


if __name__ == "__main__":
    sys.exit(main())
