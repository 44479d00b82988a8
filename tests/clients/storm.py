#!/usr/bin/env python3
"""Runs everything that could hang, again and again, in the worst of circumstances: as it is, on one processor, beside
programs that burn all processors, with processes stopped (SIGSTOP) and continued at random, and built with
ThreadSanitizer. Ends with a table of all runs; the exit status is 0 when every one ended well and in time.

Usage: storm.py MINUTES [SEED [WORDS]]     (of the runs only those whose name holds the words)

Builds are where $SOFTVERBS_BUILD says (build/), and beside it build-tsan/, if it is there. A run that takes longer than
LONGEST is a hang: its stacks are shown, where gdb is installed, then it is killed.
"""
import collections
import contextlib
import glob
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from patience import patience

BUILD = os.path.abspath(os.environ.get("SOFTVERBS_BUILD", os.path.join(os.path.dirname(__file__), "../../build")))
TSAN = os.path.join(os.path.dirname(BUILD), "build-tsan")
EFA3 = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../profiles/efa3.profile")
LONGEST = 400  # seconds
STOP_MOST, RUN_MOST = 0.04, 0.06  # seconds that a process is stopped, and that all processes run

# name: program below the build, arguments (SEED is a new number each time), circumstances that are beyond it
API = {"open_batches": ["none"], "fork_and_exit": ["none"], "open_close": ["none"], "events": ["none"], "builders": ["none"], "batches": ["none"],
       "dead_peer": ["shm"], "cq": ["self"], "removed_completions": ["none"], "xrc": ["none"], "srq": ["shm"], "moderation": ["shm"]}
CLIENTS = [("kills_at_doorbell", ["600", "SEED"], {"burdened"}), ("kills_at_doorbell", ["300", "SEED", "stops"], {"burdened"}),
           ("sleeping_receivers", ["400"], {"stops", "burdened"}), ("killed_peer", ["100", "SEED"], {"stops"}), ("killed_srd", ["50", "SEED"], {"stops"}), ("all_to_all", ["16"], set())]
# Tests that stop processes themselves look for those stops; life_test's stopped holder must not be continued by others.
UNITS = {"src/ipc/life_test": {"stops"}, "src/ipc/lost_test": {"stops"}, "src/link/doorbell_test": set(),
         "src/link/ring_test": set()}
CIRCUMSTANCES = ["plain", "one processor", "burdened", "stops", "tsan"]

Run = collections.namedtuple("Run", "name circumstance command environment")


def runs():
    """Every run there is."""
    for name, links in API.items():
        for link in links:
            for circumstance in CIRCUMSTANCES:
                program = os.path.join(TSAN if circumstance == "tsan" else BUILD, "tests/api/api_" + name)
                if circumstance == "stops" and name in ("moderation", "dead_peer"):  # which measure time, stop processes themselves
                    continue
                yield Run(f"api {name} {link}", circumstance, [program, link], {"API_ENDS_SECONDS": "3"})
    for name, arguments, beyond in CLIENTS:
        for circumstance in CIRCUMSTANCES[:-1]:
            program = os.path.join(BUILD, "tests/clients", name)
            if circumstance not in beyond:
                yield Run(" ".join([name, *arguments]), circumstance, [program, *arguments],
                          {"TEST_PATIENCE": "1" if circumstance == "plain" else "5", **({"SOFTVERBS_PROFILE": EFA3} if "srd" in name else {})})
    for path, beyond in UNITS.items():
        for circumstance in CIRCUMSTANCES:
            if circumstance in beyond:
                continue
            yield Run(os.path.basename(path), circumstance, [os.path.join(TSAN if circumstance == "tsan" else BUILD, path)], {})


def members(session):
    """The processes of a session."""
    for path in glob.glob("/proc/[0-9]*/stat"):
        with contextlib.suppress(OSError), open(path, encoding="ascii", errors="replace") as file:
            fields = file.read().rsplit(")", 1)[1].split()
            if int(fields[3]) == session and fields[0] != "Z":
                yield int(path.split("/")[2])


class Stops(threading.Thread):
    """Stops one process of a session after the other for a moment."""

    def __init__(self, session):
        super().__init__(daemon=True)
        self.session, self.done, self.count = session, threading.Event(), 0

    def run(self):
        while not self.done.wait(random.uniform(0.001, RUN_MOST)):
            victims = list(members(self.session))
            if not victims:
                continue
            victim = random.choice(victims)
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGSTOP)
                self.count += 1
                time.sleep(random.uniform(0.001, STOP_MOST))
                os.kill(victim, signal.SIGCONT)


