#!/usr/bin/env python3
"""Programs that sleep until a message comes (ib_send_lat -e, 8 bytes), beside datagrams over loopback between two programs that sleep, in turn.

Usage: sleeping.py SOFTVERBS [ANOTHER]    the command of another build is measured, too

Then rsockets (rstream, 64 bytes) and rping -v, beside TCP (rstream -T s).

Both ends are on two processors or on one, alone or beside two programs that compute; and sixteen pairs at once. Times are half of the round trip in
microseconds, medians of rounds of the medians of one run, with the ratio to the datagrams; then how often a second the client's threads were woken: the
program's and the library's. Nothing here passes or fails; docs/evidence/sleeping.md has the numbers."""
import contextlib
import glob
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from bench import IS_TEST, SOFTVERBS, free_port

ROUNDS, MESSAGES = (1, 100) if IS_TEST else (5, 12000)
BUILDS = [SOFTVERBS, *(word for word in sys.argv[2:3] if "/" in word)]
ROUND_TRIP = os.path.join(os.path.dirname(SOFTVERBS), "bench/round_trip")


def pinned(processor, command):
    return command if processor is None else ["taskset", "-c", str(processor), *command]


def switches(pid):
    """How often the process's threads went to sleep: the program's, the library's."""
    counts = [0, 0]
    for status in glob.glob(f"/proc/{pid}/task/*/status"):
        with contextlib.suppress(OSError), open(status, encoding="ascii") as lines:
            text = lines.read()
            counts["softverbs" in text.split("\n", 1)[0]] += int(re.search(r"\nvoluntary_ctxt_switches:\s*(\d+)", text)[1])
    return counts


def watch_switches(process):
    """How many there were in a second, from the first look that found both threads to the last before the process ended."""
    looks = []
    while process.poll() is None:
        look = (time.monotonic(), *switches(process.pid))
        if min(look[1:]) > 0:
            looks.append(look)
        time.sleep(0.02)
    if len(looks) < 2:
        return [0, 0]
    span = looks[-1][0] - looks[0][0]
    return [(after - before) / span for before, after in zip(looks[0][1:], looks[-1][1:])]


