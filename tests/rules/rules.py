#!/usr/bin/env python3
"""Rules that are given and taken back in processes whose work is begun: `make rules`. Stopped, it continues where it was.

    rules.py [--runs N] [--seconds N] [WORDS]     the rows whose names hold the words, each with each kind of rules N times; 20 by default.
                                                  A run that failed is tried again when the row is. Writes docs/evidence/rules.md
    rules.py --short                              for make check: one row with packet rules, once; prints TAP and writes nothing

Each run starts two processes (beside.c; of tag matching four, tests/tags/ranks.c) that check what they exchange to the last byte, and gives
one of them or all of them a rule by `softverbs inject`, takes it back, gives the next. A run is good when all work ended well with the right
bytes, and a new connection between the processes works in the end. The results are in the build directory, with their commit.
"""
import argparse
import contextlib
import datetime
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../tool"), os.path.join(HERE, "../clients")]
# pylint: disable=wrong-import-position
import cases
from cases import BUILD, SOFTVERBS
from patience import patience
from wrapped import write_page

PAGE = os.path.join(HERE, "../../docs/evidence/rules.md")
MEMORY = os.path.join(BUILD, "rules.json")
BESIDE, RANKS = f"{BUILD}/tests/rules/beside", f"{BUILD}/tests/tags/tags_ranks"
RUNS, SECONDS = 20, 1.0
BY_PACKETS = {"SOFTVERBS_DIRECT": "0"}


class Work(NamedTuple):
    """A program that works beside the rules."""
    name: str
    command: list
    environment: dict


WORKS = (Work("SEND by reference", [BESIDE, "send", "65536", "300000"], {}),
         Work("SEND in packets", [BESIDE, "send", "8", "48000"], {}),
         Work("WRITE without packets", [BESIDE, "write", "8", "300000"], {}),
         Work("WRITE by reference", [BESIDE, "write", "65536", "300000"], BY_PACKETS),
         Work("WRITE in packets", [BESIDE, "write", "8", "48000"], BY_PACKETS),
         Work("READ without packets", [BESIDE, "read", "8", "300000"], {}),
         Work("READ in packets", [BESIDE, "read", "8", "300000"], BY_PACKETS),
         Work("atomic", [BESIDE, "atomic", "8", "8"], {}),
         Work("datagram", [BESIDE, "datagram", "64", "1024"], {}),
         Work("tags, their READs without packets", [RANKS, "4", "4000"], {}),
         Work("tags, their READs in packets", [RANKS, "4", "4000"], BY_PACKETS))

# Rules that lose, delay or repeat; no rule makes work fail.
RULES = {"packet": ("when packet, nth 1000000000: drop", "fault drop=0.5%", "when packet, chance 3%: delay 300us", "fault reorder=1%",
                    "fault dup=2%", "when packet: bandwidth 2Gbit", "when packet, opcode ACKNOWLEDGE, chance 2%: drop"),
         "message": ("when message, nth 1000000000: drop", "when message: duplicate"),
         "call": ("when ibv_post_send, chance 5%: delay 200us", "when ibv_poll_cq, every 50: delay 200us", "when ibv_post_recv, chance 5%: delay 200us",
                  "when ibv_poll_cq, once: freeze 20ms"),
         "completion": ("when completion, chance 3%: delay 300us", "when completion: note", "when completion, chance 1%: delay 2ms"),
         "event": ("when event, chance 10%: delay 500us", "when event, chance 10%: duplicate", "when event: note")}
SHORT = ("SEND by reference", "packet")


# --- a run


class Bad(Exception):
    """A run that was not good, and why."""


def _inject(*arguments):
    """False: the process has not opened its device yet, or has ended meanwhile, as ranks of tag matching do."""
    done = cases.softverbs("inject", *arguments)
    gone = not os.path.exists(f"/proc/{arguments[-1] if arguments[0] == '--clear' else arguments[0]}")
    if done.returncode and not gone and b"device open here" not in done.stderr and b"does not answer" not in done.stderr:
        raise Bad(f"inject {' '.join(arguments)}: {done.stderr.decode().strip()}")
    return not done.returncode


def _children(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
        return children.read().split()
    return []


def _processes(process, work):
    if work.command[0] == BESIDE:
        return process.stdout.readline().decode().split()
    until, pids = time.monotonic() + patience(20), []
    while not pids and process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)  # as little as a process takes to begin
        pids = _children(process.pid)
    return pids


def _disturb(process, pids, kind, chance, seconds):
    """Gives rules and takes them back for `seconds`; returns the number of rules given."""
    came, until = 0, time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        meant = chance.choice([[pid] for pid in pids] + [pids])
        rule = chance.choice(RULES[kind])
        came += sum(_inject(pid, rule) for pid in meant)
        time.sleep(chance.uniform(0, 0.1))  # of work under the rule
        for pid in meant:
            _inject("--clear", pid)
        time.sleep(chance.uniform(0, 0.05))  # of work without, in which references begin again
    return came


