#!/usr/bin/env python3
"""Programs that connect through librdmacm: the programs of package rdmacm-utils, unmodified, on one host."""
import collections
import filecmp
import glob
import json
import os
import random
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# pylint: disable=wrong-import-position
from clients import BUILD, Failure, Suite, need
from patience import tries, until
from races import RPING_CLOSED

SLOW_CLOSE = f"{BUILD}/tests/clients/rstream_slow_close.so"
TIMES = (r"^ *(cm )?connect\b", r"^ *destroy\b") # what cmtime says, also that of later releases
# perftest knows events by number; 8 is RDMA_CM_EVENT_REJECTED
REFUSED = ("REJECTED", "Unexpected CM event bl blka 8", "rdma_connect: Connection refused", "UNREACHABLE", "refused", "rpoll: ")


class Host(Suite):
    """Servers and clients on one host."""

    address = "127.0.0.1"  # the server's

    def start_server(self, command, extra=None):
        return self.start(command, extra)

    def start_client(self, command, extra=None):
        return self.start(command, extra)


def end_well(client, server):
    return not any(side.status and RPING_CLOSED not in side.err for side in (client, server))


def exchange(suite, server_command, client_command, timeout=60, extra=None, right=end_well):
    """Runs a server and a client of it, and tries again while the server does not listen yet; both must end as `right` says."""
    deadline = until(timeout)
    server = suite.start_server(server_command, extra)
    try:
        while True:
            client = suite.start_client(client_command, extra).finish(deadline)
            early = any(word in client.out + client.err for word in REFUSED) and server.process.poll() is None
            if not early:
                break
            time.sleep(0.1)
        try:
            answer = server.finish(min(deadline, until(10)))
        except Failure as late:
            raise Failure(f"{late}while the client says\n{client}") from late
    finally:
        server.kill()
    if not right(client, answer):
        raise Failure(f"{client}{answer}")
    return answer, client


# The exact output of a client of rping whose main thread was too late to see that it was connected: it has seen the end (state 10), and
# then waits for its thread of completions, which never ends, as rdma_disconnect is left out (rping_run_client, err3).
OVERTAKEN = b"client DISCONNECT EVENT...\nwait for CONNECTED state 10\nconnect error -1\n"
# riostream's server listens before it says how much of its memory the other end may map: a client that connects before may map nothing.
HASTY = "riomap: Cannot allocate memory"


def exchange_patiently(suite, server_command, client_command, timeout=60, extra=None, right=end_well):
    """Works as exchange; both begin anew when the client was too hasty for the server."""
    deadline = until(timeout)
    while True:
        try:
            return exchange(suite, server_command, client_command, deadline - time.monotonic(), extra, right)
        except Failure as why:
            if HASTY not in str(why) or time.monotonic() > deadline:
                raise


def choose_port():
    return str(random.randrange(20000, 30000))


def pings(suite, address, *options):
    port = choose_port()
    common = ["rping", "-p", port, "-C", "10", "-v", *options]
    _, client = exchange(suite, [*common, "-s", "-a", address], [*common, "-c", "-a", address])
    for number in range(10):
        client.find(rf"ping data: rdma-ping-{number}: ")


def matches(suite, program, *options):
    """Programs of one name whose server takes -b ADDRESS or any, and whose client takes -s ADDRESS."""
    port = [] if program == "udaddy" else ["-p", choose_port()]
    for side in exchange_patiently(suite, [program, *port, *options], [program, *port, "-s", suite.address, *options]):
        side.find(r"return status 0|^custom ")


def streams_asynchronously(suite):
    port = choose_port()
    command = ["rstream", "-p", port, "-S", "65536", "-C", "100", "-T", "a", "-T", "v"]
    for side in exchange(suite, [*command, "-b", suite.address], [*command, "-s", suite.address], extra={"LD_PRELOAD": SLOW_CLOSE}):
        side.find("^custom ")


def is_refused(client):
    return any(word in client.out + client.err for word in REFUSED)


def is_early(client):
    """cmtime since release 52: its two ends meet at a port of TCP, too, which the server opens after it listens by rdma_cm. A client that
    connects in between ends with 1 and prints nothing (oob_client_setup)."""
    return is_refused(client) or (client.status == 1 and not client.out + client.err)


