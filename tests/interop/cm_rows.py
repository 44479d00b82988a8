"""Rows of programs that connect through librdmacm: the kernel's connection manager and its rxe on one side, ours on the other. In
some a forwarder between the two (meddler.py) loses or repeats messages."""
import contextlib
import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import time

from guest import HERE, INTERFACE, NAMESPACE, OURS, TAP, THEIRS

from clients import Failure, Program
from librdmacm.rdmacm import RACE, choose_port
from patience import until

SERVER_THERE, SERVER_HERE = "server in the guest", "server here"
SECONDS = 150
WITH_LOSSES = 240  # seconds: lost messages are repeated after four or six, some twice
SECOND_CONNECTION = 3  # seconds, less than until a SIDR_REQ is repeated
LISTENS = "rdma resource show cm_id | grep -q LISTEN"
CONNECTED = ("REQ", "REP", "RTU", "DREQ", "DREP")
DATAGRAM = ("SIDR_REQ", "SIDR_REP")
JOINED = "joined dgid"
NEAR, FAR = "meddle0", "meddle1"  # a cable between the bridge and the forwarder


class Side:
    """The machine that runs a program: this one, or the guest."""

    def __init__(self, suite, here):
        self.suite, self.is_here = suite, here

    def start(self, command, seconds=SECONDS):
        if self.is_here:
            return Program(self.suite.here(command), self.suite.environment())
        return Program(self.suite.guest.command(" ".join(command), seconds), dict(os.environ))

    def serve(self, command, seconds=SECONDS):
        """Returns the program once it listens for connections."""
        if not self.is_here:
            return self.suite.guest.serve(" ".join(command), LISTENS, seconds)
        server, deadline = self.start(command), until(SECONDS)
        while "listen" not in states(self.suite):
            if server.process.poll() is not None or time.monotonic() > deadline:
                raise Failure(f"nobody listens: {server.finish(time.monotonic())}")
            time.sleep(0.05)
        return server


def states(suite):
    """The states of all connections on this side."""
    command = ["ip", "netns", "exec", NAMESPACE, f"{suite.root}/softverbs", "show", "--json"]
    done = subprocess.run(command, env=suite.environment(), capture_output=True, text=True, check=True)
    return [each["state"] for report in json.loads(done.stdout) for each in report.get("connections", [])]


def sides(suite, where):
    """The server's and the client's."""
    return Side(suite, where == SERVER_HERE), Side(suite, where == SERVER_THERE)


def server_address(setting, where):
    return (OURS if where == SERVER_HERE else THEIRS)[setting[1]]


def ended_well(done):
    return not done.status or RACE in done.err


def meet(suite, where, server_command, client_command, seconds=SECONDS, serves_on=False):
    """Both must end well; a server that `serves_on` is ended. Returns server and client as Finished."""
    server_side, client_side = sides(suite, where)
    server = server_side.serve(server_command, seconds)
    try:
        deadline = until(seconds)
        try:
            client = client_side.start(client_command, seconds).finish(deadline)
        except Failure as late:
            raise Failure(f"{late}while the server says\n{finish_now(server)}") from late
        if serves_on:
            server.kill()
            if not ended_well(client):
                raise Failure(str(client))
            return None, client
        try:
            answer = server.finish(min(deadline, until(seconds / 3)))
        except Failure as late:
            raise Failure(f"{late}while the client says\n{client}") from late
    finally:
        server.kill()
    if not ended_well(client) or not ended_well(answer):
        raise Failure(f"{client}{answer}")
    return answer, client


def finish_now(program):
    try:
        return program.finish(time.monotonic())
    except Failure as hangs:
        return hangs


def pings(suite, setting, where, count, *options, seconds=SECONDS):
    """rping -V compares what it gets back."""
    common = ["rping", "-a", server_address(setting, where), "-p", choose_port(), "-C", str(count), "-v", "-V", *options]
    client = meet(suite, where, [*common, "-s"], [*common, "-c"], seconds)[1]
    client.find(rf"ping data: rdma-ping-{count - 1}: ")


def matches(suite, setting, where, program, *options, seconds=SECONDS):
    address = server_address(setting, where)
    port = [] if program == "udaddy" else ["-p", choose_port()]
    common = [program, *port, *options]
    for side in meet(suite, where, [*common, "-b", address], [*common, "-s", address], seconds):
        side.find(r"return status 0|^custom ")


def uses_endpoints(suite, setting, where):
    port = choose_port()
    meet(suite, where, ["rdma_server", "-p", port], ["rdma_client", "-s", server_address(setting, where), "-p", port])


