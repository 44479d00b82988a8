#!/usr/bin/env python3
"""The check of sizes finds what it is there for, in small made-up trees; prints TAP."""
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from sizes import types

CHECK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sizes.py")


def check(files):
    """Exit status and output for a tree of these files."""
    with tempfile.TemporaryDirectory() as top:
        for name, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(top, name)), exist_ok=True)
            with open(os.path.join(top, name), "w", encoding="utf-8") as file:
                file.write(text)
        done = subprocess.run([sys.executable, CHECK, top, "--bare"], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout


def folder(count, *others):
    return {f"src/a/f{i}.c": "" for i in range(count)} | {name: "" for name in others}


def fields(count):
    return " ".join(f"int f{i};" for i in range(count))


TREES = {
    "a folder may have 28 files": (folder(28), 0, "src/a: 28"),
    "a folder may not have 29": (folder(29), 1, "src/a: 29, at most 28"),
    "a header is a file": (folder(28, "src/a/f.h"), 1, "src/a: 29"),
    "tests are not counted": (folder(28, "src/a/f1_test.c", "src/a/testing/rig.c", "src/a/f_fuzz.c"), 0, "src/a: 28"),
    "a folder inside counts for itself": (folder(28, "src/a/b/f.c"), 0, "src/a: 28"),
    "a type may have 30 members": ({"src/a/x.h": f"struct s {{ {fields(30)} }};"}, 0, "struct s: 30"),
    "a type may not have 31": ({"src/a/x.h": f"struct s {{ {fields(31)} }};"}, 1, "src/a/x.h: struct s: 31, at most 30"),
}
TYPES = {
    "struct a { int one, two; char *three; };": 3,
    "struct a { int (*one)(int, void *); int two[3], three; };": 3,
    "struct a { struct { int x, y; } one; int two; };": 2,
    "struct a { union { int one; struct { int two, three; }; }; };": 3,
    "struct a { enum { RED, GREEN } one; unsigned two : 1, three : 2; };": 3,
    "struct a { /* not; one */ int one; };": 1,
    "struct a { TAILQ_ENTRY(a) one; LIST_HEAD(, b) two; };": 2,
}


def main():
    failed = 0
    results = [(name, check(files), (status, words)) for name, (files, status, words) in TREES.items()]
    lines = [(name, got[0] == wanted[0] and wanted[1] in got[1], got) for name, got, wanted in results]
    for text, count in TYPES.items():
        got = dict(types(text)).get("struct a")
        lines.append((f"{count} in {text}".replace("#", ""), got == count, got))
    print(f"1..{len(lines)}")
    for number, (name, fine, got) in enumerate(lines, 1):
        failed += not fine
        print(f"{'ok' if fine else 'not ok'} {number} - {name}")
        if not fine:
            print(f"# {got}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