def messages(command, directory, processors):
    """The median of ib_send_lat, and the client's switches a second."""
    environment = {**os.environ, "SOFTVERBS_DIR": directory}
    words = [command, "run", "--", "ib_send_lat", "-e", "-n", str(MESSAGES), "-s", "8", "-p", str(free_port())]
    with subprocess.Popen(pinned(processors[0], words), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        time.sleep(0.3)
        with subprocess.Popen(pinned(processors[1], [*words, "127.0.0.1"]), env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as client:
            woken = watch_switches(client)
            said = client.stdout.read()
    found = re.search(r"^ +8 +\d+ +[\d.]+ +[\d.]+ +([\d.]+)", said, re.MULTILINE)
    return (float(found[1]) if found else None), woken


def datagrams(processors):
    port = str(free_port())
    with subprocess.Popen(pinned(processors[0], [ROUND_TRIP, "serve", port])) as server:
        try:
            time.sleep(0.2)
            done = subprocess.run(pinned(processors[1], [ROUND_TRIP, "127.0.0.1", port, str(MESSAGES)]), check=True, capture_output=True, text=True, timeout=120)
        finally:
            server.kill()
    return float(done.stdout.split()[1])


@contextlib.contextmanager
def beside(count):
    """Programs that compute."""
    with contextlib.ExitStack() as stack:
        computing = [stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"])) for _ in range(count)]
        try:
            yield
        finally:
            for each in computing:
                each.kill()


def several(count, measure):
    """The mean of `count` measurements at once, each in a child process."""
    children = []
    for _ in range(count):
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.write(writing, repr(measure()).encode())
            os._exit(0)
        os.close(writing)
        children.append((child, reading))
    results = []
    for child, reading in children:
        with os.fdopen(reading) as pipe:
            results.append(float(pipe.read()))
        os.waitpid(child, 0)
    return statistics.mean(results)


def show(name, processors, computing):
    times, woken = {each: [] for each in (None, *BUILDS)}, {each: [] for each in BUILDS}
    with tempfile.TemporaryDirectory() as folder, beside(computing):
        for _ in range(ROUNDS):
            times[None].append(datagrams(processors))
            for build in BUILDS:
                median, switched = messages(build, folder, processors)
                times[build].append(median)
                woken[build].append(switched)
    least = statistics.median(times[None])
    cells = [f"{least:.1f}"]
    for build in BUILDS:
        median = statistics.median(times[build])
        program, helper = (statistics.median(each[i] for each in woken[build]) for i in (0, 1))
        cells += [f"{median:.1f} ({median / least:.2f})", f"{program:,.0f}", f"{helper:,.0f}"]
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def show_pairs(count):
    cells = [f"{several(count, lambda: datagrams((None, None))):.1f}"]
    for build in BUILDS:
        with tempfile.TemporaryDirectory() as folder:
            mean = several(count, lambda build=build, folder=folder: messages(build, folder, (None, None))[0])
        cells += [f"{mean:.1f} ({mean / float(cells[0]):.2f})", "", ""]
    print(f"| {count} pairs at once | {' | '.join(cells)} |", flush=True)


def pair(words, server, client, directory):
    """Seconds of the client, and what it printed."""
    environment = {**os.environ, "SOFTVERBS_DIR": directory}
    with subprocess.Popen([*words, *server], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        time.sleep(0.5)
        began = time.monotonic()
        done = subprocess.run([*words, *client], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=300, check=False)
        return time.monotonic() - began, done.stdout


def rsockets(words, directory, *options):
    """Microseconds one way."""
    common = ["-p", str(free_port()), "-S", "64", "-I", str(MESSAGES), "-C", "1", *options]
    _, said = pair(words, ["rstream", *common], ["rstream", "-s", "127.0.0.1", *common], directory)
    return float(said.split()[-1])


def rping(words, directory):
    """Microseconds of a ping, with its start and end."""
    common = ["-p", str(free_port()), "-C", str(MESSAGES), "-v"]
    seconds, _ = pair(words, ["rping", "-s", *common], ["rping", "-c", "-a", "127.0.0.1", *common], directory)
    return seconds / MESSAGES * 1e6


def show_others():
    with tempfile.TemporaryDirectory() as folder:
        for name, measure in (("rsockets, 64 bytes one way", rsockets), ("rping -v, a ping", rping)):
            times = [[] for _ in range(1 + len(BUILDS))]
            for _ in range(ROUNDS):
                times[0].append(rsockets([], folder, "-T", "s"))
                for each, build in zip(times[1:], BUILDS):
                    each.append(measure([build, "run", "--"], folder))
            least, *ours = map(statistics.median, times)
            print(f"| {name} | {least:.2f} | " + " | ".join(f"{each:.2f} ({each / least:.2f})" for each in ours) + " |", flush=True)


if __name__ == "__main__":
    if not shutil.which("ib_send_lat"):
        print("sleeping.py: without ib_send_lat nothing is measured", file=sys.stderr)
        sys.exit(0)
    last = max(os.sched_getaffinity(0))
    titles = ["softverbs", *(["the other build"] if len(BUILDS) > 1 else [])]
    print("| | datagram | " + " | ".join(f"{title} | program woken | helper woken" for title in titles) + " |\n|---|" + "---:|" * (1 + 3 * len(titles)))
    show("two processors", (0, last), 0)
    show("two processors, both busy", (0, last), 2)
    show("one processor", (0, 0), 0)
    show("any processor", (None, None), 0)
    show("any processor, both busy", (None, None), 2)
    show_pairs(2 if IS_TEST else 16)
    if shutil.which("rstream"):
        print("\n| | TCP, 64 bytes one way | " + " | ".join(titles) + " |\n|---|" + "---:|" * (1 + len(titles)))
        show_others()