def serves_on(suite, server_command, client_command, found, timeout=60, extra=None, early=is_refused):
    """A server that does not end by itself, and a client that does, and is tried again while it is too early."""
    deadline = until(timeout)
    server = suite.start_server(server_command, extra)
    try:
        while True:
            client = suite.start_client(client_command, extra).finish(deadline)
            if not early(client) or server.process.poll() is not None:
                break
            time.sleep(0.1)
    finally:
        server.kill()
    client.check()
    for pattern in found:
        client.find(pattern)


def times_connections(suite, count, timeout=60, extra=None):
    """The options of cmtime are others from release 64 on, and its two ends meet at a port of TCP."""
    common = ["cmtime", "-c", str(count), "-p", choose_port()]
    usage = subprocess.run(["cmtime", "-h"], capture_output=True, text=True, check=False)
    if "-L" in usage.stdout + usage.stderr:
        client = ["-C", suite.address, "-b", suite.address]
        server = ["-L", *client]
    else:
        server, client = ["-b", suite.address], ["-s", suite.address]
    serves_on(suite, [*common, *server], [*common, *client], TIMES, timeout, extra, is_early)


def copies_a_file(suite, size=50_000_000, timeout=60):
    port = choose_port()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        source, target = f"{directory}/source", f"{directory}/target"
        with open(source, "wb") as file:
            for done in range(0, size, 1 << 20):
                file.write(random.randbytes(min(1 << 20, size - done)))
        serves_on(suite, ["rcopy", "-p", port], ["rcopy", source, f"{suite.address}:{target}", "-p", port], [f"^{size} bytes in "],
                  timeout)
        if not filecmp.cmp(source, target, shallow=False):
            raise Failure("the copy differs")


def many_clients(suite, count, both=False):
    """Clients on the client's host, or on both in turn. They begin one after the other: rping's server keeps but one request in mind, and takes the next for it
    when that arrives before it has begun a thread."""
    port = choose_port()
    server, clients = suite.start_server(["rping", "-s", "-P", "-a", suite.address, "-p", port]), []
    starters = [suite.start_client, suite.start_server] if both else [suite.start_client]
    try:
        pings_until_listening(suite, port)
        for number in range(count):
            start = starters[number % len(starters)]
            clients.append(start(["rping", "-c", "-a", suite.address, "-p", port, "-C", "2000", "-v"]))
            wait_for_ping(clients[-1])
        for client in clients:
            done = client.finish(until(60))
            if done.status and RPING_CLOSED not in done.err:
                raise Failure(str(done))
            done.find("ping data: rdma-ping-1999: ")
    finally:
        for program in (server, *clients):
            program.kill()


def wait_for_end(process, seconds):
    """The time that it takes to end; None: longer."""
    began, descriptor = time.monotonic(), os.pidfd_open(process.pid)
    try:
        ended = select.select([descriptor], [], [], seconds)[0]
    finally:
        os.close(descriptor)
    return time.monotonic() - began if ended else None


def wait_until_heard(suite, client, seconds):
    """Works as wait_for_end; also until rping's client is OVERTAKEN, and has no connection any more."""
    began = time.monotonic()
    while (took := wait_for_end(client.process, 0.02)) is None:
        took = time.monotonic() - began
        if os.pread(client.err.fileno(), 1 << 16, 0) == OVERTAKEN:
            if left := [each for each in shown(suite).get(client.process.pid, []) if each["state"] == "established"]:
                raise Failure(f"a client that has heard of the end shows {json.dumps(left)}")
            return took
        if took > seconds:
            return None
    return time.monotonic() - began


def time_an_end():
    """How long this machine takes, just now, for a program to hear of another's end from the kernel, and to end itself."""
    reader, writer = os.pipe()
    with subprocess.Popen(["cat"], stdin=reader) as survivor, subprocess.Popen(["sleep", "10"], stdout=writer) as victim:
        os.close(reader)
        os.close(writer)
        victim.kill()
        seconds = wait_for_end(survivor, 10)
        survivor.kill()
    return seconds


