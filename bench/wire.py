#!/usr/bin/env python3
"""RoCEv2 between two hosts, network namespaces joined by a veth pair, beside iperf3 and UCX over TCP on the same pair.

Usage: wire.py SOFTVERBS [ROUNDS [NAME]]

As in bench.py everything is measured in turn, ROUNDS times over (3), and ratios are taken within a round. "datagrams" is
what the kernel alone carries of a middle packet's size (bench/datagrams.c), counted by its payload: the limit of any RoCEv2
on UDP sockets; for latency it is bench/datagram_latency.c, one datagram each way, or with a second one that
acknowledges. Then eight senders to one host at once: Jain's index of fairness, and what they reach together divided by what one reaches alone.
"""
import json
import os
import shutil
import sys
import threading

import bench
from bench import IS_TEST, KIB, MIB, SOFTVERBS, last_numbers, pinned, share
from clients import free_port, need, serve
from network.wire import ADDRESSES, CLIENT, INSIDE, SERVER, enter_namespaces, make_hosts, set_mtu

SENDERS = 8
PATH_MTU = {1500: 1024, 9000: 4096}  # the largest of RoCE that fits
AROUND = 12 + 4  # a middle packet's BTH and ICRC
MUCH = ("-n", "100K") if IS_TEST else ("-t", "2")  # of iperf3, which counts whole seconds only
MTUS = (9000,) if IS_TEST else (1500, 9000)


def on(host, *command):
    return ["ip", "netns", "exec", host, *pinned(int(host == CLIENT), list(command))]


def run_pair(server, client, port, environments):
    return serve(on(SERVER, *server), on(CLIENT, *client), port, environments[0], 120, environments[1], elsewhere=True)[1]


def perftest(directory, program, *options):
    port = free_port()
    command = [SOFTVERBS, "run", "--net", "eth0", "--", need(program), "-F", "-x", "1", "-p", str(port), *map(str, options)]
    environments = [{**os.environ, "SOFTVERBS_DIR": f"{directory}/{host}"} for host in (SERVER, CLIENT)]
    return last_numbers(run_pair(command, [*command, ADDRESSES[SERVER][0]], port, environments), 5)


def at_least_16(count):
    """The number of messages: the share of `count`, and at least 16, which perftest wants."""
    return max(share(count), 16)


def bandwidth(directory, program, size, count):
    return lambda: perftest(directory, program, "-s", size, "-n", at_least_16(count))[3] * MIB / 1e9


def latency(directory, program, size, count):
    return lambda: perftest(directory, program, "-s", size, "-n", at_least_16(count))[4]


def ucx(test, size, count):
    port, program = free_port(), need("ucx_perftest")
    environment = {**os.environ, "UCX_TLS": "tcp", "UCX_NET_DEVICES": "eth0"}
    command = [program, "-p", str(port), "-f", "-t", test, "-s", str(size), "-n", str(share(count)), "-w", str(share(10000))]
    return last_numbers(run_pair(command, [*command, ADDRESSES[SERVER][0]], port, [environment] * 2), 8)


def iperf3(*options):
    port, program = free_port(), need("iperf3")
    client = [program, "-c", ADDRESSES[SERVER][0], "-p", str(port), *MUCH, "-J", *options]
    done = run_pair([program, "-s", "-1", "-p", str(port)], client, port, [os.environ] * 2)
    end = json.loads(done.out)["end"]
    return end["sum" if "-u" in options else "sum_received"]["bits_per_second"] / 8e9


def datagrams(mtu):
    """GB/s of payload that datagrams of this size carry with nothing of ours."""
    port, program = free_port(), os.path.join(os.path.dirname(SOFTVERBS), "bench/datagrams")
    command = [program, "send", ADDRESSES[SERVER][0], str(port), str(mtu + AROUND), "0.01" if IS_TEST else "2"]
    done = run_pair([program, "receive", str(port)], command, port, [os.environ] * 2)
    return float(done.out) * mtu / (mtu + AROUND)


def datagram_latency(way, count):
    """Half of the round trip of a message of 8 bytes in datagrams with nothing of ours."""
    port, program = free_port(), os.path.join(os.path.dirname(SOFTVERBS), "bench/datagram_latency")
    client = [program, "ask", ADDRESSES[SERVER][0], str(port), str(share(count)), way]
    return last_numbers(run_pair([program, "answer", str(port), way], client, port, [os.environ] * 2), 2)[1]


def rows(directory, mtu):
    tcp, udp = (lambda: iperf3()), (lambda: iperf3("-u", "-b", "0", "-l", "1400"))
    yield "send latency, 8 B", "us", "at most 1.0", {
        "softverbs": latency(directory, "ib_send_lat", 8, 20000), "UCX": lambda: ucx("tag_lat", 8, 20000)[1],
        "datagrams with ACKs": lambda: datagram_latency("acknowledged", 20000), "datagrams": lambda: datagram_latency("alone", 20000)}
    for program, test in (("write", "ucp_put_bw"), ("send", "tag_bw")):
        for size, count in ((64 * KIB, 10000), (MIB, 1000)):
            yield f"{program} bandwidth, {size // KIB} KiB", "GB/s", None, {
                "softverbs": bandwidth(directory, f"ib_{program}_bw", size, count),
                "UCX": lambda test=test, size=size, count=count: ucx(test, size, count)[5] * MIB / 1e9,
                "iperf3 TCP (aim: at least 0.85)": tcp, "iperf3 UDP": udp,
                "datagrams": lambda: datagrams(PATH_MTU[mtu])}


def send_at_once(directory, senders):
    """GB/s that each of them reaches in four seconds, or in a test with a few messages."""
    reached = []

    def run():
        reached.append(perftest(directory, "ib_write_bw", "-s", 64 * KIB, *(("-n", 100) if IS_TEST else ("-D", "4")))[3] * MIB / 1e9)
    threads = [threading.Thread(target=run) for _ in range(senders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return reached


def report_incast(directory):
    alone, together = send_at_once(directory, 1), send_at_once(directory, SENDERS)
    if not alone or len(together) != SENDERS:
        print(f"{SENDERS} senders to one host: only {len(together)} of them came to an end")
        return
    fairness = sum(together) ** 2 / (SENDERS * sum(each * each for each in together))
    print(f"{SENDERS} senders to one host: fairness (Jain) {fairness:.3f} (aim: at least 0.95), together "
          f"{sum(together) / alone[0]:.2f} of one alone (aim: at least 0.9)")


def main():
    if not os.environ.get(INSIDE):
        enter_namespaces(without=77)
    make_hosts()
    rounds, wanted = int(sys.argv[2]) if len(sys.argv) > 2 else 3, sys.argv[3] if len(sys.argv) > 3 else ""
    directory = f"/run/bench-{os.getpid()}"
    for host in ADDRESSES:
        os.makedirs(f"{directory}/{host}", mode=0o700)
    for mtu in MTUS:
        set_mtu(mtu)
        print(f"\nBetween two namespaces, MTU {mtu}")
        chosen = [row for row in rows(directory, mtu) if wanted in row[0]]
        values, faults = bench.measure(chosen, rounds)
        bench.report(chosen, values)
        for what, fault in faults.items():
            print(f"{what}: {fault}")
        if wanted in "incast":
            report_incast(directory)
    shutil.rmtree(directory)


if __name__ == "__main__":
    main()
