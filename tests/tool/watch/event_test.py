#!/usr/bin/env python3
"""softverbs event: what a person provokes, programs of the distribution show."""
import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import SOFTVERBS, Skip, expect, run, softverbs

WATCH = "/usr/bin/ibv_asyncwatch"  # opens a device and prints its events, line by line into a terminal
INFO = "/usr/bin/ibv_devinfo"
EVENTS = {"port-down": "IBV_EVENT_PORT_ERR", "port-up": "IBV_EVENT_PORT_ACTIVE", "device-fatal": "IBV_EVENT_DEVICE_FATAL",
          "device-removal": "IBV_EVENT_DEVICE_FATAL",
          "pkey-change": "IBV_EVENT_PKEY_CHANGE", "gid-change": "IBV_EVENT_GID_CHANGE", "addr-change": "IBV_EVENT_GID_CHANGE",
          "lid-change": "IBV_EVENT_LID_CHANGE", "sm-change": "IBV_EVENT_SM_CHANGE",
          "client-reregister": "IBV_EVENT_CLIENT_REREGISTER"}


class _Watcher:
    """A running ibv_asyncwatch and what it has printed."""

    def __init__(self, device="soft0", **extra):
        if not os.path.exists(WATCH):
            raise Skip(f"{WATCH} is not installed")
        self.terminal, theirs = pty.openpty()
        self.process = subprocess.Popen([SOFTVERBS, "run", "--", WATCH, "-d", device], stdin=subprocess.DEVNULL,  # pylint: disable=consider-using-with
                                        stdout=theirs, stderr=theirs, env=cases.environment(**extra))
        os.close(theirs)
        self.text = ""
        self.until("async event FD")

    @property
    def pid(self):
        return self.process.pid

    def events(self):
        return re.findall(r"event_type (\w+) \(\d+\), port (\d)", self.text)

    def read(self, seconds):
        if select.select([self.terminal], [], [], seconds)[0]:
            self.text += os.read(self.terminal, 4096).decode()

    def until(self, pattern):
        deadline = cases.until(20)
        while not re.search(pattern, self.text):
            assert time.monotonic() < deadline and self.process.poll() is None, self.text
            self.read(1)

    def end(self):
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)


@contextlib.contextmanager
def _watching(*arguments, **options):
    watcher = _Watcher(*arguments, **options)
    try:
        yield watcher
    finally:
        watcher.end()
        softverbs("event", "port-up", "soft0")


def ibv_asyncwatch_shows_each_event():
    with _watching() as watcher:
        for name, shown in EVENTS.items():
            told = f"{name} on soft0: process {watcher.pid} (ibv_asyncwatch)\n".encode()
            expect(softverbs("event", name, "soft0"), out=told)
            watcher.until(rf"{shown} \(\d+\), port 1")
        assert watcher.events() == [(shown, "1") for shown in EVENTS.values()], watcher.text


