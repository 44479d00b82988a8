#!/usr/bin/env python3
"""Checks that a first test in C needs few of the steps of a whole build, and that CONTRIBUTING's lines for it lead there; prints TAP.

Usage: steps.py DIRECTORY BUILD

BUILD is a build of DIRECTORY with tests. Steps are ninja's commands for a target when no part of it is built.
"""
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
from tree import judged, read_layers

MOST = 0.25  # of the steps of a whole build
WHOLE = {"check": 0.28}  # its tests carry the whole library


def ask(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def steps(build, target):
    return len(ask("ninja", "-C", build, "-t", "commands", target).splitlines())


def parts(build):
    """The first test program of each layer."""
    found = {}
    for name in re.findall(r"^(src/\w+/\S*_test):(?! phony)", ask("ninja", "-C", build, "-t", "targets", "all"), re.M):
        found.setdefault(name.split("/")[1], name)
    return found


def dear(build):
    whole = steps(build, "all")
    for part, target in parts(build).items():
        needed = steps(build, target)
        if needed > whole * WHOLE.get(part, MOST):
            yield f"{target}: {needed} of {whole} steps"


def wrong_lines(top, build):
    """The lines of the chapter "Your first test" that can't be right."""
    with open(os.path.join(top, "CONTRIBUTING.md"), encoding="utf-8") as file:
        chapter = re.search(r"^## Your first test\n(.*?)^## ", file.read(), re.M | re.S)
    code = "\n".join(re.findall(r"^    (.*)$", chapter[1] if chapter else "", re.M))
    target, test = re.search(r"ninja -C \S+ (\S+)", code), re.search(r"meson test -C \S+ --no-rebuild (\S+)", code)
    if "-Dtests=true" not in code or not target or not test:
        yield 'the chapter "Your first test" of CONTRIBUTING.md lacks -Dtests=true, ninja -C DIRECTORY TARGET, or meson test --no-rebuild NAME'
        return
    if target[1] not in parts(build).values() and not os.path.exists(os.path.join(build, target[1])):
        yield f"there is no target {target[1]}"
    if test[1] not in {each["name"] for each in json.loads(ask("meson", "introspect", "--tests", build))}:
        yield f"there is no test {test[1]}"


def silent_suites(top, build):
    """Suites that the list of a build without tests lacks, which says what is missing (tests/meson.build)."""
    with open(os.path.join(top, "tests/meson.build"), encoding="utf-8") as file:
        listed = re.search(r"^  suites = \[(.*?)\]", file.read(), re.M)
    known = set(re.findall(r"'(\w+)'", listed[1] if listed else "")) | set(read_layers(top)[0])
    there = {suite.split(":")[1] for test in json.loads(ask("meson", "introspect", "--tests", build)) for suite in test["suite"]}
    return sorted(there - known - {"fuzz"})  # the suite of the fuzzers' build


def main():
    top, build = sys.argv[1:]
    faults = [list(dear(build)), list(wrong_lines(top, build)), silent_suites(top, build)]
    return judged((f"the first test of each layer needs at most {MOST:.0%} of a build's steps", faults[0]),
                  ("CONTRIBUTING's lines for a first test lead to one", faults[1]),
                  ("a build without tests says what is missing of each suite", faults[2]))


if __name__ == "__main__":
    sys.exit(main())
