#!/usr/bin/env python3
"""The check of the adverse adapter finds what it is there for, in small made-up trees; prints TAP."""
import sys

sys.dont_write_bytecode = True
import made_up
from adverse import ANSWERS, FILES_MOST

BEHAVIOUR = 'ADVERSE(1, LATE, "late", 1, "It is late.", "an event", "hurry")\n'
OUTCOME = 'LITMUS(1, 2, "late", "seen", "gone")\n'
NAMES_IT = "if (adverse_shows(ADVERSE_LATE))\n    wait();\n"


def tree(*paths, text=NAMES_IT, behaviours=BEHAVIOUR, outcomes=OUTCOME, answers=tuple(ANSWERS)):
    files = {"src/adverse/adverse.def": behaviours, "tests/adverse/litmus.def": outcomes}
    return files | {path: NAMES_IT for path in answers} | {path: text for path in paths}


def files(count, form="src/a/file_{}.c"):
    return [form.format(number) for number in range(count)]


FEW = f"ok 2 - {FILES_MOST} files"
TREES = {
    "a behaviour with an outcome is fine": (tree(), 0, "ok 1 - each of 1 behaviours has a test"),
    "one without is refused": (tree(outcomes=OUTCOME.replace("late", "early")), 1, "not ok 1 - each of 1"),
    "as many files as may are fine": (tree(*files(FILES_MOST)), 0, FEW),
    "one more is refused": (tree(*files(FILES_MOST + 1)), 1, f"not ok 2 - {FILES_MOST + 1} files"),
    "they are named": (tree(*files(FILES_MOST + 1)), 1, "# src/a/file_0.c"),
    "a header counts": (tree(*files(FILES_MOST), "src/a/a.h"), 1, "not ok 2"),
    "a comment counts": (tree(*files(FILES_MOST + 1), text="/* An Adverse process waits. */"), 1, "not ok 2"),
    "the rooms do not count": (tree(*files(FILES_MOST), *files(2, "src/adverse/{}.c"), *files(2, "src/verbs/disturb/{}.c")), 0, FEW),
    "tests do not count": (tree(*files(FILES_MOST), *files(2, "src/a/a_{}_test.c"), "src/a/a_fuzz.c"), 0, FEW),
    "lists of words do not count": (tree(*files(FILES_MOST), "src/a/words.def"), 0, FEW),
    "files of answers do not count, but must name it": (tree(*files(FILES_MOST)), 0, f"ok 3 - each of {len(ANSWERS)} files"),
    "one that no longer does is refused": (tree(answers=tuple(ANSWERS)[1:]), 1, f"# {tuple(ANSWERS)[0]}"),
}


if __name__ == "__main__":
    sys.exit(made_up.run("adverse.py", TREES))
