#!/usr/bin/env python3
"""The programs of package ibverbs-utils, as they are: ibv_devices, ibv_devinfo and the ping-pongs."""
import contextlib
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# pylint: disable=wrong-import-position
from clients import Failure, Suite, free_port, listening, rounds, tail
from patience import until

MIB = 1 << 20
LIMITS = (("max_qp", 16384), ("max_cq", 65536), ("max_qp_wr", 16384), ("max_sge", 32))


def lists_the_device(suite):
    shown = suite.run_one(["ibv_devices"]).find(r"^\s*(soft0)\s+([0-9a-f]{16})\s*$")
    if int(shown.group(2), 16) == 0:
        raise Failure("the node GUID is 0")


def shows_the_device(suite):
    shown = suite.run_one(["ibv_devinfo", "-v"])
    for pattern in (r"hca_id:\s*soft0", r"transport:\s*InfiniBand \(0\)", r"state:\s*PORT_ACTIVE \(4\)",
                    r"link_layer:\s*Ethernet", r"GID\[\s*0\]:\s*\S+, RoCE v2"):
        shown.find(pattern)
    for name, least in LIMITS:
        if int(shown.find(rf"^\s*{name}:\s*(\d+)").group(1)) < least:
            raise Failure(f"{name} is below {least}")
    if int(shown.find(r"max_msg_sz:\s*0x([0-9a-f]+)").group(1), 16) < 1 << 30:
        raise Failure("messages of 1 GiB are not offered")


def exchanges(suite, program, size, count, *options):
    """Both sides count all exchanges and all bytes, and neither finds wrong data."""
    count = rounds(count)
    command = [f"ibv_{program}_pingpong", "-g", suite.gid, "-s", str(size), "-n", str(count), *options]
    for side in suite.pair(command):
        side.find(rf"^{count} iters in ")
        side.find(rf"^{size * count * 2} bytes in ")
        if "invalid data" in side.out:
            raise Failure(f"wrong data arrived:\n{tail(side.out)}")


def exchanges_over_xrc(suite, size, *options):
    """The program prints only "success" when all was exchanged, each side on a queue pair for either direction."""
    for side in suite.pair(["ibv_xsrq_pingpong", "-g", suite.gid, "-s", str(size), "-n", str(rounds(1000)), *options]):
        side.find(r"SRQN [0-9a-f]{6}")
        side.find(r"^success$")


XRC_DOMAIN = "/tmp/xrc_domain"  # of ibv_xsrq_pingpong


def remove_file(path):
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def exchanges_among_processes(suite, clients, size, *options):
    """All of them open the domain of one file, and the server reaches each client's SRQ by each client's queue pair in turn. The
    program does not remove its file, and another user's can't be opened."""
    port, deadline = free_port(), until(120)
    command = ["ibv_xsrq_pingpong", "-g", suite.gid, "-s", str(size), "-n", str(rounds(200)), "-p", str(port), *options]
    remove_file(XRC_DOMAIN)
    sides = [suite.start([*command, "-c", str(clients)])]
    while not listening(port) and sides[0].process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    sides += [suite.start([*command, "127.0.0.1"]) for _ in range(clients)]
    done = [side.finish(deadline) for side in sides]
    remove_file(XRC_DOMAIN)
    for side in done:
        side.check().find(r"^success$")


def sends_the_largest_datagram(suite):
    size = int(suite.run_one(["ibv_devinfo", "-v"]).find(r"active_mtu:\s*(\d+)").group(1))
    exchanges(suite, "ud", size, 10000)
    return f"{size} bytes"


def add_pingpong(suite, program, size):
    count = 10000 if size < MIB else 1000
    name = f"ibv_{program}_pingpong exchanges {size} bytes {count} times"
    suite.add(f"{name}, polling", lambda: exchanges(suite, program, size, count))
    suite.add(f"{name}, sleeping on events", lambda: exchanges(suite, program, size, count, "-e"))


def sizes(suite, program):
    """All cases; for an ordinary user, whose rights to files and other processes' memory may be missing, one that is inline and one that
    is fetched."""
    if suite.user:
        return (64,) if program == "ud" else (64, MIB)
    return (1, 64, 1024) if program == "ud" else (1, 64, 4096, 65536, MIB)


def main():
    suite = Suite()
    suite.add("ibv_devices lists the device", lambda: lists_the_device(suite))
    suite.add("ibv_devinfo -v shows an active RoCE port and the limits", lambda: shows_the_device(suite))
    for program in ("rc", "uc", "ud", "srq"):
        for size in sizes(suite, program):
            add_pingpong(suite, program, size)
        size = 1024 if program == "ud" else MIB
        suite.add(f"ibv_{program}_pingpong -c finds the data it expects",
                  lambda program=program, size=size: exchanges(suite, program, size, 1000, "-c"))
    for size in (1, 4096, MIB):
        for how, options in (("polling", []), ("sleeping on events", ["-e"])):
            suite.add(f"ibv_xsrq_pingpong exchanges {size} bytes, {how}",
                      lambda size=size, options=options: exchanges_over_xrc(suite, size, *options))
    for clients, size, options in ((2, 4096, []), (3, MIB, []), (4, 1, ["-e"])):
        name = f"ibv_xsrq_pingpong exchanges {size} bytes with {clients} clients"
        suite.add(f"{name}{', sleeping on events' if options else ''}",
                  lambda clients=clients, size=size, options=options: exchanges_among_processes(suite, clients, size, *options))
    suite.add("ibv_ud_pingpong sends datagrams of the whole MTU", lambda: sends_the_largest_datagram(suite))
    suite.add_tidiness()
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
