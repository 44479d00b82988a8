#!/usr/bin/env python3
"""Takes the mends of ten hangs back, one by one in a copy of the tree, and lets seeds of softverbs sim find them: `make sim-hangs`. Stopped,
it continues where it was.

    hangs.py [NUMBER ...]    these again, though they have been run; by default all that have not

With the mend each of the seeds must end with 0. The copy and the results are in the build directory; the last column of the table in
docs/evidence/sim.md is written anew."""
import dataclasses
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("SOFTVERBS_BUILD", os.path.join(TOP, "build")))
PROGRAMS = f"{BUILD}/tests/sim/hangs"
PLACE = f"{BUILD}/sim-hangs"
TREE = f"{PLACE}/tree"
MEMORY = f"{PLACE}/results.json"
PAGE = f"{TOP}/docs/evidence/sim.md"
JOBS = os.environ.get("JOBS", str(len(os.sched_getaffinity(0))))
LIMIT = "60"  # seconds of one run


@dataclasses.dataclass
class Hang:
    number: str
    words: tuple
    options: tuple = ()
    environment: tuple = ()
    seeds: int = 300
    note: str = ""


# Payloads by process_vm_writev, as without softverbs sim.
DIRECT = (("SOFTVERBS_DIRECT", "1"), ("SOFTVERBS_NO_PULL", "0"))

HANGS = (
    Hang("01", (f"{PROGRAMS}/fork_channel",)),
    Hang("02", (f"{BUILD}/tests/clients/long_writes", "computes"), environment=DIRECT, seeds=6,
         note="a thread without the token waits in futex(2) for whoever reads /proc, and never runs"),
    Hang("03", (f"{PROGRAMS}/one_event",)),
    Hang("04", (f"{PROGRAMS}/killed_writer",), environment=DIRECT, seeds=50),
    Hang("05", (f"{BUILD}/tests/clients/long_writes", "many"), environment=DIRECT, seeds=6,
         note="the limit ends runs that wait for nothing, too"),
    Hang("06", (f"{PROGRAMS}/close_all",)),
    Hang("07", (f"{PROGRAMS}/other_number",), seeds=30, note="no matter of order"),
    Hang("08", (f"{PROGRAMS}/room",), options=("--strategy", "uniform", "--every", "8"), seeds=100,
         note="what takes the word has to come between two steps of the helper that have no scheduling point between them"),
    Hang("10", (f"{PROGRAMS}/stopped_holder",), options=("--strategy", "uniform", "--every", "3")),
)


def _call(*words, **more):
    subprocess.run(words, check=True, **more)


def _copy_tree():
    """Files that are as they were keep their times, so that little is built anew."""
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=TOP, check=True, capture_output=True).stdout
    os.makedirs(TREE, exist_ok=True)
    for name in names.decode().strip("\0").split("\0"):
        source, target = f"{TOP}/{name}", f"{TREE}/{name}"
        if not os.path.isfile(source):
            continue
        with open(source, "rb") as file:
            text = file.read()
        if os.path.exists(target):
            with open(target, "rb") as file:
                if file.read() == text:
                    continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(text)
        os.chmod(target, os.stat(source).st_mode)


def _build():
    if not os.path.exists(f"{TREE}/build/build.ninja"):
        _call("meson", "setup", "build", "-Dtests=false", "-Doptimization=1", cwd=TREE, stdout=subprocess.DEVNULL)
    _call("nice", "ninja", "-j", JOBS, "-C", f"{TREE}/build", "command", stdout=subprocess.DEVNULL)


def _run(hang):
    """The lines of the table of outcomes: [runs, first seed, outcome]."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SOFTVERBS_")}
    environment.update(dict(hang.environment))
    done = subprocess.run([f"{TREE}/build/softverbs", "sim", "--limit", LIMIT, *hang.options, "--seeds", f"0..{hang.seeds - 1}", "--", *hang.words],
                          capture_output=True, check=False, env=environment, cwd="/tmp", stdin=subprocess.DEVNULL)
    rows = [line.split(None, 2) for line in done.stdout.decode().splitlines()[1:]]
    assert sum(int(row[0]) for row in rows) == hang.seeds, (hang.number, done)
    return rows


def _failures(rows):
    return [row for row in rows if row[2] != "status 0"]


def _word(hang, result):
    """The last column."""
    found, words = _failures(result["without"]), " ".join(os.path.basename(word) for word in hang.words)
    if found:
        first = min(int(row[1]) for row in found)
        kinds = ", ".join(f"{row[0]} {row[2]}" for row in found)
        told = f"{first}; of {hang.seeds}: {kinds}"
    else:
        told = f"not found in {hang.seeds} seeds"
    wrong = _failures(result["with"])
    told += f"; with the mend {sum(int(row[0]) for row in wrong)} of {hang.seeds} fail" if wrong else ""
    return f"{told} (`{' '.join([*hang.options, words])}`){': ' + hang.note if hang.note else ''}"


def _write(memory):
    with open(MEMORY, "w", encoding="utf-8") as file:
        json.dump(memory, file)
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    for hang in HANGS:
        if hang.number in memory:
            word = _word(hang, memory[hang.number])
            page = re.sub(rf"^(\| {hang.number} \|.*\| ).*( \|)$", lambda row, word=word: row[1] + word + row[2], page, flags=re.M)
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page)


def _take_back(hang, state):
    patch = f"{HERE}/hangs/{hang.number}.patch"
    _call("patch", "-s", "-p1", "-i", patch, cwd=TREE)
    try:
        _build()
        state["without"] = _run(hang)
    finally:
        _call("patch", "-s", "-R", "-p1", "-i", patch, cwd=TREE)


def main(numbers):
    memory = {}
    _copy_tree()
    if os.path.exists(MEMORY):
        with open(MEMORY, encoding="utf-8") as file:
            memory = json.load(file)
    chosen = [hang for hang in HANGS if hang.number in numbers or (not numbers and hang.number not in memory)]
    for hang in chosen:
        state = {}
        _take_back(hang, state)
        _build()
        state["with"] = _run(hang)
        memory[hang.number] = state
        _write(memory)
        print(hang.number, _word(hang, state), flush=True)
    found = [hang.number for hang in HANGS if hang.number in memory and _failures(memory[hang.number]["without"])]
    print(f"{len(found)} of 10 are found: {' '.join(found)}")
    return len(found) < 8 or any(_failures(state["with"]) for state in memory.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
