#!/usr/bin/env python3
"""Writes docs/evidence/adverse.md: `make adverse`. Stopped, it continues where it was.

    evidence.py [litmus|rows|seeds|page] [WORDS]    one part, and of it the tests whose names hold the words; without a part all. After each the page

Part `seeds`: all litmus tests once under each seed of a range, in place of words; 1000-1100 by default. Part `litmus`: a million trials of each outcome that must never be, in processes that live for 50,000 of them, and each
allowed one under up to 1,000 seeds. Part `rows`: the rows of `make clients`, each under 3 seeds, and ping-pongs, perftest
and rping under 100, where each after the third exchanges a tenth of the messages. ADVERSE_BESIDE=3 runs three rows at a time. A run
that failed runs again when the part does. The results are in the build directory, with their commit; a build without any continues from the
page's results.
"""
import concurrent.futures
import contextlib
import datetime
import fcntl
import functools
import json
import os
import platform
import re
import subprocess
import sys
import threading
from typing import NamedTuple

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../clients/families"), os.path.join(HERE, "../clients"), os.path.join(HERE, "../tool")]
# pylint: disable=wrong-import-position
import litmus_run
import page
from clients import BUILD
import main as families
from row import FAILED, OK, OWN, SKIPPED
from wrapped import BETWEEN, joined, write_page

PAGE = os.path.join(HERE, "../../docs/evidence/adverse.md")
MEMORY = os.environ.get("ADVERSE_MEMORY", os.path.join(BUILD, "adverse.json"))
TRIALS, CHUNK, SEEDS, THREADS = 1_000_000, 50_000, 1000, 16
PROCESSES = {"P21": 1000}  # tests of what happens once in a process: that number of processes with one trial each


@functools.lru_cache
def built_from():
    """The commit of the build that runs, which may be older than the tree."""
    shown = subprocess.run([f"{BUILD}/softverbs", "version"], capture_output=True, text=True, check=True).stdout
    return next(line.split()[-1] for line in shown.splitlines() if line.startswith("built from"))


def recall():
    if not os.path.exists(MEMORY):
        return read_page()
    with open(MEMORY, encoding="utf-8") as file:
        return json.load(file)


def remember(part, *keys_and_value):
    """Several at a time may run, each with different words. The last but one of the keys is in the dictionary of the one before."""
    *keys, last, value = keys_and_value
    with open(MEMORY + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        results = recall()
        place = results
        for key in (part, *keys):
            place = place.setdefault(key, {})
        place[last] = value
        with open(MEMORY + ".new", "w", encoding="utf-8") as file:
            json.dump(results, file)
        os.replace(MEMORY + ".new", MEMORY)


# --- litmus tests


def _never(names):
    """The one with the fewest trials next, with a seed that no chunk of it had."""
    while True:
        known = recall().get("never", {})
        name = min(names, key=lambda each: known.get(each, {}).get("trials", 0) / PROCESSES.get(each, TRIALS))
        state = known.get(name, {"trials": 0, "seen": 0, "chunks": 0, "builds": {}})
        if state["trials"] >= PROCESSES.get(name, TRIALS):
            return
        seed, trials, threads = state["chunks"] + 1, *((1, 1) if name in PROCESSES else (CHUNK, THREADS))
        row = litmus_run.run(f"seed={seed},scale=1%,{litmus_run.EXTRA}", trials, name, threads=threads)[name]
        builds = {**state["builds"], built_from(): state["builds"].get(built_from(), 0) + row.trials}
        state = {"trials": state["trials"] + row.trials, "seen": state["seen"] + row.seen, "chunks": seed, "builds": builds, "outcome": row.outcome}
        remember("never", name, state)
        print(f"{name}: {state['seen']} of {state['trials']} trials", flush=True)


def _allowed(names):
    """Tries one seed after the other until the outcome was seen under three."""
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
                                   "commits": [built_from()]})
        print(f"{name}: seen under seeds {seeds}; without {row.behaviour} {without.seen} of {without.trials}", flush=True)


def litmus(words):
    rows = litmus_run.run("seed=1,only=1", 1)
    _allowed([name for name, row in rows.items() if row.verdict == "ALLOWED" and words in name])
    _never([name for name, row in rows.items() if row.verdict == "NEVER" and words in name])
    return any(state["seen"] for state in recall().get("never", {}).values())


LOOK, OTHER_SEEDS = 40, "1000-1100"


