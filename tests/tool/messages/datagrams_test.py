#!/usr/bin/env python3
"""Datagrams that are lost by a program's fault: one line on the screen for each reason and pair of queue pairs, and counted."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, SOFTVERBS, TEMPORARY, TREE
from rules import unseen  # pylint: disable=wrong-import-order

DATAGRAMS, NO_SHORT_NUMBER = f"{BUILD}/tests/tool/datagrams", 3
counted = iter(range(1 << 16))


def _run(name, arrived=0):
    """Our lines at a terminal, and the counts of the reasons. Each in a new directory, where numbers begin anew."""
    place = f"{TEMPORARY}/{next(counted)}"
    command = [SOFTVERBS, "run", "--counters", f"{place}.json", "--", DATAGRAMS, name]
    status, screen = cases.at_terminal(command, cases.environment(SOFTVERBS_DIR=place))
    if status == NO_SHORT_NUMBER:
        return _run(name, arrived)
    lines = screen.splitlines()
    assert status == 0 and f"{arrived} arrived" in lines, screen
    with open(f"{place}.json", encoding="utf-8") as report:
        traffic = [json.loads(line)["traffic"][0] for line in report]
    return [line for line in lines if line.startswith("softverbs: ")], traffic[-1].get("reasons", {})


def _told(name, number, reason, *parts):
    ours, reasons = _run(name)
    assert len(ours) == 1 and f"(reason {number})" in ours[0], ours
    assert all(re.search(part, ours[0]) for part in parts), ours
    assert reasons.get(reason) == 3, reasons


def datagrams_that_arrive_leave_no_line():
    for name in ("right", "joined-group"):
        ours, reasons = _run(name, arrived=3)
        assert not ours and not any("PACKET" in name for name in reasons), (ours, reasons)


def what_the_receiver_lacks_is_told_once():
    _told("no-receive", 16, "PACKET_NO_RECEIVE", "UD SEND_ONLY from qp 0x[0-9a-f]+, psn 0: A message found no receive posted")
    _told("no-room", 17, "PACKET_TOO_LONG", "64 bytes, and 40 of the GRH before them")
    _told("no-rtr", 8, "PACKET_QP_STATE", "is not yet, or no longer, able to receive")


def another_qkey_is_told_once_for_each_pair():
    _told("wrong-qkey", 11, "PACKET_QKEY", "its Q_Key is 0x7, and this queue pair has 0x8: ")
    ours, reasons = _run("two-senders")
    assert len(ours) == 2 and len({re.search("from qp (0x[0-9a-f]+)", line)[1] for line in ours}) == 2, ours
    assert reasons["PACKET_QKEY"] == 6, reasons


def a_queue_pair_of_another_type_is_told_once():
    _told("to-rc", 9, "PACKET_SERVICE", "UD SEND_ONLY from qp 0x[0-9a-f]+, psn 0: ")


def a_number_that_no_process_has_is_told_to_its_sender():
    _told("nobody", 35, "PACKET_NOBODY", "a datagram to qp 0x[0-9a-f]+: A datagram was sent to a queue pair number that no process")
    _told("short-number", 35, "PACKET_NOBODY", r"with other upper bits it is one of this host, 0x[0-9a-f]{5,6} \(a number has 24 bits\)")
    _told("swapped-number", 35, "PACKET_NOBODY", r"with its bytes in the other order it is one of this host, 0x[0-9a-f]+ \(ntohl\)")


def a_group_without_members_is_told_to_its_sender():
    _told("empty-group", 34, "PACKET_GROUP_EMPTY", "a datagram to ff0e::7: ")


def what_ends_while_its_peer_sends_is_no_fault():
    for name in ("in-err", "destroyed", "ended"):
        ours, _ = _run(name)
        assert not ours, ours


def the_checker_leaves_a_lost_datagram_to_the_log_as_its_page_has_it():
    row, = [row for row in unseen(TREE).splitlines() if row.startswith("| Datagrams to the number of ")]
    logged = set()
    for name in ("destroyed", "to-rc", "nobody"):
        environment = {"SOFTVERBS_LOG": "info", "SOFTVERBS_DIR": f"{TEMPORARY}/logged.{name}"}
        done = cases.softverbs("run", "--check=adapter,-hop-limit-zero", "--", DATAGRAMS, name, env=environment)
        assert done.returncode == 0 and b" check: " not in done.stderr, done.stderr
        logged |= set(re.findall(r"\(reason (\d+)\)", done.stderr.decode()))
    assert logged == set(re.findall(r"\b(?:reason|or) (\d+)", row)), (logged, row)


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
