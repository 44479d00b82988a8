#!/usr/bin/env python3
"""Programs for Amazon's EFA, as they are, on the device of the profile efa: rdma-core's tests, perftest over SRD, libfabric's provider
efa, Open MPI on top of it; on one host, and on hosts of a lab, without losses and with. Here, each in a short form; SOFTVERBS_TEST_FULL=1
runs more sizes and options.

libfabric passes by the device between processes of a host, and Open MPI with it, unless FI_EFA_ENABLE_SHM_TRANSFER=0 is set; so each
case of theirs counts the packets of SRD."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# pylint: disable=wrong-import-position
from clients import FULL, Failure, Program, Skip, Suite, listening, need
from librdmacm.rdmacm import choose_port
from patience import until
from programs import rdma_core, ucx
from programs.perftest import measures

PROFILE = ("--profile", "efa")
BY_DEVICE = {"FI_EFA_ENABLE_SHM_TRANSFER": "0"}
MESSAGE = {"rdm": "SRD SEND_ONLY", "dgram": "UD SEND_ONLY"}
TESTS = {44: 16, 56: 20, 65: 21}  # tests of EFA that rdma-core's suite has, by release
PROGRAMS = ("ib_send_lat", "ib_send_bw", "ib_read_lat", "ib_read_bw")
LONGEST = 8928
KNOWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../check/clients.suppressions")  # true findings
OPEN_MPI = ["--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", "efa"]


class OnEfa(Suite):
    """Programs under `softverbs run` have the profile."""

    address = "127.0.0.1"

    def softverbs(self, *arguments):
        return super().softverbs(*arguments[:1], *(PROFILE if arguments[:1] == ("run",) else ()), *arguments[1:])

    def start_server(self, command, extra=None):
        return self.start(command, extra)

    start_client = start_server


class Counters:
    """The packets of programs, which each writes when it ends. Hosts of a lab share /tmp, and not the suite's directory."""

    def __init__(self, suite):
        folder = tempfile.mkdtemp(prefix="softverbs-counters-")
        suite.cleanup.append(folder)
        self.path = os.path.join(folder, "counters")
        self.environment = {"SOFTVERBS_COUNTERS": self.path}

    def take(self):
        """The traffic of each program that has ended since the last call."""
        with open(self.path, encoding="utf-8") as lines:
            traffic = [each for line in lines for each in json.loads(line)["traffic"]]
        os.unlink(self.path)
        return traffic

    def must_have(self, packet, least):
        traffic = self.take()
        sent = sum(each["sent"].get(packet, 0) for each in traffic)
        if sent < least:
            raise Failure(f"{sent} of {packet}, at least {least} expected: {[each['sent'] for each in traffic]}")


def passes_its_tests(suite):
    """rdma-core's tests of EFA: each passes, and none is skipped."""
    tests, done = rdma_core.run_those_of(suite, "efa")
    passed = [test for test in tests if test.outcome == "ok"]
    if len(passed) != len(tests) or len(tests) not in TESTS.values():
        raise Failure(f"{len(passed)} of {len(tests)} pass:\n{done.err}")
    done.check()
    return f"{len(passed)} of {len(tests)}"


def lists_both_endpoints(suite):
    done = suite.run_one(["fi_info", "-p", "efa"])
    for endpoint in ("FI_EP_RDM", "FI_EP_DGRAM"):
        done.find(endpoint)


def bounces(suite, endpoint, size, count, timeout=60, more=None):
    """-c: the program compares. Each message is a packet at least, in each direction."""
    if size.isdigit() and int(size) > LONGEST and "efa-direct" in suite.run_one(["fi_info", "-p", "efa"]).out:
        raise Skip(f"fi_pingpong of libfabric 2 takes the fabric efa-direct, which has messages of {LONGEST} bytes at most, and leaves longer ones out")
    counters, port, deadline = Counters(suite), choose_port(), until(timeout)
    command = ["fi_pingpong", "-p", "efa", "-e", endpoint, "-S", size, "-I", str(count), "-c"]
    extra = {**BY_DEVICE, **counters.environment, **(more or {})}
    server = suite.start_server([*command, "-B", port], extra)
    try:
        while not listening(int(port), server.process.pid):
            if server.process.poll() is not None:
                server.finish(deadline).check()
        suite.start_client([*command, "-P", port, suite.address], extra).finish(deadline).check()
        server.finish(deadline).check()
    finally:
        server.kill()
    counters.must_have(MESSAGE[endpoint], 2 * count)


def breaks_no_rule(suite, endpoint):
    """The checker has only findings that are true and known."""
    report = os.path.join(suite.directory, "findings")
    bounces(suite, endpoint, "1000", 50, more={"SOFTVERBS_CHECK": "adapter", "SOFTVERBS_CHECK_REPORT": report,
                                               "SOFTVERBS_CHECK_SUPPRESSIONS": KNOWN})
    if not os.path.exists(report):
        return
    with open(report, encoding="utf-8") as file:
        found = {json.loads(line)["rule"] for line in file}
    os.unlink(report)
    if found:
        raise Failure(str(found))


