#!/usr/bin/env python3
"""Mistakes that others have reported, on one host and between two: the log and `softverbs why` name the cause at both ends. The threads, and what is
not named, are in docs/evidence/mistakes.md."""
import os
import signal
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, TEMPORARY
from ends import End, connect

CONNECTED = "has been connected with 127.0.0.1:"
NO_EVENT = "and no event waits: RDMA_CM_EVENT_DISCONNECTED comes when one side calls rdma_disconnect."
UNFETCHED = "has 1 event that rdma_get_cm_event does not fetch."
MOVED = "is in ERR: the program moved it there (or librdmacm, when it disconnects or is rejected), or its peer ended."
OVER = ", and the connection of its identifier 0 is over."
NO_ANSWER = "does not answer: it is stopped (SIGSTOP, a debugger), has no time, ends, or is another user's and refuses."
# For each case of reported.c: what the server's and the client's program has printed besides its number, what `why` says of each process, what the story
# of the client's first identifier says, and the log of both.
CASES = {
    "again": ("", "rdma_connect: Invalid argument", (), (OVER, "was rejected with reason 8: an identifier is for one connection, and rdma_create_id makes another."), ("No process of this directory listens at port ",),
              ("rdma_connect: identifier 0: its connection was rejected with reason 8: ", "rdma_create_id makes another", "(reason 657)")),
    "killed": ("", "rdma_disconnect: success", None, (OVER, "rdma_create_id makes another."), ("The process of the other end has ended without a word: it was killed, or called _exit.",), ()),
    "channel": ("", "", (CONNECTED, NO_EVENT), (CONNECTED, NO_EVENT), ("It has been connected for ",), ()),
    "goodbye": ("", "rdma_disconnect: success", (UNFETCHED,), (MOVED, "Identifier 0 called rdma_disconnect ", " has not answered: its program answers by rdma_disconnect, too."),
                (" itself ended the connection (rdma_disconnect).", " has not fetched the event of it (rdma_get_cm_event): 1 waits."), ()),
    "address": ("", "rdma_resolve_addr: Address already in use", (" has listened at 127.0.0.1:",), (), (),
                ("port ", "Address already in use")),
    "reject": ("rdma_reject: Invalid argument", "", (CONNECTED, NO_EVENT), (CONNECTED, NO_EVENT), ("It has been connected for ",),
               ("rdma_reject: identifier 1: its connection is in state established", "(reason 647)")),
    "late": ("", "send: RNR retry counter exceeded", ("1 receive waits for a message of the peer.",), ("is in ERR since its first error, RNR_EXCEEDED: ",),
             ("It has been connected for ",), ("A message came and no receive is posted (ibv_post_recv)", "(reason 216)", "(reason 106)")),
    "stopped": ("", "", ("It did not answer within a second: it is stopped (SIGSTOP, a debugger)",), ("Identifier 0 has waited for an answer of 127.0.0.1:",),
                (NO_ANSWER,), ()),
}


def _free_port():
    with socket.socket() as one:
        one.bind(("", 0))
        return str(one.getsockname()[1])


def _printed(end, wanted):
    """The line that the program prints besides its number."""
    lines = [end.hear()]
    while wanted and lines[-1] != wanted and lines[-1]:
        lines.append(end.hear())
    assert not wanted or lines[-1] == wanted, lines


def _begin(name):
    """Each pair has a separate directory, where no stopped process is asked."""
    port, directory = _free_port(), f"{TEMPORARY}/{name}"
    os.mkdir(directory, 0o700)
    server = End(f"{name}-server", f"{BUILD}/tests/tool/reported", name, "server", port, directory=directory)
    server.hear()
    return server, End(f"{name}-client", f"{BUILD}/tests/tool/reported", name, "client", port, directory=directory)


def mistakes_with_librdmacm_are_named_at_both_ends():
    if not os.path.exists(f"{BUILD}/tests/tool/reported"):
        raise cases.Skip("librdmacm is not installed")
    pairs = {name: _begin(name) for name in CASES}
    try:
        for name, (server, client) in pairs.items():
            of_server, of_client, server_waits, client_waits, story, logged = CASES[name]
            _printed(client, of_client)
            if name == "late":
                server.tell("now")
            if of_server:
                _printed(server, of_server)
            if server_waits is not None:
                server.says(server_waits, "why", str(server.pid))
            client.says(client_waits, "why", str(client.pid))
            if story:
                client.says(story, "why", "--id", "0", str(client.pid))
            text = "".join(open(end.log, encoding="utf-8").read() for end in (server, client) if os.path.exists(end.log))
            assert all(word in text for word in logged), (name, logged, text)
    finally:
        for server, client in pairs.values():
            server.end()
            client.end()


def _kill(end, how=signal.SIGKILL):
    end.process.send_signal(how)
    end.process.wait()


def the_end_of_a_peer_is_named():
    """Of one that exits in the handshake, that crashes, that ends under a WRITE, and that is killed where timeout is 0."""
    ends = exits, crashes, ended, silent = [connect(name, "RC", timeout) for name, timeout in (("exits", 12), ("crashes", 12), ("ended", 12), ("silent", 0))]
    try:
        exits[0].tell("end")
        exits[0].process.wait()
        _kill(crashes[1])
        _kill(ended[1], signal.SIGTERM)
        _kill(silent[0])
        ended[0].tell("write")
        ended[0].tell("poll")
        silent[1].tell("send")
        assert ended[0].hear() == "transport retry counter exceeded"
        for lives, gone in ((exits[1], exits[0]), (crashes[0], crashes[1]), (silent[1], silent[0])):
            lives.says((f" waits for its peer: process {gone.pid}, which had queue pair 0x", ", has ended."), "why", str(lives.pid))
        ended[0].says(("is in ERR since its first error, PEER_GONE: ",), "why", str(ended[0].pid))
        ended[0].says((f"Process {ended[1].pid}, which had queue pair 0x", ", has ended."), "why", "--qp", ended[0].number)
        silent[1].says(("Its timeout is 0, so nothing is sent again soon (reason 122).",), "why", "--qp", silent[1].number)
    finally:
        for pair in ends:
            for end in pair:
                end.end()


def a_stopped_peer_is_named():
    server, client = connect("halted", "RC", 14)
    try:
        server.process.send_signal(signal.SIGSTOP)
        client.tell("send")
        client.says((f" waits for its peer: process {server.pid} (commanded), which has queue pair 0x", "does not answer: it is stopped (SIGSTOP, a debugger)"),
                    "why", str(client.pid))
        server.says((f"Process {server.pid} did not answer within a second",), "why", "--qp", server.number)
    finally:
        server.end()
        client.end()


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
