#!/usr/bin/env python3
"""The programs of package perftest, as they are: over each service that perftest itself allows for them, with each of the options below.
Here, each program over each service and each option once; SOFTVERBS_TEST_FULL=1 runs every option over every service (`make matrix`)."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# pylint: disable=wrong-import-position
from clients import FULL, Failure, Suite
from patience import tries

SERVICES = {"send": ("RC", "UC", "UD", "XRC"), "write": ("RC", "UC", "XRC"), "read": ("RC", "XRC"),
            "atomic": ("RC", "XRC")}
LARGEST = 23  # sizes of -a rise to 2^23 bytes
TIMEOUT = 180  # perftest measures the processor's frequency for half a second after each size, on all processors
# Counts of iterations are multiples of 100, perftest's moderation of completions: with others, and several queue pairs, it
# counts more completions than there are, and stops looking for those that are missing.


class Uncalibrated(Failure):
    """perftest could not make out the processor's frequency."""


def numbers(line):
    try:
        return [float(field) for field in line.split()]
    except ValueError:
        return []


def rows(finished):
    """The table of results: message size to number of iterations. The measured rate must not be 0; it may be "inf" where
    perftest, on a busy machine, could not make out the processor's frequency."""
    table = {}
    for line in finished.out.splitlines():
        fields = numbers(line)
        if len(fields) >= 5:
            if not any(fields[2:]):
                raise Failure(f"a row of nothing: {line}\n{finished}")
            table[int(fields[0])] = int(fields[1])
    return table


def until_calibrated(name, run):
    """Both sides, which `run` returns, of a pair whose perftest could make out how fast the processor's clock runs. It compares
    two clocks, and on a machine where other work disturbs that says so ("Correlation coefficient") and shows 0 for every result."""
    def once():
        sides = run()
        for side in sides:
            if "Correlation coefficient" in side.out + side.err:
                raise Uncalibrated(str(side))
        return sides

    return tries(name, 5, "other work disturbs perftest's comparison of two clocks", once, Uncalibrated)


def calibrated(suite, command):
    """The client of such a pair."""
    return until_calibrated(" ".join(command), lambda: suite.pair(command, timeout=TIMEOUT)[1:])[0]


def measures(suite, program, options, sizes, count):
    """The client's table has a row for each size, and the count of iterations that was asked for, on each queue pair."""
    command = [program, "-F", "-n", str(count), *options]
    table = rows(calibrated(suite, command))
    if sorted(table) != sorted(sizes):
        raise Failure(f"{' '.join(command)}: results for sizes {sorted(table)}, not for {sorted(sizes)}")
    expected = count * int(options[options.index("-q") + 1]) if "-q" in options else count
    for size, iterations in table.items():
        if iterations != expected:
            raise Failure(f"{' '.join(command)}: {iterations} iterations at {size} bytes, not {expected}")


def sends_all_datagrams(suite, program):
    """With -a the sizes of a datagram test rise to the path MTU."""
    mtu = int(suite.run_one(["ibv_devinfo", "-v"]).find(r"active_mtu:\s*(\d+)").group(1))
    measures(suite, program, ["-c", "UD", "-a"], [1 << n for n in range(1, mtu.bit_length())], 100)


def begins_directly(suite, program):
    """perftest posts 128 at once to a peer that has reported nothing yet. Only the first needs packets, which make the peer
    report."""
    path, count = f"{suite.directory}-{program}", 1000
    suite.pair([program, "-F", "-s", "4096", "-n", str(count)], extra={"SOFTVERBS_COUNTERS": path})
    with open(path, encoding="utf-8") as lines:
        reports = [json.loads(line)["traffic"][0] for line in lines]
    os.unlink(path)
    direct = max(sum(report["direct"].values()) for report in reports)
    if direct < count - 1:
        raise Failure(f"{direct} of {count} were done without a packet: {[report['sent'] for report in reports]}")


