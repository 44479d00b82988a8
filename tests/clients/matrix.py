#!/usr/bin/env python3
"""Everything with everything: `make matrix`. Runs the scripts below with SOFTVERBS_TEST_FULL=1, whose representatives `make check` runs,
and writes docs/evidence/matrix.md. Stopped, it continues with what has not passed yet, as long as the commit is the same.

    matrix.py [SCRIPT [WORDS]]    only this script, and of it the tests whose name holds the words; the page is written when all have run
"""
import collections
import datetime
import glob
import json
import os
import platform
import subprocess
import sys

from clients import BUILD
from wrapped import write_page

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "../../docs/evidence/matrix.md")
SCRIPTS = {
    "programs/perftest": "Every test of perftest over every service with every option, as two processes of one host",
    "programs/efa_clients": "Clients of EFA on the device of its profile: perftest over SRD, rdma-core's tests, libfabric, Open MPI, also on hosts of a lab",
    "network/wire": "The ping-pongs and all of that between two hosts, at MTU 1500 and 9000, over IPv4 and IPv6, without losses and with",
}
INTRODUCTION = """# Everything with everything

Written by `make matrix`, which runs the scripts of `tests/clients` that have more cases than `make check` has time for: there each program, service
and option is in a case, here each with each other. A case has passed when both programs ended well and counted what was asked for.
"""


def commit():
    shown = subprocess.run(["git", "log", "-1", "--format=%h"], cwd=HERE, capture_output=True, text=True, check=False)
    changed = subprocess.run(["git", "status", "--porcelain", "--", "src", "tools", "lib"], cwd=HERE, capture_output=True, text=True, check=False)
    return (shown.stdout.strip() or "unknown") + ("-changed" if changed.stdout.strip() else "")


def memory(script):
    return os.path.join(BUILD, f"matrix-{os.path.basename(script)}-{commit()}.jsonl")


def results(script):
    """The last outcome of each test that ran: (outcome, seconds, message)."""
    found = {}
    if os.path.exists(memory(script)):
        with open(memory(script), encoding="utf-8") as lines:
            for outcome, name, seconds, said in map(json.loads, lines):
                found[name] = outcome, seconds, said
    return found


def run(script, words):
    for old in set(glob.glob(os.path.join(BUILD, f"matrix-{os.path.basename(script)}-*.jsonl"))) - {memory(script)}:
        os.unlink(old)
    environment = {**os.environ, "SOFTVERBS_TEST_FULL": "1", "SOFTVERBS_TEST_EARLIER": memory(script), "SOFTVERBS_BUILD": BUILD}
    subprocess.run([sys.executable, os.path.join(HERE, f"{script}.py"), *words], env=environment, check=False)


def rows(found):
    """Rows of each program and service: how many cases passed, failed and were skipped, and the seconds."""
    table = collections.defaultdict(collections.Counter)
    for name, (outcome, seconds, _) in found.items():
        words = name.split()
        program = words[0] if words[0].startswith("ib") else "others"
        service = words[words.index("-c") + 1] if "-c" in words and program.startswith("ib_") else ""
        table[f"{program} {service}".strip()].update({outcome: 1, "seconds": seconds})
    for program in sorted(table):
        count = table[program]
        yield f"| {program} | {count['passed']} | {count['failed']} | {count['skipped']} | {count['seconds']:.0f} |\n"


def lines():
    yield INTRODUCTION
    yield f"\nLast run: {datetime.date.today()}, commit {commit()}, Linux {platform.release()}, {os.cpu_count()} processors.\n"
    for script, heading in SCRIPTS.items():
        found = results(script)
        yield f"\n## {os.path.basename(script)}.py\n\n{heading}: {len(found)} cases.\n\n| program and service | passed | failed | skipped | seconds |\n|---|---|---|---|---|\n"
        yield from rows(found)
        for wanted in ("failed", "skipped"):
            for name, (outcome, _, said) in found.items():
                if outcome == wanted:
                    yield f"\n{outcome}: {name} ({' '.join(said.split())[:300]})\n"


def main():
    wanted = [script for script in SCRIPTS if os.path.basename(script) in sys.argv[1:2] or not sys.argv[1:]]
    for script in wanted:
        run(script, sys.argv[2:])
    if all(results(script) for script in SCRIPTS) and not sys.argv[2:]:
        with write_page(PAGE) as file:
            file.write("".join(lines()))
    failed = [name for script in wanted for name, (outcome, _, _) in results(script).items() if outcome == "failed"]
    print(f"{sum(len(results(script)) for script in wanted)} cases, {len(failed)} failed" + "".join(f"\n{name}" for name in failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