def the_name_of_a_process_does_nothing_to_a_terminal():
    source = ("import sys; from pyverbs.device import Context; open('/proc/self/comm', 'w').write('\x1b[31mred'); "
              "context = Context(name='soft0'); print('open', flush=True); input()")
    with subprocess.Popen([SOFTVERBS, "run", "--", cases.PYTHON, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=cases.environment()) as process:
        if process.stdout.readline() != b"open\n":
            raise Skip("python3-pyverbs is not installed")
        done = softverbs("event", "lid-change", "soft0")
        process.communicate(b"\n")
    assert b"(?[31mred)" in done.stdout, done


def a_port_that_is_down_is_seen_by_programs_that_start_later():
    if not os.path.exists(INFO):
        raise Skip(f"{INFO} is not installed")
    assert b"PORT_ACTIVE" in expect(run(INFO)).stdout
    expect(softverbs("event", "port-down", "soft0"),
           out=b"The port of soft0 is down now, also for processes that start later; no process had the device open.\n")
    try:
        assert b"PORT_DOWN" in expect(run(INFO)).stdout
        assert re.search(rb"^soft0 .* DOWN ", expect(softverbs("devices")).stdout, re.MULTILINE)
    finally:
        expect(softverbs("event", "port-up", "soft0"))
    assert b"PORT_ACTIVE" in expect(run(INFO)).stdout
    assert re.search(rb"^soft0 .* ACTIVE ", expect(softverbs("devices")).stdout, re.MULTILINE)


def run_says_at_a_terminal_that_a_port_is_down():
    """findings/clients2.md, 2.6: a run after it had "1 devices"."""
    expect(softverbs("event", "port-down", "soft0"), out=None)
    try:
        told = "The port of soft0 is down since"
        assert told in cases.at_terminal([SOFTVERBS, "run", "--", "true"], cases.environment())[1]
        assert told not in cases.at_terminal([SOFTVERBS, "run", "--quiet", "--", "true"], cases.environment())[1]
        expect(run("true"))
    finally:
        expect(softverbs("event", "port-up", "soft0"), out=None)
    assert cases.at_terminal([SOFTVERBS, "run", "--", "true"], cases.environment())[1] == ""


def one_process_alone_can_be_meant():
    with _watching() as meant, _watching() as other:
        expect(softverbs("event", "--pid", str(meant.pid), "port-down", "soft0"),
               out=f"port-down on soft0: process {meant.pid} (ibv_asyncwatch)\n".encode())
        meant.until("IBV_EVENT_PORT_ERR")
        expect(softverbs("event", "sm-change", "soft0"))
        other.until("IBV_EVENT_SM_CHANGE")
        assert other.events() == [("IBV_EVENT_SM_CHANGE", "1")], other.text
        if os.path.exists(INFO):
            assert b"PORT_ACTIVE" in expect(run(INFO)).stdout


def another_device_hears_nothing():
    with _watching("right", SOFTVERBS_DEVICES="left,right") as watcher:
        devices = {"SOFTVERBS_DEVICES": "left,right"}
        expect(softverbs("event", "gid-change", "left", env=devices), out=b"No process had the device open, so no process got the event.\n")
        expect(softverbs("event", "sm-change", "right", env=devices))
        watcher.until("IBV_EVENT_SM_CHANGE")
        assert watcher.events() == [("IBV_EVENT_SM_CHANGE", "1")], watcher.text


def a_device_of_another_process_is_known():
    """The device is in the environment of that process only."""
    with _watching("right", SOFTVERBS_DEVICES="left,right") as watcher:
        expect(softverbs("event", "sm-change", "right"), out=f"sm-change on right: process {watcher.pid} (ibv_asyncwatch)\n".encode())
        watcher.until("IBV_EVENT_SM_CHANGE")
        expect(softverbs("event", "sm-change", "middle"), 2, b"", [b'no device "middle" here', b"soft0 left right"])


def what_does_not_exist_is_refused():
    expect(softverbs("event"), 2, b"", [b"needs an event and a device"])
    expect(softverbs("event", "port-down"), 2, b"", [b"needs an event and a device"])
    expect(softverbs("event", "earthquake", "soft0"), 2, b"", [b"earthquake"])
    expect(softverbs("event", "port-down", "soft7"), 2, b"", [b"\"soft7\" here, and no process has one; there are: soft0. See"])
    expect(softverbs("event", "--pid", "none", "port-down", "soft0"), 2, b"", [b"number above 0"])
    expect(softverbs("event", "port-down", "soft0", "now"), 2, b"", [b"needs an event and a device"])


def a_directory_that_was_named_and_is_not_there_is_not_made():
    path = f"{cases.TEMPORARY}/never"
    for event in ("port-down", "port-up", "gid-change"):
        expect(softverbs("event", "--dir", path, event, "soft0"), 1, b"", [b"There is no directory", path.encode()])
        expect(softverbs("event", event, "soft0", env={"SOFTVERBS_DIR": path}), 1, b"", [b"There is no directory"])
    assert not os.path.exists(path)


def a_process_that_is_not_there_is_told():
    with _watching() as watcher:
        watcher.process.kill()
        watcher.process.wait()
        for event in ("pkey-change", "port-down"):
            done = softverbs("event", "--pid", str(watcher.pid), event, "soft0")
            expect(done, 1, b"", f"softverbs: No process {watcher.pid} has a softverbs device open here; \"softverbs show\" lists those that have.\n".encode())
        done = softverbs("event", "--json", "--pid", str(watcher.pid), "pkey-change", "soft0")
        expect(done, 1, None, [b"No process", b"has a softverbs device open"])


def a_process_that_does_not_answer_is_named():
    with _watching() as watcher:
        cases.stop(watcher.pid)
        try:
            done = softverbs("event", "gid-change", "soft0")
        finally:
            os.kill(watcher.pid, signal.SIGCONT)
        assert done.returncode == 1 and f"Process {watcher.pid}".encode() in done.stderr, cases.told(done)


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
