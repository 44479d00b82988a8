#!/usr/bin/env python3
"""Instructions of posting and polling, counted by callgrind, must stay within the budget of docs/evidence/budget.md.

bench/post does each thing in batches; callgrind writes one file for each batch. The dearest batch but three of 32 counts: under
valgrind the helper thread often takes over for a while what the counted thread would do, and what it does is not counted. And
once a batch had 50 instructions more than all others.
"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# pylint: disable=wrong-import-position
from clients import BUILD, Failure, Skip, Suite, need
from patience import patience

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../docs/evidence/budget.md")
STEPS = 64  # as in bench/post.c
DEARER = 3  # batches that may be
FUNCTIONS = ("count_post", "count_post_and_poll", "count_empty_poll")
NAMES = {
    ("write", "count_post"): "post of a WRITE", ("write", "count_post_and_poll"): "WRITE, post and poll, the whole way",
    ("send", "count_post"): "post of a SEND", ("send", "count_post_and_poll"): "SEND, post and poll, the whole way",
    ("write", "count_empty_poll"): "poll that finds nothing",
}


def read_budgets():
    """Name and budget of each row of the page's first table."""
    with open(PAGE, encoding="utf-8") as page:
        table = re.search(r"(?:^\|.*\n)+", page.read(), re.MULTILINE).group()
    return {name: int(budget) for name, budget in re.findall(r"^\| ([^|]+?) *\| *\d+ *\| *(\d+) *\|$", table, re.MULTILINE)}


def need_gcc():
    """The budget is for the default build. Without link-time optimization, which clang has no linker for here, all is dearer."""
    compiler = os.environ.get("SOFTVERBS_TEST_COMPILER", "gcc")
    if compiler != "gcc":
        raise Skip(f"the budget is one of gcc's code, and this is {compiler}'s")


def run_callgrind(softverbs, before, operation, directory):
    """`before`: the words before the program."""
    command = [softverbs, *before, need("valgrind"), "--tool=callgrind", "--collect-atstart=no",
               "--toggle-collect=count_*", *(f"--dump-after={name}" for name in FUNCTIONS),
               f"--callgrind-out-file={directory}/{operation}",
               os.path.join(os.path.dirname(softverbs), "bench/post"), operation]
    done = subprocess.run(command, capture_output=True, text=True, timeout=patience(120), check=False,
                          env={**os.environ, "SOFTVERBS_DIR": directory})
    if done.returncode:
        raise Failure(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")


def read_counts(directory, operation):
    """The instructions of a step in each batch, by function."""
    counts = {}
    for name in os.listdir(directory):
        if not name.startswith(operation + "."):
            continue
        with open(os.path.join(directory, name), encoding="utf-8", errors="replace") as file:
            text = file.read()
        trigger = re.search(r"--dump-after=(\w+)$", text, re.MULTILINE)
        total = re.search(r"^summary: (\d+)$", text, re.MULTILINE)
        if trigger and total:
            counts.setdefault(trigger[1], []).append(int(total[1]) / STEPS)
    return counts


def measure(softverbs, before=("run", "--"), operations=("write", "send")):
    """Instructions of each thing of these operations that has a budget, by its name; `before`: the command's words before the program."""
    found = {}
    with tempfile.TemporaryDirectory() as directory:
        for operation in operations:
            run_callgrind(softverbs, before, operation, directory)
            for function, counts in read_counts(directory, operation).items():
                if (operation, function) in NAMES:
                    found[NAMES[operation, function]] = sorted(counts)[-1 - DEARER]
    missing = {name for (operation, _), name in NAMES.items() if operation in operations} - set(found)
    if missing:
        raise Failure(f"callgrind counted nothing for: {', '.join(sorted(missing))}")
    return found


def check(name, counts):
    need_gcc()
    if not counts: # once for all tests
        counts.update(measure(os.path.join(BUILD, "softverbs")))
    budget = read_budgets().get(name)
    if budget is None:
        raise Failure(f"docs/evidence/budget.md has no row '{name}'")
    if counts[name] > budget:
        raise Failure(f"{counts[name]:.0f} instructions; the budget in docs/evidence/budget.md is {budget}")
    return f"{counts[name]:.0f} instructions, budget {budget}"


def main():
    suite, counts = Suite(), {}
    for name in NAMES.values():
        suite.add(name, lambda name=name: check(name, counts))
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
