#!/usr/bin/env python3
"""How fast softverbs is here, beside UCX and libfabric over shared memory and beside the machine's own limits.

Usage: bench.py SOFTVERBS [ROUNDS [NAME]]

Everything is measured in turn, ROUNDS times over (5), so that what else happens on the machine hits all alike; ratios are
taken within a round. NAME picks the rows whose name holds it. Nothing here passes or fails.
"""
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tests/clients"))
sys.dont_write_bytecode = True

from clients import Failure, Skip, free_port, need, rounds as share, serve  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20
IS_TEST = bool(os.environ.get("TEST_ROUNDS"))  # of the scripts: with few rounds, what softverbs can't do fails
SOFTVERBS = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""


def pinned(side, command):
    """The command on its half of our processors, where there are two: threads of one side do not disturb the other."""
    processors = sorted(os.sched_getaffinity(0))
    half = len(processors) // 2
    mine = processors[half:] if side else processors[:half]
    return ["taskset", "-c", ",".join(map(str, mine)), *command] if half else command


def run_pair(server, client, port, extra=None, pin=True):
    if pin:
        server, client = pinned(0, server), pinned(1, client)
    return serve(server, client, port, {**os.environ, **(extra or {})})[1]


def last_numbers(finished, least):
    """The last line of the output that is numbers only, at least `least` of them."""
    for line in reversed(finished.out.splitlines()):
        try:
            numbers = [float(field) for field in line.split()]
        except ValueError:
            continue
        if len(numbers) >= least:
            return numbers
    raise Failure(f"no result in the output of {finished}")


def perftest(directory, program, size, count, *options, direct="1", pin=True, check=""):
    """A row of perftest's table: size, iterations, and what the program measures. `direct`: SOFTVERBS_DIRECT; `pin`: each side to its processors;
    `check`: SOFTVERBS_CHECK."""
    port = free_port()
    command = [SOFTVERBS, "run", "--", need(program), "-F", "-s", str(size), "-n", str(max(share(count), 16)), "-p", str(port), *options]
    return last_numbers(run_pair(command, [*command, "127.0.0.1"], port, {"SOFTVERBS_DIR": directory, "SOFTVERBS_DIRECT": direct, "SOFTVERBS_CHECK": check, "SOFTVERBS_LOG": "none" if check else ""}, pin), 5)


def perftest_latency(*arguments, **how):
    return perftest(*arguments, **how)[4]  # t_typical, the median of half of a round trip; the whole one for READ


def perftest_bandwidth(*arguments):
    return perftest(*arguments)[3] * MIB / 1e9


def perftest_rate(*arguments, **how):
    return perftest(*arguments, **how)[4]


def ucx(test, size, count):
    """ucx_perftest's last line: iterations, latency (median, average, overall), MiB/s (2), messages each second (2)."""
    port, program = free_port(), need("ucx_perftest")
    command = [program, "-p", str(port), "-f", "-t", test, "-s", str(size), "-n", str(share(count)), "-w", str(share(10000))]
    return last_numbers(run_pair(command, [*command, "127.0.0.1"], port, {"UCX_TLS": "shm"}), 8)


def ucx_latency(*arguments):
    return ucx(*arguments)[1]


def ucx_bandwidth(*arguments):
    return ucx(*arguments)[5] * MIB / 1e9


def ucx_rate(*arguments):
    return ucx(*arguments)[7] / 1e6


def libfabric(size, count):
    """fi_pingpong's latency, half of a round trip, over libfabric's shm provider."""
    port, program = free_port(), need("fi_pingpong")
    command = [program, "-p", "shm", "-e", "rdm", "-m", "tagged", "-I", str(share(count)), "-S", str(size)]
    done = run_pair([*command, "-B", str(port)], [*command, "-P", str(port), "127.0.0.1"], port)
    return float(done.out.splitlines()[-1].split()[-2])


def limit(*arguments):
    program = os.path.join(os.path.dirname(SOFTVERBS), "bench/limits")
    return float(subprocess.run([program, *map(str, arguments)], check=True, capture_output=True, text=True).stdout)


