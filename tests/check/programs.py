#!/usr/bin/env python3
"""The distribution's programs under the checker: it finds no error and nothing that only an adapter would show. Prints TAP.

They are correct on adapters, where people use them every day, so a finding here is one of ours that is wrong, or a mistake of theirs
that is listed in clients.suppressions, and in docs/reference/checker-findings.md with what an adapter would do. All clients run so by
hand: main.py --checked of tests/clients/families.
"""
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../clients"))
from clients import Failure, Program, Suite, free_port, need, serve
from patience import until

WORDS = "adapter"
SECONDS = 60
KNOWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clients.suppressions")


def read_findings(path):
    with open(path, encoding="utf-8") as file:
        return [line for line in map(json.loads, file) if "text" in line]


def judge(path):
    found = read_findings(path)
    if found:
        raise Failure("\n".join(f"{one['program']}: {one['text']} ({one['rule']}) posted {one['posted']} found {one['found'][:3]}" for one in found))


def checked(suite, name, server, client):
    """Both ends, whose commands are functions of the port."""
    port, path = free_port(), f"{suite.directory}/{name}"
    extra = {"SOFTVERBS_CHECK": WORDS, "SOFTVERBS_CHECK_REPORT": path, "SOFTVERBS_CHECK_SUPPRESSIONS": KNOWN, "SOFTVERBS_LOG": "none", "UCX_TLS": "rc_v,self"}
    under = suite.softverbs("run", "--")
    commands = [[*under, need(command[0]), *command[1:]] for command in (server(str(port)), client(str(port)))]
    (connect if name in BY_CM else serve)(*commands, port, suite.environment(extra), SECONDS)
    judge(path)
    os.unlink(path)


def connect(server_command, client_command, port, environment, timeout):
    """Works as serve, for a server that listens through librdmacm: until then its client is refused. rping's may end with 255, when
    its thread reads from a channel that it has destroyed."""
    deadline = until(timeout)
    server = Program(server_command, environment)
    try:
        while (client := Program(client_command, environment).finish(deadline)).status and time.monotonic() < deadline:
            time.sleep(0.1)
        client.check()
        server.finish(deadline)
    finally:
        server.kill()


def pair(*command):
    """The same program on both sides, which takes -p."""
    return lambda port: [*command, "-p", port], lambda port: [*command, "-p", port, "127.0.0.1"]


BY_CM = ("rping", "ucmatose", "rdma_server and rdma_client")
ROWS = {
    "ibv_rc_pingpong": pair("ibv_rc_pingpong", "-g", "0"),
    "ibv_rc_pingpong -N -t": pair("ibv_rc_pingpong", "-g", "0", "-N", "-t"),
    "ibv_uc_pingpong": pair("ibv_uc_pingpong", "-g", "0"),
    "ibv_ud_pingpong -e": pair("ibv_ud_pingpong", "-g", "0", "-e"),
    "ibv_srq_pingpong": pair("ibv_srq_pingpong", "-g", "0"),
    "ib_send_lat": pair("ib_send_lat", "-F", "-n", "1000"),
    "ib_send_bw -e -b": pair("ib_send_bw", "-F", "-n", "1000", "-e", "-b"),
    "ib_write_bw -q 4": pair("ib_write_bw", "-F", "-n", "1000", "-q", "4"),
    "ib_write_lat": pair("ib_write_lat", "-F", "-n", "1000"),
    "ib_read_lat": pair("ib_read_lat", "-F", "-n", "1000"),
    "ib_atomic_bw": pair("ib_atomic_bw", "-F", "-n", "1000"),
    "ib_send_bw -c UD": pair("ib_send_bw", "-F", "-n", "1000", "-c", "UD"),
    "rping": (lambda port: ["rping", "-s", "-C", "100", "-p", port], lambda port: ["rping", "-c", "-V", "-C", "100", "-p", port, "-a", "127.0.0.1"]),
    "ucmatose": (lambda port: ["ucmatose", "-p", port], lambda port: ["ucmatose", "-p", port, "-s", "127.0.0.1"]),
    "rdma_server and rdma_client": (lambda port: ["rdma_server", "-p", port], lambda port: ["rdma_client", "-s", "127.0.0.1", "-p", port]),
    "ucx_perftest tag_lat": pair("ucx_perftest", "-t", "tag_lat", "-s", "65536", "-n", "1000", "-w", "10"),
    "ucx_perftest ucp_put_bw": pair("ucx_perftest", "-t", "ucp_put_bw", "-s", "8", "-n", "10000", "-w", "10"),
    "fi_pingpong": (lambda port: ["fi_pingpong", "-p", "verbs", "-e", "msg", "-I", "100", "-c", "-B", port],
                    lambda port: ["fi_pingpong", "-p", "verbs", "-e", "msg", "-I", "100", "-c", "-P", port, "127.0.0.1"]),
}


def main():
    suite = Suite()
    for name, (server, client) in ROWS.items():
        suite.add(f"{name}: no finding", lambda name=name, server=server, client=client: checked(suite, name, server, client))
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
