#!/usr/bin/env python3
"""How time and memory grow with queue pairs, memory regions, tags, processes of the host, and hosts (network namespaces).

Usage: costs.py SOFTVERBS [ROUNDS [DIRECTORY]]

Every point is measured ROUNDS times over (3), in turn, by a separate program (costs.c), points of a million once; medians
are shown, and their ratios to the first point. With gnuplot each axis is drawn as DIRECTORY/AXIS.svg (build/costs). Nothing here passes or
fails; a count that can't be reached is shown with the program's message. docs/evidence/costs.md explains the numbers.
"""
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import bench
from bench import IS_TEST, SOFTVERBS, share
from network.wire import INSIDE, enter_namespaces, ip

PROGRAM = os.path.join(os.path.dirname(SOFTVERBS), "bench/costs")
HOSTS_MOST = 64  # beside the hub
LONG = 1000000  # points from here on are measured in the first round alone
PACKETS, ASLEEP, DIRECT = {"SOFTVERBS_DIRECT": "0"}, ("asleep",), {}
DECADES = (1, 10, 100, 1000, 10000)
PEERS = (1, 4, 9, 19, 49, 99, 199, 499)
TIMES = {"round_trip": "a message and its answer, us", "read": "READ of 8 B, us", "one_more": "one more, us",
         "first": "the first message to each, us", "empty_poll": "a poll that finds nothing, us"}
SIZES = {"memory": "memory, KiB", "together": "memory of all processes, KiB", "shared": "of it shared, KiB",
         "descriptors": "descriptors", "mappings": "mappings"}


class Axis:
    """The objects counted along it, the counts, the values shown, and how the program is run."""

    def __init__(self, name, title, counts, shown, environment=DIRECT, options=(), command=(SOFTVERBS, "run"), drawn=("memory",)):
        self.name, self.title, self.shown = name, title, shown
        self.counts = counts[:max(share(len(counts)), 2)]  # a test has two points
        self.environment, self.options, self.command, self.drawn = environment, options, command, drawn
        self.values = {count: [] for count in self.counts}
        self.faults = {}

    def run(self, count):
        directory = tempfile.mkdtemp(prefix="softverbs-costs-", dir="/dev/shm")
        command = [*self.command, "--", PROGRAM, self.name.split("-")[0], str(count), *self.options]
        environment = {**os.environ, "SOFTVERBS_DIR": directory, **self.environment}
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)
            self.values[count].append({name: float(value) for name, value in map(str.split, done.stdout.splitlines())})
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as fault:
            self.faults[count] = f"{fault}: {fault.stderr}"
        shutil.rmtree(directory, ignore_errors=True)

    def medians(self, what):
        """Count and median, where there is one."""
        return [(count, statistics.median(each[what] for each in runs)) for count, runs in self.values.items() if runs]


def axes():
    common = ("round_trip", "read", "one_more", "memory", "mappings")
    yield Axis("qps", "connected queue pairs", DECADES, common, PACKETS)
    yield Axis("qps-asleep", "connected queue pairs of a peer that sleeps", DECADES, ("read", "memory"), options=ASLEEP)
    yield Axis("regions", "registered regions", (*DECADES, 100000, 1000000), common, PACKETS)
    yield Axis("regions-asleep", "registered regions of a peer that sleeps", (*DECADES, 100000, 1000000), ("read", "memory"), options=ASLEEP)
    yield Axis("tags", "posted tags", (*DECADES, 100000, 250000), ("round_trip", "one_more", "memory"))
    many = ("first", "round_trip", "read", "empty_poll", *SIZES)
    yield Axis("processes", "peers on the host, asleep", PEERS, many, drawn=("memory", "together"))
    yield Axis("hosts", "connected hosts, each with a process that sleeps", (1, 2, 4, 8, 16, 32, HOSTS_MOST), many, {"ENDPOINT_GID": "1"},
               command=("nsenter", "--net=/run/netns/h0", SOFTVERBS, "run", "--net", "eth0"), drawn=("memory", "together"))


