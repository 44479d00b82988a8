#!/usr/bin/env python3
"""`softverbs run --fault`: real programs over shared memory that loses, repeats, reorders, delays and corrupts."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# pylint: disable=wrong-import-position
from clients import Failure, Suite, tail
from network.fates import are_those_of_the_seed, within_a_host
from programs.perftest import measures

BAD = "drop=5%,reorder=5%,dup=1%,seed=7"
EXAMPLE = "drop=1%,dup=0.1%,reorder=2%,delay=1ms±0.5ms,corrupt=0.01%,seed=7"  # the first one of docs/how-to/faults.md
JITTER = "delay=1ms±0.9ms,seed=7"
SLOW = "dup=1%,reorder=5%,delay=100us±50us,seed=7"


class Faulty(Suite):
    """Pairs of programs on faulty links, which append what they have counted to a file."""

    faults = BAD

    def pair(self, command, server_options=(), client_options=(), timeout=120, extra=None):
        return super().pair(command, server_options, client_options, timeout,
                            {"SOFTVERBS_FAULT": self.faults, **(extra or {})})


def with_faults(suite, faults, test):
    """The test with a report of what the processes counted: it must show that there were faults."""
    with tempfile.NamedTemporaryFile() as file:
        test({"SOFTVERBS_FAULT": faults, "SOFTVERBS_COUNTERS": file.name})
        return [json.loads(line)["traffic"][0] for line in file]


def measures_in_spite(suite, program, options, sizes):
    suite.faults = BAD
    measures(suite, program, options, sizes, 200)


def finds_its_data(suite, size):
    """Nothing gets lost here, since the ping-pongs do not say goodbye: the side that has received the last message leaves, and if
    the ACK of it was lost, the other side sends it again with no process to receive it. Data on lossy links is looked at in
    tests/api, data over lossy."""
    def exchange(extra):
        for done in suite.pair(["ibv_rc_pingpong", "-g", "0", "-c", "-s", str(size), "-n", "500"], extra=extra):
            done.find("^500 iters in ")
            if "invalid data" in done.out:
                raise Failure(f"wrong data arrived:\n{tail(done.out)}")
    reports = with_faults(suite, SLOW, exchange)
    if sum(report["faults"] for report in reports):
        raise Failure("frames were lost")
    if not sum(report["repeated"] + sum(report["dropped"].values()) for report in reports):
        raise Failure("no packet was repeated or dropped: there were no faults")


def keeps_the_order(suite):
    """UC drops what is left of a message when one of its packets arrives out of turn, and repeats nothing."""
    command = ["ib_write_bw", "-F", "-c", "UC", "-s", "64000", "-n", "200"]
    reports = with_faults(suite, JITTER, lambda extra: suite.pair(command, extra=extra))
    sent = sum(count for report in reports for name, count in report["sent"].items() if name.startswith("UC WRITE"))
    received = sum(count for report in reports for name, count in report["received"].items() if name.startswith("UC WRITE"))
    dropped = [report["dropped"] for report in reports if report["dropped"]]
    if not sent or dropped or sum(report["faults"] for report in reports):
        raise Failure(f"{sent} packets sent, {received} received, dropped by reason: {dropped}")


def the_example_ends_well(suite, program):
    suite.faults = EXAMPLE
    measures(suite, program, ["-s", "65536"], [65536], 300)


def losses(suite, faults, count):
    """The number of UC WRITEs, of `count`, that are lost on the way."""
    command = ["ib_write_bw", "-F", "-c", "UC", "-s", "64", "-n", str(count)]
    reports = with_faults(suite, faults, lambda extra: suite.pair(command, extra=extra))
    sent = sum(report["sent"].get("UC WRITE_ONLY", 0) for report in reports)
    received = sum(report["received"].get("UC WRITE_ONLY", 0) for report in reports)
    lost = sum(report["faults"] for report in reports)
    if sent != count or received != sent - lost:
        raise Failure(f"{sent} sent, {lost} lost, {received} received")
    return lost


def repeats_from_the_seed(suite):
    first = losses(suite, "drop=5%,seed=7", 2000)
    again = losses(suite, "drop=5%,seed=7", 2000)
    other = losses(suite, "drop=5%,seed=8", 2000)
    if first != again or not 50 < first < 150 or other == first:
        raise Failure(f"{first} frames lost, then {again}; with another seed {other}")
    corrupt = losses(suite, "corrupt=10%,seed=7", 1000)
    if not 50 < corrupt < 150:
        raise Failure(f"{corrupt} of 1000 corrupted")
    return f"{first} of 2000 frames lost, twice"


def ignores_a_bad_list(suite):
    """Starts the library without `softverbs run`, which checks the list: it logs the bad list at any level, and the program
    continues."""
    for side in suite.pair(["env", "SOFTVERBS_FAULT=drop=never", "ibv_rc_pingpong", "-g", "0", "-c", "-n", "100"]):
        if side.err.count("SOFTVERBS_FAULT ignored") != 1 or "drop=never" not in side.err:
            raise Failure(str(side))


def main():
    suite = Faulty()
    for program, options, size in (
            ("ib_send_bw", ["-c", "RC", "-s", "65536"], 65536), ("ib_send_bw", ["-c", "RC", "-s", "100", "-b", "-q", "4"], 100),
            ("ib_send_lat", ["-c", "RC"], 2), ("ib_send_bw", ["-c", "XRC", "-s", "4096"], 4096),
            ("ib_write_bw", ["-c", "RC", "-s", "1000000"], 1000000), ("ib_write_lat", ["-c", "RC"], 2),
            ("ib_read_bw", ["-s", "200000"], 200000), ("ib_read_lat", [], 2),
            ("ib_atomic_bw", [], 8), ("ib_atomic_lat", ["-A", "CMP_AND_SWAP"], 8)):
        suite.add(f"{' '.join([program, *options])} with {BAD}",
                  lambda program=program, options=options, size=size: measures_in_spite(suite, program, options, [size]))
    for size in (100, 100000):
        suite.add(f"ibv_rc_pingpong -c of {size} bytes finds its data with {SLOW}",
                  lambda size=size: finds_its_data(suite, size))
    for program in ("ib_read_bw", "ib_write_bw"):
        suite.add(f"{program} with the example of docs/how-to/faults.md", lambda program=program: the_example_ends_well(suite, program))
    suite.add(f"packets stay in their order with {JITTER}", lambda: keeps_the_order(suite))
    suite.add("the same seed loses the same number of frames", lambda: repeats_from_the_seed(suite))
    suite.add("with the same seed a script does the same to each packet of each queue pair",
              lambda: are_those_of_the_seed(lambda command, more: Suite.pair(suite, command, extra=more), within_a_host))
    suite.add("a list of faults that can't be read is ignored, and said", lambda: ignores_a_bad_list(suite))
    suite.add_tidiness()
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
