#!/usr/bin/env python3
"""`softverbs why` between two hosts: each sees its own half, and what that says of the other."""
import contextlib
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# pylint: disable=wrong-import-position
from clients import BUILD, Failure
from patience import patience, until
from network.wire import ADDRESSES, CLIENT, INSIDE, SERVER, Wire, enter_namespaces, make_hosts

PROGRAM = f"{BUILD}/tests/clients/no_disconnect"
PORT = "7471"


@contextlib.contextmanager
def running(suite, host, *words):
    """The number of the program on this host, which it prints when it waits."""
    os.makedirs(f"{suite.directory}/{host}", mode=0o700, exist_ok=True)
    command = ["ip", "netns", "exec", host, f"{suite.root}/softverbs", "run", "--net", "eth0", "--", PROGRAM, *words]
    with subprocess.Popen(command, env=suite.host_environment(host), stdout=subprocess.PIPE, text=True) as process:
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def says(suite, host, pid, *parts):
    """The program may be on its way to where it waits: a late part is waited for."""
    deadline = until(20)
    while missing := lacks(suite, host, pid, parts):
        if time.monotonic() > deadline:
            raise Failure(missing)
        time.sleep(0.1)


def lacks(suite, host, pid, parts):
    """Returns the output of the command if it lacks one of the parts, otherwise None."""
    command = ["ip", "netns", "exec", host, f"{suite.root}/softverbs", "why", str(pid)]
    done = subprocess.run(command, env=suite.host_environment(host), capture_output=True, text=True, timeout=patience(60), check=False)
    text = " ".join(done.stdout.split())
    if done.returncode == 0 and all(part in text for part in parts):
        return None
    return f"on {host} not all of {parts} in\n{done.stdout}{done.stderr}"


def names_what_is_missing(suite, *more):
    with running(suite, SERVER, PORT) as server, running(suite, CLIENT, PORT, ADDRESSES[SERVER][0], *more) as client:
        for host, pid in ((SERVER, server), (CLIENT, client)):
            says(suite, host, pid, "has been connected with", "(on another host)", "RDMA_CM_EVENT_DISCONNECTED comes when one side calls rdma_disconnect")
        if more:
            says(suite, SERVER, server, "has no receive posted (ibv_post_recv) for a message of its peer, to which it sent")
            says(suite, CLIENT, client, "its peer has no receive posted (ibv_post_recv): it answered", "times that it is not ready")
        else:
            says(suite, SERVER, server, "has nothing to send, and no receive is posted")


def main():
    if not os.environ.get(INSIDE):
        enter_namespaces()
    make_hosts()
    suite = Wire()
    suite.add("an end that nobody asks for", lambda: names_what_is_missing(suite))
    suite.add("a message that meets no receive", lambda: names_what_is_missing(suite, "send"))
    sys.exit(suite.run())


if __name__ == "__main__":
    main()
