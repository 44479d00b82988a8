#!/usr/bin/env python3
"""The check of the tree's shape finds includes against layers and floors, in small made-up trees; prints TAP."""
import os
import subprocess
import sys
import tempfile

CHECK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shape.py")

LAYERS = "base*:\nmiddle: base\n    rooms:\n    rooms/attic: rooms\n    stairs: rooms rooms/attic\nflat: base middle\n"


def includes(name, *headers):
    return {f"src/{name}": "".join(f'#include "{header}"\n' for header in headers)}


CASES = {
    "down is fine": ({**includes("flat/a.c", "middle/rooms/a.h", "base/a.h"), **includes("middle/stairs/a.c", "middle/rooms/a.h", "middle/top.h"),
                      **includes("middle/rooms/attic/a.c", "middle/rooms/a.h")}, 0, "ok 6"),
    "a layer may not include one above it": (includes("base/a.c", "middle/top.h"), 1, "src/base/a.c:1: src/base may not include middle/top.h"),
    "a folder may not include one above it": (
        includes("middle/rooms/a.c", "base/a.h", "middle/stairs/a.h"), 1, "src/middle/rooms/a.c:2: middle/rooms may not include middle/stairs/a.h"),
    "nor a folder in it": (includes("middle/rooms/a.c", "middle/rooms/attic/a.h"), 1, "middle/rooms may not include middle/rooms/attic/a.h"),
    "the files at the top are the lowest": (
        includes("middle/top.c", "middle/rooms/a.h"), 1, "src/middle/top.c:1: middle/ may not include middle/rooms/a.h"),
    "a folder without a floor is found": (includes("middle/shed/a.c"), 1, "src/middle/shed/a.c:1: src/layers gives its folder no floor"),
    "tests may climb": (includes("middle/rooms/a_test.c", "middle/stairs/a.h"), 0, "ok 6"),
    "a layer without floors has none": (includes("flat/shed/a.c", "flat/hut/a.h"), 0, "ok 6"),
    "folders may not stand above each other": (
        {"src/layers": "base*:\n    one: two\n    two: one\n"}, 1, "base/one names two, which does not stand above its line"),
    "nobody climbs out": (includes("flat/a.c", "../middle/top.h"), 1, "climbs out"),
}


def check(files):
    """Exit status and output for a tree of these files."""
    with tempfile.TemporaryDirectory() as top:
        for name, text in {"src/layers": LAYERS, **files}.items():
            os.makedirs(os.path.dirname(os.path.join(top, name)), exist_ok=True)
            with open(os.path.join(top, name), "w", encoding="utf-8") as file:
                file.write(text)
        done = subprocess.run([sys.executable, CHECK, top], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


def main():
    failed = 0
    print(f"1..{len(CASES)}")
    for number, (name, (files, status, words)) in enumerate(CASES.items(), 1):
        got, output = check(files)
        fine = got == status and words in output
        failed += not fine
        print(f"{'ok' if fine else 'not ok'} {number} - {name}")
        if not fine:
            print("".join(f"# {line}\n" for line in [f"exit status {got}", *output.split("\n")]), end="")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
