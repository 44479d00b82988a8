"""Runs the litmus tests of litmus.def and litmus_srd.def under an adverse list."""
import os
import subprocess
import tempfile
from typing import NamedTuple

BUILD = os.path.abspath(os.environ.get("SOFTVERBS_BUILD", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build")))
# The first letter of the tests of each program, "" for all others; and its options.
PROGRAMS = {"litmus": ("", ()), "litmus_srd": ("S", ("--profile", "efa3"))}
EXTRA = "with=write-order,with=no-inline,with=unreliable,with=gid-index,with=late-port,with=new-entries,with=null-readers"  # what the tests need of what is off by itself


class Row(NamedTuple):
    """The result of one test."""
    verdict: str
    behaviour: str
    seen: int
    trials: int
    outcome: str


def read(text):
    rows = (line.split("\t") for line in text.splitlines())
    return {name: Row(verdict, behaviour, int(seen), int(trials), outcome) for name, verdict, behaviour, seen, trials, outcome in rows}


def without(row):
    """The items of a list that leave out the behaviours of a row, which has + between several."""
    return ",".join(f"without={word}" for word in row.behaviour.split("+"))


def run(adverse, trials, *names, directory=None, env=None, threads=1):
    """The rows by their names, all of them without one. `adverse` None: without the mode."""
    rows = {}
    for program, (letter, profile) in PROGRAMS.items():
        of_it = [name for name in names if name.startswith(letter or "S") == bool(letter)]
        if of_it or not names:
            rows |= _run(program, profile, adverse, trials, *of_it, directory=directory, env=env, threads=threads)
    return rows


def _run(program, profile, adverse, trials, *names, directory, env, threads):
    with tempfile.TemporaryDirectory(prefix="softverbs-adverse-") as own:
        options = [] if adverse is None else [f"--adverse={adverse}"]
        done = subprocess.run([f"{BUILD}/softverbs", "run", *options, *profile, "--", f"{BUILD}/tests/adverse/{program}", f"-{threads}", str(trials), *names], capture_output=True, text=True, check=False,
                              env={**os.environ, "SOFTVERBS_DIR": directory or own, **(env or {})})
    if done.returncode not in (0, 1):
        raise RuntimeError(f"litmus {names}: status {done.returncode}: {done.stderr[-800:]}")
    return read(done.stdout)