@contextlib.contextmanager
def burden(wanted):
    """One program for each processor that does nothing but burn it."""
    burners = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(os.cpu_count() if wanted else 0)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def show_stacks(session):
    for pid in list(members(session)):
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            done = subprocess.run(["gdb", "-q", "-batch", "-p", str(pid), "-ex", "thread apply all bt 12"],
                                  capture_output=True, text=True, timeout=patience(60), check=False)
            print(f"--- process {pid}\n" + "\n".join(line for line in done.stdout.splitlines() if line.startswith(("#", "Thread"))))


def command_of(run, seed):
    command = [str(seed % 100000) if word == "SEED" else word for word in run.command]
    if run.circumstance == "one processor":
        command = ["taskset", "-c", "0", *command]
    if run.circumstance == "tsan":
        command = ["setarch", "--addr-no-randomize", *command]
    if run.name.split()[0] in {name for name, _, _ in CLIENTS}:
        command = [os.path.join(BUILD, "softverbs"), "run", "--", *command]
    return command


def finish(process):
    """The exit status of the program, or None when it hung."""
    try:
        return process.wait(LONGEST)
    except subprocess.TimeoutExpired:
        show_stacks(process.pid)
        return None


def execute(run, seed, directory):
    """(status, seconds, stops, output)"""
    environment = {**os.environ, **run.environment, "SOFTVERBS_DIR": directory, "CMOCKA_MESSAGE_OUTPUT": "TAP",
                   "LD_LIBRARY_PATH": os.path.join(TSAN if run.circumstance == "tsan" else BUILD, "lib")}
    began = time.monotonic()
    with tempfile.TemporaryFile() as output, burden(run.circumstance == "burdened"):
        process = subprocess.Popen(command_of(run, seed), stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                   env=environment, start_new_session=True)
        stops = Stops(process.pid)
        if run.circumstance == "stops":
            stops.start()
        status = finish(process)
        stops.done.set()
        if stops.ident:
            stops.join()
        for pid in members(process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        output.seek(0)
        return status, time.monotonic() - began, stops.count, output.read().decode(errors="replace")


def describe(output):
    bad = [line for line in output.splitlines() if line.startswith(("not ok", "# ", "Bail", "WARNING: Thr")) or "hang" in line]
    return "\n".join("    " + line for line in (bad or output.splitlines())[-12:])


class Table:
    """The results of the runs."""

    def __init__(self):
        self.runs, self.failed, self.longest, self.stops = (collections.Counter() for _ in range(4))

    def add(self, run, status, seconds, stops):
        key = (run.name, run.circumstance)
        self.runs[key] += 1
        self.failed[key] += status != 0
        self.longest[key] = max(self.longest[key], seconds)
        self.stops[key] += stops

    def cell(self, key):
        if not self.runs[key]:
            return ""
        bad = f" **{self.failed[key]} failed**" if self.failed[key] else ""
        return f"{self.runs[key]} ({self.longest[key]:.1f} s){bad}"

    def show(self):
        names = sorted({name for name, _ in self.runs})
        print("\n| runs (longest) | " + " | ".join(CIRCUMSTANCES) + " |\n" + "|---" * (len(CIRCUMSTANCES) + 1) + "|")
        for name in names:
            print(f"| {name} | " + " | ".join(self.cell((name, circumstance)) for circumstance in CIRCUMSTANCES) + " |")
        print(f"\n{sum(self.runs.values())} runs, {sum(self.failed.values())} failed, {sum(self.stops.values())} stops")


def storm(minutes, seed, words):
    random.seed(seed)
    table, end = Table(), time.monotonic() + minutes * 60
    everything = [run for run in runs() if words in f"{run.name} {run.circumstance}" and (run.circumstance != "tsan" or os.path.isdir(TSAN))]
    missing = {run.command[0] for run in everything if not os.access(run.command[0], os.X_OK)}
    if missing:
        sys.exit("storm.py: not built: " + " ".join(sorted(missing)))
    print(f"seed {seed}: {len(everything)} kinds of runs, {minutes} minutes", flush=True)
    while time.monotonic() < end and everything:
        random.shuffle(everything)
        for run in everything:
            if time.monotonic() >= end:
                break
            directory = tempfile.mkdtemp(prefix="softverbs-storm-", dir="/dev/shm")
            status, seconds, stops, output = execute(run, random.getrandbits(31), directory)
            shutil.rmtree(directory, ignore_errors=True)
            table.add(run, status, seconds, stops)
            if status != 0:
                what = "hangs" if status is None else f"exit status {status}"
                print(f"{run.name}, {run.circumstance}: {what} after {seconds:.1f} s\n{describe(output)}", flush=True)
    table.show()
    return 1 if sum(table.failed.values()) or not everything else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(storm(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else os.getpid(), " ".join(sys.argv[3:])))
