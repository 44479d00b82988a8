#!/usr/bin/env python3
"""The check of objects finds what it is there for, in small made-up trees; prints TAP."""
import os
import subprocess
import sys
import tempfile

CHECK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "objects.py")
ENUM = "enum object_kind {\n    OBJECT_A,\n    OBJECT_FIRST_SHARED, /* OBJECT_NO */\n    OBJECT_B = OBJECT_FIRST_SHARED,\n    OBJECT_KINDS\n};\n"
CLASS = "static const struct object_class {0}_class = {{\n    .kind = OBJECT_{1},\n}};\n"
A, B = CLASS.format("a", "A"), CLASS.format("b", "B")

TREES = {
    "a class for each kind": ({"src/x.h": ENUM, "src/a.c": A, "src/b.c": B}, 0, "ok 1 - each of 2 kinds"),
    "a kind without a class": ({"src/x.h": ENUM, "src/a.c": A}, 1, "OBJECT_B: 0 classes"),
    "a kind with two classes": ({"src/x.h": ENUM, "src/a.c": A, "src/b.c": B + A}, 1, "OBJECT_A: 2 classes"),
    "a class in a test counts for nothing": ({"src/x.h": ENUM, "src/a.c": A, "src/b_test.c": B}, 1, "OBJECT_B: 0 classes"),
    "a switch": ({"src/x.h": ENUM, "src/a.c": A + "int f(int kind)\n{\n    switch (kind) {\n    case OBJECT_A:\n        return 1;\n    }\n}\n", "src/b.c": B}, 1, "src/a.c: case OBJECT_A"),
    "no kinds at all": ({"src/a.c": A}, 1, "there is no enum object_kind"),
}


def check(files):
    """Exit status and output for a tree of these files."""
    with tempfile.TemporaryDirectory() as top:
        for name, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(top, name)), exist_ok=True)
            with open(os.path.join(top, name), "w", encoding="utf-8") as file:
                file.write(text)
        done = subprocess.run([sys.executable, CHECK, top], capture_output=True, text=True, check=False)
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
