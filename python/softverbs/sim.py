"""Tests that run under `softverbs sim`, once with each of some seeds. Used by the plugin of pytest."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import List, NamedTuple, Optional, Sequence

VARIABLE = "SOFTVERBS_SIM"  # of the environment of a simulated program
_REFUSED = 125  # the exit status of `softverbs sim` where it could not do its part


class SimError(Exception):
    """No program can be simulated here."""


class Found(NamedTuple):
    """A seed with which a test fails."""

    seed: int
    command: str  #: repeats it
    output: str


def is_simulated() -> bool:
    """Whether this process runs under `softverbs sim`."""
    return VARIABLE in os.environ


def find_failing(test: Sequence[str], seeds: Sequence[int], options: Sequence[str] = ()) -> Optional[Found]:
    """Runs the command with each seed, until one fails. None: all end with 0. SimError: this system allows no simulated runs."""
    command = os.environ.get("SOFTVERBS") or shutil.which("softverbs") or "softverbs"
    for seed in seeds:
        words: List[str] = [command, "sim", "--seed", str(seed), *options, "--", *test]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        if done.returncode == _REFUSED and "softverbs: sim: Seed" not in done.stdout:
            raise SimError(done.stdout.strip())
        if done.returncode:
            return Found(seed, " ".join(words), done.stdout)
    return None


def pytest_words(node: str, plugin: bool) -> List[str]:
    """The command that runs one test of pytest by itself; `plugin`: the plugin is no installed one and has to be named."""
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(["-p", "softverbs.pytest_plugin"] if plugin else []), node]
