#!/usr/bin/env python3
"""Checks each Python script of the tree with pyflakes: a name that nothing defines fails only when its line runs; prints TAP.

Usage: scripts.py DIRECTORY
"""
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
from tree import judged

PLACES = ("bench", "examples", "lib", "packaging", "python", "src", "tests", "tools")
SPACK = "packaging/recipes/spack/package.py"  # Spack's recipes import all of its names with a star


def is_script(path):
    if path.endswith(".py"):
        return True
    with open(path, "rb") as file:
        first = file.readline(80)
    return first.startswith(b"#!") and b"python" in first


def scripts(top):
    for place in PLACES:
        for folder, _, names in os.walk(os.path.join(top, place)):
            for path in (os.path.join(folder, name) for name in sorted(names)):
                if os.path.isfile(path) and is_script(path) and os.path.relpath(path, top) != SPACK:
                    yield path


def main():
    top = sys.argv[1]
    pyflakes = shutil.which("pyflakes3") or shutil.which("pyflakes")
    if not pyflakes:
        print("1..0 # SKIP pyflakes is not installed")
        return 0
    paths = list(scripts(top))
    done = subprocess.run([pyflakes, *paths], capture_output=True, text=True, check=False)
    faults = [line.replace(top.rstrip("/") + "/", "") for line in (done.stdout + done.stderr).splitlines()]
    return judged((f"pyflakes finds nothing in {len(paths)} scripts", faults))


if __name__ == "__main__":
    sys.exit(main())
