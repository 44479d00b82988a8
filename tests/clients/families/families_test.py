#!/usr/bin/env python3
"""Of main.py: which verdict follows from what a row does."""
import sys
import time

import main
from row import FAILED, OK, OWN, SKIPPED, Fault, Row

from clients import Failure, Skip

FAULT = Fault("known", "a reason", "a source")


def row(run, packages=(), fault=None):
    return Row("family", "name", packages, "not at all", run, fault, seconds=1)


def raises(why):
    def run():
        raise why
    return run


def verdicts():
    judge = main.judge
    yield "a row that returns is ok", judge(row(None), lambda: None)[0] == OK
    yield "a row that finds other data has failed", judge(row(None), raises(Failure("other data"))) == (FAILED, "other data")
    yield "a row whose program is not found has failed", judge(row(None), raises(FileNotFoundError("none")))[0] == FAILED
    yield "a row that cannot run is skipped", judge(row(None), raises(Skip("why"))) == (SKIPPED, "why")
    yield "a failure that is known is the client's own", judge(row(None, fault=FAULT), raises(Failure("a known one"))) == (OWN, "a reason (a source)")
    yield "another failure of such a row is none", judge(row(None, fault=FAULT), raises(Failure("another")))[0] == FAILED
    yield "a row is skipped without its packages", main.run_apart(row(None, ("no-such-package",)), []) == (SKIPPED, "not installed: no-such-package")
    began = time.monotonic()
    late = main.run_apart(row(None), ["sh", "-c", "sleep 1000"])
    yield "a row that is late has failed, and is killed", late == (FAILED, "not at its end after 1 seconds") and time.monotonic() - began < 100
    yield "a row that says nothing has failed", main.run_apart(row(None), ["true"])[0] == FAILED
    names = [each.name for each in main.all_rows()]
    yield "each row has a name of its own", len(names) == len(set(names))


if __name__ == "__main__":
    found = list(verdicts())
    print(f"1..{len(found)}")
    for number, (name, held) in enumerate(found, 1):
        print(f"{'ok' if held else 'not ok'} {number} - {name}")
    sys.exit(not all(held for _, held in found))
