#!/usr/bin/env python3
"""The output of this directory's tests when they fail."""
import os
import subprocess
import sys

import cases
import patience

FAILING = "import sys, cases\ndef a_case_that_fails():\n    assert 1 == 2, 'the cause'\ncases.main(sys.modules[__name__])\n"


def _fail(**streams):
    return subprocess.run([sys.executable, "-c", FAILING], check=False, stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "PYTHONPATH": os.path.dirname(cases.__file__)}, **streams)


def a_failure_is_told_where_meson_prints_it():
    done = _fail(stderr=subprocess.PIPE)
    assert done.returncode == 1 and "not ok 1 - a case that fails" in done.stdout, done
    assert "not ok 1 - a case that fails" in done.stderr and "the cause" in done.stderr and "1..1" not in done.stderr, done


def it_is_told_once_on_one_screen():
    assert _fail(stderr=subprocess.STDOUT).stdout.count("not ok 1") == 1


SCALE = """import patience
chances = iter([ValueError, ValueError, None])
def once():
    chance = next(chances)
    if chance:
        raise chance
    return "done"
print(patience.patience(2), patience.tries("a thing", 5, "chance", once, ValueError))
"""


def one_variable_multiplies_what_scripts_wait():
    done = subprocess.run([sys.executable, "-c", SCALE], check=True, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": os.path.dirname(patience.__file__), "TEST_PATIENCE": "3"})
    assert done.stdout == "# tries: 3 of 5: a thing: chance\n6.0 done\n", done


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