def _end(process):
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(b"\n")
        process.stdin.flush()
    try:
        out, error = process.communicate(timeout=patience(180))
    except subprocess.TimeoutExpired as expired:
        process.kill()
        raise Bad(f"hangs: {process.communicate()[1].decode()[-300:]}") from expired
    if process.returncode:
        raise Bad(f"status {process.returncode}: {' '.join(error.decode().split())[-300:]}")
    return int(out.split()[-1]) if out.split() and out.split()[-1].isdigit() else 0


def run(work, kind, number, seconds=SECONDS):
    """The number of rules given, and of messages sent."""
    chance = random.Random(f"{work.name} {kind} {number}")
    with tempfile.TemporaryDirectory() as directory:
        cases.DIRECTORY = directory
        with subprocess.Popen([SOFTVERBS, "run", "--", *work.command], env=cases.environment(**work.environment), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                pids = _processes(process, work)
                if not pids:
                    raise Bad(f"did not begin: {process.communicate()[1].decode()[-300:]}")
                came = _disturb(process, pids, kind, chance, seconds)
                return came, _end(process)
            finally:
                process.kill()


# --- all runs


def built_from():
    shown = subprocess.run([SOFTVERBS, "version"], capture_output=True, text=True, check=True).stdout
    return next(line.split()[-1] for line in shown.splitlines() if line.startswith("built from"))


def recall():
    if not os.path.exists(MEMORY):
        return {}
    with open(MEMORY, encoding="utf-8") as file:
        return json.load(file)


def remember(name, kind, state):
    results = recall()
    results.setdefault(name, {})[kind] = state
    with open(MEMORY + ".new", "w", encoding="utf-8") as file:
        json.dump(results, file)
    os.replace(MEMORY + ".new", MEMORY)


def _run_next(work, kind, seconds):
    """The first that was not run, or that failed."""
    state = recall().get(work.name, {}).get(kind, {"runs": 0, "rules": 0, "messages": 0, "bad": {}, "commits": []})
    number = int(min(state["bad"], key=int)) if state["bad"] else state["runs"] + 1
    state["runs"] = max(number, state["runs"])
    state["commits"] = sorted({*state["commits"], built_from()})
    try:
        came, messages = run(work, kind, number, seconds)
        state["rules"] += came
        state["messages"] += messages
        state["bad"].pop(str(number), None)
    except Bad as bad:
        state["bad"][str(number)] = str(bad)
    remember(work.name, kind, state)
    print(f"{work.name}, {kind}, run {number}: {state['bad'].get(str(number), 'good')}", flush=True)


def _rounds(works, runs, seconds):
    """All rows once, then all once more, so that a part of the time says something of all."""
    for number in range(1, runs + 1):
        for work in works:
            for kind in RULES:
                state = recall().get(work.name, {}).get(kind, {"runs": 0, "bad": {}})
                if state["runs"] < number or str(number) in state["bad"]:
                    _run_next(work, kind, seconds)


INTRODUCTION = """# Rules beside begun work

Written by `make rules`, which continues where it was stopped. In each run two processes (of tag matching four) exchange messages that are checked to the last byte,
while `softverbs inject` gives one of them or all of them one rule after the other and takes it back: rules that lose, delay and repeat, but no rule that makes work fail. A run is
good when all work ended well with the right bytes, and a new connection between the processes works in the end. A row is green with 20 good runs.
"""


def _cell(state):
    if not state:
        return "-"
    bad = "".join(f"; run {number}: {what}" for number, what in state["bad"].items())
    return f"{state['runs'] - len(state['bad'])} of {state['runs']}" + bad.replace("|", "/").replace("\n", " ")


def write():
    known = recall()
    states = [state for kinds in known.values() for state in kinds.values()]
    commits = ", ".join(sorted({commit for state in states for commit in state["commits"]}))
    with write_page(PAGE) as file:
        file.write(f"{INTRODUCTION}\nLast run: {datetime.date.today()}, Linux {platform.release()}, builds {commits}: {sum(state['runs'] for state in states)} runs, "
                   f"{sum(state['rules'] for state in states)} rules, {sum(state['messages'] for state in states)} messages (messages of tags are not counted), "
                   f"{sum(len(state['bad']) for state in states)} runs that were not good.\n\n| good runs, beside rules for | {' | '.join(RULES)} |\n|---|{'---|' * len(RULES)}\n")
        for work in WORKS:
            file.write(f"| {work.name} | {' | '.join(_cell(known.get(work.name, {}).get(kind)) for kind in RULES)} |\n")
    return any(state["bad"] for state in states)


def short():
    work = next(work for work in WORKS if work.name == SHORT[0])
    print("1..1")
    try:
        came, messages = run(work, SHORT[1], 1)
        good = came > 0 and messages > 0
        print(f"{'ok' if good else 'not ok'} 1 - {work.name} goes on beside {SHORT[1]} rules ({came} rules, {messages} messages)")
    except Bad as bad:
        good = False
        print(f"not ok 1 - {work.name} goes on beside {SHORT[1]} rules\n# {bad}")
    return not good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    if options.short:
        return short()
    _rounds([work for work in WORKS if " ".join(options.words) in work.name], options.runs, options.seconds)
    return write()


if __name__ == "__main__":
    sys.exit(main())