def kill_one(suite, common, number):
    """Every second time the server; while they connect, or in the midst of their pings. The seconds until the survivor ends; None when
    it had received nothing from the other yet."""
    server, client = suite.start([*common, "-s"]), None
    try:
        connected = number % 4 < 2
        for _ in range(200):
            client = suite.start([*common, "-c", "-v"])
            if not connected:
                time.sleep(random.random() / 4)
                break
            wait_for_ping(client)
            if client.process.poll() is None:
                break
            client.finish(until(10))
            if server.process.poll() is not None:
                raise Failure(f"round {number}: {server.finish(time.monotonic())}")
            time.sleep(0.05)
        victim, survivor = (server, client) if number % 2 else (client, server)
        time.sleep(random.random() / 100)
        os.kill(victim.process.pid, signal.SIGKILL)
        seconds = wait_until_heard(suite, client, 10) if survivor is client else wait_for_end(server.process, 10 if connected else 0.5)
        victim.kill()
        if seconds is None:
            if connected or survivor is client:
                raise Failure(f"round {number}: not heard: {survivor.finish(time.monotonic())}")
            exchange_one(suite, common, survivor) # which then ends
            survivor.finish(until(10))
        return seconds if connected else None
    finally:
        for program in (server, client):
            if program:
                program.kill()


def kill_while_disconnecting(suite, port, number):
    """ucmatose's server ends its 100 connections, all at once; one of the two is killed in the midst of it. The other must learn the
    end of each of its connections, which it counts, to end itself."""
    common = ["stdbuf", "-oL", "ucmatose", "-p", port, "-c", "100", "-C", "1"]
    server, client = suite.start(common), None
    try:
        wait_for_listener(suite, server)
        client = suite.start([*common, "-s", "127.0.0.1"])
        server.wait_for("disconnecting", pause=0.0005)
        victim, survivor = (server, client) if number % 2 else (client, server)
        time.sleep(random.random() / 200)
        ended_before = victim.process.poll() is not None
        if not ended_before:
            os.kill(victim.process.pid, signal.SIGKILL)
        seconds = wait_for_end(survivor.process, 10)
        if seconds is None:
            raise Failure(f"round {number}: not heard: {survivor.finish(time.monotonic())}")
        return None if ended_before else seconds
    finally:
        for program in (server, client):
            if program:
                program.kill()


def wait_for_listener(suite, server):
    deadline = until(20)
    while "listen" not in [each["state"] for each in shown(suite).get(server.process.pid, [])]:
        if server.process.poll() is not None or time.monotonic() > deadline:
            raise Failure(f"nobody listens: {server.finish(time.monotonic())}")


def exchange_one(suite, common, server):
    """A client that is refused came when the server had learned of the death at last."""
    done = suite.start([*common[:-1], "1", "-c", "-v"]).finish(until(20))
    if done.status and RPING_CLOSED not in done.err and wait_for_end(server.process, 1) is None:
        raise Failure(str(done))


