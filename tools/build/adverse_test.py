#!/usr/bin/env python3
"""The check of the adverse adapter finds what it is there for, in small made-up trees; prints TAP."""
import sys

sys.dont_write_bytecode = True
import made_up
from adverse import ANSWERS, FILES_MOST, HEADING, PAGE

BEHAVIOUR = 'ADVERSE(1, LATE, "late", 1, "It is late.", "an event", "hurry")\n'
OUTCOME = 'LITMUS(1, 2, "late", "seen", "gone")\n'
RULE = 'RULE(MISSED, "missed", ERROR, SEES, "a", "b", "c", "d")\n'
SCRIPT = 'HAPPENING(route, ROUTE, "a route")\n'
ROWS = "| arming is kind | rxe | `--profile rxe`, `--adverse=with=late`, rule `missed`, `--inject 'when route: drop'` |\n| all | b | none, as it is one |\n"
NAMES_IT = "if (adverse_shows(ADVERSE_LATE))\n    wait();\n"


def tree(*paths, text=NAMES_IT, behaviours=BEHAVIOUR, outcomes=OUTCOME, answers=tuple(ANSWERS), rows=ROWS):
    files = {"src/adverse/adverse.def": behaviours, "tests/adverse/litmus.def": outcomes, "src/check/rules.def": RULE, "src/script/words.def": SCRIPT,
             "profiles/rxe.profile": "", PAGE: f"{HEADING}, and more\n\n| a | b | switch |\n|---|---|---|\n{rows}\n## Next\n| c | `none` |\n"}
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
    "rows with switches of each kind are fine": (tree(), 0, f"ok 4 - each switch of 2 rows of {PAGE} exists"),
    "a row without a switch is refused": (tree(rows="| a | b | nothing yet |\n"), 1, "has no switch"),
    "a row that has no reason either is refused": (tree(rows="| a | b | none |\n"), 1, "has no switch, and no reason"),
    "a profile that is not there is refused": (tree(rows="| a | b | `--profile efa` |\n"), 1, "`--profile efa`, which does not exist"),
    "a behaviour that is not there is refused": (tree(rows="| a | b | `--adverse=with=soon` |\n"), 1, "`--adverse=with=soon`"),
    "a rule that is not there is refused": (tree(rows="| a | b | rule `seen` |\n"), 1, "`seen`, which does not exist"),
    "a happening that is not there is refused": (tree(rows="| a | b | `--inject 'when rout: drop'` |\n"), 1, "which does not exist"),
    "one that no longer does is refused": (tree(answers=tuple(ANSWERS)[1:]), 1, f"# {tuple(ANSWERS)[0]}"),
}


if __name__ == "__main__":
    sys.exit(made_up.run("adverse.py", TREES))