def makes_many(suite, setting, where, count):
    common, address = ["cmtime", "-c", str(count), "-p", choose_port()], server_address(setting, where)
    client = meet(suite, where, [*common, "-b", address], [*common, "-s", address], serves_on=True)[1]
    client.find(r"^ *(cm )?connect\b")


def measures_named(suite, setting, where, program, *options):
    """perftest's server begins to listen for the second connection when it has answered over the first. The kernel refuses
    an earlier client, and an emulated processor takes long."""
    command = [program, "-R", "-F", "-n", "20", "-p", choose_port(), *options]
    with meddler(f"hold={SECOND_CONNECTION}") if where == SERVER_THERE else contextlib.nullcontext():
        client = meet(suite, where, command, [*command, server_address(setting, where)])[1]
    client.find(r"^ *\d+ +20 ")


def groups(suite, setting, where):
    """The server receives what the client sends to the group."""
    group = "239.1.2.3" if setting[1] == 4 else "ff0e::1234"
    receiver_side, sender_side = sides(suite, where)
    ours, theirs = OURS[setting[1]], THEIRS[setting[1]]
    common = ["stdbuf", "-oL", "mckey", "-m", group, "-C", "10"]
    receiver = receiver_side.start([*common, "-b", ours if receiver_side.is_here else theirs])
    try:
        receiver.wait_for(JOINED, SECONDS)
        sender = sender_side.start([*common, "-s", "-b", ours if sender_side.is_here else theirs]).finish(until(SECONDS))
        received = receiver.finish(until(SECONDS / 3))
    finally:
        receiver.kill()
    for side in (received, sender):
        side.find("return status 0")


@contextlib.contextmanager
def bystander(suite):
    """A program of ours with its device open, that answers for programs without a device."""
    program = Program(suite.here(["ibv_asyncwatch", "-d", "soft0"]), suite.environment())
    try:
        program.wait_for("async event", SECONDS)
        yield
    finally:
        program.kill()


def is_rejected(suite, setting, where):
    command = ["rping", "-c", "-a", server_address(setting, where), "-p", choose_port(), "-C", "1"]
    with bystander(suite) if where == SERVER_HERE else contextlib.nullcontext():
        client = sides(suite, where)[1].start(command).finish(until(SECONDS))
    if not client.status or "RDMA_CM_EVENT_REJECTED, error 8" not in client.out + client.err:
        raise Failure(str(client))


# --- what a forwarder does on the way

def ip(*arguments):
    subprocess.run(["ip", "-n", NAMESPACE, *arguments], check=True)


def compute_checksums(interface):
    """The kernel does so before the forwarder sees a packet, and cuts it up: what "ethtool -K tx off" asks for."""
    ethtool_stxcsum, siocethtool = 0x17, 0x8946
    value = ctypes.create_string_buffer(struct.pack("II", ethtool_stxcsum, 0))
    with open(f"/run/netns/{NAMESPACE}", encoding="ascii") as namespace, open("/proc/self/ns/net", encoding="ascii") as own:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.setns(namespace.fileno(), 0)
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
                fcntl.ioctl(any_socket, siocethtool, struct.pack("16sP16x", interface.encode(), ctypes.addressof(value)))
        finally:
            libc.setns(own.fileno(), 0)


@contextlib.contextmanager
def meddler(*rules):
    """The guest is unplugged from the bridge, and the forwarder put between them. Gives what it says at its end: a list that is filled
    then."""
    ip("link", "add", NEAR, "type", "veth", "peer", "name", FAR)
    said = []
    try:
        for name in (NEAR, FAR):
            subprocess.run(["ip", "netns", "exec", NAMESPACE, "sysctl", "-qw", f"net.ipv6.conf.{name}.disable_ipv6=1"], check=True)
        compute_checksums(NEAR)
        ip("link", "set", TAP, "nomaster", "arp", "off")
        ip("link", "set", NEAR, "master", INTERFACE, "mtu", "9000", "up")
        ip("link", "set", FAR, "arp", "off", "mtu", "9000", "up")
        with subprocess.Popen(["ip", "netns", "exec", NAMESPACE, sys.executable, f"{HERE}/meddler.py", TAP, FAR, *rules],
                              stdout=subprocess.PIPE, text=True) as forwarder:
            forwarder.stdout.readline()
            try:
                yield said
            finally:
                forwarder.terminate()
                said += forwarder.stdout.read().splitlines()
    finally:
        ip("link", "del", NEAR)
        ip("link", "set", TAP, "arp", "on", "master", INTERFACE)


