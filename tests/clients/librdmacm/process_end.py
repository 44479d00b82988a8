#!/usr/bin/env python3
"""A program's end reaches its peers on other hosts, however it ends (src/gsi/cleanup), between the namespaces of wire.py."""
import contextlib
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# pylint: disable=wrong-import-position
from clients import BUILD, Failure, Program, need
from librdmacm.connections import Hosts
from librdmacm.rdmacm import choose_port
from network.wire import ADDRESSES, CLIENT, INSIDE, SERVER, enter_namespaces, ip, make_hosts
from patience import until

ENDING = f"{BUILD}/tests/clients/idle_connection"
CLEANUP = "softverbs-clean"
SOON, LEFT = 1.0, 10.0  # seconds: until a peer has heard; until nothing is left
NOT_STARTED = "(reason 615)"


def pids(host):
    return subprocess.run(["ip", "netns", "pids", host], capture_output=True, text=True, check=True).stdout.split()


def read(path):
    with contextlib.suppress(OSError), open(path, encoding="utf-8") as file:
        return file.read().strip()
    return ""


def named(host, name):
    """The processes of that host with this name that have not ended."""
    return [int(pid) for pid in pids(host) if read(f"/proc/{pid}/comm") == name and ") Z " not in read(f"/proc/{pid}/stat")]


def stays(is_so, what, seconds):
    """Looks all the time whether it is so."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not is_so():
            raise Failure(f"no more: {what}")
        time.sleep(0.02)


def wait_until(is_so, what, seconds=LEFT):
    end = until(seconds)
    while not is_so():
        if time.monotonic() > end:
            raise Failure(f"not within {seconds} s: {what}")
        time.sleep(0.02)


def lead_astray():
    """Sends all packets from the server's host to the client's to a station that is not there."""
    ip("-n", SERVER, "neighbor", "replace", ADDRESSES[CLIENT][0], "lladdr", "02:00:00:00:00:99", "dev", "eth0", "nud", "permanent")


def lead_back():
    ip("-n", SERVER, "neighbor", "del", ADDRESSES[CLIENT][0], "dev", "eth0")


def settle():
    """Ends the processes of former tests, which may receive in the place of the next one."""
    for pid in named(SERVER, CLEANUP) + named(CLIENT, CLEANUP):
        os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not named(SERVER, CLEANUP) and not named(CLIENT, CLEANUP), f"no {CLEANUP} is left")


class Cleanup:
    """The cleanup processes of a host that are not of former tests."""

    def __init__(self, host):
        self.host, self.former = host, set(named(host, CLEANUP))

    def there(self):
        return set(named(self.host, CLEANUP)) - self.former

    def find(self):
        """The process ID of the cleanup process, as soon as it is there."""
        wait_until(self.there, f"a {CLEANUP} on the {self.host}'s host")
        return min(self.there())


class Pair:
    """An idle connection between two programs, which are killed at the end."""

    def __init__(self, suite, how, client="client", server="server", before=(), extra=None):
        port = choose_port()
        self.cleanup, self.client_cleanup = Cleanup(SERVER), Cleanup(CLIENT)
        self.server = suite.start_server([*before, ENDING, server, suite.address, port, how], extra)
        self.server.wait_for("listens")
        self.client = suite.start_client([ENDING, client, suite.address, port], {"SOFTVERBS_LOG": "debug"})
        self.client.wait_for("connected")
        self.server.wait_for("connected")
        self.suite, self.port = suite, port

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.kill()
        self.server.kill()

    def server_pid(self):
        return named(SERVER, "idle_connection")[0]

    def tell(self, number):
        os.kill(self.server_pid(), number)

    def log(self):
        return os.pread(self.server.err.fileno(), 1 << 20, 0).decode()

    def client_log(self):
        return os.pread(self.client.err.fileno(), 1 << 20, 0).decode()


def hears_of(suite, number, how="", before=()):
    with Pair(suite, how, before=before) as pair:
        pair.tell(number)
        pair.client.wait_for("disconnected", SOON)


def client_is_killed(suite):
    """The server learns of the end of the active side, too; its program shows that by disconnecting."""
    settle()
    with Pair(suite, "", client="client", extra={"SOFTVERBS_LOG": "debug"}) as pair:
        os.kill(named(CLIENT, "idle_connection")[0], signal.SIGKILL)
        wait_until(lambda: "MESSAGE_RECEIVED: DREQ" in pair.log(), "the server gets a DREQ", SOON)
        wait_until(lambda: not pair.client_cleanup.there(), "with the answer all is done", SOON)


def _log_of_a_late_disconnect(suite):
    """The client's, which disconnects when the server's host has asked it four times in vain."""
    settle()
    with Pair(suite, "") as pair:
        lead_astray()
        pair.tell(signal.SIGKILL)
        time.sleep(1.2)  # a DREQ is sent at 0, 0.1, 0.4, 1 and 2 s
        lead_back()
        os.kill(named(CLIENT, "idle_connection")[0], signal.SIGUSR1)
        pair.client.wait_for("disconnected", SOON)
        return pair.client_log()


def answers_for_the_dead(suite):
    """While nothing leaves the server's host, its program ends; then the client disconnects. On a busy machine the last DREQ may come first."""
    for _ in range(5):
        log = _log_of_a_late_disconnect(suite)
        if "MESSAGE_RECEIVED: DREQ" not in log:
            break
    if "MESSAGE_RECEIVED: DREP" not in log or "MESSAGE_RECEIVED: DREQ" in log:
        raise Failure(f"it got no answer:\n{log}")