def make_hosts(count):
    """Network namespaces h0, h1, ..., each with an eth0 on one bridge."""
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)  # where "ip netns" keeps its names
    ip("link", "set", "lo", "up")
    ip("link", "add", "bridge", "type", "bridge")
    ip("link", "set", "bridge", "up")
    for i in range(count):
        ip("netns", "add", f"h{i}")
        ip("link", "add", f"port{i}", "type", "veth", "peer", "name", "eth0", "netns", f"h{i}")
        ip("link", "set", f"port{i}", "master", "bridge", "up")
        for link in ("lo", "eth0"):
            ip("-n", f"h{i}", "link", "set", link, "up")
        ip("-n", f"h{i}", "address", "add", f"10.92.0.{i + 1}/24", "dev", "eth0")


def measure(all_axes, rounds):
    for number in range(rounds):
        for axis in all_axes:
            for count in axis.counts if not number else [each for each in axis.counts if each < LONG]:
                print(f"\r\033[Kround {number + 1} of {rounds}: {count} {axis.title}", end="", file=sys.stderr, flush=True)
                axis.run(count)
    print("\r\033[K", end="", file=sys.stderr, flush=True)


def rounded(value):
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def report(axis):
    """A table in Markdown, a row for each measurement; in brackets the ratio to the first point."""
    print(f"| {axis.title} | " + " | ".join(f"{count:,}" for count, _ in axis.medians("memory")) + " |")
    print("|---|" + "---:|" * len(axis.medians("memory")))
    for what in axis.shown:
        row = axis.medians(what)
        cells = [f"{rounded(value)} ({value / row[0][1]:.1f})" if row[0][1] else rounded(value) for _, value in row]
        print(f"| {(TIMES | SIZES)[what]} | " + " | ".join(cells) + " |")
    for count, fault in axis.faults.items():
        print(f"\n{count:,} {axis.title}: {fault}")
    print()


def plot(axis, names):
    """The lines of one panel for gnuplot: the plot command, then the points of each."""
    points = {name: [point for point in axis.medians(name) if point[1]] for name in names}
    names = [name for name in names if points[name]]
    lines = [f"'-' using 1:2 with linespoints title \"{(TIMES | SIZES)[name]}\"" for name in names]
    blocks = ["\n".join(f"{count} {value}" for count, value in points[name]) + "\ne" for name in names]
    return "plot " + ", ".join(lines) + "\n" + "\n".join(blocks)


def draw(axis, directory):
    """Two panels with logarithmic axes, times to the left and sizes to the right."""
    script = f"""set terminal svg size 1000,480 background 'white' font 'sans-serif,12'
set output '{directory}/{axis.name}.svg'
set multiplot layout 1,2
set logscale xy
set format x '10^{{%T}}'
set key below vertical maxcols 1
set grid
unset mxtics
unset mytics
set xlabel '{axis.title}'
{plot(axis, [name for name in axis.shown if name in TIMES])}
{plot(axis, axis.drawn)}
"""
    subprocess.run(["gnuplot"], input=script, text=True, check=True)


def main():
    if not os.environ.get(INSIDE):
        enter_namespaces(without=77)
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    directory = sys.argv[3] if len(sys.argv) > 3 else os.path.join(os.path.dirname(SOFTVERBS), "costs")
    all_axes = list(axes())
    make_hosts(1 + max(all_axes[-1].counts))
    print(f"{bench.processor()}, {len(os.sched_getaffinity(0))} processors for us; load {os.getloadavg()[0]:.1f} at the start\n")
    measure(all_axes, rounds)
    os.makedirs(directory, exist_ok=True)
    for axis in all_axes:
        report(axis)
        if shutil.which("gnuplot"):
            draw(axis, directory)
    print(f"Drawn in {directory}" if shutil.which("gnuplot") else "Not drawn: there is no gnuplot")
    return IS_TEST and any(axis.faults for axis in all_axes)


if __name__ == "__main__":
    sys.exit(main())
