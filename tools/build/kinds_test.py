#!/usr/bin/env python3
"""The check of kinds finds what it is there for, in small made-up trees; prints TAP."""
import os
import subprocess
import sys
import tempfile

CHECK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kinds.py")


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


def check(files):
    """Exit status and output for a tree of these files."""
    with tempfile.TemporaryDirectory() as top:
        for name, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(top, name)), exist_ok=True)
            with open(os.path.join(top, name), "w", encoding="utf-8") as file:
                file.write(text)
        done = subprocess.run([sys.executable, CHECK, top, "--bare"], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout


def main():
    print(f"1..{len(TREES)}")
    failed = 0
    for number, (name, (files, status, words)) in enumerate(TREES.items(), 1):
        got, output = check(files)
        right = got == status and words in output
        failed += not right
        print(f"{'ok' if right else 'not ok'} {number} - {name}")
        if not right:
            print("".join(f"# {line}\n" for line in output.splitlines()), end="")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