def hurries_when_told(suite):
    """SIGTERM does not end it before its program, and then it waits for answers 1 s instead of 5."""
    with Pair(suite, "") as pair:
        pid = pair.cleanup.find()
        os.kill(pid, signal.SIGTERM)
        lead_astray()
        stays(lambda: pid in pair.cleanup.there(), "it does not end before its program", 0.1)
        pair.tell(signal.SIGKILL)
        try:
            wait_until(lambda: pid not in pair.cleanup.there(), "it ends", 3.0)
        finally:
            lead_back()


def normal_end_is_told_once(suite):
    with Pair(suite, "return") as pair:
        pair.tell(signal.SIGUSR1)
        pair.client.wait_for("disconnected", SOON)
        stays(lambda: pair.client_log().count("MESSAGE_RECEIVED: DREQ") == 1, "one DREQ comes", 0.6)


def stream_ends(suite):
    with Pair(suite, "", client="stream", server="streams") as pair:
        pair.tell(signal.SIGKILL)
        pair.client.wait_for("closed", SOON)


def rping_ends(suite):
    port, cleanup = choose_port(), Cleanup(CLIENT)
    server = suite.start_server([need("rping"), "-s", "-a", suite.address, "-p", port, "-C", "100000000"])
    wait_until(lambda: port in suite.run_here("/bin/sh", "-c", f"{suite.root}/softverbs show connections"), "rping listens")
    client = suite.start_client([need("rping"), "-c", "-a", suite.address, "-p", port, "-C", "100000000"])
    try:
        cleanup.find()
        os.kill(named(SERVER, "rping")[0], signal.SIGTERM)
        client.process.wait(3)
    except subprocess.TimeoutExpired as late:
        raise Failure("rping -c goes on") from late
    finally:
        client.kill()
        server.kill()


def pipe_ends(suite):
    """A reader of the program's output sees its end at once: the cleanup process keeps no descriptor of the program."""
    port = choose_port()
    command = f"{ENDING} server {suite.address} {port} _exit | cat; echo ended"
    server = suite.start_server(["/bin/sh", "-c", command])
    server.wait_for("listens")
    client = suite.start_client([ENDING, "client", suite.address, port])
    try:
        server.wait_for("connected")
        os.kill(named(SERVER, "idle_connection")[0], signal.SIGUSR1)
        server.wait_for("ended", SOON)
    finally:
        client.kill()
        server.kill()


def is_childless(suite):
    with Pair(suite, "wait") as pair:
        pair.cleanup.find()
        pair.tell(signal.SIGUSR1)
        pair.server.wait_for("childless", SOON)


def keeps_nothing(suite):
    """Session, directory and descriptors of the cleanup process."""
    with Pair(suite, "") as pair:
        pid = pair.cleanup.find()
        wait_until(lambda: os.readlink(f"/proc/{pid}/cwd") == "/" and len(os.listdir(f"/proc/{pid}/fd")) <= 6, "six descriptors")
        if os.getsid(pid) != pid:
            raise Failure("it has no session of its own")
        memory = int(next(line for line in read(f"/proc/{pid}/status").splitlines() if line.startswith("RssAnon")).split()[1])
        if memory > 1024:
            raise Failure(f"{memory} KiB of memory of its own")


