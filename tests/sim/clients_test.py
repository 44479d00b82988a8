#!/usr/bin/env python3
"""Clients under softverbs sim, with 200 seeds each: none fails, and none stands still. Prints TAP."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../tool")]
import cases
from cases import needs_simulated_runs, softverbs, told
from clients import CLIENTS

SEEDS = 200


def _of(client):
    def case():
        needs_simulated_runs()
        done = softverbs("sim", "--seeds", f"0..{SEEDS - 1}", "--", *client.words)
        rows = done.stdout.decode().splitlines()[1:]
        assert done.returncode == 0 and [row.split(None, 2) for row in rows] == [[str(SEEDS), "0", "status 0"]], told(done)
    return case


for each in CLIENTS:
    if each.checked:
        globals()["_".join([*each.name.replace("-", "").split(), "ends", "well"])] = _of(each)

if __name__ == "__main__":
    cases.main(sys.modules[__name__])
