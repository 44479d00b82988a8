#!/usr/bin/env python3
"""The cost of polling: an extended CQ beside a classic one, and instructions of posting and polling.

Usage: polling.py SOFTVERBS [ROUNDS]

Everything is measured in turn, as in bench.py, ROUNDS times over (21), and ratios are taken within a round; a value is the
least of many in its round. Nothing here passes or fails. tests/clients/programs/budget.py counts the instructions.
"""
import os
import subprocess
import sys

from bench import SOFTVERBS, ratios, spread
from programs import budget
from clients import Skip

TITLES = {
    "batch": "batches of 16, wr_id and status", "batch_more": "the same with opcode and byte_len",
    "single": "one at a time, wr_id and status", "single_more": "the same with opcode and byte_len",
    "empty": "a poll that finds nothing",
}


def measure(rounds):
    program = os.path.join(os.path.dirname(SOFTVERBS), "bench/polling")
    done = subprocess.run([SOFTVERBS, "run", "--", program, str(rounds)], check=True,
                          capture_output=True, text=True, timeout=300)
    values = {name: ([], []) for name in TITLES}
    for name, classic, extended in map(str.split, done.stdout.splitlines()):
        values[name][0].append(float(classic))
        values[name][1].append(float(extended))
    return values


def show_polling(values):
    print(f"{'Polling, ns for each completion':40} {'classic CQ':>24} {'extended CQ':>24}    extended divided by classic")
    for name, title in TITLES.items():
        classic, extended = values[name]
        line = f"    {title:36} {spread(classic, 24)} {spread(extended, 24)}    {spread(ratios(extended, classic))}"
        print(line + ("   aim: at most 1" if name in ("batch", "empty") else ""))


def show_instructions():
    print("Instructions of eight bytes inline, unsignalled, over the self link (valgrind); budget in docs/evidence/budget.md")
    budgets = budget.read_budgets()
    for name, count in budget.measure(SOFTVERBS).items():
        print(f"    {name:36} {count:24.0f}    budget {budgets[name]}")


AROUND = ("run", "--", SOFTVERBS, "around")
LAYERS = {
    "around, off": ((*AROUND, "--"), ("run", "--"), "aim: the same"),
    "around --check": ((*AROUND, "--check=notes", "--"), ("run", "--check=notes", "--"), "aim: at most 1.3"),
}


def show_layers():
    """The cost of the layers in front of another libibverbs, which is softverbs' here, beside the library's own layers."""
    for name, (around, inside, aim) in LAYERS.items():
        there, here = (budget.measure(SOFTVERBS, words, ["write"]) for words in (around, inside))
        print(f"Instructions of \"{name}\" beside softverbs {' '.join(inside[:-1])}; {aim}")
        for what, count in there.items():
            print(f"    {what:36} {count:24.0f} {here[what]:24.0f}    {count / here[what]:.2f}")


def main():
    show_polling(measure(int(sys.argv[2]) if len(sys.argv) > 2 else 21))
    try:
        show_instructions()
        show_layers()
    except Skip as why:
        print(f"not measured: {why}")


if __name__ == "__main__":
    main()
