#!/usr/bin/env python3
"""Mistakes that others have reported, between two hosts: the log and `softverbs why` name the cause at both ends. The threads are in
docs/evidence/mistakes.md."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "../../clients/network"), os.path.join(HERE, "../../clients")]
# pylint: disable=wrong-import-position
import cases
import wire
from ends import connect

ERROR = "is in ERR since its first error, RETRY_EXCEEDED: "
UNREACHED = "No answer came from the peer after all retries: it is not there, not ready to receive, or unreachable. (reason 105)"
FAR = "The other end is on another host: \"softverbs why --qp "
DOWN = "is on a port that is down: softverbs event port-up soft0, or the network interface below it (ip link show)."
WAITS = "has nothing to send; 1 receive waits for a message of the peer."
STRANGE = "02:00:00:00:00:99"


def _ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)




class _Link:
    """The link of the host is down within it, so that the other host has no carrier."""

    def __init__(self, host):
        self.host = host

    def __enter__(self):
        _ip("-n", self.host, "link", "set", "eth0", "down")

    def __exit__(self, *_):
        _ip("-n", self.host, "link", "set", "eth0", "up")


def _end(*ends):
    for end in ends:
        end.end()


def _fails(server, client):
    client.tell("send")
    client.tell("poll")
    assert client.hear() == "transport retry counter exceeded"
    client.says((ERROR,), "why", str(client.pid))
    client.says(("No answer came: the ACK timer ran out 3 times (timeout is 14, retry_cnt 2).", FAR + f"{int(server.number):#x}"), "why", "--last", "--qp", client.number)
    with open(client.log, encoding="utf-8") as log:
        assert UNREACHED in log.read()


def a_link_that_is_lost():
    server, client = connect("lost", "RC", 14, hosts=True)
    with _Link("server"):
        _fails(server, client)
        server.says((DOWN,), "why", str(server.pid))
    _end(server, client)


def a_link_that_is_lost_under_messages_without_answers():
    server, client = connect("mute", "UC", 14, hosts=True)
    with _Link("client"):
        client.tell("send")
        client.says((DOWN,), "why", str(client.pid))
        server.says((DOWN,), "why", str(server.pid))
    server.says((WAITS,), "why", str(server.pid))
    _end(server, client)


def a_host_that_is_not_reached_where_timeout_is_0():
    server, client = connect("apart", "RC", 0, hosts=True)
    for address in wire.ADDRESSES["server"]:
        _ip("-n", "client", "neighbour", "replace", address, "lladdr", STRANGE, "dev", "eth0", "nud", "permanent")
    client.tell("send")
    client.says(("on another host, which has not answered: softverbs ping",), "why", str(client.pid))
    client.says(("Its timeout is 0, so nothing is sent again soon (reason 122).", FAR), "why", "--qp", client.number)
    server.says((WAITS,), "why", str(server.pid))
    for address in wire.ADDRESSES["server"]:
        _ip("-n", "client", "neighbour", "del", address, "dev", "eth0")
    _end(server, client)


def a_host_that_died_and_is_back():
    server, client = connect("reborn", "RC", 14, hosts=True)
    server.end()
    _fails(server, client)
    _end(client)


if __name__ == "__main__":
    if not os.environ.get(wire.INSIDE):
        wire.enter_namespaces()
    wire.make_hosts()
    cases.main(sys.modules[__name__])
