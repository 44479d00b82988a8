#!/usr/bin/env python3
"""What docs/evidence/adverse.md says: `make adverse`. Stopped, it goes on where it was.

    evidence.py [litmus|rows|seeds] [WORDS]    one part, of it what holds the words; without a part all, and the page

Part `litmus`: a million trials of each outcome that must never be, in processes that live for 50,000 of them, and each
allowed one under up to 1,000 seeds. Part `rows`: the rows of `make clients`, each under 3 seeds. Part `seeds`: ping-pongs,
perftest and rping, each under 100. The results lie in the build directory, with the commit that they are of.
"""
import collections
import datetime
import json
import os
import platform
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../clients/families"), os.path.join(HERE, "../clients"), os.path.join(HERE, "../tool")]
# pylint: disable=wrong-import-position
import litmus_run
import page
from clients import BUILD
from row import FAILED, OK, OWN, SKIPPED

PAGE = os.path.join(HERE, "../../docs/evidence/adverse.md")
MEMORY = os.environ.get("ADVERSE_MEMORY", os.path.join(BUILD, "adverse.json"))
TRIALS, CHUNK, SEEDS = 1_000_000, 50_000, 1000


def recall():
    if not os.path.exists(MEMORY):
        return {}
    with open(MEMORY, encoding="utf-8") as file:
        return json.load(file)


def remember(part, key, value):
    results = recall()
    results.setdefault(part, {})[key] = value
    with open(MEMORY + ".new", "w", encoding="utf-8") as file:
        json.dump(results, file)
    os.replace(MEMORY + ".new", MEMORY)


# --- litmus tests


def _never(names):
    """The one with the fewest trials next, with a seed that no chunk of it had."""
    while True:
        known = recall().get("never", {})
        name = min(names, key=lambda each: known.get(each, {}).get("trials", 0))
        state = known.get(name, {"trials": 0, "seen": 0, "chunks": 0, "commits": []})
        if state["trials"] >= TRIALS:
            return
        seed = state["chunks"] + 1
        row = litmus_run.run(f"seed={seed},scale=1%,{litmus_run.EXTRA}", CHUNK, name)[name]
        commits = sorted({*state["commits"], page.commit()})
        state = {"trials": state["trials"] + row.trials, "seen": state["seen"] + row.seen, "chunks": seed, "commits": commits, "outcome": row.outcome}
        remember("never", name, state)
        print(f"{name}: {state['seen']} of {state['trials']} trials", flush=True)


def _allowed(names):
    """Under one seed after the other until it was seen under three."""
    for name in names:
        known = recall().get("allowed", {}).get(name)
        if known and len(known["seeds"]) >= 3:
            continue
        seeds, seed, row = [], 0, None
        while len(seeds) < 3 and seed < SEEDS:
            seed += 1
            row = litmus_run.run(f"seed={seed},scale=10%,{litmus_run.EXTRA}", 40, name)[name]
            if row.seen:
                seeds.append(seed)
        without = litmus_run.run(f"seed={seeds[0] if seeds else 1},scale=10%,{litmus_run.EXTRA},{litmus_run.without(row)}", 1000, name)[name]
        remember("allowed", name, {"seeds": seeds, "outcome": row.outcome, "behaviour": row.behaviour, "without": without.seen, "of": without.trials,
                                   "commits": [page.commit()]})
        print(f"{name}: seen under seeds {seeds}; without {row.behaviour} {without.seen} of {without.trials}", flush=True)


def litmus(words):
    rows = litmus_run.run("seed=1,only=1", 1)
    _allowed([name for name, row in rows.items() if row.verdict == "ALLOWED" and words in name])
    _never([name for name, row in rows.items() if row.verdict == "NEVER" and words in name])
    return any(state["seen"] for state in recall().get("never", {}).values())


PARTS = {"litmus": litmus}


def main():
    part, words = (sys.argv[1] if len(sys.argv) > 1 else None), " ".join(sys.argv[2:])
    bad = [bool(run(words)) for name, run in PARTS.items() if part in (None, name)]
    return any(bad)


if __name__ == "__main__":
    sys.exit(main())
