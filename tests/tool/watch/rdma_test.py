#!/usr/bin/env python3
"""rdma under softverbs run: the questions that newer test suites and scripts ask iproute2's program; the rest is for that one."""
import json
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import TEMPORARY, expect, run, told
from patience import tries

TWO = {"SOFTVERBS_DEVICES": "2"}


def _rows(*arguments, **options):
    done = expect(run("rdma", *arguments, **options))
    return json.loads(done.stdout)


def link_show_has_the_port_of_each_device():
    for words in (("link", "show", "-j"), ("-j", "link"), ("-jp", "link", "show"), ("--json", "l"), ("-json", "link", "list")):
        rows = _rows(*words, env=TWO)
        assert [(row["ifname"], row["port"], row["state"], row["physical_state"], row["netdev"]) for row in rows] == [
            ("soft0", 1, "ACTIVE", "LINK_UP", "lo"), ("soft1", 1, "ACTIVE", "LINK_UP", "lo")], rows


def a_link_can_be_chosen():
    for words in (("soft1",), ("soft1/1",), ("link", "soft1/-")):
        rows = _rows("-j", "link", "show", *words, env=TWO)
        assert [row["ifname"] for row in rows] == ["soft1"], rows


def as_text_it_looks_like_iproute2s():
    expect(run("rdma", "link"), out=b"link soft0/1 state ACTIVE physical_state LINK_UP netdev lo \n")
    text = expect(run("rdma", "dev")).stdout.decode()
    assert text.startswith("0: soft0: node_type ca fw ") and " sys_image_guid " in text, text
    expect(run("rdma", "res"), out=b"0: soft0: pd 0 cq 0 qp 0 cm_id 0 mr 0 srq 0 \n")


def dev_has_the_guid_that_the_device_has():
    row, = _rows("dev", "show", "-j")
    devinfo = expect(run("ibv_devinfo"), err=None).stdout.decode()
    assert f"node_guid:\t\t\t{row['node_guid']}" in devinfo and row["node_type"] == "ca", (row, devinfo)


class _Pingpong:
    """A server that waits, so it has objects."""

    def __enter__(self):
        if not shutil.which("ibv_rc_pingpong"):
            raise cases.Skip("ibv_rc_pingpong is not installed")
        command = [cases.SOFTVERBS, "run", "ibv_rc_pingpong", "-g", "0", "-d", "soft1", "-p", "24777"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, env=cases.environment(**TWO))  # pylint: disable=consider-using-with
        deadline = cases.until(30)
        while not [row for row in _rows("res", "show", "qp", "-j", env=TWO) if row["state"] == "INIT"]:
            assert time.monotonic() < deadline, "no queue pair is there"
            time.sleep(0.1)
        return self.process.pid

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def resources_are_counted_by_device_and_listed():
    with _Pingpong() as pid:
        counts = {row["ifname"]: row for row in _rows("res", "-j", env=TWO)}
        assert [counts["soft1"][kind] for kind in ("pd", "cq", "qp", "mr")] == [1, 1, 1, 1], counts
        assert [counts["soft0"][kind] for kind in ("pd", "cq", "qp", "mr")] == [0, 0, 0, 0], counts
        qp, = _rows("resource", "show", "qp", "-j", env=TWO)
        assert (qp["ifname"], qp["type"], qp["state"], qp["pid"], qp["comm"]) == ("soft1", "RC", "INIT", pid, "ibv_rc_pingpong")
        for kind in ("pd", "cq", "mr"):
            row, = _rows("-j", "resource", "show", kind, env=TWO)
            assert row["ifname"] == "soft1" and row["pid"] == pid, row
        assert _rows("res", "show", "qp", "dev", "soft0", "-j", env=TWO) == []
        assert b"link soft1/1 lqpn " in expect(run("rdma", "res", "show", "qp", env=TWO)).stdout


