#!/usr/bin/env python3
"""Litmus tests under the adverse adapter: what is allowed occurs, what must never be does not. Prints TAP.

By hand, with more of both: litmus_test.py SEEDS TRIALS, which prints the table.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tool"))
import cases
from cases import BUILD, TEMPORARY, expect, softverbs, told

PROGRAM = f"{BUILD}/tests/adverse/litmus"
SEEDS, TRIALS = 60, 40  # seeds are tried until each allowed outcome was seen
EVERYTHING = "scale=10%,with=write-order"


def _run(setting, trials, *names, **extra):
    """The rows by their name: verdict, behaviour, seen, trials, outcome."""
    adverse = [f"--adverse={setting}"] if setting is not None else []
    done = softverbs("run", *adverse, "--", PROGRAM, str(trials), *names, **extra)
    assert done.returncode in (0, 1), told(done)
    return {row[0]: row[1:] for row in (line.split("\t") for line in done.stdout.decode().splitlines())}


def _forbidden(rows):
    return {name: row for name, row in rows.items() if row[0] == "NEVER" and int(row[2])}


def what_is_allowed_occurs_for_some_seed_and_what_must_never_be_for_none():
    missing = None
    for seed in range(1, SEEDS + 1):
        rows = _run(f"seed={seed},{EVERYTHING}", TRIALS, *(missing or ()))
        assert not _forbidden(rows), (seed, rows)
        missing = [name for name, row in rows.items() if row[0] == "ALLOWED" and not int(row[2])]
        if not missing:
            return
    raise AssertionError(f"not seen in {SEEDS} seeds: {missing}")


def without_its_behaviour_an_outcome_vanishes():
    named = {}
    for name, row in _run("seed=1,only=1", 1).items():
        if row[1] != "-":
            named.setdefault(row[1], []).append(name)
    for behaviour, names in named.items():
        rows = _run(f"seed=3,{EVERYTHING},without={behaviour}", TRIALS, *names)
        assert set(rows) == set(names) and not any(int(row[2]) for row in rows.values()), (behaviour, rows)


def one_behaviour_alone_is_enough_for_its_outcome():
    for behaviour, name in (("1", "L1"), ("late-write", "L3"), ("late-write", "L6"), ("overtake", "L9"), ("8", "L16")):
        seen = sum(int(_run(f"seed={seed},only={behaviour},scale=10%", TRIALS, name)[name][2]) for seed in (1, 2, 3))
        assert seen, (behaviour, name)


def a_process_without_it_shows_none_of_what_needs_it():
    rows = _run(None, TRIALS, "L1", "L3", "L6", "L11", "L16", "P1")
    assert len(rows) == 6 and not any(int(row[2]) for row in rows.values()), rows


def the_log_names_a_behaviour_once_when_it_is_shown():
    path = f"{TEMPORARY}/adverse.log"
    _run("seed=5,only=late-write,only=late-acks,only=late-completions", TRIALS, "L3", "L4", env={"SOFTVERBS_LOG": "info", "SOFTVERBS_LOG_FILE": path})
    with open(path, encoding="utf-8") as file:
        lines = [line for line in file if "(reason 870)" in line]
    for words in ("3, late-write (seed 5)", "10, late-acks (seed 5)", "7, late-completions (seed 5)"):
        assert sum(words in line for line in lines) == 1, lines
    assert len(lines) == 3, lines


def a_process_that_ends_owes_nothing():
    """A message that its program has received is acknowledged, as by an adapter."""
    for seed in range(1, 6):
        expect(softverbs("run", f"--adverse=seed={seed},only=late-acks,scale=1000%", "--", f"{BUILD}/tests/clients/exit_after_receive", "quietly",
                         "quietly", "10"), out=None)


def a_list_that_is_none_is_refused():
    for value in ("late-write", "seed=x", "only=99", "scale=0%"):
        expect(softverbs("run", f"--adverse={value}", "--", "true"), status=2, err=[f'"{value}" of the adverse list'.encode()])
        done = softverbs("run", "--", "true", env={"SOFTVERBS_ADVERSE": value})
        assert done.returncode == 2 and b"3 late-write" in done.stderr, told(done)
    expect(softverbs("run", "--adverse", "--", "true"))


def _table(seeds, trials):
    total = {}
    for seed in range(1, seeds + 1):
        for name, row in _run(f"seed={seed},{EVERYTHING}", trials).items():
            before = total.get(name, (0, 0))
            total[name] = (before[0] + int(row[2]), before[1] + int(row[3]), row[0], row[4])
    print(f"| test | outcome | verdict | seen | trials, of {seeds} seeds |\n|---|---|---|---|---|")
    for name, (seen, of, verdict, outcome) in total.items():
        print(f"| {name} | {outcome} | {verdict.lower()} | {seen} | {of} |")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        _table(int(sys.argv[1]), int(sys.argv[2]))
    else:
        cases.main(sys.modules[__name__])
