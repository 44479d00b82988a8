#!/usr/bin/env python3
"""Programs of others that connect through librdmacm, as their packages have them: fio, qperf, libfabric, UCX, iSER, QEMU's
migration, and ordinary TCP programs on rsockets. Each is skipped where its package is not installed."""
import contextlib
import filecmp
import glob
import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# pylint: disable=wrong-import-position
from clients import BUILD, Failure, Skip, listening, need
from librdmacm.rdmacm import Host, choose_port, exchange, shown, wait_for_listener
from patience import until

UCX_EXAMPLE = "/usr/share/doc/libucx-dev/examples/ucp_client_server.c"
RSOCKETS = "/usr/lib/*/rsocket/librspreload.so.1"
MEBIBYTE, LENGTH = 1 << 20, 20000
FORGIVING = {"MALLOC_PERTURB_": "0"}  # which meson sets: libiscsi uses memory that it has not written
INITIATOR = "iqn.2026-11.example:initiator"


def scratch():
    return tempfile.TemporaryDirectory(dir="/var/tmp")


def write_random(path, size):
    with open(path, "wb") as file:
        file.write(random.randbytes(size))


def must_be_same(one, other):
    if not filecmp.cmp(one, other, shallow=False):
        raise Failure(f"{other} differs from {one}")


# --- fio: its client always writes, with the verb that it names; random and mixed directions the engine refuses. As it asks for no
# RNR retries, the server has a receive for each SEND from the start.

def moves_data(suite, verb):
    common = ["fio", "--ioengine=rdma", f"--port={choose_port()}", "--bs=64k", f"--size={'1m' if verb == 'send' else '8m'}"]
    with scratch() as directory:
        common.append(f"--aux-path={directory}")
        for side in exchange(suite, [*common, "--name=server", "--rw=read", "--iodepth=32"],
                             [*common, "--name=client", "--rw=write", "--hostname=127.0.0.1", f"--verb={verb}", "--iodepth=1"]):
            side.find(r": err= 0: ")


# --- qperf: the other services it connects by LIDs, which RoCE has not, whatever -cm says

def measures_rc(suite, test):
    port = choose_port()
    server = suite.start(["qperf", "-lp", port])
    try:
        wait_until_listening(port)
        done = suite.run_one(["qperf", "-lp", port, "-cm", "1", "-t", "1", "127.0.0.1", test])
    finally:
        server.kill()
    done.find(r" = +[\d.]+ ")


def wait_until_listening(port, pid="self"):
    deadline = until(20)
    while not listening(int(port), pid):
        if time.monotonic() > deadline:
            raise Failure(f"nobody listens at TCP port {port}")
        time.sleep(0.01)


# --- libfabric

def bounces(suite, provider, endpoint, timeout=60):
    """-c: the program compares. Its server asks for the addresses of "localhost", and libfabric takes the device's."""
    command = ["fi_pingpong", "-p", provider, "-e", endpoint, "-I", "100", "-c"]
    port, deadline = choose_port(), until(timeout)
    server = suite.start_server([*command, "-B", port])
    try:
        wait_until_listening(port, server.process.pid)
        done = suite.start_client([*command, "-P", port, suite.address]).finish(deadline).check()
        server.finish(deadline).check()
    finally:
        server.kill()
    done.find(r"^1k +100 " if endpoint == "dgram" else "^1m +100 ")


# --- UCX, with the transports over verbs alone

