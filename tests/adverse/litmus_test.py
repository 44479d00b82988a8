#!/usr/bin/env python3
"""Litmus tests under the adverse adapter: what is allowed occurs, what must never be does not. Prints TAP.

By hand, with more of both, and resumable: evidence.py litmus.
"""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../tool")]
import cases
import litmus_run
from cases import BUILD, SOFTVERBS, TEMPORARY, Skip, expect, softverbs, told
sys.path[:0] = [os.path.join(HERE, "../clients"), os.path.join(HERE, "../clients/librdmacm")]
from clients import free_port
from patience import patience

SEEDS, TRIALS = 60, 20  # seeds are tried until each allowed outcome was seen
EVERYTHING = f"scale=10%,{litmus_run.EXTRA}"


def _run(setting, trials, *names, **extra):
    return litmus_run.run(setting, trials, *names, directory=cases.DIRECTORY, **extra)


def _forbidden(rows):
    return {name: row for name, row in rows.items() if row.verdict == "NEVER" and row.seen}


def what_is_allowed_occurs_for_some_seed_and_what_must_never_be_for_none():
    missing = None
    for seed in range(1, SEEDS + 1):
        rows = _run(f"seed={seed},{EVERYTHING}", TRIALS, *(missing or ()))
        assert not _forbidden(rows), (seed, rows)
        missing = [name for name, row in rows.items() if row.verdict == "ALLOWED" and not row.seen]
        if not missing:
            return
    raise AssertionError(f"not seen in {SEEDS} seeds: {missing}")


def without_its_behaviour_an_outcome_vanishes():
    named = {}
    for name, row in _run("seed=1,only=1", 1).items():
        if row.behaviour != "-":
            named.setdefault(row.behaviour, []).append(name)
    for behaviour, names in named.items():
        rows = _run(f"seed=3,{EVERYTHING},without={behaviour}", TRIALS, *names)
        assert set(rows) == set(names) and not any(row.seen for row in rows.values()), (behaviour, rows)


def one_behaviour_alone_is_enough_for_its_outcome():
    for behaviour, name in (("1", "L1"), ("late-write", "L3"), ("late-write", "L6"), ("overtake", "L9"), ("8", "L16"), ("6", "L14"),
                            ("pieces", "L15"), ("17", "P5"), ("unsaid", "P6"), ("numbers", "P7"),
                            ("12", "P10"), ("async-events", "P11"), ("unreliable", "P13"), ("no-inline", "P15"),
                            ("late-completions", "P16"), ("late-acks", "P17"), ("slow-calls", "P18"), ("gid-index", "P19"), ("late-port", "P20"),
                            ("new-entries", "L17"), ("null-readers", "P23"), ("any-order", "S1"), ("any-order", "S3"), ("any-order", "S4"),
                            ("any-order", "S7"), ("pieces", "S9")):
        assert any(_run(f"seed={seed},only={behaviour},scale=10%", TRIALS, name)[name].seen for seed in range(1, SEEDS + 1)), (behaviour, name)


def a_process_without_it_shows_none_of_what_needs_it():
    rows = _run(None, TRIALS, "L1", "L3", "L6", "L11", "L16", "P1", "S1", "S3", "S4", "S7", "S9")
    assert len(rows) == 11 and not any(row.seen for row in rows.values()), rows


def the_log_names_a_behaviour_once_when_it_is_shown():
    path = f"{TEMPORARY}/adverse.log"
    _run("seed=5,only=late-write,only=late-acks,only=late-completions,only=slow-calls", TRIALS, "L3", "L4",
         env={"SOFTVERBS_LOG": "info", "SOFTVERBS_LOG_FILE": path})
    with open(path, encoding="utf-8") as file:
        lines = [line for line in file if "(reason 870)" in line]
    for words in ("3, late-write (seed 5)", "10, late-acks (seed 5)", "7, late-completions (seed 5)", "15, slow-calls (seed 5)"):
        assert sum(words in line for line in lines) == 1, lines
    assert len(lines) == 4, lines


def a_process_that_ends_owes_nothing():
    """A message that its program has received is acknowledged, as by an adapter."""
    for seed in range(1, 6):
        expect(softverbs("run", f"--adverse=seed={seed},only=late-acks,scale=1000%", "--", f"{BUILD}/tests/clients/exit_after_receive", "quietly",
                         "quietly", "10"), out=None)


def a_correct_program_passes_under_every_seed():
    """Random work, and a look at each byte and order that the rules promise; under other schedules of its threads, too."""
    for seed in range(1, 13):
        expect(softverbs("run", f"--adverse=seed={seed},scale={20 * seed}%", "--schedule", f"seed={seed}", "--", f"{BUILD}/tests/adverse/judge", str(seed), "20"))


