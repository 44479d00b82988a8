#!/usr/bin/env python3
"""softverbs ping, as far as one host shows it; tests/clients/network/ping.py has the others."""
import contextlib
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import SOFTVERBS, Skip, expect, softverbs

WATCH = "/usr/bin/ibv_asyncwatch"  # opens a device and waits


@contextlib.contextmanager
def _endpoint():
    """A program that can be asked at an address of this host."""
    if not os.path.exists(WATCH):
        raise Skip(f"{WATCH} is not installed")
    with subprocess.Popen([SOFTVERBS, "run", "--net", "lo", "--", WATCH, "-d", "soft0"], stdout=subprocess.DEVNULL,
                          env=cases.environment()) as process:
        try:
            deadline = cases.until(20)
            while _ask().returncode and time.monotonic() < deadline:
                time.sleep(0.1)
            yield
        finally:
            process.kill()


def _ask():
    return softverbs("ping", "-c", "1", "-W", str(cases.patience(1)), "127.0.0.1")


def a_port_that_is_down_is_among_the_reasons_why_nobody_answers():
    with _endpoint():
        assert b"1 answered" in expect(_ask()).stdout
        expect(softverbs("event", "port-down", "soft0"))
        done = expect(_ask(), 1)
        assert b"on lo, or its port is down" in done.stdout and b"event port-up" in done.stdout, cases.told(done)
        expect(softverbs("event", "port-up", "soft0"))
        assert b"1 answered" in expect(_ask()).stdout


def the_kind_of_a_port_that_is_not_asked_about_is_refused():
    for option in ("-u", "--udp"):
        expect(softverbs("ping", option, "-c", "1", "-W", "0.1", "127.0.0.1"), 2, b"", [b"needs -p PORT"])


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
