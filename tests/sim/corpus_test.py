#!/usr/bin/env python3
"""Files of turns in tests/corpus/sim, each the fewest turns of a failure that was found by its seed: they end as they did. Prints TAP.

    REPLAYS=100 tests/sim/corpus_test.py     each so often
    tests/sim/corpus_test.py --write         finds and shrinks all of them anew, after a change of the scheduling points"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tool"))
import cases
from cases import BUILD, needs_simulated_runs, softverbs, told

FILES = os.path.join(HERE, "../corpus/sim")
REPLAYS = int(os.environ.get("REPLAYS", "5"))
THREADS = f"{BUILD}/tests/sim/threads"
KNOWN = {"deadlock.sim": ("deadlock", 3, b"Deadlock after"), "race.sim": ("race", 1, b"")}


def each_file_has_its_failure():
    assert sorted(os.listdir(FILES)) == sorted(KNOWN), os.listdir(FILES)


def a_replay_ends_as_the_run_that_was_shrunk():
    needs_simulated_runs()
    for name, (word, status, part) in KNOWN.items():
        runs = [softverbs("sim", "--replay", f"{FILES}/{name}", "--", THREADS, word) for _ in range(REPLAYS)]
        for done in runs:
            assert done.returncode == status and part in done.stderr, (name, told(done))
        assert len({(done.stdout, done.stderr.splitlines()[-1]) for done in runs}) == 1, (name, [told(done) for done in runs])


def without_its_turns_none_fails():
    needs_simulated_runs()
    empty = f"{cases.TEMPORARY}/empty.sim"
    with open(empty, "w", encoding="ascii") as file:
        file.write("softverbs-sim 1\nseed 0\n")
    for word, _, _ in KNOWN.values():
        done = softverbs("sim", "--replay", empty, "--", THREADS, word)
        assert done.returncode == 0, told(done)


def _write():
    for name, (word, status, _) in KNOWN.items():
        seed = next(seed for seed in map(str, range(1000)) if softverbs("sim", "--seed", seed, "--", THREADS, word).returncode == status)
        print(softverbs("sim", "--seed", seed, "--shrink", f"{FILES}/{name}", "--", THREADS, word).stdout.decode(), end="")


if __name__ == "__main__":
    _write() if "--write" in sys.argv else cases.main(sys.modules[__name__])