def gives_up(suite, setting):
    """The kernel takes a repeated SIDR_REQ for another request once it has answered the first, and udaddy looks at one only: so
    our repeats get no reply, and the program gets an error."""
    address = server_address(setting, SERVER_THERE)
    server = Side(suite, False).serve(["udaddy", "-c", "1", "-C", "3", "-b", address], WITH_LOSSES)
    try:
        client = Side(suite, True).start(["udaddy", "-c", "1", "-C", "3", "-s", address]).finish(until(WITH_LOSSES))
    finally:
        server.kill()
    if "RDMA_CM_EVENT_UNREACHABLE, error: -110" not in client.out + client.err:
        raise Failure(str(client))


def loses(suite, setting, where, name):
    """The program ends well all the same, and both see to that without a word from us."""
    with meddler(f"lose={name}") as said, bystander(suite):
        if name == "SIDR_REP" and where == SERVER_THERE:
            gives_up(suite, setting)
        elif name in DATAGRAM:
            matches(suite, setting, where, "udaddy", "-c", "1", "-C", "3", seconds=WITH_LOSSES)
        else:
            matches(suite, setting, where, "ucmatose", "-c", "1", "-C", "3", seconds=WITH_LOSSES)
    if said != [f"lost {name}"]:
        raise Failure(f"the forwarder says {said}")


def repeats(suite, setting, where, names, again, test):
    """But no SIDR_REQ to the kernel: see gives_up."""
    spare = ["SIDR_REQ"] if where == SERVER_THERE else []
    with meddler(*(f"again={seconds}" for seconds in again), *(f"spare={name}" for name in spare)) as said, bystander(suite):
        test(suite, setting, where)
    missing = [name for name in names if f"repeated {name}" not in said and name not in spare]
    if missing:
        raise Failure(f"the forwarder has not repeated {missing}, but {said}")


def add_meddled(suite, setting):
    for name in (*CONNECTED, *DATAGRAM):
        program = "udaddy" if name in DATAGRAM else "ucmatose"
        suite.row(setting, f"{program}, the first {name} is lost", lambda where, name=name: loses(suite, setting, where, name))

    def pings_on(*arguments):
        pings(*arguments, 30)

    def connects(*arguments):
        matches(*arguments, "ucmatose", "-c", "5", "-C", "10")

    def resolves(*arguments):
        matches(*arguments, "udaddy", "-c", "5", "-C", "10")
    for again, text in (([0, 0], "thrice at once"), ([0.02, 0.2], "again 20 and 200 ms later")):
        for program, names, test in (("rping -V", CONNECTED, pings_on), ("ucmatose", CONNECTED, connects), ("udaddy", DATAGRAM, resolves)):
            suite.row(setting, f"{program}, each message comes {text}",
                      lambda where, again=again, names=names, test=test: repeats(suite, setting, where, names, again, test))


def add_connections(suite, setting, whole):
    """Not `whole`: some of them."""
    def add(name, test, *arguments):
        suite.row(setting, name, lambda where: test(suite, setting, where, *arguments))

    add("rping -V", pings, 10)
    add("ucmatose -c 10 -C 10 -S 4000", matches, "ucmatose", "-c", "10", "-C", "10", "-S", "4000")
    add("udaddy -c 5 -C 10", matches, "udaddy", "-c", "5", "-C", "10")
    if setting[1] == 4: # the kernel's connection manager joins no group of IPv6
        add("mckey -C 10", groups)
        add("ib_send_bw -R", measures_named, "ib_send_bw")  # perftest connects by name with IPv4 only
    add("rping without a listener", is_rejected)
    if not whole:
        return
    add("rping -V -S 60000", pings, 10, "-S", "60000")
    add("rping -V -q", pings, 10, "-q")
    add("rdma_server, rdma_client", uses_endpoints)
    add("rstream -S 65536 -C 10", matches, "rstream", "-S", "65536", "-C", "10")
    add("cmtime -c 100", makes_many, 100)
    for program, *options in (("ib_send_bw", "-c", "UD"), ("ib_write_bw",), ("ib_read_bw",), ("ib_atomic_bw",),
                              ("ib_send_lat",), ("ib_write_lat",), ("ib_read_lat",), ("ib_atomic_lat",)):
        add(" ".join([program, "-R", *options]), measures_named, program, *options)
    add_meddled(suite, setting)
