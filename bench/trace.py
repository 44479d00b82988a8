#!/usr/bin/env python3
"""How much slower programs are while softverbs trace shows their calls: each pair with and without, in turn.

Usage: trace.py SOFTVERBS [ROUNDS] [--two]

Both sides are traced into files. A ratio is of one round: the rate without a trace, divided by that with one. Lines that came
faster than they could be written are counted. --two: on two processors, one for each side with the command that traces it, which
is the worst case: the command takes its time from the program. Nothing here passes or fails.
"""
import os
import re
import statistics
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tests/clients"))
sys.dont_write_bytecode = True

from clients import free_port, need, rounds as share, serve  # noqa: E402

PAIRS = {  # name: the program with its options, calls, and what finds its rate
    "ib_send_bw -s 8": (["ib_send_bw", "-s", "8", "-n", str(share(400000)), "-F"], share(400000), lambda out: float(re.findall(r"^ *8 .* ([0-9.]+)\s*$", out, re.M)[-1])),
    "ibv_rc_pingpong": (["ibv_rc_pingpong", "-g", "0", "-s", "8", "-n", str(share(80000))], share(80000),
                        lambda out: 1 / float(re.findall(r"= ([0-9.]+) usec/iter", out)[-1])),
}


def measure(softverbs, directory, pair, traced, two):
    """The rate, and how many lines of both sides were lost."""
    command, _, rate = PAIRS[pair]
    port = free_port()
    sides = []
    for processor, side in zip(sorted(os.sched_getaffinity(0))[:2], ("server", "client")):
        run = [*(["taskset", "-c", str(processor)] if two else []), softverbs, "run", *(["--trace-file", f"{directory}/{side}"] if traced else []), "--"]
        sides.append([*run, need(command[0]), *command[1:], "-p", str(port), *(["127.0.0.1"] if side == "client" else [])])
    server, client = serve(sides[0], sides[1], port, {**os.environ, "SOFTVERBS_DIR": f"{directory}/node"})
    lost = sum(int(number) for done in (server, client) for number in re.findall(r"(\d+) lines were lost", done.err))
    return rate(client.out), lost


def main():
    two = "--two" in sys.argv
    softverbs, *rounds = [argument for argument in sys.argv[1:] if argument != "--two"]
    softverbs, rounds = os.path.abspath(softverbs), int(rounds[0]) if rounds else 5
    with tempfile.TemporaryDirectory() as directory:
        for pair in PAIRS:
            ratios, losses = [], []
            for _ in range(rounds):
                plain, (traced, lost) = measure(softverbs, directory, pair, False, two)[0], measure(softverbs, directory, pair, True, two)
                ratios.append(plain / traced)
                losses.append(lost)
            print(f"{pair:18} traced: {statistics.median(ratios):.1f} times slower ({min(ratios):.1f} .. {max(ratios):.1f}), "
                  f"lines lost {' '.join(map(str, losses))}", flush=True)


if __name__ == "__main__":
    main()
