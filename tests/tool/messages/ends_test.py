#!/usr/bin/env python3
"""Both ends of a connection that were given what does not go together: one line on the screen, when the later one comes to RTS."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, SOFTVERBS

ENDS = f"{BUILD}/tests/tool/ends"


def _lines(name):
    status, screen = cases.at_terminal([SOFTVERBS, "run", "--", ENDS, name], cases.environment())
    lines = [line for line in screen.splitlines() if line.startswith("softverbs: ")]
    assert status == 0 and lines == screen.splitlines(), screen
    return lines


def _told(name, form):
    lines = _lines(name)
    assert len(lines) == 1 and re.search(form, lines[0]), lines


def path_mtus_that_differ_are_shown_both():
    _told("mtu", r"qp 0x\w+: path_mtu is 1024 bytes here and 4096 at its peer, qp 0x\w+, so that messages of more than 1024 bytes .* \(reason 449\)")
    _told("two-processes", r"path_mtu is 1024 bytes here and 4096 at its peer")
    _told("mtu-of-uc", r"path_mtu is 1024 bytes here and 512 at its peer, qp 0x\w+, so that messages of more than 512 bytes .* \(reason 449\)")


def gids_of_two_ip_versions_are_named():
    _told("families", r"qp 0x\w+: its GIDs are of IPv4, and its peer, qp 0x\w+, has IPv6: .* \(reason 449\)")


def numbers_that_were_exchanged_crosswise_are_named():
    _told("crossed", r"qp (0x\w+): its peer is qp (0x\w+), whose peer is qp (?!\1)0x\w+: .* \(reason 450\)")


def right_connections_leave_no_line():
    for name in ("right", "connected-anew", "corrected", "next-client", "ring-of-uc"):
        lines = _lines(name)
        assert not lines, (name, lines)


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
