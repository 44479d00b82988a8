#!/usr/bin/env python3
"""How fast softverbs is beside the kernel's rxe, both in one virtual machine of two processors, in turn: between two interfaces joined by
a cable (veth), within the host, and when connections are made. Prints tables for docs/evidence/rxe.md; nothing here passes or fails.

Usage: speed.py [ROUNDS [NAME]]     (5 rounds; the rows whose name holds NAME)

rxe of Linux 6.1 finds its ways in the first network namespace only, so its two devices are both there, with rules that send what one
has for the other over the cable; softverbs has a namespace for each end. The machine has one processor, which is emulated and takes a
nanosecond for each instruction, whatever else this machine does: so a microsecond is 1,000 instructions of everything that takes part,
kernel and both programs. Programs sleep until their completion arrives (-e), as two that poll would wait for each other.
With QCPUS=2 and another QACCEL (see lab.env of rxe-guest) they poll, in what time that then takes."""
import os
import shutil
import statistics
import subprocess
import sys

for _name, _value in (("QCPUS", "1"), ("QMEM", "3072"), ("QACCEL", "tcg,thread=single -icount shift=0,sleep=off")):
    os.environ.setdefault(_name, _value)

from guest import STATE, Guest, hears, obstacle

from clients import BUILD, Failure, free_port, install

MIB = 1 << 20
SECONDS = 600  # of the guest's time, which runs ahead while it waits for us
MTUS = (1500, 9000)
SHARE, LIBRARIES = f"{STATE}/share", "/share/softverbs/libraries"
RXE, OURS = ("10.92.0.1", "10.92.0.2"), ("10.91.0.1", "10.91.0.2")
PLACE = """
ip link set eth0 down
for n in 1 2; do ip netns add s$n; done
ip link add sa type veth peer name sb
ip link set sa netns s1 name eth0; ip link set sb netns s2 name eth0
for n in 1 2; do
    ip -n s$n link set lo up; ip -n s$n address add 10.91.0.$n/24 dev eth0; ip -n s$n link set eth0 up
done
ip link add va type veth peer name vb
ip link set va address 02:00:00:00:00:0a; ip link set vb address 02:00:00:00:00:0b
ip address add 10.92.0.1/32 dev va; ip address add 10.92.0.2/32 dev vb; ip link set va up; ip link set vb up
for i in all va vb; do echo 1 >/proc/sys/net/ipv4/conf/$i/accept_local; echo 0 >/proc/sys/net/ipv4/conf/$i/rp_filter; done
ip route add 10.92.0.2 dev va table 101; ip route add 10.92.0.1 dev vb table 102
ip neighbour add 10.92.0.2 lladdr 02:00:00:00:00:0b dev va nud permanent
ip neighbour add 10.92.0.1 lladdr 02:00:00:00:00:0a dev vb nud permanent
for i in va vb; do ip rule add pref 10 iif $i lookup local; done
ip rule add pref 20 from 10.92.0.1 to 10.92.0.2 lookup 101; ip rule add pref 20 from 10.92.0.2 to 10.92.0.1 lookup 102
ip rule add pref 100 lookup local; ip rule del pref 0
rdma link delete rxe0; rdma link add rxea type rxe netdev va; rdma link add rxeb type rxe netdev vb
"""
SET_MTU = "for n in 1 2; do ip -n s$n link set eth0 mtu {0}; done; ip link set va mtu {0}; ip link set vb mtu {0}; sleep 1"


EACH_HAS_ONE = os.environ["QCPUS"] != "1"


class Contender:
    """How the two sides of a program are started in the guest, and where the client finds the server."""

    def __init__(self, before, options, address):
        self.before, self.options, self.address = before, options, address

    def run(self, guest, program, *options):
        """The numbers of the client's row."""
        port = free_port()
        server, client = [" ".join([before, f"taskset -c {side * EACH_HAS_ONE}", program, "-F", *more, *options, *([] if EACH_HAS_ONE else ["-e"]), "-p", str(port)])
                          for side, (before, more) in enumerate(zip(self.before, self.options))]
        space = "ip netns exec s1" if self.before[0] else ""
        text = f"{server} >/tmp/server.txt 2>&1 & for i in $(seq 600); do {space} {hears(port)} && break; sleep 0.1; done; " \
               f"{client} {self.address}; wait"
        return last_numbers(guest.ask(text, SECONDS))


def softverbs(space, *options):
    return f"ip netns exec {space} env LD_LIBRARY_PATH={LIBRARIES} SOFTVERBS_DIR=/tmp/{space} /share/softverbs/bin/softverbs run {' '.join(options)} --"


CABLE = {"softverbs": Contender([softverbs("s1", "--net", "eth0"), softverbs("s2", "--net", "eth0")], [["-x", "1"]] * 2, OURS[0]),
         "rxe": Contender(["", ""], [["-d", "rxea", "-x", "1"], ["-d", "rxeb", "-x", "1"]], RXE[0])}
WITHIN = {"softverbs": Contender([softverbs("s1")] * 2, [[]] * 2, "127.0.0.1"),
          "rxe": Contender(["", ""], [["-d", "rxea", "-x", "1"]] * 2, RXE[0])}


