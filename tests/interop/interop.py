#!/usr/bin/env python3
"""The kernel's rxe as peer: programs of the distribution, one side here on softverbs, the other in a virtual machine on the
kernel's own soft RoCE; both ways round. Every packet between them is captured and judged. Writes its section of docs/evidence/interop.md for
each setting that it ran as a whole, as with the argument "IPv6"."""
import collections
import os
import shutil
import sys
import time

from cm_rows import SECONDS, SERVER_HERE, SERVER_THERE, add_connections
from guest import GUEST_ADDRESS, HERE, MTUS, NAMESPACE, NEARLY, OUR_ADDRESS, Guest, hears, obstacle, softverbs_here
from report import write_section
from wiretap import Wiretap, judged

from clients import BUILD, Failure, Program, Suite, free_port, listening, need, read_all, tail
from programs.perftest import numbers
from patience import until

GID_INDEX = {4: "1", 6: "0"}  # IPv6: the link-local address
KEPT = f"{BUILD}/interop"  # captures of what failed
MIB = 1 << 20
READS = "16"  # outstanding, as many as softverbs allows
TIMEOUT_CODE = "18"  # 4.096 us * 2^18: an emulated processor is slow


class Interop(Suite):
    """Rows of the table: each is a test with the server on one side."""

    def __init__(self):
        super().__init__()
        self.guest, self.rows, self.results, self.packets, self.failed = Guest(), [], {}, collections.Counter(), 0

    def here(self, command):
        return softverbs_here(self.root, [need(command[0]), *command[1:]])

    def _start_server(self, where, command, port):
        if where == SERVER_THERE:
            return self.guest.serve(" ".join(command), hears(port), SECONDS)
        server = Program(self.here(command), self.environment())
        deadline = until(SECONDS)
        while not listening(port, server.process.pid):
            if server.process.poll() is not None or time.monotonic() > deadline:
                raise Failure(f"the server did not listen: {server.finish(deadline)}")
            time.sleep(0.05)
        return server

    def _start_client(self, where, command):
        if where == SERVER_HERE:
            return Program(self.guest.command(" ".join([*command, OUR_ADDRESS]), SECONDS), dict(os.environ))
        return Program(self.here([*command, GUEST_ADDRESS]), self.environment())

    def across(self, where, ours, theirs, port):
        """Runs a program on each side; both must end well. Returns server and client as Finished."""
        first, second = (theirs, ours) if where == SERVER_THERE else (ours, theirs)
        server = self._start_server(where, first, port)
        try:
            deadline = until(SECONDS + NEARLY)
            try:
                client = self._start_client(where, second).finish(deadline)
            except Failure as late:
                server.kill()
                raise Failure(f"{late}while the server says\n{tail(read_all(server.out))}") from late
            try:
                answer = server.finish(min(deadline, until(SECONDS / 3)))
            except Failure as late:
                raise Failure(f"{late}while the client says\n{client}") from late
        finally:
            server.kill()
        if client.status or answer.status:
            raise Failure(f"{client}{answer}")
        return answer, client

    def report(self, kernel):
        """Writes down the settings whose rows all ran."""
        for setting in dict.fromkeys(setting for setting, _ in self.rows):
            rows = {name: self.results.get((which, name), {}) for which, name in self.rows if which == setting}
            if all(len(result) == len((SERVER_THERE, SERVER_HERE)) for result in rows.values()):
                write_section(setting, rows, self.packets[setting], kernel)

    def row(self, setting, name, test):
        """Adds a test for each way round; `test` gets the side that serves."""
        mtu, version = setting
        self.rows.append((setting, name))
        for where in (SERVER_THERE, SERVER_HERE):
            self.add(f"{name} (MTU {mtu}, IPv{version}, {where})",
                     lambda where=where: self._tell(setting, name, where, test))

    def _tell(self, setting, name, where, test):
        result, path = self.results.setdefault((setting, name), {}), f"{self.directory}/row.pcap"
        self.guest.set_mtu(setting[0])
        try:
            with Wiretap(path):
                test(where)
            packets = judged(path)
        except Failure as why:
            self.failed += 1
            kept = shutil.copy(path, f"{KEPT}/failed-{self.failed}.pcap")
            result[where] = f"failed: {why}"
            raise Failure(f"{why}\nits packets are in {kept}") from why
        self.packets[setting] += packets
        result[where] = "ok"
        return f"{packets} packets"


def exchanges(suite, setting, where, program, size, count, options):
    port = free_port()
    command = [f"ibv_{program}_pingpong", "-g", GID_INDEX[setting[1]], "-s", str(size), "-n", str(count), "-p", str(port), *options]
    if program != "ud":
        command += ["-m", str(setting[0])]
    for side in suite.across(where, command, command, port):
        side.find(rf"^{count} iters in ")
        side.find(rf"^{size * count * 2} bytes in ")
        if "invalid data" in side.out:
            raise Failure(f"wrong data arrived:\n{tail(side.out)}")


def measures(suite, setting, where, program, size, count, options):
    """The client's table has the row. The measured values do not matter: this is about right or wrong."""
    port = free_port()
    command = [program, "-F", "-x", GID_INDEX[setting[1]], "-n", str(count), "-u", TIMEOUT_CODE, "-p", str(port), *options]
    if "atomic" not in program:
        command += ["-s", str(size)]
    if program.startswith(("ib_read", "ib_atomic")):
        command += ["-o", READS]  # each side asks the other for as many as itself could answer, and rxe could answer 128
    if "UD" not in options:
        command += ["-m", str(setting[0])]
    client = suite.across(where, command, command, port)[1]
    rows = [numbers(line) for line in client.out.splitlines()]
    if not any(row[:2] == [size, count] and len(row) >= 5 for row in rows):
        raise Failure(f"no row for {size} bytes and {count} iterations: {client}")


