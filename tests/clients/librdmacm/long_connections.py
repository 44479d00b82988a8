#!/usr/bin/env python3
"""The programs of rdmacm-utils at length: all their options, 50 clients, 1,000 connections, a file of 1 GiB. Too long for `make check`:
docs/evidence/connections.md has what was seen, and with which commands.

    long_connections.py host  [WORDS]    on one host: at 127.0.0.1, ::1 and another address of it
    long_connections.py hosts [WORDS]    between two namespaces, IPv4 and IPv6; also with losses
"""
import os
import select
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# pylint: disable=wrong-import-position
from clients import Failure, need
from librdmacm.connections import Hosts
from librdmacm.rdmacm import (RACE, SLOW_CLOSE, Host, choose_port, copies_a_file, end_well, exchange, exchange_patiently, pings_until_listening, serves_on,
                              wait_for_ping)
from network.wire import ADDRESSES, CLIENT, INSIDE, SERVER, enter_namespaces, ip, make_hosts

GIB = 1 << 30
OTHER, OTHER_IPV6 = "10.92.0.1", "fd92::1"  # of the host
BAD = {"SOFTVERBS_FAULT": "drop=5%,reorder=5%,seed=3"}
STREAMS = {"rstream": "abrv", "riostream": "abv"}  # not n, the default but for -T b; nor f, which takes TCP: see applications.py


def is_done_or_overtaken(client, server):
    """rstream_slow_close.c says why rstream's client may end with POLLHUP. It does so without a word, before it has measured; its server has
    then sent all. That all data come, the tests show where the end waits."""
    overtaken = client.status == select.POLLHUP and not client.err and len(client.out.splitlines()) == 1
    return end_well(client, server) or (overtaken and not server.status and "\ncustom " in server.out)


def streams(suite, program, tests, size="65536", extra=None):
    """rstream's client with -T a may be overtaken by the end of the stream."""
    options = ["-p", choose_port(), "-S", size, *[word for test in tests for word in ("-T", test)]]
    server = [program, *options, "-b", suite.address]
    right = is_done_or_overtaken if program == "rstream" and "a" in tests and not extra else end_well
    found = exchange_patiently(suite, server, [program, *options, "-s", suite.address], 900, extra, right)
    if found[1].status:
        return "the client ended with POLLHUP"
    for side in found:
        side.find(r"^(64_lat|custom) " if size == "all" else "^custom ")
    return None


def matches_at(suite, program, *options):
    """As rdmacm.matches, with the server's address on its command line: without it the server would listen at those of IPv4."""
    port = [] if program == "udaddy" else ["-p", choose_port()]
    for side in exchange(suite, [program, *port, "-b", suite.address, *options], [program, *port, "-s", suite.address, *options], 290):
        side.find("return status 0")


def pings(suite, *options):
    port = choose_port()
    common = ["rping", "-p", port, "-C", "100", "-v", "-V", *options]
    _, client = exchange(suite, [*common, "-s", "-a", suite.address], [*common, "-c", "-a", suite.address])
    client.find("ping data: rdma-ping-99: ")


def serves_many(suite, count=50):
    """All ping at the same time."""
    port, clients = choose_port(), []
    server = suite.start_server(["rping", "-s", "-P", "-a", suite.address, "-p", port])
    try:
        pings_until_listening(suite, port)
        for _ in range(count):
            clients.append(suite.start_client(["rping", "-c", "-a", suite.address, "-p", port, "-C", "2000", "-v", "-V"]))
            wait_for_ping(clients[-1])
        still = sum(client.process.poll() is None for client in clients)
        for client in clients:
            done = client.finish(clients[-1].started + 280)
            if done.status and RACE not in done.err:
                raise Failure(str(done))
            done.find("ping data: rdma-ping-1999: ")
    finally:
        for program in (server, *clients):
            program.kill()
    return f"{still} of {count} at once"


def times(suite, count, extra=None, timeout=290):
    common = ["cmtime", "-c", str(count), "-p", choose_port()]
    serves_on(suite, [*common, "-b", suite.address], [*common, "-s", suite.address], [r"^ *(cm )?connect\b", r"^ *destroy\b"], timeout, extra)


def receive_a_group(suite, group, server_at, client_at, *options, receivers=4):
    common = ["stdbuf", "-oL", "mckey", "-m", group, "-C", "20"]
    programs = []
    try:
        for number in range(receivers):
            start, at = (suite.start_client, client_at) if number % 2 else (suite.start_server, server_at)
            programs.append(start([*common, "-b", at]))
            programs[-1].wait_for("joined dgid")
        sender = suite.start_client([*common, "-s", "-b", client_at, *options]).finish(programs[0].started + 60)
        sender.find("return status 0")
        for program in programs:
            program.finish(programs[0].started + 60).find("return status 0")
    finally:
        for program in programs:
            program.kill()


