#!/usr/bin/env python3
"""Writes docs/evidence/sim.md: `make sim-seeds`. Stopped, it continues where it was.

    seeds.py [WORDS]    the clients whose names hold the words

For each client of clients.py: its seeds, which must all end with 0, and one seed again and again, whose decisions and output must be the
same each time. Half of these run as the user nobody without new privileges, where this is root. BESIDE=20 runs so many busy processes of
the least priority beside them. The results are in the build directory."""
import contextlib
import datetime
import json
import os
import platform
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../clients")]
from clients import BUILD, CLIENTS

PAGE = os.path.join(HERE, "../../docs/evidence/sim.md")
MEMORY = os.path.join(BUILD, "sim-seeds.json")
CHUNK, SEED = 100, "7"
HEAD = """# Simulated runs

Clients of the distribution under `softverbs sim` ([how](../how-to/sim.md)). *Seeds*: so many seeds were run once; *not
0*: so many of them ended with another status, natively each client ends with 0. *Repeats*: one seed was run so often,
beside the load in the last line, half of the runs as the user nobody without new privileges, whose calls are a few
others; *equal*: so many had the decisions and the output that most runs of their user had. `make sim-seeds` makes this
page; stopped, it goes on.

"""
def _environment():
    return {name: value for name, value in os.environ.items() if not name.startswith("SOFTVERBS_")}


def _sim(*words, user=False, alone=False):
    first = ["taskset", "-c", str(min(os.sched_getaffinity(0)))] if alone else []
    drop = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--no-new-privs", "--"] if user else []
    return subprocess.run([*first, *drop, f"{BUILD}/softverbs", "sim", *words], capture_output=True, check=False, env=_environment(), cwd="/tmp",
                          stdin=subprocess.DEVNULL)


def _run_seeds(client, state):
    first = state["seeds"]
    last = min(first + CHUNK, client.seeds) - 1
    done = _sim("--seeds", f"{first}..{last}", *client.options, "--", *client.words, alone=client.alone)
    rows = [line.split(None, 2) for line in done.stdout.decode().splitlines()[1:]]
    ran = sum(int(row[0]) for row in rows)
    assert ran == last - first + 1, (client.name, done)
    state["failed"] += [f"{row[1]}: {row[2]} ({row[0]})" for row in rows if row[2] != "status 0"]
    state["failures"] += sum(int(row[0]) for row in rows if row[2] != "status 0")
    state["seeds"] = last + 1


def _run_repeat(client, state):
    user = os.geteuid() == 0 and state["repeats"] % 2 == 1
    done = _sim("--seed", SEED, *client.options, "--", *client.words, user=user)
    told = " ".join(done.stderr.decode(errors="replace").split())
    found = re.search(r"Seed \d+: ([\d.]+) virtual seconds, (\d+) decisions, (\d+) loops stopped, hash (\w+)", told)
    key = found.group(0) if found else f"status {done.returncode}"
    key = ("user: " if user else "") + key + f" {done.stdout.decode(errors='replace')!r}"
    state["kinds"][key] = state["kinds"].get(key, 0) + 1
    state["repeats"] += 1


def _row_equal(state):
    """The runs that are like most of the same user's."""
    return sum(max((count for kind, count in state["kinds"].items() if kind.startswith("user: ") == user), default=0) for user in (False, True))


def _row(client, state):
    equal = _row_equal(state)
    failures = f"{state['failures']}" + (f" ({'; '.join(state['failed'][:4])})" if state["failed"] else "")
    failures += f": {client.note}" if state["failures"] and client.note else ""
    return f"| `{client.name}` | {state['seeds']:,} | {failures} | {state['repeats']:,} | {equal:,} |"


def _commit():
    shown = subprocess.run([f"{BUILD}/softverbs", "version"], capture_output=True, text=True, check=True).stdout
    return next(line.split()[-1] for line in shown.splitlines() if line.startswith("built from"))


def _write(memory, beside):
    with open(MEMORY, "w", encoding="utf-8") as file:
        json.dump(memory, file)
    rows = [_row(client, memory[client.name]) for client in CLIENTS if client.name in memory]
    where = f"Commit {_commit()}, {datetime.date.today()}, Linux {platform.release()}, {os.cpu_count()} processors, load {beside}."
    with open(PAGE, encoding="utf-8") as page:
        sections = re.split(r"^(?=## )", page.read(), maxsplit=1, flags=re.M)[1:]
    with open(PAGE, "w", encoding="utf-8") as page:
        page.write("\n".join([HEAD + "| client | seeds | not 0 | repeats | equal |", "|---|---|---|---|---|", *rows, "", where, ""]))
        page.write("".join(["\n", *sections]) if sections else "")


@contextlib.contextmanager
def _load(count):
    busy = [subprocess.Popen(["nice", "-n", "19", sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for each in busy:
            each.kill()
            each.wait()


def main(words):
    beside = int(os.environ.get("BESIDE", "0"))
    memory = {}
    if os.path.exists(MEMORY):
        with open(MEMORY, encoding="utf-8") as file:
            memory = json.load(file)
    chosen = [client for client in CLIENTS if words in client.name]
    for client in chosen:
        if client.made:
            subprocess.run(client.made, check=True)
        memory.setdefault(client.name, {"seeds": 0, "failures": 0, "failed": [], "repeats": 0, "kinds": {}})
    with _load(beside):
        for step in (_run_seeds, _run_repeat):
            for client in chosen:
                state, kind = memory[client.name], "seeds" if step is _run_seeds else "repeats"
                while state[kind] < getattr(client, kind):
                    step(client, state)
                    if state[kind] % CHUNK == 0:
                        _write(memory, beside)
                _write(memory, beside)
                print(_row(client, state), flush=True)
    wrong = [client.name for client in chosen if (memory[client.name]["failures"] and not client.note) or _row_equal(memory[client.name]) < memory[client.name]["repeats"]]
    print("not all is well: " + ", ".join(wrong) if wrong else "all is well")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(" ".join(sys.argv[1:])))
