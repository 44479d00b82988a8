#!/usr/bin/env python3
"""Known races of other projects under softverbs sim: `make sim-races CHECKOUTS=DIRECTORY [ONLY=WORDS]`.

    races.py CHECKOUTS [WORDS]    the races whose names hold the words

CHECKOUTS holds a checkout, bare or not, of each project: mooncake, brpc (or mooncake.git, brpc.git); one that is missing is left out, and
nothing is fetched. Each race is looked for in the sources before its mend, in SEEDS seeds; the first seed that finds it is repeated, its
turns are shrunk, and the file of turns is replayed. Then the sources with the mend run with many seeds, which must find nothing. The
programs are in tests/sim/races, the results in the build directory, and from these comes a section of docs/evidence/sim.md. A race with
results is left out; AGAIN=1 runs it anew."""
import collections
import datetime
import functools
import json
import os
import platform
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "races")]
import brpc
import mooncake
import section

BUILD = os.path.abspath(os.environ.get("SOFTVERBS_BUILD", os.path.join(HERE, "../../build")))
WORK = os.path.abspath(os.environ.get("RACES", f"{BUILD}/races"))
SETUP = os.path.join(HERE, "../../tools/build/setup.sh")
PAGE = os.path.join(HERE, "../../docs/evidence/sim.md")
SEEDS, REPEATS, MENDED, REPLAYS = 100, 20, 1000, 100
FEW, SHRUNK = 6, 4
# A program's first use of its memory takes longer on a busy machine than sim lets a thread run without a call.
OPTIONS = ["--patience", "5000"]
CHUNK = 100

# `programs(place)` are the words for sim, with the race's programs in that directory; `mend` names edits that stand for a mend which no
# checkout has; `note` is for the page; a hidden race need not be found.
Race = collections.namedtuple("Race", "project pull what before after programs mend note hidden", defaults=["", "", False])


def _ends(seconds, patience, *more):
    def programs(place):
        return [f"{place}/transfers", "12001", "12002", seconds, patience, "---", f"{place}/transfers", "12002", "12001", seconds, patience,
                *(word.format(place) for word in more)]
    return programs


def _calls(client):
    return lambda place: [f"{place}/calls", "server", "8000", "30", "---", "+1s", f"{place}/calls", client, "8000", "4"]


RACES = [
    Race(mooncake, "1733", "two ends connect to each other at once; each holds its lock while it waits for the other's answer",
         "41d40dabd", "4b3d44f39", _ends("3", "10")),
    Race(mooncake, "2624", "two ends connect to each other at once, and the request of one is not answered in time",
         "110bc7dec", "30f01bdbb", _ends("330", "400", "---", "+5s", "{}/silent", "12002", "2", "400")),
    Race(brpc, "3505", "two threads work on one buffer at the end of the server's handshake (#3480 is an earlier mend of the same)",
         "5f228c03", "5f228c03", _calls("client"), brpc.LATER,
         "The tried sources have neither this mend, which came after the checkout, nor #3480's, which was not merged. Under *with the mend* they have "
         "an edit of ours with the third step of #3505: the completion queue is not read before the thread of the handshake has returned."),
    Race(brpc, "3406", "a client that falls back to TCP shows one of two variables before the other", "7c1b5225", "5f228c03",
         _calls("fallen-back"), "",
         "Can't be found by a seed. The two variables are written one after the other, without a call at which another thread could get the token; "
         "x86 keeps the order of two writes; and before the second one the client only asks whether RDMA is on, which both states deny. Tried: a "
         "client whose RDMA has failed, with 4 connections and 2 calls on each, in 200 seeds. RDMA that overtakes TCP is not this race; it is #3505's, above.", True),
]


def _environment():
    return {name: value for name, value in os.environ.items() if not name.startswith("SOFTVERBS_")}


def _sim(*words):
    return subprocess.run([f"{BUILD}/softverbs", "sim", *OPTIONS, *words], capture_output=True, text=True, errors="replace", check=False,
                          env=_environment(), cwd="/tmp", stdin=subprocess.DEVNULL)


def _seeds(words, first, last, state):
    """The outcomes of seeds other than status 0, each with its count and first seed. A run that was stopped after two minutes of real time shows
    nothing about the race, and is counted apart."""
    done = _sim("--seeds", f"{first}..{last}", "--", *words)
    rows = [line.split(None, 2) for line in done.stdout.splitlines()[1:]]
    assert sum(int(row[0]) for row in rows) == last - first + 1, done
    state["stopped"] = state.get("stopped", 0) + sum(int(row[0]) for row in rows if row[2] == "limit")
    return [(int(count), int(seed), outcome) for count, seed, outcome in rows if outcome not in ("status 0", "limit")]


def _key(done):
    """The same in each run of a seed."""
    found = re.search(r"Seed \d+: ([\d.]+) virtual seconds, (\d+) decisions, (\d+) loops stopped, hash (\w+)", " ".join(done.stderr.split()))
    return f"{done.returncode} {found.group(0) if found else ''} {done.stdout}"


def _equal(count, outcome, *words):
    """So many of `count` runs are like the first one, and have the outcome."""
    status = {"deadlock": 3, "livelock": 4}.get(outcome) or int(outcome.split()[1])
    runs = [_key(_sim(*words)) for _ in range(count)]
    return runs.count(runs[0]) if runs[0].startswith(f"{status} ") else 0


def _look(words, state):
    found = _seeds(words, 0, SEEDS - 1, state)
    state["found"] = sum(row[0] for row in found)
    if found:
        state["seed"], state["outcome"] = min((seed, outcome) for _, seed, outcome in found)