def seeds(words):
    """A look at each test under each seed of the range that had no look yet."""
    reach = words or OTHER_SEEDS
    first, last = map(int, reach.split("-"))
    state = recall().get("seeds", {}).get(reach, {"done": 0, "seen": {}, "bad": {}, "commits": []})
    for seed in range(first + state["done"], last + 1):
        for name, row in litmus_run.run(f"seed={seed},scale=10%,{litmus_run.EXTRA}", LOOK).items():
            if row.verdict == "NEVER" and row.seen:
                state["bad"].setdefault(name, []).append(seed)
            elif row.verdict == "ALLOWED":
                state["seen"][name] = state["seen"].get(name, 0) + bool(row.seen)
        state["done"] += 1
        state["commits"] = sorted({*state["commits"], built_from()})
        remember("seeds", reach, state)
        print(f"seed {seed}: {state['bad'] or 'none that must never be'}", flush=True)
    return bool(state["bad"])


# --- clients

FEW, MANY = 3, 100
SHARE = "0.1"  # of the messages, under the seeds after FEW
BESIDE = int(os.environ.get("ADVERSE_BESIDE") or 1)
# Programs of Open MPI beside each other would share a folder, which has the same number of a process in its name.
APART = {"TEST_PATIENCE": "8", **({"TMPDIR": "/dev/shm"} if BESIDE > 1 else {})}
XRC = threading.Lock()  # ibv_xsrq_pingpong has one file for all, /tmp/xrc_domain


def _list_of(name, seed):
    """Programs that have no answer to a lost message run without losses."""
    datagrams = any(word in name for word in ("UD", "UC", "_ud_", "_uc_", "ud_v", "uc_", "udaddy", "mckey", "dgram", "ofi_rxd", "its own tests"))
    return f"seed={seed}" + ("" if datagrams else ",with=unreliable")


def _many(row):
    return row.family == "perftest" or "pingpong" in row.name and row.family == "ibverbs-utils" or row.name.startswith("rping")


class Known(NamedTuple):
    """A mistake of clients."""
    pattern: str  # in what the row says
    behaviour: str  # or several, with + between
    seen: str
    why: str
    where: str


KNOWN = (Known("what was put is wrong", "late-write", "MPICH, Open MPI and oshrun over UCX: what MPI_Put or shmem_put wrote is missing in some rounds",
               "a flush waits for the completions of its WRITEs at the requester, and the ranks then meet by another way",
               "UCX, src/uct/ib/rc/verbs/rc_verbs_ep.c, uct_rc_verbs_ep_flush (at 00a690e3)"),
         Known("hangs: .*mckey -m", "late-read", "mckey: messages to a group are missing, and the receiver waits for them",
               "the sender asks for no completion and destroys its queue pair right after the posts",
               "rdma-core v44.0, librdmacm/examples/mckey.c, post_sends and destroy_node"),
         Known("rdma_write: ERROR|test_resize_cq: FAIL", "late-write+late-completions+late-read", "rdma-core's suite: tests of RDMA WRITE read other bytes; test_resize_cq finds fewer entries",
               "a process reads what it wrote into its own memory by another queue pair once the WRITE has completed; sends without a look count as completed",
               "rdma-core v44.0, tests/utils.py, rdma_traffic; tests/test_cq.py, test_resize_cq"))


def _judge_known(run, adverse, said):
    """A row that failed with the words of a known mistake, and not without the behaviour, is the client's own."""
    known = next((each for each in KNOWN if re.search(each.pattern, said)), None)
    if not known or run(f"{adverse},{litmus_run.without(known)}")[0] not in (OK, OWN):
        return FAILED, said
    return OWN, f"it does not bear {known.behaviour}, as below, and runs well without it"


class Result(NamedTuple):
    """The result of a row under one seed."""
    verdict: str
    said: str  # if it is not ok
    adverse: str
    commit: str
    earlier: str = ""  # what it said when it failed in an earlier run


def _run_row(row, seed, command, earlier):
    adverse = _list_of(row.name, seed)
    def run(listed):
        return families.run_apart(row._replace(seconds=4 * row.seconds), command,
                                  {**APART, "SOFTVERBS_ADVERSE": listed, "TEST_ROUNDS": "1" if seed <= FEW else SHARE})
    with XRC if "xsrq" in row.name else contextlib.nullcontext():
        verdict, said = run(adverse)
        if verdict == FAILED:
            verdict, said = _judge_known(run, adverse, said)
    remember("rows", row.name, str(seed), Result(verdict, said if verdict != OK else "", adverse, built_from(), earlier))
    print(f"{verdict}\t{row.name}\t{adverse}\t{said if verdict != OK else ''}", flush=True)
    return verdict == FAILED