def passes_messages(suite, ranks=ucx.RANKS):
    """mpi.c compares all that its ranks get."""
    launcher, compiler = need("mpirun.openmpi"), need("mpicc.openmpi")
    program, counters = os.path.join(suite.directory, "mpi"), Counters(suite)
    subprocess.run([compiler, "-O2", "-o", program, os.path.abspath(ucx.SOURCE)], check=True)
    done = suite.start([launcher, "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), *OPEN_MPI, program],
                       {**BY_DEVICE, **counters.environment}).finish(until(100)).check()
    os.unlink(program)
    if done.out.count("fine") != ranks:
        raise Failure(str(done))
    counters.must_have(MESSAGE["rdm"], 500)


# --- hosts of a lab

# go SERVER CLIENT PORT PROGRAM...: the client comes again until the server listens; both must end well.
SHELL = """set -e
go() {
    server=$1 client=$2 port=$3; shift 3
    softverbs on $server -- "$@" -p $port >/dev/null & left=$!
    for i in $(seq 100); do softverbs on $client -- "$@" -p $port $server 2>/dev/null && break; sleep 0.1; done
    wait $left
}
"""


def on_hosts(suite, hosts, script, options=(), seconds=60):
    """Runs the script on the first host; returns its output, and the traffic of all programs."""
    counters = Counters(suite)
    lab = [*Suite.softverbs(suite, "lab", "--hosts", str(hosts), *PROFILE, *options), "--", "sh", "-c", SHELL + script]
    done = Program(lab, suite.environment({**counters.environment, "SOFTVERBS_DIR": ""})).finish(until(seconds))
    if "allows no namespaces" in done.err or "can't be mounted" in done.err:
        raise Skip(done.err.strip())
    return done.check(), counters.take()


def must_have_rows(done, rows):
    for size, count in rows:
        done.find(rf"^ {size} +{count} ")


def must_have_lost(traffic):
    if not sum(each["faults"] for each in traffic):
        raise Failure(f"no packet was lost: {[each['sent'] for each in traffic]}")


def measures_between_hosts(suite, options, lossy):
    """Each program from one host to another, among three of them."""
    perftest = "-c SRD -x 0 -F"
    need(PROGRAMS[0])
    done, traffic = on_hosts(suite, 3, f"""
go h2 h1 21001 ib_send_lat {perftest} -n 200 -s 64
go h3 h2 21002 ib_send_bw {perftest} -n 200 -s {LONGEST}
go h1 h3 21003 ib_read_lat {perftest} -n 100 -s 64
go h2 h3 21004 ib_read_bw {perftest} -n 100 -s 65536
""", options)
    must_have_rows(done, [(64, 200), (LONGEST, 200), (64, 100), (65536, 100)])
    if lossy:
        must_have_lost(traffic)


def bounces_between_hosts(suite, size, count, options, lossy):
    """The addresses of two hosts differ, so that libfabric needs no word to take the device."""
    need("fi_pingpong")
    _, traffic = on_hosts(suite, 2, f"""
softverbs on h2 -- fi_pingpong -p efa -e rdm -S {size} -I {count} -c >/dev/null & left=$!
for i in $(seq 100); do fi_pingpong -p efa -e rdm -S {size} -I {count} -c h2 2>/dev/null && break; sleep 0.1; done
wait $left
""", options)
    sent = sum(each["sent"].get(MESSAGE["rdm"], 0) for each in traffic)
    if sent < 2 * count:
        raise Failure(f"{sent} messages")
    if lossy:
        must_have_lost(traffic)


def add_perftests(suite):
    for program in PROGRAMS:
        size = 65536 if program == "ib_read_bw" else 1024
        rows = [(["-s", str(size)], [size], 200)]
        if FULL:
            latency, reads = program.endswith("lat"), "read" in program
            rows.append((["-a"], [1 << n for n in range(1, 24 if reads else 14)], 20))
            rows += [] if latency else [(["-s", str(size), "-q", "4"], [size], 200), (["-s", str(size), "-t", "16"], [size], 200)]
            rows += [] if latency or reads else [(["-s", str(LONGEST), "-b"], [LONGEST], 200)]
        for options, sizes, count in rows:
            suite.add(" ".join([program, "-c SRD", *options]), lambda program=program, options=options, sizes=sizes, count=count:
                      measures(suite, program, ["-c", "SRD", "-x", "0", *options], sizes, count))


def add_labs(suite):
    for name, options in (("", ()), (", one packet of 100 lost", ("--fault", "drop=1%"))):
        suite.add(f"perftest over SRD on three hosts{name}", lambda options=options: measures_between_hosts(suite, options, options))
        for size, count in (("all", 20), ("1000", 100)) if FULL else (("1000", 100),):
            suite.add(f"fi_pingpong -p efa -e rdm -S {size} on two hosts{name}", lambda size=size, count=count, options=options:
                      bounces_between_hosts(suite, size, count, options, options))


def main():
    suite = OnEfa()
    suite.add("rdma-core's tests of EFA pass", lambda: passes_its_tests(suite))
    suite.add("fi_info -p efa lists both endpoints", lambda: lists_both_endpoints(suite))
    for endpoint, size in (("rdm", "1000"), ("rdm", "100000"), ("dgram", "1000")):
        suite.add(f"fi_pingpong -p efa -e {endpoint} -S {size}", lambda endpoint=endpoint, size=size: bounces(suite, endpoint, size, 50))
    for endpoint in MESSAGE:
        suite.add(f"fi_pingpong -p efa -e {endpoint} breaks no rule of the checker", lambda endpoint=endpoint: breaks_no_rule(suite, endpoint))
    if FULL:
        for endpoint in MESSAGE:
            suite.add(f"fi_pingpong -p efa -e {endpoint} -S all", lambda endpoint=endpoint: bounces(suite, endpoint, "all", 50, 240))
        suite.add("Open MPI over libfabric's provider efa", lambda: passes_messages(suite))
    add_perftests(suite)
    add_labs(suite)
    suite.add_tidiness()
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
