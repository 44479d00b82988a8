#!/usr/bin/env python3
"""A request whose queue pair asks the peer's process about its error (asked.c): its outcome, and the lines of the log about it."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, SOFTVERBS, patience
from patience import tries

PROGRAM = f"{BUILD}/tests/tool/asked"

SILENT = "send of wr_id 42 ends in IBV_WC_RETRY_EXC_ERR: "


def _play(case):
    """The status of the request, the seconds until it arrived, and the lines of the log."""
    status, text = cases.at_terminal([SOFTVERBS, "run", "--log", "warn", "--", PROGRAM, case, cases.DIRECTORY], cases.environment())
    result = re.search(r"^(.*), vendor_err (\d+), after ([0-9.]+) s$", text, re.MULTILINE)
    assert status == 0 and result, text
    return f"{result[1]}, {result[2]}", float(result[3]), [line for line in text.splitlines() if line.startswith("softverbs: ")]


def a_refusal_that_has_come_is_the_status_also_when_the_program_modifies_to_err():
    status, _, lines = _play("error")
    assert status == "remote invalid request error, 107", (status, lines)
    assert any("ends in IBV_WC_REM_INV_REQ_ERR: process " in line and "(its reason 209) (reason 107)" in line for line in lines), lines


def what_is_asked_before_a_reset_is_nothing_to_the_next_connection():
    status, _, lines = _play("reset")
    assert status == "success, 0", (status, lines)


def a_child_of_a_fork_asks_though_its_parent_asks_as_often_as_it_may():
    _, _, lines = _play("fork")
    assert any(f"{SILENT}queue pair 0x" in line and " is in INIT, where it takes nothing: ibv_modify_qp to RTR is missing (reason 105)" in line for line in lines), lines


def a_cause_is_named_though_the_queue_pair_that_refused_is_gone():
    status, _, lines = _play("destroy")
    assert status == "remote invalid request error, 107", (status, lines)
    assert any("ends in IBV_WC_REM_INV_REQ_ERR: process " in line and "(its reason 209) (reason 107)" in line for line in lines), lines


def _stop_late():
    status, seconds, lines = _play("stop")
    assert status == "transport retry counter exceeded, 105" and seconds < patience(2), (status, seconds, lines)
    assert any(f"{SILENT}the number " in line and "(asked), which is stopped (SIGSTOP, or a debugger) (reason 105)" in line for line in lines), lines


def a_peer_that_is_stopped_keeps_nobody_waiting():
    tries("stop", 3, "a server that has not run before it is stopped is waited for", _stop_late, AssertionError)


def a_peer_that_lives_is_not_said_to_have_ended():
    for case, words in (("descriptors", "which could not be asked (Too many open files)"),
                        ("descriptors-there", "which gave no answer, as one that ends or has no descriptor left (RLIMIT_NOFILE)")):
        status, _, lines = _play(case)
        assert status == "transport retry counter exceeded, 105", (status, lines)
        assert any(f"{SILENT}the number " in line and f"(asked), {words} (reason 105)" in line for line in lines), (case, lines)


def a_peer_of_another_user_is_not_asked():
    """The program gives the sockets away by which processes are asked."""
    if os.geteuid():
        raise cases.Skip("only root can give files away")
    status, _, lines = _play("stranger")
    assert status == "transport retry counter exceeded, 105", (status, lines)
    assert any(f"{SILENT}the number of the peer's queue pair belongs to process " in line and "(asked), which is another user's and is not asked (reason 105)" in line
               for line in lines), lines


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