def small(what):
    """SENDs of 8 bytes by the least that a verbs library must do for them (bench/small.c): microseconds, or millions each second."""
    program = os.path.join(os.path.dirname(SOFTVERBS), "bench/small")
    return float(subprocess.run([program, "minimum", what], check=True, capture_output=True, text=True, timeout=60).stdout)


def has_port(port):
    """Whether a process has this UDP port."""
    with open("/proc/net/udp", encoding="ascii") as lines:
        return any(f":{int(port):04X} " in line for line in lines)


def datagrams(count):
    """Half of the round trip of a datagram between two programs that sleep until it arrives (bench/round_trip.c)."""
    program, port = os.path.join(os.path.dirname(SOFTVERBS), "bench/round_trip"), str(free_port())
    with subprocess.Popen(pinned(0, [program, "serve", port])) as server:
        try:
            while not has_port(port) and server.poll() is None:
                time.sleep(0.01)
            done = subprocess.run(pinned(1, [program, "127.0.0.1", port, str(share(count))]), check=True, capture_output=True, text=True, timeout=60)
        finally:
            server.kill()
    return float(done.stdout.split()[1])


def copies(directory, verb, size):
    """READs or WRITEs, and the system call that does them, on the same memory in turn: one run gives all."""
    program, call = os.path.join(os.path.dirname(SOFTVERBS), "bench/copies"), {}

    def ours():
        done = subprocess.run([SOFTVERBS, "run", "--", program, verb, str(size)], check=True, capture_output=True, text=True,
                              env={**os.environ, "SOFTVERBS_DIR": directory})
        verbs, call["plain"], call["pieces"] = map(float, done.stdout.split())
        return verbs
    return {"softverbs": ours, f"process_vm_{verb}v": lambda: call.pop("plain", None),
            "the same in softverbs' pieces": lambda: call.pop("pieces", None)}


def way(directory, name, direct="1", mean=False):
    """Microseconds of one of the lines of bench/ways.c: one way, of a READ there and back; the median, or the mean."""
    program = os.path.join(os.path.dirname(SOFTVERBS), "bench/ways")
    done = subprocess.run([SOFTVERBS, "run", "--", program, name], check=True, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "SOFTVERBS_DIR": directory, "SOFTVERBS_DIRECT": direct})
    return float(done.stdout.split()[2 if mean else 1])


def connections(directory, what, count=5000):
    """Connections made and ended each second, between two processes on all of our processors."""
    program = os.path.join(os.path.dirname(SOFTVERBS), "bench/connections")
    if not os.path.exists(program):
        raise Skip("built without librdmacm")
    command = [program, what, str(share(count))]
    done = subprocess.run(command if what == "tcp" else [SOFTVERBS, "run", "--", *command], check=True, capture_output=True, text=True,
                          env={**os.environ, "SOFTVERBS_DIR": directory})
    return [float(field) for field in done.stdout.split()]


