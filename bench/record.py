#!/usr/bin/env python3
"""How much slower ibv_rc_pingpong is with `softverbs run --record`: with and without, in turn. Nothing here passes or fails.

Usage: record.py SOFTVERBS [ROUNDS]
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

ITERATIONS = share(5000)


def measure(softverbs, directory, options):
    """Microseconds of an iteration."""
    port = free_port()
    command = [softverbs, "run", *options, "--", need("ibv_rc_pingpong"), "-g", "0", "-s", "8", "-n", str(ITERATIONS), "-p", str(port)]
    _, client = serve(command, [*command, "127.0.0.1"], port, {**os.environ, "SOFTVERBS_DIR": f"{directory}/node"})
    return float(re.findall(r"= ([0-9.]+) usec/iter", client.out)[-1])


def main():
    softverbs, rounds = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 3
    plain, recorded, sizes = [], [], []
    with tempfile.TemporaryDirectory() as directory:
        for number in range(rounds):
            path = f"{directory}/{number}.rec"
            plain.append(measure(softverbs, directory, []))
            recorded.append(measure(softverbs, directory, ["--record", path]))
            sizes.append(os.path.getsize(path) / ITERATIONS)
    print(f"ibv_rc_pingpong -s 8: {statistics.median(plain):.2f} us an iteration, recorded {statistics.median(recorded):.2f}, "
          f"{statistics.median(sizes):.0f} bytes of recording an iteration")


if __name__ == "__main__":
    main()
