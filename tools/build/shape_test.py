#!/usr/bin/env python3
"""The check of the tree's shape finds includes against layers and floors, in small made-up trees; prints TAP."""
import sys

sys.dont_write_bytecode = True
import made_up

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
    "unless a line of src/layers allows it": (
        {**includes("middle/top.c", "middle/rooms/a.h"), "src/layers": "middle:\n    rooms:\n    .: rooms\n"}, 0, "ok 6"),
    "a folder without a floor is found": (includes("middle/shed/a.c"), 1, "src/middle/shed/a.c:1: src/layers gives its folder no floor"),
    "tests may climb": (includes("middle/rooms/a_test.c", "middle/stairs/a.h"), 0, "ok 6"),
    "a layer without floors has none": (includes("flat/shed/a.c", "flat/hut/a.h"), 0, "ok 6"),
    "folders may not stand above each other": (
        {"src/layers": "base*:\n    one: two\n    two: one\n"}, 1, "base/one names two, which does not stand above its line"),
    "a map chooses no place": (
        {"src/middle/a.c": "void f(void)\n{\n    mmap(NULL, 1, 0, 0, 0, 0);\n}\n"}, 1, "src/middle/a.c:3: a map, where it must be mapping_make"),
    "a map over memory of our own is fine": ({"src/middle/a.c": "void f(void)\n{\n    mmap(at, 1, 0, 0, 0, 0);\n}\n"}, 0, "ok 7"),
    "a folder of tests has its limit": (
        {f"tests/api/x/{i}.py": "" for i in range(29)}, 1, "# tests/api/x: 29 files, at most 28: split it by subject"),
    "a folder within it is fine": ({f"tests/api/x/{i}_test.c": "" for i in range(28)}, 0, "ok 8"),
    "a header has no guard": ({"src/middle/a.h": "#ifndef A_H\n#define A_H\n#endif\n"}, 1, "# src/middle/a.h: #pragma once, no guard"),
    "a header that is read once is fine": ({"src/middle/a.h": "/* Why. */\n#pragma once\n"}, 0, "ok 10"),
    "nobody climbs out": (includes("flat/a.c", "../middle/top.h"), 1, "climbs out"),
}


PERMISSIONS = {
    "used permissions are fine": ({"src/layers": "base*:\nmiddle: base\n    rooms:\n    .: rooms\n", **includes("middle/a.c", "base/a.h", "middle/rooms/a.h")},
                                  0, "ok 9"),
    "one that only a test uses is found": ({"src/layers": "base*:\nmiddle: base\n", **includes("middle/a_test.c", "base/a.h")},
                                           1, "src/layers: middle includes nothing of base"),
    "one of a folder is found": ({"src/layers": "middle:\n    rooms:\n    stairs: rooms\n", **includes("middle/stairs/a.c", "middle/top.h")},
                                 1, "src/layers: middle/stairs includes nothing of rooms"),
}


def main():
    failed = made_up.run("shape.py", CASES, "--bare", beside={"src/layers": LAYERS}, more=len(PERMISSIONS))
    return made_up.run("shape.py", PERMISSIONS, first=len(CASES) + 1) or failed


if __name__ == "__main__":
    sys.exit(main())