def hears_of_death(suite, rounds):
    """One side is killed: the other ends at once, and the port is free again for the next round. The bound has the time that the
    machine itself takes for such a thing, which is long when it is busy."""
    common = ["rping", "-a", "127.0.0.1", "-p", choose_port(), "-C", "10000000"]
    parting = choose_port()
    heard = sorted(filter(None, [kill_while_disconnecting(suite, parting, number // 3) if number % 3 == 2
                                 else kill_one(suite, common, number - number // 3) for number in range(rounds)]))
    usual = sorted(filter(None, [time_an_end() for _ in range(11)]))
    median, most = heard[len(heard) // 2], heard[-1]
    text = f"{rounds} deaths, {len(heard)} of them of connected or disconnecting ones, heard of within {median * 1000:.0f} ms in the median, " \
        f"{heard[len(heard) * 9 // 10] * 1000:.0f} ms for nine of ten, {most * 1000:.0f} ms at most; the kernel's own: {usual[5] * 1000:.0f} ms"
    if median > 0.1 + usual[5] or most > 2 + usual[-1]:
        raise Failure(text)
    if left := shown(suite):
        raise Failure(f"{text}; still shown: {json.dumps(left)}")
    return text


def wait_for_ping(client):
    """The output of rping is written in blocks, so the first lines are there when some pings have been made."""
    deadline = until(20)
    while os.fstat(client.out.fileno()).st_size == 0 and client.process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)


def pings_until_listening(suite, port):
    for _ in range(100):
        client = suite.start_client(["rping", "-c", "-a", suite.address, "-p", port, "-C", "1"]).finish(until(20))
        if not any(word in client.out + client.err for word in REFUSED):
            return
        time.sleep(0.1)
    raise Failure("nobody listens")


def measures(suite, program, *options):
    port = choose_port()
    command = [program, "-R", "-F", "-n", "1000", "-p", port, *options]
    _, client = exchange(suite, command, [*command, suite.address])
    client.find(r"^ *\d+ +1000 ")


def groups(suite, group, receives_at, sends_from, *options):
    common = ["stdbuf", "-oL", "mckey", "-m", group, "-C", "10"]
    receiver = suite.start_server([*common, "-b", receives_at])
    try:
        receiver.wait_for("joined dgid")
        sender = suite.start_client([*common, "-s", "-b", sends_from, *options]).finish(until(30))
        received = receiver.finish(until(10))
    finally:
        receiver.kill()
    for side in (received, sender):
        side.find(r"joined dgid: \S+")
        side.find("return status 0")


def survives_losses(suite, faults, *command):
    """Connections are made and ended although messages get lost, which are repeated after four or six seconds."""
    began, port = time.monotonic(), [] if command[0] == "udaddy" else ["-p", choose_port()]
    with tempfile.NamedTemporaryFile() as file:
        extra = {"SOFTVERBS_FAULT": faults, "SOFTVERBS_COUNTERS": file.name}
        for side in exchange(suite, [*command, *port], [*command, *port, "-s", suite.address], 100, extra):
            side.find("return status 0")
        said = [json.loads(line)["messages"] for line in file]
    kinds, met = [item.split("=")[0] for item in faults.split(",")[:-1]], collections.Counter()
    for messages in said:
        met.update(messages["fault_kinds"])
    if not met["drop"] or not set(met) <= set(kinds) - {"reorder"}:
        raise Failure(f"messages met {dict(met)} of {faults}")
    return f"{time.monotonic() - began:.0f} s, {dict(met)}"


def first_program(suite):
    program, address = f"{BUILD}/examples/first_connection", suite.address
    server, _ = exchange(suite, [program], [program, address, "good morning"])
    server.find("^good morning$")


def is_asked_again(suite):
    """A request that is repeated when its listener is closed reaches the connection that it has opened."""
    program, port = f"{BUILD}/tests/clients/late_accept", choose_port()
    for side in exchange(suite, [program, port], [program, port, suite.address]):
        side.find("^connected$")


def is_withdrawn(suite):
    program, port = f"{BUILD}/tests/clients/withdrawn_request", choose_port()
    server, _ = exchange(suite, [program, port], [program, port, suite.address], extra={"SOFTVERBS_LOG": "warn"})
    server.find("^it is withdrawn$")
    # The number is in brackets, since reasons.py would take the number for one of diag.def.
    if not re.search(r'rdma_accept: identifier \d+: its connection is in state idle, reason [4]: .*\(reason 656\)', server.err):
        raise Failure(str(server))


def hears_in_order(suite, what):
    """A message before what followed it, where both are found at once."""
    command = [f"{BUILD}/tests/clients/message_before_disconnect", what, suite.address, choose_port(), "50"]
    suite.start(command).finish(until(60)).check()


def waits_to_the_end(suite):
    ended = suite.start([f"{BUILD}/tests/clients/events_at_exit"], extra={"SOFTVERBS_LOG": "warn"}).finish(until(20)).check()
    if "fork" in ended.err:  # there is none
        raise Failure(str(ended))


def leaves_nothing(suite):
    suite.start([f"{BUILD}/tests/clients/cancelled_wait"]).finish(until(60)).check()


def lets_fetch(suite):
    tries("events of identifiers that are destroyed", 4, "a thread that gets no processor for ten milliseconds fetches its event too late",
          lambda: suite.start([f"{BUILD}/tests/clients/destroy_with_event"]).finish(until(30)).check(), Failure)


def sets_routes(suite):
    suite.start([f"{BUILD}/tests/clients/given_route", "127.0.0.1", choose_port()]).finish(until(30)).check()


def nobody_listens(suite):
    command = ["rping", "-c", "-a", suite.address, "-p", choose_port(), "-C", "1"]
    client = suite.start_client(command, {"SOFTVERBS_LOG": "info"}).finish(until(20))
    if client.status == 0 or "RDMA_CM_EVENT_REJECTED, error 8" not in client.out + client.err or "(reason 600)" not in client.err:
        raise Failure(str(client))


def shown(suite):
    """The report of each process about its connections, where the servers are: lists of them, by process id."""
    done = suite.start_server(suite.softverbs("show", "--json")).finish(until(20))
    done.check()
    return {report["pid"]: report.get("connections", []) for report in json.loads(done.out)}


def is_shown(suite):
    port = choose_port()
    server = suite.start(["rping", "-s", "-P", "-a", "127.0.0.1", "-p", port])
    client = None
    try:
        pings_until_listening(suite, port)
        client = suite.start(["rping", "-c", "-a", "127.0.0.1", "-p", port, "-C", "10000000", "-v"])
        wait_for_ping(client)
        both = shown(suite)
        table, lines = [subprocess.run(suite.softverbs(*command), env=suite.environment(), capture_output=True, text=True, check=True).stdout
                        for command in (("show", "connections"), ("stat", "--lines"))]
    finally:
        for program in (server, client):
            if program:
                program.kill()
    one, other = both[client.process.pid], both[server.process.pid]
    states = sorted(each["state"] for each in other)
    peers = {each.get("peer_pid") for each in one} | {each.get("peer_pid") for each in other if each["state"] == "established"}
    if [each["state"] for each in one] != ["established"] or one[0]["peer"] != f"127.0.0.1:{port}" or \
            not {"established", "listen"} <= set(states) or peers != {client.process.pid, server.process.pid}:
        raise Failure(json.dumps(both))
    if any(type(each.get("seconds")) is not int for each in one + other if each["state"] in ("established", "listen")):
        raise Failure(json.dumps(both))
    if not re.search(rf"rping .* TCP +established +\d+ +127\.0\.0\.1:\d+ +127\.0\.0\.1:{port} ", table):
        raise Failure(table)
    if not re.search(rf"{server.process.pid} +rping +connections +[1-9]\d* +received REQ\n", lines):
        raise Failure(lines)


def is_removed(suite):
    """rping says what it hears."""
    server = suite.start(["stdbuf", "-oL", "rping", "-s", "-d", "-a", "127.0.0.1", "-p", choose_port()])
    try:
        wait_for_listener(suite, server)
        subprocess.run(suite.softverbs("event", "device-removal", "soft0"), env=suite.environment(), capture_output=True, check=True)
        deadline = until(20)
        while not re.search(b"(?i)device.removal", os.pread(server.out.fileno(), 1 << 16, 0) + os.pread(server.err.fileno(), 1 << 16, 0)):
            if time.monotonic() > deadline:
                raise Failure(str(server.finish(time.monotonic())))
            time.sleep(0.02)
    finally:
        server.kill()


def is_captured(suite):
    path, port = f"{suite.directory}-%p.pcapng", choose_port()
    common = ["rping", "-a", "127.0.0.1", "-p", port, "-C", "1"]
    exchange(suite, [*common, "-s"], [*common, "-c"], extra={"SOFTVERBS_CAPTURE": path})
    files = glob.glob(path.replace("%p", "*"))
    texts = [subprocess.run([f"{BUILD}/softverbs", "decode", file], capture_output=True, text=True, check=True).stdout for file in files]
    for file in files:
        os.unlink(file)
    whole = [text for text in texts if all(f" {name} " in text for name in ("REQ", "REP", "RTU", "DREQ"))]
    if len(whole) < 2:
        raise Failure("\n".join(texts))


def says_what_destroying_waits_for(suite):
    common = ["rping", "-a", "127.0.0.1", "-p", choose_port(), "-C", "1"]
    for side in exchange(suite, [*common, "-s"], [*common, "-c"], extra={"SOFTVERBS_LOG": "info"}):
        if not re.search(r"identifier \d+: rdma_destroy_id returns once .* \(IDENTIFIER_ENDED, events fetched [1-9]\d*\)$", side.err, re.M):
            raise Failure(str(side))


def main():
    suite = Host()
    need("rping")
    for address in ("127.0.0.1", "127.0.0.7", "::1"):
        suite.add(f"rping on {address}", lambda address=address: pings(suite, address))
    suite.add("a line says what rdma_destroy_id waits for", lambda: says_what_destroying_waits_for(suite))
    suite.add("rping with messages of 64 KiB", lambda: pings(suite, "127.0.0.1", "-S", "65536"))
    suite.add("ucmatose transfers both ways over ten connections",
              lambda: matches(suite, "ucmatose", "-c", "10", "-C", "50", "-S", "4000"))
    suite.add("ucmatose migrates its identifiers to other channels", lambda: matches(suite, "ucmatose", "-m"))
    suite.add("udaddy resolves and transfers datagrams", lambda: matches(suite, "udaddy", "-c", "5", "-C", "20"))
    suite.add("rdma_server and rdma_client use endpoints",
              lambda: exchange(suite, ["rdma_server", "-p", (port := choose_port())],
                               ["rdma_client", "-s", "127.0.0.1", "-p", port]))
    for group, address in (("239.1.2.3", "127.0.0.1"), ("ff0e::1234", "::1")):
        suite.add(f"mckey receives what is sent to {group}", lambda group=group, address=address: groups(suite, group, address, address))
    suite.add("mckey -l sends, and blocks its own messages", lambda: groups(suite, "239.1.2.4", "127.0.0.1", "127.0.0.1", "-l"))
    suite.add("rdma_xserver and rdma_xclient use RC",
              lambda: exchange(suite, ["rdma_xserver", "-c", "r", "-p", (port := choose_port())],
                               ["rdma_xclient", "-c", "r", "-s", "127.0.0.1", "-p", port]))
    suite.add("rdma_xserver and rdma_xclient use XRC",
              lambda: exchange(suite, ["rdma_xserver", "-c", "x", "-p", (port := choose_port())],
                               ["rdma_xclient", "-c", "x", "-s", "127.0.0.1", "-p", port]))
    suite.add("rcopy copies 50 MB", lambda: copies_a_file(suite))
    suite.add("rping -P serves 20 clients at once", lambda: many_clients(suite, 20))
    suite.add("cmtime makes 1000 connections", lambda: times_connections(suite, 1000))
    for program, *options in (("ib_send_bw",), ("ib_send_bw", "-c", "UD"), ("ib_write_bw",), ("ib_read_bw",), ("ib_atomic_bw",),
                              ("ib_send_lat",), ("ib_write_lat",), ("ib_read_lat",), ("ib_atomic_lat",)):
        suite.add(" ".join([program, "-R", *options]), lambda program=program, options=options: measures(suite, program, *options))
    for program in ("rstream", "riostream"):
        suite.add(f"{program} streams over rsockets", lambda program=program: matches(suite, program, "-S", "65536", "-C", "100"))
    suite.add("rstream -T a finds all its data, where the end of the stream does not overtake it",
              lambda: streams_asynchronously(suite))
    suite.add("who is killed is heard of at once", lambda: hears_of_death(suite, int(os.environ.get("SOFTVERBS_DEATHS", 12))))
    suite.add("a thread that waits for events while its program ends hears of no error", lambda: waits_to_the_end(suite))
    suite.add("threads that are cancelled where they wait leave nothing behind", lambda: leaves_nothing(suite))
    suite.add("a thread that poll told of an event gets it, although its identifier is destroyed", lambda: lets_fetch(suite))
    suite.add("a program sets its routes itself", lambda: sets_routes(suite))
    suite.add("who connects where nobody listens is rejected at once", lambda: nobody_listens(suite))
    suite.add("a request that comes again behind its listener's end is no new one", lambda: is_asked_again(suite))
    suite.add("a message is heard of before the end of its connection", lambda: hears_in_order(suite, "end"))
    suite.add("a message is heard of before an error of its queue pair", lambda: hears_in_order(suite, "key"))
    suite.add("a request that its client withdraws can't be accepted", lambda: is_withdrawn(suite))
    for faults in ("drop=10%,dup=10%,seed=5", "drop=10%,reorder=10%,seed=8"):
        suite.add(f"ucmatose makes five connections in spite of {faults}",
                  lambda faults=faults: survives_losses(suite, faults, "ucmatose", "-c", "5", "-C", "10", "-S", "100"))
    suite.add("the first program of docs/reference/connections.md", lambda: first_program(suite))
    suite.add("softverbs show connections says who listens and who is connected with whom", lambda: is_shown(suite))
    suite.add("softverbs event device-removal is heard by identifiers", lambda: is_removed(suite))
    suite.add("a capture has the messages, and decode their names", lambda: is_captured(suite))
    suite.add_tidiness()
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