def build_ucx_example(directory):
    if not os.path.exists(UCX_EXAMPLE):
        raise Skip("libucx-dev is not installed")
    program = f"{directory}/ucp_client_server"
    done = subprocess.run(["cc", "-o", program, UCX_EXAMPLE, "-lucp", "-lucs"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Skip(f"the example of libucx-dev is not built: {done.stderr.strip().splitlines()[-1]}")
    return program


def talks_over_ucx(suite, transports, api):
    with scratch() as directory:
        alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ" * (LENGTH // 26 + 1)
        command = [build_ucx_example(directory), "-p", choose_port(), "-c", api, "-s", str(LENGTH)]
        extra = {"UCX_TLS": transports, "UCX_SOCKADDR_TLS_PRIORITY": "rdmacm"}
        server = suite.start_server(command, extra)
        try:
            wait_for_listener(suite, server)  # since UCX 1.18 a client that was too early says the same as one whose peer has died
            done = suite.start_client([*command, "-a", suite.address], extra).finish(until(60))
        finally:
            server.kill()
        done.check()
        done.find(rf"^{alphabet[:LENGTH - 1]}")  # 64 KiB of it; the last byte ends the string


def demonstrates_io(suite):
    """Reads and writes in random order, each compared by the program (-q) with the expected data."""
    port = choose_port()
    extra = {"UCX_TLS": "rc_verbs,ud_verbs", "UCX_SOCKADDR_TLS_PRIORITY": "rdmacm"}
    common = ["io_demo", "-d", "1024:65536", "-p", port]
    server = suite.start(common, extra)
    try:
        server.wait_for("started listener")
        done = suite.start([*common, "-q", "-i", "500", "127.0.0.1"], extra).finish(until(60))
    finally:
        server.kill()
    done.check()


# --- programs of TCP on rsockets

def preload():
    found = glob.glob(RSOCKETS)
    if not found:
        raise Skip("librspreload is not installed")
    return {"LD_PRELOAD": found[0]}


def carries_a_file(suite, size=10 * MEBIBYTE):
    """And no socket of TCP has to do with it. Neither end closes the connection, as the other nc would take half of a close for a
    whole one: so the copy is waited for."""
    port, netcat = choose_port(), [need("busybox"), "nc"]
    with scratch() as directory, contextlib.ExitStack() as ends:
        source, copy = f"{directory}/source", f"{directory}/copy"
        write_random(source, size)
        server = suite.start(["sh", "-c", f"sleep 100 | {' '.join(netcat)} -l -p {port} >{copy}"], preload())
        ends.callback(server.kill)
        wait_until_shown(suite, port)
        if listening(int(port)):
            raise Failure("it listens at a socket of TCP")
        client = suite.start(["sh", "-c", f"{' '.join(netcat)} 127.0.0.1 {port} <{source}"], preload())
        ends.callback(client.kill)
        deadline = until(60)
        while os.path.getsize(copy) < size:
            if time.monotonic() > deadline:
                raise Failure(f"only {os.path.getsize(copy)} bytes came")
            time.sleep(0.05)
        must_be_same(source, copy)


def wait_until_shown(suite, port):
    """Waits until `softverbs show` has it."""
    deadline = until(20)
    while not any(each["state"] == "listen" and each["local"].endswith(f":{port}") for report in shown(suite).values() for each in report):
        if time.monotonic() > deadline:
            raise Failure(f"nobody listens at port {port} of rdma_cm")
        time.sleep(0.05)


def serves_from_a_child(suite):
    """rstream -T f takes sockets of TCP, for which librspreload puts rsockets after the server's fork: the captures of the child
    and of the client have their connection, and their data."""
    path, port = f"{suite.directory}-%p.pcapng", choose_port()
    extra = {**preload(), "RDMAV_FORK_SAFE": "1", "SOFTVERBS_CAPTURE": path}
    common = ["rstream", "-p", port, "-S", "65536", "-C", "100", "-T", "f", "-T", "b", "-T", "v"]
    try:
        for side in exchange(suite, [*common, "-b", suite.address], [*common, "-s", suite.address], extra=extra):
            side.find("^custom ")
        files = glob.glob(path.replace("%p", "*"))
        texts = [subprocess.run([f"{BUILD}/softverbs", "decode", file], capture_output=True, text=True, check=True).stdout for file in files]
    finally:
        for file in glob.glob(path.replace("%p", "*")):
            os.unlink(file)
    if sum(" REP " in text and " WRITE_" in text for text in texts) != 2:
        raise Failure("\n".join(texts))


def measures_streams(suite):
    port = choose_port()
    server = suite.start(["iperf", "-s", "-p", port], preload())
    try:
        wait_until_shown(suite, port)
        if listening(int(port)):
            raise Failure("it listens at a socket of TCP")
        done = suite.start(["iperf", "-c", "127.0.0.1", "-p", port, "-t", "1"], preload()).finish(until(30))
    finally:
        server.kill()
    done.check().find(r"bits/sec")


# --- iSER

@contextlib.contextmanager
def target(suite, directory, size):
    """An iSCSI target whose one disk is a file; gives its portal and its name."""
    need("tgtd")
    port, control, name = choose_port(), str(random.randrange(100, 30000)), "iqn.2026-11.example:disk"
    disk = f"{directory}/disk"
    with open(disk, "wb") as file:
        file.truncate(size)
    server = suite.start(["tgtd", "-f", "-C", control, "--iscsi", f"portal=127.0.0.1:{port}", "--iser", f"port={port}"])

    def administer(*arguments):
        return subprocess.run(["tgtadm", "-C", control, *arguments], capture_output=True, text=True, check=False)
    try:
        deadline = until(20)
        while administer("--mode", "system", "--op", "show").returncode:
            if time.monotonic() > deadline or server.process.poll() is not None:
                raise Failure(f"no target: {server.finish(deadline)}")
            time.sleep(0.1)
        for arguments in (("--lld", "iser", "--mode", "target", "--op", "new", "--tid", "1", "-T", name),
                          ("--lld", "iser", "--mode", "logicalunit", "--op", "new", "--tid", "1", "--lun", "1", "-b", disk),
                          ("--lld", "iser", "--mode", "target", "--op", "bind", "--tid", "1", "-I", "ALL"),
                          ("--lld", "iser", "--mode", "target", "--op", "bind", "--tid", "1", "-Q", INITIATOR)):
            done = administer(*arguments)
            if done.returncode:
                raise Failure(f"tgtadm {' '.join(arguments)}: {done.stderr}")
        yield f"127.0.0.1:{port}", name
    finally:
        server.kill()


def stores_blocks(suite, pieces=16, size=256 * 1024):
    """Data written to the disk is in its file, and reads return the file's data; in pieces, as libiscsi takes no more than
    512 KiB at once over iSER."""
    need("qemu-io")
    with scratch() as directory, target(suite, directory, 2 * pieces * size) as (portal, name):
        remote = f"driver=iscsi,transport=iser,portal={portal},target={name},lun=1,initiator-name={INITIATOR}"
        commands = []
        for number in range(pieces):
            write_random(f"{directory}/piece{number}", size)
            commands += ["-c", f"write -s {directory}/piece{number} {number * size} {size}"]
            commands += ["-c", f"write -P {number + 1} {(pieces + number) * size} {size}"]
        for number in range(pieces):
            commands += ["-c", f"read -P {number + 1} {(pieces + number) * size} {size}"]
        done = suite.run_one(["qemu-io", "--image-opts", remote, *commands], extra=FORGIVING)
        with open(f"{directory}/disk", "rb") as disk:
            for number in range(pieces):
                with open(f"{directory}/piece{number}", "rb") as piece:
                    if disk.read(size) != piece.read():
                        raise Failure(f"piece {number} is another")
        if len(re.findall(rf"^(?:wrote|read) {size}/{size} bytes", done.out, re.MULTILINE)) != 3 * pieces or "failed" in done.out:
            raise Failure(str(done))


def inquires(suite):
    need("iscsi-inq")
    with scratch() as directory, target(suite, directory, MEBIBYTE) as (portal, name):
        suite.run_one(["iscsi-inq", "-i", INITIATOR, f"iser://{portal}/{name}/1"], extra=FORGIVING).find(r"^Vendor:IET")


# --- QEMU's migration

class Machine:
    """A virtual machine; its monitor reports its memory and on which host it runs."""

    def __init__(self, suite, directory, name, *options):
        self.path = f"{directory}/{name}.monitor"
        self.program = suite.start(["qemu-system-x86_64", "-accel", "tcg", "-m", "64", "-display", "none", "-nodefaults", "-S",
                                    "-qmp", f"unix:{self.path},server=on,wait=off", *options])
        deadline = until(20)
        self.monitor = socket.socket(socket.AF_UNIX)
        while True:
            with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
                self.monitor.connect(self.path)
                break
            if time.monotonic() > deadline or self.program.process.poll() is not None:
                raise Failure(f"no monitor: {self.program.finish(deadline)}")
            time.sleep(0.05)
        self.monitor.settimeout(60)
        self.lines = self.monitor.makefile("r", encoding="utf-8")
        self.ask("qmp_capabilities")

    def ask(self, command, **arguments):
        self.monitor.sendall(json.dumps({"execute": command, "arguments": arguments}).encode())
        for line in self.lines:
            answer = json.loads(line)
            if "error" in answer:
                raise Failure(f"{command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]
        raise Failure(f"{command}: {self.program.finish(until(5))}")

    def save(self, path, size):
        self.ask("pmemsave", val=MEBIBYTE, size=size, filename=path)

    def end(self):
        with contextlib.suppress(Failure):
            self.ask("quit")
        self.monitor.close()
        self.program.finish(until(10))


def migrates(suite, pin):
    """The memory of the guest, a random pattern in the midst of it, is at the other machine what it was."""
    need("qemu-system-x86_64")
    port, size = choose_port(), 60 * MEBIBYTE
    with scratch() as directory, contextlib.ExitStack() as ends:
        pattern, before, after = (f"{directory}/{name}" for name in ("pattern", "before", "after"))
        write_random(pattern, 30 * MEBIBYTE)
        one = Machine(suite, directory, "one", "-device", f"loader,file={pattern},addr=0x1000000,force-raw=on")
        ends.callback(one.end)
        other = Machine(suite, directory, "other", "-incoming", "defer")
        ends.callback(other.end)
        for machine in (one, other):
            machine.ask("migrate-set-capabilities", capabilities=[{"capability": "rdma-pin-all", "state": pin}])
        other.ask("migrate-incoming", uri=f"rdma:127.0.0.1:{port}")
        one.ask("cont")
        time.sleep(0.5)  # the guest runs before it moves
        one.ask("migrate", uri=f"rdma:127.0.0.1:{port}")
        deadline = until(60)
        while (state := one.ask("query-migrate"))["status"] != "completed":
            if state["status"] in ("failed", "cancelled") or time.monotonic() > deadline:
                raise Failure(json.dumps(state))
            time.sleep(0.05)
        while other.ask("query-status")["status"] == "inmigrate":
            time.sleep(0.05)
        one.save(before, size)
        other.save(after, size)
        must_be_same(before, after)
        with open(after, "rb") as memory, open(pattern, "rb") as file:
            memory.seek(15 * MEBIBYTE)
            if memory.read(30 * MEBIBYTE) != file.read():
                raise Failure("the pattern is not there")
        return f"{state['ram']['transferred'] / MEBIBYTE:.0f} MiB"


def main():
    suite = Host()
    for verb in ("write", "read", "send"):
        suite.add(f"fio moves data by {verb}", lambda verb=verb: moves_data(suite, verb))
    for test in ("rc_bw", "rc_bi_bw", "rc_lat", "rc_rdma_read_bw", "rc_rdma_read_lat", "rc_rdma_write_bw", "rc_rdma_write_lat",
                 "rc_rdma_write_poll_lat", "rc_compare_swap_mr", "rc_fetch_add_mr"):
        suite.add(f"qperf -cm 1 {test}", lambda test=test: measures_rc(suite, test))
    for provider, endpoint in (("verbs", "msg"), ("verbs;ofi_rxm", "rdm")):
        suite.add(f"fi_pingpong -p {provider} -e {endpoint}", lambda provider=provider, endpoint=endpoint: bounces(suite, provider, endpoint))
    for transports in ("rc_verbs", "ud_verbs", "rc_verbs,ud_verbs"):
        for api in ("stream", "tag", "am"):
            suite.add(f"ucp_client_server, {api}, over {transports}",
                      lambda transports=transports, api=api: talks_over_ucx(suite, transports, api))
    suite.add("io_demo compares what it reads and writes", lambda: demonstrates_io(suite))
    suite.add("nc carries a file over rsockets", lambda: carries_a_file(suite))
    suite.add("rstream serves from a child of fork over rsockets", lambda: serves_from_a_child(suite))
    suite.add("iperf measures rsockets", lambda: measures_streams(suite))
    suite.add("iscsi-inq asks a disk of tgt over iSER", lambda: inquires(suite))
    suite.add("qemu-io stores blocks at tgt over iSER", lambda: stores_blocks(suite))
    for pin in (False, True):
        suite.add(f"QEMU migrates a guest{' whose memory is pinned' if pin else ''}", lambda pin=pin: migrates(suite, pin))
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