def moves(suite, setting, where, service, operation):
    port = free_port()

    def side(script, device):
        return ["/usr/bin/python3", script, device, GID_INDEX[setting[1]], str(setting[0]), str(port), service, operation]
    for done in suite.across(where, side(f"{HERE}/exchange.py", "soft0"), side("/share/exchange.py", "rxe0"), port):
        done.find("^all data is right$")


def is_found(suite, where):
    """Connection managers answer each other: softverbs ping here, and there a program that asks for a service by the kernel's,
    which must get the answer that the service has no listener (status 1)."""
    if where == SERVER_THERE:
        command = ["ip", "netns", "exec", NAMESPACE, f"{suite.root}/softverbs", "ping", "-c", "5", "-i", "0.3", GUEST_ADDRESS]
        done = Program(command, suite.environment()).finish(until(SECONDS)).check()
        done.find(rf"^{GUEST_ADDRESS}: a RoCEv2 endpoint .*, seq 5, ")
        return
    server = Program(suite.here(["ibv_asyncwatch", "-d", "soft0"]), suite.environment())
    try:
        shown = suite.guest.ask(f"sleep 1; udaddy -s {OUR_ADDRESS} -c 1; true", SECONDS)
    finally:
        server.kill()
    if "RDMA_CM_EVENT_UNREACHABLE, error: 1\n" not in shown:
        raise Failure(shown)


PERFTESTS = (  # program, options, sizes
    ("ib_send_bw", ["-c", "RC"], (1, MIB)), ("ib_send_lat", ["-c", "RC"], (1, MIB)),
    ("ib_send_bw", ["-c", "UC"], (1, 65536)), ("ib_send_lat", ["-c", "UC"], (1, 65536)),
    ("ib_send_bw", ["-c", "UD"], (1, 1024)), ("ib_send_lat", ["-c", "UD"], (1, 1024)),
    ("ib_write_bw", ["-c", "RC"], (1, MIB)), ("ib_write_lat", ["-c", "RC"], (1, MIB)),
    ("ib_write_bw", ["-c", "UC"], (1, 65536)), ("ib_write_lat", ["-c", "UC"], (1, 65536)),
    ("ib_read_bw", [], (1, MIB)), ("ib_read_lat", [], (1, MIB)),
    ("ib_atomic_bw", ["-A", "FETCH_AND_ADD"], (8,)), ("ib_atomic_bw", ["-A", "CMP_AND_SWAP"], (8,)),
    ("ib_atomic_lat", ["-A", "FETCH_AND_ADD"], (8,)), ("ib_atomic_lat", ["-A", "CMP_AND_SWAP"], (8,)),
)


def few(size):
    return 5 if size > 65536 else 20  # perftest takes no less


def add_pingpongs(suite, setting, sizes):
    for program in ("rc", "uc", "srq", "ud"):
        for size in (1, setting[0]) if program == "ud" else sizes:
            suite.row(setting, f"ibv_{program}_pingpong -c, {size} bytes",
                      lambda where, program=program, size=size: exchanges(suite, setting, where, program, size, few(size), ["-c"]))
    for program in ("rc", "ud"):
        suite.row(setting, f"ibv_{program}_pingpong -e, 1000 bytes",
                  lambda where, program=program: exchanges(suite, setting, where, program, 1000, 20, ["-e"]))


def add_data(suite, setting):
    for service, operation in (("RC", "send"), ("RC", "send_imm"), ("RC", "write"), ("RC", "write_imm"), ("RC", "read"),
                               ("RC", "atomic"), ("UC", "send"), ("UC", "write"), ("UC", "write_imm")):
        sizes = "counted" if operation == "atomic" else "1 byte to 1 MiB, data verified"
        suite.row(setting, f"exchange.py {service} {operation}, {sizes}",
                  lambda where, service=service, operation=operation: moves(suite, setting, where, service, operation))


def add_perftests(suite, setting, programs, most):
    """Programs whose name ends so; at most that many sizes of each, the largest."""
    for program, options, sizes in PERFTESTS:
        for size in sizes[-most:] if program.endswith(programs) else ():
            suite.row(setting, " ".join([program, *options]) + f", {size} bytes",
                      lambda where, program=program, options=options, size=size:
                      measures(suite, setting, where, program, size, few(size), options))


def fill(suite):
    """All with rxe's usual MTU, a part of it with the larger one and over IPv6."""
    for mtu in MTUS:
        suite.row((mtu, 4), "softverbs ping, udaddy", lambda where: is_found(suite, where))
    for setting in ((1024, 4), (4096, 4), (1024, 6)):
        whole = setting == (1024, 4)
        add_pingpongs(suite, setting, (1, 65536, MIB) if whole else (MIB,))
        add_data(suite, setting)
        add_perftests(suite, setting, ("_bw", "_lat") if whole else "_bw", 2 if whole else 1)
        add_connections(suite, setting, whole)


def main():
    why = obstacle()
    if why:
        print(f"1..0 # SKIP {why}")
        return 0
    os.makedirs(KEPT, exist_ok=True)
    suite = Interop()
    fill(suite)
    try:
        suite.guest.start()
    except Failure as failure:
        print(f"Bail out! The guest did not start: {failure}")
        return 1
    try:
        kernel = suite.guest.ask("uname -r").strip()
        status = suite.run()
    finally:
        suite.guest.stop()
    suite.report(kernel)
    return status


if __name__ == "__main__":
    sys.exit(main())