def rows(directory):
    """Name, unit, aim (a bound of the ratio to UCX, or None), and what is measured; ours is first, then UCX's."""
    def latency(program, size, count, *options, **how):
        return lambda: perftest_latency(directory, program, size, count, *options, **how)

    def bandwidth(program, size, count, *options):
        return lambda: perftest_bandwidth(directory, program, size, count, *options)

    def rate(program, size, count, *options, **how):
        return lambda: perftest_rate(directory, program, size, count, *options, **how)

    yield "send latency, 8 B", "us", "at most 1.5", {
        "softverbs": latency("ib_send_lat", 8, 200000), "UCX": lambda: ucx_latency("tag_lat", 8, 200000),
        "libfabric": lambda: libfabric(8, 100000), "the least for a SEND": lambda: small("latency"), "cache line": lambda: limit("line")}
    yield "send latency, 8 B, programs that sleep", "us", None, {
        "softverbs": latency("ib_send_lat", 8, 20000, "-e"), "a datagram over loopback": lambda: datagrams(20000)}
    yield "write latency, 8 B", "us", None, {
        # perftest looks at its memory here and calls nothing
        "softverbs": latency("ib_write_lat", 8, 100000), "as packets": latency("ib_write_lat", 8, 10000, direct="0"), "UCX": lambda: ucx_latency("ucp_put_lat", 8, 200000),
        "process_vm_writev one way": lambda: limit("word"), "cache line": lambda: limit("line")}
    yield "read latency, 8 B", "us", None, {
        "softverbs": latency("ib_read_lat", 8, 100000), "as packets": latency("ib_read_lat", 8, 10000, direct="0"), "UCX": lambda: ucx_latency("ucp_get", 8, 200000),
        "process_vm_readv": lambda: limit("look"), "the same behind 128 lines of code": lambda: limit("walk")}
    yield "write latency, 8 B, not pinned", "us", None, {
        "softverbs": latency("ib_write_lat", 8, 100000, pin=False), "process_vm_writev one way": lambda: limit("word")}
    yield "read latency, 8 B, not pinned", "us", None, {
        "softverbs": latency("ib_read_lat", 8, 100000, pin=False), "process_vm_readv": lambda: limit("look")}
    yield "write latency to a side that polls, 8 B", "us", None, {
        "softverbs": lambda: way(directory, "write-polls"), "a SEND": lambda: way(directory, "send")}
    yield "read latency to a side that polls, 8 B", "us", None, {
        "softverbs": lambda: way(directory, "read-polls"), "two SENDs": lambda: 2 * way(directory, "send")}
    for verb, call in (("write", "process_vm_writev by it"), ("read", "process_vm_readv by it")):
        yield f"{verb} latency to a side that looks, 8 B", "us", None, {
            "softverbs": lambda verb=verb: way(directory, f"{verb}-looks"), call: lambda verb=verb: way(directory, f"{verb}-call")}
        for each in (100, 1000, 10000):
            yield f"{verb} latency to a side that alternates each {each}, 8 B", "us", None, {
                "softverbs": lambda verb=verb, each=each: way(directory, f"{verb}-{each}", mean=True),
                "to one that looks": lambda verb=verb: way(directory, f"{verb}-looks", mean=True),
                "as packets": lambda verb=verb, each=each: way(directory, f"{verb}-{each}", "0", mean=True)}
    yield "send latency, 64 KiB", "us", None, {
        "softverbs": latency("ib_send_lat", 64 * KIB, 10000), "UCX": lambda: ucx_latency("tag_lat", 64 * KIB, 10000),
        "libfabric": lambda: libfabric(64 * KIB, 10000)}
    for size, count in ((64 * KIB, 50000), (MIB, 5000)):
        shown = "1 MiB" if size == MIB else "64 KiB"
        limits = {"memcpy": lambda size=size: limit("memcpy", size),
                  "process_vm_readv": lambda size=size: limit("readv", size),
                  "process_vm_writev": lambda size=size: limit("writev", size)}
        yield f"write bandwidth, {shown}", "GB/s", "at least 0.9" if size == MIB else None, {
            "softverbs": bandwidth("ib_write_bw", size, count),
            "UCX": lambda size=size, count=count: ucx_bandwidth("ucp_put_bw", size, count), **limits,
            "the pieces of a WRITE": lambda size=size: limit("pieces", size)}
        yield f"read bandwidth, {shown}", "GB/s", None, {
            "softverbs": bandwidth("ib_read_bw", size, count),
            "UCX": lambda size=size, count=count: ucx_bandwidth("ucp_get", size, count), **limits}
        yield f"send bandwidth, {shown}", "GB/s", None, {
            "softverbs": bandwidth("ib_send_bw", size, count),
            "UCX": lambda size=size, count=count: ucx_bandwidth("tag_bw", size, count), **limits}
    for verb in ("read", "write"):
        for size, shown in ((64 * KIB, "64 KiB"), (MIB, "1 MiB")):
            yield f"{verb} of {shown}, on the same memory as the call", "GB/s", None, copies(directory, verb, size)
    yield "write message rate, 8 B", "M/s", "at least 1", {
        "softverbs": rate("ib_write_bw", 8, 2000000), "UCX": lambda: ucx_rate("ucp_put_bw", 8, 5000000),
        "ring": lambda: limit("ring")}
    yield "write message rate, 8 B, lists of 16", "M/s", None, {
        "softverbs": rate("ib_write_bw", 8, 2000000, "-l", "16"), "UCX": lambda: ucx_rate("ucp_put_bw", 8, 5000000),
        "process_vm_writev of 16 pieces": lambda: limit("words"), "ring": lambda: limit("ring")}
    yield "send message rate, 8 B", "M/s", None, {
        "softverbs": rate("ib_send_bw", 8, 2000000), "UCX": lambda: ucx_rate("tag_bw", 8, 2000000), "the least for a SEND": lambda: small("rate"),
        "ring": lambda: limit("ring")}
    for size, count in ((8, 100000), (64 * KIB, 10000)):
        shown = "64 KiB" if size > 8 else "8 B"
        yield f"send latency with --check, {shown}", "us", None, {
            "softverbs": latency("ib_send_lat", size, count, check="adapter"), "without": latency("ib_send_lat", size, count)}
    yield "send message rate with --check, 8 B", "M/s", None, {
        "softverbs": rate("ib_send_bw", 8, 500000, check="adapter"), "without": rate("ib_send_bw", 8, 2000000)}
    yield "5,000 connections made and ended", "/s", None, {
        "softverbs": lambda: connections(directory, "qp")[0], "without queue pairs": lambda: connections(directory, "id")[0],
        "TCP": lambda: connections(directory, "tcp")[0]}
    yield "a connection's memory, both ends", "KiB", None, {
        "softverbs": lambda: connections(directory, "qp")[2], "without queue pairs": lambda: connections(directory, "id")[2]}