class _Rping:
    """A server and its client, for as long as they are asked about."""

    def __init__(self, address):
        if not shutil.which("rping"):
            raise cases.Skip("rping is not installed")
        self.address, self.programs = address, []

    def _start(self, *options):
        command = [cases.SOFTVERBS, "run", "rping", "-a", self.address, "-p", "24778", *options]
        program = subprocess.Popen(command, stdout=subprocess.DEVNULL,  # pylint: disable=consider-using-with
                                   stderr=subprocess.DEVNULL, env=cases.environment())
        self.programs.append(program)
        return program.pid

    def __enter__(self):
        server = self._start("-s", "-P")
        _await_states({"LISTEN"})
        client = self._start("-c", "-C", "100000000")
        _await_states({"LISTEN", "CONNECT"})
        return server, client

    def __exit__(self, *_):
        for program in self.programs:
            program.kill()
            program.wait()


def _await_states(states):
    deadline = cases.until(30)
    while {row["state"] for row in _rows("res", "show", "cm_id", "-j")} != states:
        assert time.monotonic() < deadline, _rows("res", "show", "cm_id", "-j")
        time.sleep(0.1)


def _identifiers_are_right(address, server, client):
    rows = _rows("resource", "show", "cm_id", "-j")
    one, = [row for row in rows if row["pid"] == client]
    assert (one["ifname"], one["port"], one["qp-type"], one["state"], one["ps"], one["comm"], one["dst-addr"]) == (
        "soft0", 1, "RC", "CONNECT", "TCP", "rping", f"{address}:24778"), one
    listener, = [row for row in rows if row["state"] == "LISTEN"]
    assert (listener["pid"], listener["src-addr"]) == (server, f"{address}:24778") and "lqpn" not in listener, listener
    count, = _rows("res", "-j")
    assert count["cm_id"] == len(rows) == 3, (count, rows)
    assert b"link soft0/1 cm-idn " in expect(run("rdma", "res", "show", "cm_id")).stdout


def identifiers_of_librdmacm_are_counted_and_listed():
    busy = "a process that gets no processor for a second does not answer, and is left out"
    for address in "127.0.0.1", "::1":
        with _Rping(address) as ends:
            tries("identifiers", 5, busy, lambda address=address, ends=ends: _identifiers_are_right(address, *ends), (AssertionError, ValueError))


def statistics_are_numbers():
    row, = _rows("statistic", "show", "-j")
    assert row["ifname"] == "soft0" and row["sent_pkts"] == 0 and row["rcvd_pkts"] == 0, row
    assert b"link soft0/1 sent_pkts 0 rcvd_pkts 0 " in expect(run("rdma", "stat")).stdout


def what_it_does_not_know_goes_to_the_next_in_the_path():
    os.makedirs(f"{TEMPORARY}/bin")
    with open(f"{TEMPORARY}/bin/rdma", "w", encoding="ascii") as script:
        script.write('#!/bin/sh\necho "real: $*"\nexit 3\n')
    os.chmod(f"{TEMPORARY}/bin/rdma", 0o755)
    path = {"PATH": f"{TEMPORARY}/bin:{os.environ['PATH']}"}
    for words in (("system", "show"), ("link", "add", "rxe0", "type", "rxe", "netdev", "eth0"), ("link", "show", "mlx5_0"), (),
                  ("link", "show", "soft0/2"), ("-b", "file"), ("resource", "show", "ctx")):
        expect(run("rdma", *words, env=path), 3, f"real: {' '.join(words)}\n".encode())


def without_another_it_says_what_it_knows():
    done = run("rdma", "system", env={"PATH": "/nowhere"})
    assert done.returncode == 127 and b"link, dev, resource and statistic" in done.stderr, told(done)


def paths_can_be_left_out():
    done = cases.softverbs("run", "--no-paths", "sh", "-c", "echo $PATH", env={"PATH": "/bin:/usr/bin"})
    expect(done, out=b"/bin:/usr/bin\n")


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
