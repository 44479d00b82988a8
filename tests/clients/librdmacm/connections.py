#!/usr/bin/env python3
"""Programs that connect through librdmacm: the programs of package rdmacm-utils, unmodified, between two hosts (the
namespaces of wire.py)."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# pylint: disable=wrong-import-position
from clients import Program, need
from librdmacm.applications import bounces
from librdmacm.rdmacm import (TIMES, choose_port, copies_a_file, exchange, first_program, groups, is_asked_again, is_early, many_clients, matches, measures,
                              nobody_listens, pings, pings_until_listening, serves_on)
from network.wire import ADDRESSES, CLIENT, INSIDE, SERVER, Wire, enter_namespaces, make_hosts


class Hosts(Wire):
    """Servers on one host, clients on the other."""

    address = ADDRESSES[SERVER][0]

    def start_server(self, command, extra=None):
        return Program(self.on(SERVER, command), {**self.host_environment(SERVER), **(extra or {})})

    def start_client(self, command, extra=None):
        return Program(self.on(CLIENT, command), {**self.host_environment(CLIENT), **(extra or {})})


def others_listen(suite):
    """A refusal is sent only if a process of the host runs; so another server runs, and the client's port has no listener."""
    other = suite.start_server(["rping", "-s", "-P", "-a", suite.address, "-p", (port := choose_port())])
    try:
        pings_until_listening(suite, port)
        nobody_listens(suite)
    finally:
        other.kill()


def main():
    if not os.environ.get(INSIDE):
        enter_namespaces()
    make_hosts()
    suite = Hosts()
    need("rping")
    for address in ADDRESSES[SERVER]:
        suite.add(f"rping at {address}", lambda address=address: pings(suite, address))
    suite.add("who connects where nobody listens is rejected at once", lambda: others_listen(suite))
    suite.add("a request that comes again behind its listener's end is no new one", lambda: is_asked_again(suite))
    suite.add("rping -P serves clients of both hosts at once", lambda: many_clients(suite, 10, both=True))
    suite.add("ucmatose transfers both ways over ten connections", lambda: matches(suite, "ucmatose", "-c", "10", "-C", "50", "-S", "4000"))
    suite.add("udaddy resolves and transfers datagrams", lambda: matches(suite, "udaddy", "-c", "5", "-C", "20"))
    suite.add("rdma_server and rdma_client use endpoints",
              lambda: exchange(suite, ["rdma_server", "-p", (port := choose_port())],
                               ["rdma_client", "-s", suite.address, "-p", port]))
    for group, version in (("239.1.2.3", 0), ("ff0e::1234", 1)):
        suite.add(f"mckey receives what is sent to {group}", lambda group=group, version=version: groups(
            suite, group, ADDRESSES[SERVER][version], ADDRESSES[CLIENT][version]))
    suite.add("mckey -l sends to another host, and blocks its own messages", lambda: groups(
        suite, "239.1.2.4", ADDRESSES[SERVER][0], ADDRESSES[CLIENT][0], "-l"))
    suite.add("rdma_xserver and rdma_xclient use XRC",
              lambda: exchange(suite, ["rdma_xserver", "-c", "x", "-p", (port := choose_port())],
                               ["rdma_xclient", "-c", "x", "-s", suite.address, "-p", port]))
    suite.add("the first program of docs/reference/connections.md", lambda: first_program(suite))
    suite.add("rcopy copies 20 MB", lambda: copies_a_file(suite, 20_000_000))
    suite.add("cmtime makes 500 connections",
              lambda: serves_on(suite, ["cmtime", "-c", "500", "-p", (port := choose_port())],
                                ["cmtime", "-c", "500", "-p", port, "-s", suite.address], TIMES, early=is_early))
    faults = "drop=10%,reorder=5%,dup=5%,seed=1"
    suite.add(f"cmtime makes 20 connections in spite of {faults}",
              lambda: serves_on(suite, ["cmtime", "-c", "20", "-p", (port := choose_port())],
                                ["cmtime", "-c", "20", "-p", port, "-s", suite.address], TIMES,
                                120, {"SOFTVERBS_FAULT": faults}, is_early))
    suite.add("fi_pingpong's server, which binds to localhost, is reached by another host", lambda: bounces(suite, "verbs", "msg"))
    suite.add("rstream streams over rsockets", lambda: matches(suite, "rstream", "-S", "65536", "-C", "100"))
    for program, *options in (("ib_send_bw",), ("ib_send_bw", "-c", "UD"), ("ib_write_bw",), ("ib_read_lat",), ("ib_atomic_bw",)):
        suite.add(" ".join([program, "-R", *options]), lambda program=program, options=options: measures(suite, program, *options))
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