def measure(all_rows, rounds):
    """The values of each row and contender, one for each round, or None where it failed; and the reasons of failures."""
    values = {name: {who: [] for who in contenders} for name, _, _, contenders in all_rows}
    faults = {}
    for number in range(rounds):
        for name, _, _, contenders in all_rows:
            print(f"\r\033[Kround {number + 1} of {rounds}: {name}", end="", file=sys.stderr, flush=True)
            for who, run in contenders.items():
                value = None
                try:
                    value = run()
                except (Failure, Skip, subprocess.CalledProcessError) as fault:
                    if IS_TEST and who == "softverbs" and not isinstance(fault, Skip):
                        raise
                    faults[f"{name}, {who}"] = str(fault)
                values[name][who].append(value)
    print("\r\033[K", end="", file=sys.stderr, flush=True)
    return values, faults


def spread(numbers, width=0):
    known = [number for number in numbers if number is not None]
    if not known:
        return "-".rjust(width)
    places = 3 if max(known) < 10 else 2 if max(known) < 100 else 1
    middle = statistics.median(known)
    return f"{middle:.{places}f} ({min(known):.{places}f} .. {max(known):.{places}f})".rjust(width)


def ratios(ours, theirs):
    return [mine / other for mine, other in zip(ours, theirs) if mine and other]


def report(all_rows, values):
    print(f"{'':38} {'median (least .. most)':>26}    softverbs divided by it")
    for name, unit, aim, contenders in all_rows:
        print(f"{name}, {unit}")
        ours = values[name]["softverbs"]
        for who in contenders:
            line = f"    {who:34} {spread(values[name][who], 26)}"
            if who != "softverbs":
                line += f"    {spread(ratios(ours, values[name][who]))}"
            print(line + (f"   aim: {aim}" if who == "UCX" and aim else ""))


def processor():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
        return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown processor")


def describe_machine():
    print(f"{processor()}, {len(os.sched_getaffinity(0))} processors for us; load {os.getloadavg()[0]:.1f} at the start")
    print("Latency is half of a round trip (median), READ excepted. Server and client each have half of the processors.")
    print("UCX: ucx_perftest, UCX_TLS=shm. libfabric: fi_pingpong, provider shm. Machine's limits: bench/limits.c.\n")


def main():
    rounds, wanted = int(sys.argv[2]) if len(sys.argv) > 2 else 5, sys.argv[3] if len(sys.argv) > 3 else ""
    directory = tempfile.mkdtemp(prefix="softverbs-bench-", dir="/dev/shm")
    describe_machine()
    all_rows = [row for row in rows(directory) if wanted in row[0]]
    values, faults = measure(all_rows, rounds)
    report(all_rows, values)
    for what, why in faults.items():
        print(f"\nnot measured: {what}: {why}")
    shutil.rmtree(directory, ignore_errors=True)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
