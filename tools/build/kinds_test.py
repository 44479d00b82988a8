#!/usr/bin/env python3
"""The check of kinds finds what it is there for, in small made-up trees; prints TAP."""
import sys

sys.dont_write_bytecode = True
import made_up


def naming(count, folder="src/a"):
    return {f"{folder}/{i}.c": "int x = IBV_QPT_RC;\n" for i in range(count)}


def chain(count):
    """A header of a type that brings so many along, each by the one before."""
    names = ["verbs/qp/qp.h", *(f"base/{i}.h" for i in range(count))]
    return {f"src/{name}": f'#include "{other}"\n' for name, other in zip(names, names[1:])} | {f"src/{names[-1]}": ""}


TREES = {
    "eight files may name types": (naming(8), 0, "files that name IBV_QPT_: 8 of at most 8"),
    "nine may not": (naming(9), 1, "not ok 1 - files that name IBV_QPT_: 9 of at most 8"),
    "tests count": ({**naming(8), "src/a_test.c": "IBV_QPT_UD"}, 1, "a_test.c"),
    "rdma-core's own header does not": ({**naming(8), **naming(1, "src/newer")}, 0, "8 of at most 8"),
    "fifteen headers may come along": (chain(15), 0, "verbs/qp/qp.h 15"),
    "sixteen may not": (chain(16), 1, "verbs/qp/qp.h: brings 16 headers, at most 15"),
    "each counts once": ({**chain(15), "src/base/14.h": '#include "base/0.h"\n'}, 0, "verbs/qp/qp.h 15"),
}


if __name__ == "__main__":
    sys.exit(made_up.run("kinds.py", TREES))
