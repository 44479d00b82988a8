#!/usr/bin/env python3
"""softverbs run --time-scale: the events of a timeout occur soon, and are unchanged."""
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
import soak
from cases import BUILD, Skip, expect, softverbs, told
from patience import patience, tries

PROGRAM = f"{BUILD}/tests/tool/timed"
SCALE = "0.01"
# 8 ACK timers of 4.3 s and 6 RNR waits of 0.66 s, whose first 4 ms stay as they are.
SILENT, UNREADY = 8 * (4 + 42.9), 6 * (4 + 6.5)


def _ends(mode, scale, *options):
    done = expect(softverbs("run", "--time-scale", scale, *options, "--", PROGRAM, mode), err=None)
    status, took = re.fullmatch(r"(.+) after (\d+) ms\n", done.stdout.decode()).groups()
    return status, int(took), done.stderr.decode()


def retries_run_out_within_a_second():
    for _ in range(3):  # a processor that is busy with others may take its part of the second
        status, took, told_of = _ends("silent", SCALE, "--log", "info", "--inject", "when packet: drop")
        if took < patience(1000):
            break
    assert status == "transport retry counter exceeded" and SILENT - 1 <= took < patience(1000), (status, took)
    assert "(reason 105)" in told_of and told_of.count("SEND_ONLY") == 8, told_of


def so_do_those_of_a_peer_without_receives():
    status, took, _ = _ends("unready", SCALE)
    assert status == "RNR retry counter exceeded" and UNREADY - 1 <= took < patience(1000), (status, took)


def a_packet_that_arrives_is_as_good_as_ever():
    for _ in range(3):
        assert _ends("silent", "0.0001")[0] == "success"
        # Each packet is lost once: it arrives when the timer, whose time is scaled, is over.
        status, took, _ = _ends("silent", SCALE, "--inject", "when packet, nth 1: drop")
        assert status == "success" and took < patience(1000), (status, took)


def the_time_is_the_whole_one_without_it():
    status, took, _ = _ends("unready", "1")
    assert status == "RNR retry counter exceeded" and took >= 6 * 655, (status, took)


def an_attempt_to_connect_fails_soon():
    if not os.path.exists("/usr/bin/rping"):
        raise Skip("rping is not installed")
    done = softverbs("run", "--time-scale", SCALE, "--inject", "when message, opcode REQ: drop", "--",
                     "sh", "-c", "date +%s.%N; rping -c -C 1 -a 127.0.0.1; date +%s.%N")
    began, *_, ended = done.stdout.decode().split()
    assert "RDMA_CM_EVENT_UNREACHABLE" in done.stdout.decode() + done.stderr.decode(), told(done)
    assert float(ended) - float(began) < patience(10), told(done)


def clients_bear_a_bad_network():
    """One round of soak.py, which runs for as long as one likes."""
    for name in soak.PAIRS:
        if not shutil.which(name.split()[0]):
            raise Skip(f"{name.split()[0]} is not installed")
        repeated, _ = tries(name, 5, "a peer that waits for a processor for longer than the scaled time-outs and retries is lost",
                            lambda name=name: soak.run_pair(name, SCALE, 7), AssertionError)
        assert repeated, name


def what_is_no_share_is_refused():
    for text in "0", "1.5", "-0.1", "0.00001", "1e-2", "0,01", ".5x", "fast", "0.", "99999999999999999999", "0.5.5":
        expect(softverbs("run", "--time-scale", text, "--", "true"), 2, b"", [b"--time-scale", text.encode(), b"not a number from 0.0001 to 1"])
    for text in "1", "0.5", "0.0001", "1.000000", "0.123456789":
        expect(softverbs("run", "--time-scale", text, "--", "true"), 0, b"", b"")
    expect(softverbs("run", "--", "true", env={"SOFTVERBS_TIME_SCALE": "2"}), 2, b"", [b"SOFTVERBS_TIME_SCALE=2", b"not a number from 0.0001 to 1"])


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