def is_killed(suite):
    """The next connection brings another, which knows of the first one, too."""
    with Pair(suite, "") as pair:
        os.kill(pair.cleanup.find(), signal.SIGKILL)
        wait_until(lambda: not pair.cleanup.there(), "it is killed")
        other = suite.start_client([ENDING, "client", suite.address, pair.port])
        try:
            other.wait_for("connected")
            pair.tell(signal.SIGKILL)
            pair.client.wait_for("disconnected", SOON)
            other.wait_for("disconnected", SOON)
        finally:
            other.kill()


def is_refused(suite, how, before=(), needs=""):
    """The program continues without, and the log says once why."""
    with Pair(suite, how, before=before, extra={"SOFTVERBS_LOG": "warn"}) as pair:
        wait_until(lambda: NOT_STARTED in pair.log(), "the log says why", SOON)
        if pair.cleanup.there() or pair.log().count(NOT_STARTED) != 1 or needs not in pair.log():
            raise Failure(f"it is there, or not explained once:\n{pair.log()}")


def none_within_a_host(suite):
    port, cleanup = choose_port(), Cleanup(SERVER)
    command = ["ip", "netns", "exec", SERVER, f"{suite.root}/softverbs", "run", "--", ENDING]
    server = Program([*command, "server", "127.0.0.1", port, ""], suite.host_environment(SERVER))
    server.wait_for("listens")
    client = Program([*command, "client", "127.0.0.1", port], suite.host_environment(SERVER))
    try:
        client.wait_for("connected")
        stays(lambda: not cleanup.there(), "there is no cleanup process without --net", 0.1)
    finally:
        client.kill()
        server.kill()


def ends_without_sessions(suite):
    """5 s after the last session, while the program lives on."""
    with Pair(suite, "") as pair:
        pair.cleanup.find()
        os.kill(named(CLIENT, "idle_connection")[0], signal.SIGKILL)
        wait_until(lambda: not named(SERVER, CLEANUP) and not named(CLIENT, CLEANUP), "nothing is left", 1.5 * LEFT)
        if not named(SERVER, "idle_connection"):
            raise Failure("the server has ended")
        pair.client.kill()


def main():
    if not os.environ.get(INSIDE):
        enter_namespaces()
    make_hosts()
    suite = Hosts()
    suite.add("a client that is killed is heard of, and answered", lambda: client_is_killed(suite))
    suite.add("a DREQ for a dead program is answered", lambda: answers_for_the_dead(suite))
    suite.add("a cleanup process that is told to end does so behind its program", lambda: hurries_when_told(suite))
    suite.add("a server ended by SIGTERM is heard of", lambda: hears_of(suite, signal.SIGTERM))
    suite.add("a server ended by SIGKILL is heard of", lambda: hears_of(suite, signal.SIGKILL))
    for how in ("_exit", "exec", "fork", "close"):
        suite.add(f"a server's end by {how} is heard of", lambda how=how: hears_of(suite, signal.SIGUSR1, how))
    suite.add("in a namespace of process numbers, too",
              lambda: hears_of(suite, signal.SIGKILL, before=["unshare", "--pid", "--fork", "sh", "-c", '"$@"; sleep 3', "sh"]))
    suite.add("a program that returns from main says goodbye once", lambda: normal_end_is_told_once(suite))
    suite.add("rpoll and rrecv see the end of a killed peer", lambda: stream_ends(suite))
    suite.add("rping ends when its server is", lambda: rping_ends(suite))
    suite.add("server | cat ends with the server", lambda: pipe_ends(suite))
    suite.add("the program has no child", lambda: is_childless(suite))
    suite.add("nothing of the program's is kept", lambda: keeps_nothing(suite))
    suite.add("a cleanup process may be killed", lambda: is_killed(suite))
    suite.add("none where the program may start no process", lambda: is_refused(suite, "limit", needs="temporarily unavailable"))
    suite.add("none where a filter of the program might kill it", lambda: is_refused(suite, "filter", needs="seccomp"))
    suite.add("none for process 1 of a container",
              lambda: is_refused(suite, "", ["unshare", "--pid", "--fork"], needs="process 1"))
    suite.add("none within a host", lambda: none_within_a_host(suite))
    suite.add("none is left without sessions", lambda: ends_without_sessions(suite))
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