def _repeat(words, state):
    state["equal"] = _equal(REPEATS, state["outcome"], "--seed", str(state["seed"]), "--", *words)


def _next_found(words, after):
    found = _sim("--seeds", f"{after + 1}..{SEEDS - 1}", "--until-failure", "--", *words).stdout.splitlines()[1:]
    rows = [line.split(None, 2) for line in found]
    return min((int(row[1]) for row in rows if row[2] not in ("status 0", "limit")), default=None)


def _shrink(words, state, turns):
    """Shrinks the runs of the first seeds that find it until one has no more than FEW turns left, and replays that."""
    state["shrunk"], seed = [], state["seed"]
    while seed is not None and len(state["shrunk"]) < SHRUNK and not any(left <= FEW for left, _, _ in state["shrunk"]):
        done = _sim("--seed", str(seed), "--shrink", f"{turns}.{seed}", "--", *words)
        said = re.search(r"(\d+) of (\d+) turns are left", done.stderr + done.stdout)
        assert said, done
        state["shrunk"].append((int(said.group(1)), int(said.group(2)), seed))
        seed = _next_found(words, seed) if seed < SEEDS - 1 else None
    state["replays"] = _equal(REPLAYS, state["outcome"], "--replay", f"{turns}.{min(state['shrunk'])[2]}", "--", *words)


def _look_at_mended(words, state, note):
    state.setdefault("mended", 0)
    state.setdefault("mended found", 0)
    while state["mended"] < MENDED:
        found = _seeds(words, state["mended"], state["mended"] + CHUNK - 1, state)
        state["mended found"] += sum(row[0] for row in found)
        state["mended"] += CHUNK
        note()


def _programs(race, checkout, commit, mend, name):
    subprocess.run([SETUP, *(f"+{package}" for package in race.project.PACKAGES)], check=True)
    place = f"{WORK}/bin/{race.project.NAME}-{race.pull}-{name}"
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(place)
    race.project.build(checkout, commit, mend, WORK, place)
    return race.programs(place)


def _run(race, checkout, state, note):
    """All that is not known yet. Shrinking is last, as a run of many turns needs many runs for it."""
    if state.get("mended", 0) >= MENDED and ("replays" in state or not state["found"]):
        return
    words = _programs(race, checkout, race.before, "", "before")
    if "found" not in state:
        _look(words, state)
        note()
    if state["found"] and "equal" not in state:
        _repeat(words, state)
        note()
    _look_at_mended(_programs(race, checkout, race.after, race.mend, "after"), state, note)
    if state["found"] and "replays" not in state:
        _shrink(words, state, f"{WORK}/{race.project.NAME}-{race.pull}.sim")
        note()


def _turns(state):
    left = [f"{left} of {before} (seed {seed})" for left, before, seed in state.get("shrunk", [])]
    return "; ".join([*left, f"{state['replays']} of {REPLAYS}"]) if "replays" in state else ""


def _row(race, state):
    found = f"{state['found']} of {SEEDS}"
    if state["found"]:
        found += f", the first is {state['seed']}: {state['outcome']}"
    equal = f"{state['equal']} of {REPEATS}" if "equal" in state else ""
    mended = f"{state['mended found']} of {state['mended']:,}" if "mended" in state else ""
    mended += f", {state['stopped']} runs stopped" if state.get("stopped") else ""
    return f"| {race.project.TITLE}#{race.pull} | {race.what} | {found} | {equal} | {_turns(state)} | {mended} |"


def _commit():
    shown = subprocess.run([f"{BUILD}/softverbs", "version"], capture_output=True, text=True, check=True).stdout
    return next(line.split()[-1] for line in shown.splitlines() if line.startswith("built from"))


def _known(race):
    """The results of earlier runs, {} before the first."""
    try:
        with open(f"{WORK}/{race.project.NAME}-{race.pull}.json", encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


def _write(race, state):
    path = f"{WORK}/{race.project.NAME}-{race.pull}.json"
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        json.dump(state, file)
    os.replace(f"{path}.new", path)
    rows = [_row(each, _known(each)) for each in RACES if _known(each)]
    where = f"Commit {_commit()}, {datetime.date.today()}, Linux {platform.release()}, {os.cpu_count()} processors."
    notes = [f"{each.project.TITLE}#{each.pull}: {each.note}" for each in RACES if each.note and _known(each)]
    section.write(PAGE, rows, [*section.paragraphs(notes), where])


def _is_wrong(race, state):
    if not state["found"]:
        return not race.hidden
    return state["equal"] < REPEATS or state["replays"] < REPLAYS or state["mended found"] > 0


def _checkout(top, name):
    return next((os.path.realpath(place) for place in (f"{top}/{name}", f"{top}/{name}.git") if os.path.isdir(place)), None)


def main(top, words):
    wrong = []
    for race in RACES:
        checkout = _checkout(top, race.project.NAME)
        if words not in f"{race.project.NAME}#{race.pull}":
            continue
        if not checkout:
            print(f"left out: there is no {top}/{race.project.NAME}")
            continue
        state = {} if os.environ.get("AGAIN") else _known(race)
        _run(race, checkout, state, functools.partial(_write, race, state))
        _write(race, state)
        print(_row(race, state), flush=True)
        if _is_wrong(race, state):
            wrong.append(race.pull)
    print("not all is well: " + ", ".join(wrong) if wrong else "all is well")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "", " ".join(sys.argv[2:])))