def a_program_that_takes_messages_of_srd_for_ordered_fails_under_most_seeds():
    """The packets that are held back are drawn by the seed; 16 messages are enough for one of them."""
    failed = sum(softverbs("run", "--profile", "efa3", f"--adverse=seed={seed}", "--", f"{BUILD}/tests/adverse/planted_srd", "1", "S1").returncode == 1
                 for seed in range(1, 21))
    assert failed >= 15, failed
    expect(softverbs("run", "--profile", "efa3", "--adverse=without=any-order", "--", f"{BUILD}/tests/adverse/planted_srd", "20", "S1"))


def a_schedule_shows_a_race_between_threads():
    """One thread counts its work after the post, and the other finds a completion that was not counted."""
    for seed in range(1, SEEDS + 1):
        if softverbs("run", "--schedule", f"seed={seed}", "--", f"{BUILD}/tests/adverse/late_count").returncode == 1:
            return
    raise AssertionError(f"not seen in {SEEDS} seeds")


def _counters(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def what_was_shown_is_counted():
    path = f"{TEMPORARY}/shown.counters"
    _run("seed=1,only=late-read,only=numbers", TRIALS, "L1", env={"SOFTVERBS_COUNTERS": path})
    _run(None, TRIALS, "L1", env={"SOFTVERBS_COUNTERS": path})
    first, second = _counters(path)
    assert set(first["adverse"]) == {"late-read", "numbers"} and min(first["adverse"].values()) > 0 and "adverse" not in second, (first, second)
    with subprocess.Popen([SOFTVERBS, "run", "--adverse=only=numbers", "--", f"{BUILD}/tests/adverse/planted", "100000000", "L5"], env=cases.environment()) as process:
        try:
            row, deadline = None, cases.until(10)
            while not row and process.poll() is None and cases.time.monotonic() < deadline:
                told_of = json.loads(expect(softverbs("show", "--json"), err=None).stdout or b"[]")
                row = next((each for each in told_of if each["pid"] == process.pid and "adverse" in each), None)
            assert row["adverse"]["numbers"] >= 1, row
            assert b"numbers 1" in expect(softverbs("show", "processes")).stdout
            lines = expect(softverbs("stat", "--lines")).stdout.decode().splitlines()
            assert any(line.split()[2:] == ["adverse", "1", "numbers"] for line in lines), lines
        finally:
            process.kill()


def _counters_between(server, client, *program):
    """The counters of the client of two processes of perftest."""
    path = f"{TEMPORARY}/between.counters"
    command = [*program, "-p", str(free_port()), "-F"]
    with subprocess.Popen([SOFTVERBS, "run", *server, "--", *command], env=cases.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as other:
        try:
            deadline = cases.until(20)
            while cases.time.monotonic() < deadline:
                if os.path.exists(path):
                    os.unlink(path)
                done = softverbs("run", *client, "--counters", path, "--", *command, "127.0.0.1")
                if done.returncode == 0 or other.poll() is not None:
                    break
            assert done.returncode == 0 and other.wait(patience(20)) == 0, told(done)
        finally:
            other.kill()
    return _counters(path)[-1]


def _writes_between(server, client):
    """The number of packets of WRITEs that the client sent."""
    counters = _counters_between(server, client, "ib_write_bw", "-n", "500", "-s", "64")
    return sum(count for device in counters["traffic"] for name, count in device["sent"].items() if "WRITE" in name)


def a_long_read_is_executed_twice_and_not_more_often():
    """Once for each response that is asked for again would repeat the rest of a long READ many times, and take seconds."""
    if not cases.shutil.which("ib_read_lat"):
        raise Skip("perftest is not installed")
    again = ["--adverse=seed=2,only=repeated-reads"]
    counters = _counters_between(again, again, "ib_read_lat", "-n", "40", "-s", "1048576")
    assert 1 <= counters["adverse"]["repeated-reads"] <= 40, counters


def a_process_under_it_publishes_nothing_and_takes_nothing_directly():
    if not cases.shutil.which("ib_write_bw"):
        raise Skip("perftest is not installed")
    kind = _writes_between([], [])
    if kind >= 500:
        raise Skip("nothing is direct on this machine")
    quiet = ["--adverse=only=unsaid"]
    assert _writes_between(quiet, []) >= 500 and _writes_between([], quiet) >= 500, kind


def a_list_that_is_none_is_refused():
    for value in ("late-write", "seed=x", "seed=99999999999999999999", "only=99", "scale=0%"):
        expect(softverbs("run", f"--adverse={value}", "--", "true"), status=2, err=[f'"{value}" of the adverse list'.encode()])
        done = softverbs("run", "--", "true", env={"SOFTVERBS_ADVERSE": value})
        assert done.returncode == 2 and b"3 late-write" in done.stderr, told(done)
    expect(softverbs("run", "--adverse", "--", "true"))
    expect(softverbs("run", "--adverse", "seed=7", "true"), status=127, err=[b'Write the list of --adverse after "=", as in --adverse=seed=7.'])
    expect(softverbs("run", "--schedule", "seven", "--", "true"), status=2, err=[b'"seven" is not a schedule'])


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
