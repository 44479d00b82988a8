#!/usr/bin/env python3
"""The round trip of work that programs write into memory, beside work by calls: UCX's rc_mlx5 and rc_verbs, in turn.

Usage: queues.py SOFTVERBS

Two processes of ucx_perftest (am_lat), 8 bytes and 4 KiB: the medians of the one-way times, their ratio and difference. Each needs a
processor for its helper thread, so the line names how many there are. Nothing here passes or fails; docs/evidence/costs.md has the numbers."""
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile

from bench import IS_TEST, SOFTVERBS

ROUNDS, MESSAGES = (1, 200) if IS_TEST else (7, 5000)
WAYS = ("rc_mlx5", "rc_verbs")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


def run(directory, way, size):
    """The median of one run, in microseconds."""
    environment = {**os.environ, "SOFTVERBS_DIR": directory, "UCX_TLS": way, "UCX_NET_DEVICES": "soft0:1", "UCX_IB_MLX5_DEVX": "n"}
    command = [SOFTVERBS, "run", "--profile", "connectx-7-roce,mlx5", "--", "ucx_perftest", "-p", free_port(), "-t", "am_lat", "-d", "soft0:1", "-x", way,
               "-D", "short" if size <= 64 else "bcopy", "-s", str(size), "-n", str(MESSAGES), "-w", "20"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        for _ in range(100):  # until the server listens
            client = subprocess.run([*command, "127.0.0.1"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=600, check=False)
            found = re.search(r"Final: +\d+ +([\d.]+)", client.stdout)
            if found or server.poll() is not None:
                break
        server.wait(timeout=60)
    return float(found[1]) if found else None


def show(directory, size):
    times = {way: [] for way in WAYS}
    for _ in range(ROUNDS):
        for way in WAYS:
            times[way].append(run(directory, way, size))
    if None in sum(times.values(), []):
        print(f"queues.py: a run of {size} bytes has no result", file=sys.stderr)
        return
    queues, calls = (statistics.median(times[way]) for way in WAYS)
    print(f"| {size:,} | {queues:.2f} | {calls:.2f} | {queues / calls:.2f} | {queues - calls:+.2f} |")


if __name__ == "__main__":
    if not shutil.which("ucx_perftest"):
        print("queues.py: without ucx_perftest nothing is measured", file=sys.stderr)
        sys.exit(0)
    print(f"| bytes, {os.cpu_count()} processors | rc_mlx5, us | rc_verbs, us | ratio | difference, us |\n|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for length in (8, 4096):
            show(folder, length)