def last_numbers(text):
    for line in reversed(text.splitlines()):
        try:
            numbers = [float(field) for field in line.split()]
        except ValueError:
            continue
        if numbers:
            return numbers
    raise Failure(f"no result in\n{text}")


def datagrams(guest):
    """The time that programs take which only send and receive a datagram."""
    server = "ip netns exec s1 /share/softverbs/round_trip serve 9999"
    return last_numbers(guest.ask(f"{server} & sleep 0.5; ip netns exec s2 /share/softverbs/round_trip {OURS[0]} 9999 500; kill $!"))


def connections(guest, what):
    """Made and ended each second, and made."""
    before, address = {"softverbs": (softverbs("s1"), "127.0.0.1"), "rxe": ("", RXE[0]), "TCP": ("", "127.0.0.1")}[what]
    return last_numbers(guest.ask(f"{before} /share/softverbs/connections {'tcp' if what == 'TCP' else 'qp'} 5000 1 {address}", SECONDS))


def rows(guest):
    """Name, MTU (None: any), unit, and what is measured."""
    def pair(contenders, column, *command, scale=1):
        return {who: lambda each=each: each.run(guest, *command)[column] * scale for who, each in contenders.items()}

    for mtu in (*MTUS, None):
        contenders, where = (CABLE, f"over the cable, MTU {mtu}") if mtu else (WITHIN, "within the host")
        lat = ["ib_send_lat", "-s", "8", "-n", "500"]
        others = {"a plain socket": lambda: datagrams(guest)[1]} if mtu else {}
        yield f"send latency, 8 B, {where}", mtu, "us", {**pair(contenders, 4, *lat), **others}
        for size, shown in ((65536, "64 KiB"), (MIB, "1 MiB")):
            bandwidth = ["ib_send_bw", "-s", str(size), "-n", str(50 * MIB // size)]
            yield f"send bandwidth, {shown}, {where}", mtu, "MB/s", pair(contenders, 3, *bandwidth, scale=MIB / 1e6)
    yield "5,000 connections made and ended", None, "/s", {
        who: lambda who=who: connections(guest, who)[0] for who in ("softverbs", "rxe", "TCP")}


def measure(guest, chosen, rounds):
    """Values by row and contender, one for each round; None where a round had no value."""
    values = {row[0]: {who: [] for who in row[3]} for row in chosen}
    mtu = None
    for number in range(rounds):
        for name, wanted, _, contenders in chosen:
            if wanted and wanted != mtu:
                guest.ask(SET_MTU.format(wanted))
                mtu = wanted
            for who, run in contenders.items():
                try:
                    values[name][who].append(run())
                except Failure as why:
                    print(f"{name}, {who}: {why}", file=sys.stderr)
                    values[name][who].append(None)
            print(f"round {number + 1}, {name}: { {who: all_[-1] for who, all_ in values[name].items()} }", file=sys.stderr, flush=True)
    return values


def median_text(numbers):
    numbers = [number for number in numbers if number is not None]
    return f"{statistics.median(numbers):,.4g}" if numbers else "-"


def report(chosen, values):
    print("| what | unit | softverbs | rxe | softverbs to rxe, median of the rounds (least to most) |\n|---|---|---|---|---|")
    for name, _, unit, contenders in chosen:
        ours, theirs = (values[name][who] for who in ("softverbs", "rxe"))
        ratios = [one / other for one, other in zip(ours, theirs) if one and other]
        shown = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})" if ratios else "-"
        others = "".join(f"; {who} {median_text(values[name][who])}" for who in contenders if who not in ("softverbs", "rxe"))
        print(f"| {name} | {unit} | {median_text(ours)} | {median_text(theirs)} | {shown}{others} |")


def put_into_guest(guest):
    directory = install(f"{SHARE}/install")
    shutil.rmtree(f"{SHARE}/softverbs", ignore_errors=True)
    shutil.move(os.path.dirname(directory), f"{SHARE}/softverbs")
    for program in ("connections", "round_trip"):
        shutil.copy(f"{BUILD}/bench/{program}", f"{SHARE}/softverbs/{program}")
    os.mkdir(f"{SHARE}/softverbs/libraries")
    for line in subprocess.run(["ldd", f"{BUILD}/softverbs"], capture_output=True, text=True, check=True).stdout.splitlines():
        if "jansson" in line or "deflate" in line:  # which the guest has not
            shutil.copy(line.split()[2], f"{SHARE}/softverbs/libraries/")
    guest.ask(f"set -e; {PLACE} sleep 1; for s in s1 s2; do mkdir -m 700 /tmp/$s; done")


def main():
    why = obstacle()
    if why:
        print(f"speed.py: {why}")
        return 0
    rounds, wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 5, sys.argv[2] if len(sys.argv) > 2 else ""
    guest = Guest()
    try:
        guest.start()
        put_into_guest(guest)
        chosen = [row for row in rows(guest) if wanted in row[0]]
        report(chosen, measure(guest, chosen, rounds))
    finally:
        guest.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