def _missing(wanted):
    """Few seeds of all, then the others of those that have many. Of each run what it said when it failed."""
    known = recall().get("rows", {})
    for seed in range(1, MANY + 1):
        for row in wanted:
            before = Result(*known.get(row.name, {}).get(str(seed), (None, "", "", "")))
            if seed <= _wanted(row) and before.verdict in (None, FAILED, SKIPPED):
                yield row, seed, before.said or before.earlier


def rows(words):
    command, wanted = families.isolation(), [row for row in families.all_rows() if words in row.name or words in row.family]
    with concurrent.futures.ThreadPoolExecutor(BESIDE if command else 1) as beside:
        return any(list(beside.map(lambda each: _run_row(*each[:2], command, each[2]), _missing(wanted))))


# --- the page

INTRODUCTION = """# The adverse adapter: what was seen

Written by `make adverse`, which continues where it was stopped ([what it is](../reference/adverse.md)). Seeds are 1, 2, 3 and so on.
"""


def _litmus_lines(known):
    yield "\n## Outcomes that must never be\n\nEach process runs 50,000 trials by 16 threads, with all behaviours on and times scaled to 1%. The port of P21 comes up once in a process, so its trials are processes.\n\n"
    yield "| test | outcome | trials | seen | of the builds |\n|---|---|---|---|---|\n"
    for name, state in sorted(known.get("never", {}).items()):
        yield f"| {name} | {page.cell(state['outcome'])} | {state['trials']} | {state['seen']} | {', '.join(f'{count} of {build}' for build, count in state['builds'].items())} |\n"
    yield "\n## Outcomes that are allowed\n\nThe first seeds that show each, in 40 trials, and how often it was seen under the first of them without its behaviour.\n\n"
    yield "| test | outcome | seeds | behaviour | without it | commits |\n|---|---|---|---|---|---|\n"
    for name, state in sorted(known.get("allowed", {}).items()):
        yield (f"| {name} | {page.cell(state['outcome'])} | {', '.join(map(str, state['seeds'])) or 'none'} | {state['behaviour']} | "
               f"{state['without']} of {state['of']} | {', '.join(state['commits'])} |\n")


def _seed_lines(known):
    yield f"\n## Other seeds\n\nAll tests under each seed, {LOOK} trials, times scaled to 10%.\n\n"
    yield "| seeds | tried | outcomes that must never be | seeds that showed each allowed one | commits |\n|---|---|---|---|---|\n"
    for reach, state in sorted(known.get("seeds", {}).items()):
        bad = "; ".join(f"{name} under {', '.join(map(str, under))}" for name, under in state["bad"].items()) or "none"
        seen = ", ".join(f"{name} {count}" for name, count in state["seen"].items())
        yield f"| {reach} | {state['done']} | {bad} | {seen} | {', '.join(state['commits'])} |\n"


def _ranges(numbers):
    """Numbers as in 1-3, 5."""
    text, numbers = "", sorted(numbers)
    for place, number in enumerate(numbers):
        if place and number == numbers[place - 1] + 1:
            text = f"{text.rpartition('-')[0] if text.endswith(f'-{number - 1}') else text}-{number}"
        else:
            text += f"{', ' if text else ''}{number}"
    return text


def _of_ranges(text):
    ends = (each.split("-") for each in text.split(", ") if each)
    return [number for each in ends for number in range(int(each[0]), int(each[-1]) + 1)]


EXPLAINED = (("mpirun.openmpi.*(internal-failure|PMIX ERROR|Local abort|non-zero)", "rows beside each other shared the folder of Open MPI below /tmp, and do not since"),
             ("hangs: .*mckey -m", "it did not bear late-read, as below"),
             ("not installed", "it was not installed yet"))


def _explain(said):
    """The reason of a failure that is known, or else its beginning."""
    return next((why for pattern, why in EXPLAINED if re.search(pattern, said, re.DOTALL)), page.cell(said)[:200])


def _others(results):
    """The results that are not ok, or were not at first, each with its seeds."""
    found = {}
    for seed, result in results.items():
        if result.verdict != OK:
            found.setdefault(f"{result.verdict}: {page.cell(result.said)[:200]}", []).append(seed)
        elif result.earlier:
            found.setdefault(f"ok at a later try; at first: {_explain(result.earlier)}", []).append(seed)
    return "; ".join(f"under {_ranges(seeds)} {what}" for what, seeds in found.items())


