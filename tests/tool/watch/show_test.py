#!/usr/bin/env python3
"""softverbs show: the objects of live processes, from the processes themselves."""
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import SOFTVERBS, Skip, TEMPORARY, expect, softverbs

WATCH = "/usr/bin/ibv_asyncwatch"  # opens a device and waits
PAIR = "/usr/bin/ibv_rc_pingpong"  # as server: a protection domain, memory, a queue pair and its queue, and waits


@contextlib.contextmanager
def _started(*command):
    """A program under softverbs run that is seen by show."""
    if not os.path.exists(command[0]):
        raise Skip(f"{command[0]} is not installed")
    os.makedirs(cases.DIRECTORY, 0o700, exist_ok=True)  # show is asked before the program has made it
    with subprocess.Popen([SOFTVERBS, "run", "--", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=cases.environment()) as process:
        try:
            deadline = cases.until(10)
            while process.pid not in _shown() and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.02)
            assert process.poll() is None, process.stdout.read()
            yield process
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()


def _shown():
    """The output of --json, by process."""
    return {process["pid"]: process for process in json.loads(expect(softverbs("show", "--json")).stdout)}


def nobody_is_shown_when_nobody_is_there():
    os.mkdir(f"{TEMPORARY}/empty", 0o700)
    expect(softverbs("show", "--dir", f"{TEMPORARY}/empty"), out=b"No process has a softverbs device open. Start one: softverbs run -- PROGRAM\n")
    expect(softverbs("show", "--dir", f"{TEMPORARY}/empty", "--json"), out=b"[]\n")
    expect(softverbs("show", env={"SOFTVERBS_DIR": None}))  # the default directory may not be there yet


def a_directory_that_was_named_and_is_not_there_is_told():
    path = f"{TEMPORARY}/never"
    for command in (["show"], ["show", "qps"], ["stat", "--once"], ["stat", "--once", "--json"], ["stat"]):
        expect(softverbs(*command, "--dir", path), 1, b"", [b"There is no directory", path.encode()])
        expect(softverbs(*command, env={"SOFTVERBS_DIR": path}), 1, b"", [b"There is no directory", path.encode()])
    assert not os.path.exists(path)


def what_can_be_no_such_directory_is_told():
    os.mkdir(f"{TEMPORARY}/readable", 0o755)
    with open(f"{TEMPORARY}/file", "w", encoding="ascii"):
        pass
    for command in (["show"], ["stat", "--once"]):
        expect(softverbs(*command, "--dir", f"{TEMPORARY}/readable"), 1, b"", [b"/readable has mode 755"])
        expect(softverbs(*command, "--dir", f"{TEMPORARY}/file"), 1, b"", [b"/file is not a directory"])


def a_process_and_its_objects_are_shown():
    with _started(PAIR, "-g", "0", "-p", "0") as process:
        deadline = cases.until(10)
        while not _shown()[process.pid].get("qps") and time.monotonic() < deadline:
            time.sleep(0.02)
        told = _shown()[process.pid]
        assert told["program"] == "ibv_rc_pingpong" and told["answers"] is True, told
        assert len(told["qps"]) == len(told["cqs"]) == len(told["mrs"]) == len(told["pds"]) == 1, told
        assert told["qps"][0]["type"] == "RC" and told["qps"][0]["state"] == "INIT", told
        text = [re.split("  +", line) for line in expect(softverbs("show", "qps")).stdout.decode().splitlines()]
        row = dict(zip(text[0], text[1]))
        assert row["PID"] == str(process.pid) and row["STATE"] == "INIT" and row["QP"] == hex(told["qps"][0]["number"]), text
        text = expect(softverbs("show", "mrs")).stdout.decode()
        assert f"0x{told['mrs'][0]['key']:x} " in text and "local-write" in text, text
        for what in ("processes", "cqs", "srqs", "pds"):
            expect(softverbs("show", what))
        assert expect(softverbs("show")).stdout.count(str(process.pid).encode()) == 2


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def _connected(processes):
    return all(_shown()[process.pid].get("qps", [{}])[0].get("peer_pid") for process in processes)


def peers_name_one_another():
    options = ["-g", "0", "-n", "100000000", "-p", _free_port()]
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(_started(PAIR, *options))
        assert cases.await_listener(server, options[-1])
        deadline = cases.until(10)
        client = stack.enter_context(_started(PAIR, *options, "127.0.0.1"))
        while not _connected([server, client]) and time.monotonic() < deadline:
            time.sleep(0.05)
        shown = _shown()
        one, other = (shown[process.pid]["qps"][0] for process in (server, client))
        assert one["peer_pid"] == client.pid and other["peer_pid"] == server.pid, shown
        assert one["peer_qp"] == other["number"] and other["peer_qp"] == one["number"], shown
        assert one["state"] == other["state"] == "RTS", shown


def several_processes_are_shown():
    with _started(WATCH) as one, _started(WATCH) as other:
        assert set(_shown()) == {one.pid, other.pid}
        assert expect(softverbs("show", "qps")).stdout == b"There are no queue pairs.\n"


def a_stopped_process_does_not_answer():
    with _started(WATCH) as process:
        cases.stop(process.pid)
        assert _shown()[process.pid] == {"pid": process.pid, "program": "ibv_asyncwatch", "answers": False}
        text = expect(softverbs("show", "processes")).stdout
        assert b"ibv_asyncwatch (does not answer)" in text, text
        cases.resume(process.pid)


def a_killed_process_is_not_shown():
    with _started(WATCH) as process:
        process.kill()
        process.wait()
        assert process.pid not in _shown()


def other_directories_are_other_worlds():
    os.mkdir(f"{TEMPORARY}/other", 0o700)
    with _started(WATCH):
        expect(softverbs("show", "--dir", f"{TEMPORARY}/other"), out=b"No process has a softverbs device open. Start one: softverbs run -- PROGRAM\n")


def what_it_cannot_show_is_refused():
    expect(softverbs("show", "ghosts"), 2, b"", [b"It shows processes, qps"])
    expect(softverbs("show", "qps", "cqs"), 2, b"", [b"It shows"])
    expect(softverbs("show", "--dir", f"/{'x' * 200}"), 2, b"", [b"too long"])


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