def add_one_place(suite, place):
    """All programs at one address."""
    def add(name, test):
        def at_place():
            suite.address = place
            return test()
        suite.add(f"{name} at {place}", at_place)

    for options in ([], ["-S", "65536"], ["-q"], ["-S", "1000", "-q"]):
        add(" ".join(["rping", *options]), lambda options=options: pings(suite, *options))
    add("rping -P with 50 clients", lambda: serves_many(suite))
    for options in (["-c", "50", "-C", "100", "-S", "4000"], ["-m"], ["-t", "32"], ["-a", "14"], ["-c", "10", "-m", "-C", "10"]):
        add(" ".join(["ucmatose", *options]), lambda options=options: matches_at(suite, "ucmatose", *options))
    add("udaddy -c 20 -C 50", lambda: matches_at(suite, "udaddy", "-c", "20", "-C", "50"))
    add("udaddy -t 32", lambda: matches_at(suite, "udaddy", "-t", "32"))
    add("cmtime -c 1000", lambda: times(suite, 1000))
    for program, tests in STREAMS.items():
        add(f"{program} -S all", lambda program=program: streams(suite, program, "", "all"))
        for test in tests:
            add(f"{program} -T {test} -S 65536", lambda program=program, test=test: streams(suite, program, test))
        add(f"{program} -T a -T v -S 65536", lambda program=program: streams(suite, program, "av"))
    add("rstream -T a -T v -S 65536 whose end waits", lambda: streams(suite, "rstream", "av", extra={"LD_PRELOAD": SLOW_CLOSE}))
    if ":" in place:  # what has no option for the server's address
        return
    add("rcopy of 1 GiB", lambda: copies_a_file(suite, GIB, 600))
    for program in ("rdma_server", "rdma_xserver -c r", "rdma_xserver -c x"):
        command = program.split()
        client = [command[0].replace("server", "client"), *command[1:]]
        add(program, lambda command=command, client=client: exchange(suite, [*command, "-p", (port := choose_port())],
                                                                     [*client, "-s", suite.address, "-p", port]))


def add_losses(suite):
    """Unreliable services lose data with these faults, and the DREQs of both ends may get lost."""
    suite.add("cmtime -c 1000 with 5 % lost and 5 % reordered", lambda: times(suite, 1000, BAD))
    suite.add("ucmatose -c 20 with 5 % lost and 5 % reordered", lambda: serves_on(
        suite, ["ucmatose", "-p", (port := choose_port()), "-c", "20", "-C", "20"],
        ["ucmatose", "-p", port, "-c", "20", "-C", "20", "-s", suite.address], ["return status 0"], 290, BAD))


def add_streams_with_losses(suite):
    suite.add("rstream -T v with 5 % lost and 5 % reordered", lambda: streams(suite, "rstream", "v", "65536", BAD))
    suite.add("rping -V with 5 % lost and 5 % reordered", lambda: exchange(
        suite, ["rping", "-p", (port := choose_port()), "-C", "200", "-V", "-s", "-a", suite.address],
        ["rping", "-p", port, "-C", "200", "-V", "-c", "-a", suite.address], 290, BAD))


def on_one_host():
    suite = Host()
    ip("link", "set", "lo", "up")
    for address in (f"{OTHER}/32", f"{OTHER_IPV6}/128"):  # without the latter getaddrinfo would find no ::1
        ip("address", "replace", address, "dev", "lo")
    for place in ("127.0.0.1", "::1", OTHER):
        add_one_place(suite, place)
    for group, at in (("239.1.2.3", "127.0.0.1"), ("ff0e::1234", "::1"), ("239.1.2.4", OTHER)):
        for options in ([], ["-o"]):
            suite.add(f"mckey {' '.join(options)} to four receivers of {group}",
                      lambda group=group, at=at, options=options: receive_a_group(suite, group, at, at, *options))
    suite.add("the server's address is 127.0.0.1 again", lambda: setattr(suite, "address", "127.0.0.1"))
    add_losses(suite)
    suite.add_tidiness()
    return suite.run()


def on_two_hosts():
    if not os.environ.get(INSIDE):
        enter_namespaces()
    make_hosts()
    suite = Hosts()
    for place in ADDRESSES[SERVER]:
        add_one_place(suite, place)
    for group, version in (("239.1.2.3", 0), ("ff0e::1234", 1)):
        for options in ([], ["-o"]):
            suite.add(f"mckey {' '.join(options)} to four receivers of {group} on both hosts",
                      lambda group=group, version=version, options=options: receive_a_group(
                          suite, group, ADDRESSES[SERVER][version], ADDRESSES[CLIENT][version], *options))
    suite.add("the server's address is IPv4 again", lambda: setattr(suite, "address", ADDRESSES[SERVER][0]))
    add_losses(suite)
    add_streams_with_losses(suite)
    return suite.run()


def main():
    need("rping")
    if len(sys.argv) < 2 or sys.argv[1] not in ("host", "hosts"):
        sys.exit(__doc__)
    where = sys.argv[1]
    if where == "host" or os.environ.get(INSIDE):
        sys.argv[1:] = sys.argv[1 + (sys.argv[1] in ("host", "hosts")):]
    return on_one_host() if where == "host" else on_two_hosts()


if __name__ == "__main__":
    sys.exit(main())