def _row_lines(known):
    yield "\n## Clients\n\n"
    yield f"Under the seeds after {FEW}, ping-pongs and perftest exchange a tenth of the messages. Rows that have an answer to a lost message ran `with=unreliable`. Rows with the same results share a line.\n"
    yield _not_run(known.get("rows", {}))
    yield "\n| client | seeds that ran | ok | other | commits |\n|---|---|---|---|---|\n"
    yield joined(_cells(row, known) for row in families.all_rows())


def _cells(row, known):
    results = {int(seed): Result(*result) for seed, result in known.get("rows", {}).get(row.name, {}).items()}
    good = sum(result.verdict == OK for result in results.values())
    return page.cell(row.name), _ranges(results), str(good), _others(results) or "-", ", ".join(sorted({result.commit for result in results.values()}))


def _wanted(row):
    return MANY if _many(row) else FEW


def _not_run(known):
    """A sentence with the runs that `make adverse` still has to make."""
    less = [row for row in families.all_rows() if len(known.get(row.name, {})) < _wanted(row)]
    missing = sum(_wanted(row) - len(known.get(row.name, {})) for row in less)
    return f"\nNot run yet: {missing} runs of {len(less)} rows ({MANY} seeds of ping-pongs, perftest and rping, {FEW} of the others).\n"


def _tables():
    """The lines of the page's tables, each the list of its cells, by the chapter."""
    with open(PAGE, encoding="utf-8") as file:
        chapters = file.read().split("\n## ")[1:]
    for chapter in chapters:
        lines = [[cell.strip() for cell in line.strip("|\n").split(" | ")] for line in chapter.splitlines() if line.startswith("| ")]
        yield chapter.partition("\n")[0], lines[1:]


def read_page():
    """The results that the page has: all of the litmus tests; of the clients those rows that were always ok."""
    tables = dict(_tables()) if os.path.exists(PAGE) else {}
    never = {name: {"trials": int(trials), "seen": int(seen), "chunks": -(-int(trials) // CHUNK) if name not in PROCESSES else int(trials), "outcome": outcome,
                    "builds": {build: int(count) for count, build in (each.split(" of ") for each in builds.split(", "))}}
             for name, outcome, trials, seen, builds in tables.get("Outcomes that must never be", ())}
    allowed = {name: {"seeds": _of_ranges("" if seeds == "none" else seeds), "outcome": outcome, "behaviour": behaviour, "commits": commits.split(", "),
                      "without": int(without.split(" of ")[0]), "of": int(without.split(" of ")[1])}
               for name, outcome, seeds, behaviour, without, commits in tables.get("Outcomes that are allowed", ())}
    other = {reach: {"done": int(done), "bad": {each.split(" under ")[0]: _of_ranges(each.split(" under ")[1]) for each in bad.split("; ") if bad != "none"},
                     "seen": {each.split()[0]: int(each.split()[1]) for each in seen.split(", ")}, "commits": commits.split(", ")}
             for reach, done, bad, seen, commits in tables.get("Other seeds", ())}
    names = {page.cell(row.name): row.name for row in families.all_rows()}
    clients = {names[name]: {str(seed): Result(OK, "", "", commits) for seed in _of_ranges(ran)}
               for shared, ran, good, what, commits in tables.get("Clients", ()) if what == "-" and ran and len(_of_ranges(ran)) == int(good)
               for name in shared.split(BETWEEN) if name in names}
    return {"never": never, "allowed": allowed, "seeds": other, "rows": clients}


def _known_lines():
    yield "\n## The clients' own\n\nThese failures were examined; their cause is a client that takes more for granted than the rules say. Each ran well with `without=` that behaviour.\n\n"
    yield "| behaviour | what is seen | why | where |\n|---|---|---|---|\n"
    for known in KNOWN:
        yield f"| {known.behaviour} | {known.seen} | {known.why} | {known.where} |\n"


def write(_words):
    known = recall()
    with write_page(PAGE) as file:
        file.write(INTRODUCTION + f"\nLast run: {datetime.date.today()}, Linux {platform.release()}.\n" + "".join(_litmus_lines(known)) + "".join(_seed_lines(known)) + "".join(_row_lines(known)) + "".join(_known_lines()))
    return False


PARTS = {"litmus": litmus, "seeds": seeds, "rows": rows}


def main():
    part, words = (sys.argv[1] if len(sys.argv) > 1 else None), " ".join(sys.argv[2:])
    bad = [bool(run(words)) for name, run in PARTS.items() if part in (None, name)]
    write(words)
    return any(bad)


if __name__ == "__main__":
    sys.exit(main())