class Matrix:
    """Command lines of perftest: in `cases` programs with options, the sizes that they measure, and how often."""

    def __init__(self, datagram=2048):
        self.cases, self.datagram = [], datagram

    def add(self, program, *options, sizes, count=100):
        self.cases.append((program, list(options), sizes, count))

    def add_latency(self, verb, service):
        program, size = f"ib_{verb}_lat", 8 if verb == "atomic" else 2
        self.add(program, "-c", service, sizes=[size], count=1000)
        if verb == "atomic":
            self.add(program, "-c", service, "-A", "CMP_AND_SWAP", sizes=[size], count=1000)
        elif service != "UD":
            self.add(program, "-c", service, "-a", sizes=[1 << n for n in range(1, LARGEST + 1)], count=20)
        if verb != "write":
            self.add(program, "-c", service, "-e", sizes=[size], count=1000)
        if verb in ("send", "write"):
            self.add(program, "-c", service, "--inline_size=0", "-s", "64", sizes=[64])
            self.add(program, "-c", service, "--inline_size=512", "-s", "512", sizes=[512])

    def add_bandwidth(self, verb, service):
        program = f"ib_{verb}_bw"
        common, size = ["-c", service], {"atomic": 8}.get(verb, self.datagram if service == "UD" else 65536)
        sized = [] if verb == "atomic" else ["-s", str(size)]
        for options in ([], ["-b"], ["-q", "16"], ["-b", "-q", "16"], ["-t", "16"], ["-l", "4"]):
            self.add(program, *common, *sized, *options, sizes=[size], count=1000)
        if verb == "atomic":
            self.add(program, *common, "-A", "CMP_AND_SWAP", sizes=[size], count=1000)
        elif service != "UD":
            for options in (["-a"], ["-a", "-b"]):
                self.add(program, *common, *options, sizes=[1 << n for n in range(1, LARGEST + 1)])
        if verb in ("read", "atomic"):
            self.add(program, *common, *sized, "-o", "1", sizes=[size])
        if verb != "write":
            self.add(program, *common, *sized, "-e", sizes=[size], count=1000)
        if verb in ("send", "write"):
            self.add(program, *common, "--inline_size=256", "-s", "256", sizes=[256], count=1000)

    def add_multicast(self):
        """The options have -x 0, since perftest refuses a group's GID beside one of IPv4."""
        for program in ("ib_send_lat", "ib_send_bw"):
            self.add(program, "-c", "UD", "-g", "-x", "0", "-s", "1024", sizes=[1024])
        self.add("ib_send_bw", "-c", "UD", "-g", "-x", "0", sizes=[4096], count=1000)  # its own defaults

    def add_receive_queues(self):
        for service in SERVICES["send"]:
            size = 1024 if service == "UD" else 65536
            self.add("ib_send_bw", "-c", service, "-s", str(size), "-r", "1000", "-t", "8", sizes=[size], count=1000)
        for service in ("RC", "UD"):
            self.add("ib_send_lat", "-c", service, "--use-srq", sizes=[2], count=1000)
            for options in ([], ["-b"]):
                self.add("ib_send_bw", "-c", service, "-s", "1024", "--use-srq", *options, sizes=[1024], count=500)
        # Not UD: perftest posts as many receives for all of them as each sends, and datagrams without a receive are lost.
        self.add("ib_send_bw", "-c", "RC", "-s", "1024", "--use-srq", "-q", "16", sizes=[1024], count=1000)

    def add_all(self):
        """But for multicast, and for -a of datagrams: those depend on the network."""
        for verb, services in SERVICES.items():
            for service in services:
                self.add_latency(verb, service)
                self.add_bandwidth(verb, service)
        self.add_receive_queues()
        self.add("ib_send_lat", "--use_old_post_send", sizes=[2], count=1000)


def service(case):
    return case[1][1] if case[1][:1] == ["-c"] else "RC"


def features(case):
    """The features that a case shows: its program over its service; and its options for bandwidth or latency, -e with each
    program."""
    program, options = case[:2]
    flags = tuple(word.split("=")[0] for word in options if word.startswith("-") and word not in ("-c", "-s"))
    if "-a" in flags:
        flags = ("-a",)  # and -b: there is a row for each size, most of which are waits
    return {(program, service(case)), (program if flags == ("-e",) else program.rsplit("_", 1)[1], flags)}


def representatives(cases):
    """Few of the cases, with each feature in one of them: first those that show two new ones."""
    left, chosen = set().union(*map(features, cases)), []
    for least in (2, 1):
        for case in cases:
            if len(features(case) & left) >= least:
                chosen.append(case)
                left -= features(case)
    return [case for case in cases if case in chosen]


def main():
    suite = Suite()
    matrix = Matrix()
    matrix.add_all()
    matrix.add_multicast()
    for program, options, sizes, count in matrix.cases if FULL else representatives(matrix.cases):
        suite.add(" ".join([program, *options]), lambda program=program, options=options, sizes=sizes, count=count:
                  measures(suite, program, options, sizes, count))
    for program in ("ib_send_lat", "ib_send_bw") if FULL else ("ib_send_bw",):
        suite.add(f"{program} -c UD -a", lambda program=program: sends_all_datagrams(suite, program))
    for program in ("ib_read_bw", "ib_write_bw"):
        suite.add(f"{program} begins without packets but for one", lambda program=program: begins_directly(suite, program))
    suite.add_tidiness()
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
