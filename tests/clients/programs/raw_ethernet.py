#!/usr/bin/env python3
"""The raw_ethernet programs of package perftest between two processes. They don't check what arrives, but they count it, and
what is lost is never made up for: a frame that does not arrive is a test that hangs."""
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# pylint: disable=wrong-import-position
from clients import Failure, Suite, rounds
from patience import until
from programs.perftest import rows, until_calibrated

COUNT, SIZE = rounds(1000), 1000
MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
# The same on either side: the server's rule is for frames that are like those it would send.
PORTS = ["-k", "5000", "-K", "6000"]
IPV4 = ["-j", "192.0.2.1", "-J", "192.0.2.2", *PORTS]
IPV6 = ["-j", "2001:db8::1", "-J", "2001:db8::2", *PORTS, "--raw_ipv6"]
TIMEOUT = 30


def is_ready(suite, pid, receives):
    """Returns true if the program has posted its receives, which it does after making its flow rule."""
    shown = subprocess.run(suite.softverbs("show", "--json"), env=suite.environment(), capture_output=True, check=True)
    return any(process["pid"] == pid and qp["recv_posted"] >= receives
               for process in json.loads(shown.stdout) for qp in process.get("qps", []))


def wait_until_ready(suite, server, receives, deadline):
    while not is_ready(suite, server.process.pid, receives):
        if server.process.poll() is not None or time.monotonic() > deadline:
            raise Failure(f"the server posts no receives: {server.finish(deadline)}")
        time.sleep(0.02)


def run_both(suite, program, options, server_options=(), client_options=()):
    """These programs have no means to wait for each other, so the client starts when the server is ready. There is a
    receive for every frame, so no frame depends on the server's speed."""
    deadline = until(TIMEOUT)
    common = [program, "-F", "-n", str(COUNT), "-s", str(SIZE), "-r", str(COUNT)]
    server = suite.start([*common, "--server", "-B", MACS[0], "-E", MACS[1], *options, *server_options])
    try:
        wait_until_ready(suite, server, COUNT, deadline)
        command = [*common, "--client", "-B", MACS[1], "-E", MACS[0], *options, *client_options]
        client = suite.start(command).finish(deadline).check()
        return server.finish(deadline).check(), client
    finally:
        server.kill()


def exchanges(suite, program, options):
    for side in until_calibrated(program, lambda: run_both(suite, program, options)):
        if rows(side) != {SIZE: COUNT}:
            raise Failure(f"not {COUNT} frames of {SIZE} bytes: {side}")


def answers_bursts(suite, options):
    """All frames are answered. The client is paced, which makes the bursts; the server may send faster, because it ends when
    it has seen the last frame, whether or not its answers have left. Each send must be signalled (-Q 1), as the program
    counts their completions, and it polls for 16 at a time whatever the size of a burst is."""
    paced = ["--rate_limit_type=PP", "--rate_units=M"]
    options = ["-Q", "1", "--burst_size=16", *paced, *options]
    client = run_both(suite, "raw_ethernet_burst_lat", options, ["--rate_limit=1000"], ["--rate_limit=10"])[1]
    client.find(rf"^\s*{SIZE}\s+{COUNT}\s+\d")


def makes_rules(suite):
    """The program asks for a rule of each address and port, times them, and takes them down."""
    done = suite.run_one(["raw_ethernet_fs_rate", "--server", "-n", str(COUNT), "-B", MACS[0], "-E", MACS[1],
                          *IPV4])
    done.find(rf"^{COUNT}\s+\d")


def main():
    suite = Suite()
    for what, options in (("Ethernet", []), ("IPv4 and UDP", IPV4), ("IPv6 and UDP", IPV6), ("IPv4 and TCP", [*IPV4, "--tcp"]),
                          ("VLANs", ["--vlan_en"]), ("a rule for all", ["--promiscuous"])):
        for program in ("raw_ethernet_lat", "raw_ethernet_bw"):
            suite.add(f"{program} with {what}", lambda program=program, options=options: exchanges(suite, program, options))
    for what, options in (("a sniffer", ["--sniffer"]), ("lists of 4", ["-l", "4"]), ("inline data", ["-I", "900"])):
        suite.add(f"raw_ethernet_bw with {what}", lambda options=options: exchanges(suite, "raw_ethernet_bw", options))
    for what, options in (("each frame", []), ("each burst", ["--reply_every=16"])):
        suite.add(f"raw_ethernet_burst_lat has {what} answered", lambda options=options: answers_bursts(suite, options))
    suite.add(f"raw_ethernet_fs_rate makes {COUNT} rules", lambda: makes_rules(suite))
    suite.add_tidiness()
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
