#!/usr/bin/env python3
"""The check of layouts finds what it is there for, in small made-up trees; prints TAP."""
import sys

sys.dont_write_bytecode = True
import made_up

HEAD = "# P\n\n## Layouts\n\n| directory | rings | messages between processes | published memory | recordings | release |\n|---|---|---|---|---|---|\n"
NOW, BEFORE = "| 8 | 6 | 3 | 3 | 1 | 0.2.0 |\n", "| 7 | 5 | 3 | 3 | 1 | 0.1.0 |\n"


def tree(rows, **changed):
    """The page with these lines, and the sources as in NOW but for what is changed."""
    has = {"table": 8, "ring": 6, "control": 3, "published": 3, "recording": 1} | changed
    return {"docs/reference/compatibility.md": HEAD + rows, "src/ipc/table_head.h": f"enum {{ TABLE_LAYOUT = {has['table']}, TRIES = 32 }};\n",
            "src/link/ring_layout.h": f"enum {{ RING_LAYOUT = {has['ring']} }};\n", "src/link/control.h": f"enum {{ CONTROL_LAYOUT = {has['control']} }};\n",
            "src/link/published.c": f"enum {{ PUBLISHED_LAYOUT = {has['published']} }};\n", "src/record/record.h": f"enum {{ RECORDING_VERSION = {has['recording']} }};\n"}


TREES = {
    "a page of the tree is fine": (tree(NOW + BEFORE), 0, "ok 2 - 2 lines"),
    "a layout of rings without a line is found": (tree(NOW, ring=7), 1, "rings 6, but src/link/ring_layout.h has 7"),
    "one of messages": (tree(NOW, control=4), 1, "messages between processes 3, but src/link/control.h has 4"),
    "one of published memory": (tree(NOW, published=4), 1, "published memory 3"),
    "one of recordings": (tree(NOW, recording=2), 1, "recordings 1, but src/record/record.h has 2"),
    "one of the directory": (tree(NOW, table=9), 1, "directory 8, but src/ipc/table_head.h has 9"),
    "a line that keeps the directory's layout is found": (tree("| 8 | 7 | 3 | 3 | 1 | 0.3.0 |\n" + NOW, ring=7), 1, "layout 8 of the directory stands in two lines"),
    "a page without lines is found": (tree(""), 1, "directory none"),
}


if __name__ == "__main__":
    sys.exit(made_up.run("layouts.py", TREES))
