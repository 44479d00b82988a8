#!/usr/bin/env python3
"""Checks that tests wait and try by one scale; prints TAP.

Usage: patience.py DIRECTORY

src/base/testing/patience.h and tests/clients/patience.py set how long a test waits for what must happen, which TEST_PATIENCE
multiplies; a test that needs several tries takes them from there, which shows their number. So no other file of tests, nor of bench/,
defines a constant of that name, and where a test gives up a process that it waits for (timeout=, alarm), the number is multiplied. BY_HAND:
tests that a person starts, who sees what is slow; LIVES: programs whose alarm is a part of what they show.

A test waits for a condition. Where it sleeps for a literal time (sleeps.py), its line has the reason in a comment, and there are at most
SLEEPS such lines; that number only falls. A test in C that looks for what other threads and processes do ends (PATIENTLY_WHILE).
"""
import os
import re
import sys

sys.dont_write_bytecode = True
import sleeps
from tree import SUPPORT, judged

OWNERS = ("src/base/testing/patience.h", "tests/clients/patience.py")
BY_HAND = ("tests/releases/", "tests/interop/", "tests/look/", "tests/upstream/", "tests/tool/lab/lab_evidence.py", "bench/")
LIVES = ("tests/clients/processes/mistakes.c", "tests/tool/messages/newcomer.c")
SLEEPS = 60
LOOKED_AT = ("src/", "tests/abi/", "tests/api/", "tests/adverse/")
OTHER_TIME = ("tests/model/", "bench/")  # the model's clock is its own; a benchmark does not wait for a condition
WITHIN = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*?"
LITERAL = {".py": re.compile(r"(?:subprocess\.\w+|\.communicate|\.wait)" + WITHIN + r"\btimeout=[\dA-Z_]+\b"),
           ".c": re.compile(r"\balarm\((?:\d*[1-9]\d*|[A-Z_]+)\)")}
CONSTANT = re.compile(r"\b(\w*PATIEN(?:CE|T)\w*|patience|(?:\w+_)?(?:TRIES|ATTEMPTS)(?:_\w+)?|tries|attempts)\s*=\s*[\d.]+", re.M)


# A wait for another thread or process without an end: its loop only looks.
LOOKS = re.compile(r"(?<!\w)while \((?=[^;{]*\b(?:atomic_load|take_bytes)\w*\()(?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
                   r"(?:\s*/\*[^\n]*\*/)?\s*(?:;|\{\s*\}|usleep\(\w+\);|sched_yield\(\);|rig_(?:turn|sleep_and_turn)\()")


def sources(top):
    for place in ("src", "tests", "bench"):
        for folder, _, names in os.walk(os.path.join(top, place)):
            for name in sorted(names):
                path = os.path.relpath(os.path.join(folder, name), top)
                if name.endswith((".c", ".h", ".py")) and (place != "src" or SUPPORT.search(path)) and path not in OWNERS:
                    yield path


def limits(path, text):
    """The places where the test gives up after a time that nothing multiplies."""
    literal = None if path.startswith(BY_HAND) or path in LIVES else LITERAL.get(os.path.splitext(path)[1])
    ends = [text[:found.end()] for found in literal.finditer(text)] if literal else []
    return [f"{path}:{end.count(chr(10)) + 1}: a limit that TEST_PATIENCE does not multiply" for end in ends]


def literal_sleeps(found):
    """The faults of these lines: path, number, whether a reason is given."""
    faults = [f"{path}:{number}: a sleep without a reason in its line: wait for a condition" for path, number, reason in found if not reason]
    return faults + [f"{len(found)} literal sleeps, at most {SLEEPS}: wait for a condition"] * (len(found) > SLEEPS)


def main():
    top, faults, count, found, endless = sys.argv[1], [], 0, [], []
    for path in sources(top):
        count += 1
        with open(os.path.join(top, path), encoding="utf-8") as file:
            text = file.read()
        faults += [f"{path}: {name} is a scale of its own" for name in CONSTANT.findall(text)] + limits(path, text)
        found += [(path, *line) for line in sleeps.literal(path, text)] if not path.startswith(OTHER_TIME) else []
        if path.startswith(LOOKED_AT) and path.endswith("_test.c"):
            endless += [f"{path}:{text[:look.start()].count(chr(10)) + 1}: a wait without an end: PATIENTLY_WHILE" for look in LOOKS.finditer(text)]
    hopes = literal_sleeps(found)
    return judged((f"none of {count} files of tests waits or tries by a scale of its own", faults),
                  (f"{len(found)} of at most {SLEEPS} literal sleeps, each with its reason", hopes),
                  ("no test that looks for what others do looks for ever", endless))


if __name__ == "__main__":
    sys.exit(main())
