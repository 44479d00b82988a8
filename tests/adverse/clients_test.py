#!/usr/bin/env python3
"""Fourteen clients of Debian 12, each under three seeds of the adverse adapter, with their data compared. Prints TAP.

All rows, and more seeds: evidence.py rows.
"""
import concurrent.futures
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../clients/families"), os.path.join(HERE, "../clients"), os.path.join(HERE, "../tool")]
# pylint: disable=wrong-import-position
import main as families
from row import FAILED, SKIPPED

SEEDS = (1, 2, 3)
ROWS = ("ibv_rc_pingpong -c -s 4096", "ibv_rc_pingpong -c -e", "ibv_uc_pingpong -c -s 4096", "ibv_ud_pingpong -c -s 1000", "ibv_srq_pingpong -c -s 4096",
        "ib_send_lat -c RC", "ib_write_bw -c RC", "ib_read_bw -c RC", "ib_atomic_bw -c RC", "rping -V", "rdma_server and rdma_client",
        "ucx_perftest -t tag_lat -s 8, rc_v", "ib_send_bw -c SRD", "ib_read_bw -c SRD")


def _judge(row, command):
    """The row under each seed: the worst verdict, and its text. As it mostly waits, the seeds run beside each other where each has its own
    network and processes."""
    with concurrent.futures.ThreadPoolExecutor(len(SEEDS) if command else 1) as beside:
        results = list(beside.map(lambda seed: families.run_apart(row, command, {"SOFTVERBS_ADVERSE": f"seed={seed}"}), SEEDS))
    for seed, (verdict, said) in zip(SEEDS, results):
        if verdict in (FAILED, SKIPPED):
            return verdict, f"seed={seed}: {said}" if verdict == FAILED else said
    return "ok", ""


def main():
    known, command, failed = {row.name: row for row in families.all_rows()}, families.isolation(), 0
    print(f"1..{len(ROWS)}", flush=True)
    for number, name in enumerate(ROWS, 1):
        verdict, said = _judge(known[name], command)
        failed += verdict == FAILED
        print(f"{'not ok' if verdict == FAILED else 'ok'} {number} - {name}{f' # SKIP {said}' if verdict == SKIPPED else ''}", flush=True)
        if verdict == FAILED:
            print("".join(f"# {line}\n" for line in said.splitlines()), end="", file=sys.stderr, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
