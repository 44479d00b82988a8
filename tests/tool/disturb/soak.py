#!/usr/bin/env python3
"""Clients of the distribution under scaled time, over a network that loses, repeats and reorders: soak.py MINUTES [SEED]

Each pair has another seed and another scale. It must end well, with the data that it compares itself, and no queue pair may fail. Times in
which a pair repeated nothing do not count. The end is a table in Markdown (docs/evidence/faults.md).
"""
import json
import os
import random
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import SOFTVERBS, TEMPORARY
from patience import patience, until
from races import RPING_CLOSED

SCALES = "0.001", "0.01", "0.1"
FAULTS = "fault drop=3%,dup=1%,reorder=2%"
# A ping-pong leaves when it has the last message. If its answer to that is lost, the other side sends again and nothing answers any more.
NOT_AT_THE_END = "when packet, to 600, chance 3%: drop; when packet, to 600, chance 1%: duplicate; when packet, to 600, chance 2%: reorder"
PAIRS = {
    "ibv_rc_pingpong -c": (["ibv_rc_pingpong", "-c", "-g", "0", "-n", "1000", "-s", "5000"], []),
    "ibv_srq_pingpong": (["ibv_srq_pingpong", "-g", "0", "-n", "1000", "-q", "4"], []),
    "ib_send_bw": (["ib_send_bw", "-F", "-n", "200", "-s", "20000"], []),
    "ib_write_bw": (["ib_write_bw", "-F", "-n", "200", "-s", "20000"], []),
    "ib_read_bw": (["ib_read_bw", "-F", "-n", "200", "-s", "20000"], []),
    "ib_atomic_bw": (["ib_atomic_bw", "-F", "-n", "200"], []),
    "rping -V": (["rping", "-C", "50", "-V", "-a", "127.0.0.1"], ["-c"]),
}


def _options(name, scale, counters):
    rules = NOT_AT_THE_END if "pingpong" in name else FAULTS
    return [SOFTVERBS, "run", "--log", "none", "--counters", counters, "--time-scale", scale, "--inject", rules, "--"]


def _client(command, server, environment):
    """The client's status, when there was a listener, and its output."""
    end = until(60)
    while True:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=patience(120), env=environment)
        absent = b"Couldn't connect" in done.stdout or b"status 8" in done.stdout or b"error 8" in done.stdout
        if not absent or server.poll() is not None or time.monotonic() > end:
            return done
        time.sleep(0.05)


def run_pair(name, scale, seed):
    """The packets that were repeated, and the time that it took. Of what is wrong an AssertionError."""
    command, client = PAIRS[name]
    port, counters = str(24000 + os.getpid() % 10000), f"{TEMPORARY}/soak"
    environment = cases.environment(SOFTVERBS_SEED=str(seed))
    options = [*_options(name, scale, counters), *command, "-p", port]
    if os.path.exists(counters):
        os.remove(counters)
    began = time.monotonic()
    is_rping = command[0] == "rping"
    with subprocess.Popen([*options, *(["-s"] if is_rping else [])], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment) as server:
        try:
            done = _client([*options, *(client if is_rping else ["127.0.0.1"])], server, environment)
            said = server.communicate(timeout=patience(60))[0]
        finally:
            server.kill()
    text = (said + done.stdout).decode()
    ended = done.returncode == 0 or (is_rping and RPING_CLOSED in text)
    assert ended and (server.returncode == 0 or is_rping) and "invalid data" not in text, (name, scale, seed, done.returncode, server.returncode, text[-2000:])
    with open(counters, encoding="utf-8") as file:
        repeated = sum(device["repeated"] for line in file for device in json.loads(line)["traffic"])
    return repeated, time.monotonic() - began


def _soak(minutes, seed):
    random.seed(seed)
    end, sums, wrong = time.monotonic() + 60 * minutes, {name: [0, 0, 0.0, 0] for name in PAIRS}, []
    while time.monotonic() < end:
        for name in PAIRS:
            if not shutil.which(name.split()[0]):
                continue
            total = sums[name]
            try:
                repeated, took = run_pair(name, random.choice(SCALES), random.randrange(1 << 30))
                sums[name] = [total[0] + 1, total[1] + repeated, max(total[2], took), total[3]]
            except (AssertionError, subprocess.TimeoutExpired) as error:
                sums[name] = [total[0] + 1, total[1], total[2], total[3] + 1]
                wrong.append(str(error))
    print("| pair | runs | packets sent again | the longest run | failed |\n|---|---|---|---|---|")
    for name, (runs, repeated, longest, failed) in sums.items():
        print(f"| `{name}` | {runs} | {repeated} | {longest:.1f} s | {failed} |")
    print("\n".join(wrong), file=sys.stderr)
    shutil.rmtree(TEMPORARY, ignore_errors=True)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(_soak(float(sys.argv[1]), int((sys.argv[2:] or ["1"])[0])))
