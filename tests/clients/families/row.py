"""The rows that `make clients` runs: a row is one client in one form, with the check that its data arrived unchanged."""
import os
import shutil
import subprocess
import sys
import time
from typing import Callable, NamedTuple, Optional

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from clients import Failure, Program, Suite, free_port, serve  # pylint: disable=wrong-import-position
from network.wire import ADDRESSES, CLIENT, SERVER, make_hosts  # pylint: disable=wrong-import-position
from patience import until

HERE = os.path.dirname(os.path.abspath(__file__))
OK, FAILED, SKIPPED, OWN = "ok", "failed", "skipped", "the client's own"


class Fault(NamedTuple):
    """A client's own: it fails on any device in this way."""
    pattern: str  # in what the failed row says
    why: str
    source: str  # a URL, or a file and line of the client


class Row(NamedTuple):
    """`run` returns when the data was right, and otherwise raises Failure or Skip."""
    family: str
    name: str
    packages: tuple  # of Debian; the first is the client's, whose version the page has
    verified: str  # how the data is compared, and by which program
    run: Callable
    fault: Optional[Fault] = None
    seconds: int = 120  # then all that it has started is killed
    short: bool = False  # part of `make check`


class Place(Suite):
    """The host of a row: nothing is set in the environment of its programs, as /dev/shm is the row's own."""

    address, options = "127.0.0.1", ()  # of softverbs run

    def environment(self, extra=None):
        return {**os.environ, **(extra or {})}

    def softverbs(self, *arguments):
        return [f"{self.root}/softverbs", *arguments[:1], *(self.options if arguments[:1] == ("run",) else ()), *arguments[1:]]

    def start_server(self, command, extra=None):
        return self.start(command, extra)

    def start_client(self, command, extra=None):
        return self.start(command, extra)

    def compile(self, compiler, source, *libraries):
        """A program of this folder, or one whose path is given; returns where it is."""
        program = os.path.join(self.directory, os.path.basename(source).partition(".")[0])
        path = source if os.path.isabs(source) else os.path.join(HERE, source)
        done = subprocess.run([compiler, "-O2", "-o", program, path, *libraries], capture_output=True, text=True, check=False)
        if done.returncode:
            raise OSError(f"{compiler}: {done.stderr}")
        return program


class TwoHosts(Place):
    """Two network namespaces joined by a veth pair; servers run on the first, clients on the second."""

    address, options = ADDRESSES[SERVER][0], ("--net", "eth0")

    def __init__(self):
        super().__init__()
        make_hosts()
        wait_for_addresses()

    def start_server(self, command, extra=None):
        return Program(self.on(SERVER, command), self.environment(extra))

    def start_client(self, command, extra=None):
        return Program(self.on(CLIENT, command), self.environment(extra))

    def on(self, host, command):
        return ["ip", "netns", "exec", host, *self.softverbs("run", "--", shutil.which(command[0]) or command[0], *command[1:])]

    def pair(self, command, server_options=(), client_options=(), timeout=120, extra=None):
        port = free_port()
        command = [*command, "-p", str(port)]
        return serve(self.on(SERVER, [*command, *server_options]), self.on(CLIENT, [*command, *client_options, self.address]), port,
                     self.environment(extra), timeout, elsewhere=True)


def wait_for_addresses():
    """Until the kernel has seen that no other host has them, nothing leaves from link-local ones, and a datagram of the first second is lost."""
    deadline = until(20)
    while any(subprocess.run(["ip", "-n", host, "address", "show", "tentative"], capture_output=True, check=True).stdout for host in ADDRESSES):
        if time.monotonic() > deadline:
            raise Failure("the addresses stay tentative")
        time.sleep(0.05)


def on_infiniband(place):
    """A port that has LIDs, for programs that address by them only."""
    place.options = ("--link-layer", "ib")
    return place


def version_of(package):
    """The version of an installed package, without Debian's revision; None where it is not installed."""
    shown = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", package], capture_output=True, text=True, check=False)
    status, _, version = shown.stdout.partition(" ")
    return version.rpartition(":")[2] if status == "installed" else None


def missing(row):
    return [package for package in row.packages if not version_of(package)]
