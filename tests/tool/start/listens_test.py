#!/usr/bin/env python3
"""No program without --net that uses the library has a socket of any network."""
import contextlib
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import SOFTVERBS, Skip

RPING, ADDRESS, PORT = "/usr/bin/rping", "127.0.0.1", "7471"
ENDLESS = ["-C", "100000000"]
NETWORKS = ("tcp", "tcp6", "udp", "udp6", "udplite", "udplite6", "raw", "raw6", "icmp", "icmp6", "packet")
GIVEN = os.readlink("/proc/self/ns/net")  # the namespace in which this script began
INODE = {"packet": 8, "unix": 6}  # the column in the kernel's table; in the others it is the tenth


def _lines(pid, table):
    """The rows of a table of the kernel's; no rows where the kernel does not have that protocol."""
    with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/net/{table}", encoding="utf-8", errors="replace") as lines:
        return [line.split() for line in list(lines)[1:]]
    return []


def _inodes(pid, tables):
    return {row[INODE.get(table, 9)] for table in tables for row in _lines(pid, table)}


def _sockets(pid):
    """The inodes of the sockets that a process has open."""
    found = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            found |= set(re.findall(r"^socket:\[(\d+)\]$", os.readlink(f"/proc/{pid}/fd/{name}")))
    return found


def _is_in_a_network_of_its_own():
    """Root has a separate network; an ordinary user shares the host's."""
    return os.readlink("/proc/self/ns/net") != GIVEN


def _wait_for(is_so, what):
    deadline = cases.until(20)
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


@contextlib.contextmanager
def _pinging(*options):
    """A listener of rdma_cm and its client, both with a device open, that exchange messages; and their traffic."""
    if not os.path.exists(RPING):
        raise Skip(f"{RPING} is not installed")
    with contextlib.ExitStack() as stack:
        programs = []
        for side in ("-s", "-c"):
            programs.append(subprocess.Popen([SOFTVERBS, "run", *options, "--", RPING, side, "-a", ADDRESS, "-p", PORT, *ENDLESS],
                                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=cases.environment()))
            stack.enter_context(programs[-1])
            stack.callback(programs[-1].kill)
            _wait_for(lambda: cases.softverbs("show", "connections").stdout.count(b"rping") >= len(programs), f"rping {side}")
        yield programs


def without_net_no_program_has_a_socket_of_a_network():
    with _pinging() as programs:
        for pid in [program.pid for program in programs]:
            sockets = _sockets(pid)
            assert sockets and sockets <= _inodes(pid, ["unix"]), f"{sockets} and not {_inodes(pid, ['unix'])}"
        for table in NETWORKS if _is_in_a_network_of_its_own() else ():  # of all its processes
            assert not _lines(programs[0].pid, table), (table, _lines(programs[0].pid, table))


def with_net_the_same_look_finds_the_port():
    with _pinging("--net", "lo") as programs:
        for program in programs:
            assert _sockets(program.pid) & _inodes(program.pid, NETWORKS)
        assert any(row[1].endswith(":12B7") for row in _lines(programs[0].pid, "udp6") + _lines(programs[0].pid, "udp"))


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
