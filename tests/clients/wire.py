#!/usr/bin/env python3
"""The same programs between two hosts: network namespaces of our own, joined by a veth pair, at each MTU and IP version.

All that runs on one host runs here, a part of it with each combination; SOFTVERBS_TEST_FULL=1 runs all with all."""
import os
import re
import subprocess
import sys

from clients import BUILD, Failure, Suite, free_port, need, serve
from perftest import measures
from pingpong import exchanges, exchanges_over_xrc

INSIDE = "SOFTVERBS_TEST_NAMESPACE"
SERVER, CLIENT = "server", "client"
ADDRESSES = {SERVER: ("10.91.0.1", "fd91::1"), CLIENT: ("10.91.0.2", "fd91::2")}
GID_INDEX = {4: "1", 6: "2"}  # as the kernel orders them: the link-local one, IPv4, IPv6
PARTING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "parting.py")
TRIAL = "mount -t tmpfs none /run && ip netns add trial && ip link add eth0 type veth peer name eth1 netns trial"
LISTENER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "listener.py")
SNIFF = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sniff.py")
FULL = os.environ.get("SOFTVERBS_TEST_FULL")


def enter_namespaces():
    """Starts this script again with a network and mounts of its own; as an ordinary user also as its own root."""
    for option in ([], ["--user", "--map-root-user"]):
        unshare = ["unshare", *option, "--net", "--mount"]
        if subprocess.run([*unshare, "sh", "-c", TRIAL], capture_output=True, check=False).returncode == 0:
            os.environ[INSIDE] = "1"
            os.execvp("unshare", [*unshare, sys.executable, *sys.argv])
    print("1..0 # SKIP this machine allows no network namespaces joined by a veth pair")
    sys.exit(0)


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


def make_hosts():
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)  # where "ip netns" keeps its names
    for host in ADDRESSES:
        ip("netns", "add", host)
    ip("link", "add", "eth0", "netns", SERVER, "type", "veth", "peer", "name", "eth0", "netns", CLIENT)
    for host, addresses in ADDRESSES.items():
        ip("-n", host, "link", "set", "lo", "up")
        for address, length in zip(addresses, ("24", "64")):
            ip("-n", host, "address", "add", f"{address}/{length}", "dev", "eth0", *(["nodad"] if ":" in address else []))
    set_mtu(1500)


def set_mtu(mtu):
    for host in ADDRESSES:
        ip("-n", host, "link", "set", "eth0", "mtu", str(mtu), "up")


class Wire(Suite):
    """Pairs of programs on two hosts. Each host has a shared-memory directory of its own."""

    def __init__(self):
        super().__init__()
        self.mtu, self.version, self.options = 1500, 4, []

    @property
    def gid(self):
        return GID_INDEX[self.version]

    def host_environment(self, host):
        return self.environment({"SOFTVERBS_DIR": f"{self.directory}/{host}"})

    def on(self, host, command):
        os.makedirs(f"{self.directory}/{host}", mode=0o700, exist_ok=True)
        return ["ip", "netns", "exec", host, f"{self.root}/softverbs", "run", "--net", "eth0", *self.options, "--",
                need(command[0]), *command[1:]]

    def pair(self, command, server_options=(), client_options=(), timeout=120, extra=None):
        port, index = free_port(), [] if "pingpong" in command[0] else ["-x", self.gid]
        command = [*command, *index, "-p", str(port)]
        return serve(self.on(SERVER, command), [*self.on(CLIENT, command), ADDRESSES[SERVER][0]], port,
                     self.host_environment(SERVER), timeout, self.host_environment(CLIENT), elsewhere=True)

    def run_here(self, *command):
        """A program on the server's host."""
        environment = self.host_environment(SERVER)
        done = subprocess.run(self.on(SERVER, list(command)), env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failure(done.stdout + done.stderr)
        return done.stdout

    def at(self, mtu, version, name, test, options=()):
        """Adds a test with this MTU and IP version, and options of softverbs run."""
        def configured():
            if mtu != self.mtu:
                set_mtu(mtu)
            self.mtu, self.version, self.options = mtu, version, list(options)
            return test()
        self.add(f"{name} (MTU {mtu}, IPv{version})", configured)


def shows_the_interface(suite):
    shown = suite.run_here("ibv_devinfo", "-v")
    mtu = {1500: 1024, 9000: 4096}[suite.mtu]
    for text in (f"active_mtu:\t\t{mtu} ", f"::ffff:{ADDRESSES[SERVER][0]}, RoCE v2", f"{ADDRESSES[SERVER][1]}, RoCE v2"):
        if text not in shown:
            raise Failure(f"no \"{text}\" in\n{shown}")


def add_pingpongs(suite, mtu, version):
    for program in ("rc", "uc", "ud", "srq"):
        largest = 1024 if program == "ud" else 65536
        for size in (1, 1000, largest):
            suite.at(mtu, version, f"ibv_{program}_pingpong {size} bytes",
                     lambda program=program, size=size: exchanges(suite, program, size, 1000, "-c"))
        suite.at(mtu, version, f"ibv_{program}_pingpong -e",
                 lambda program=program: exchanges(suite, program, 1000, 1000, "-e"))
    suite.at(mtu, version, "ibv_xsrq_pingpong", lambda: exchanges_over_xrc(suite, 4096))


def is_right_on_the_wire(suite):
    """What another implementation would see: our packets as they leave, cut up by the kernel, with the identifications that
    it gives them; each has the ICRC that it should."""
    path = f"{suite.directory}/wire.pcap"
    for host in ADDRESSES:  # the kernel cuts them up before they reach the interface, as for an adapter that can't
        ip("-n", host, "link", "set", "eth0", "gso_max_segs", "1")
    sniffer = subprocess.Popen(["ip", "netns", "exec", CLIENT, sys.executable, SNIFF, "eth0", path], stdout=subprocess.PIPE)
    try:
        sniffer.stdout.readline()
        exchanges(suite, "rc", 20000, 20, "-c")
        exchanges(suite, "ud", 1000, 20, "-c")
    finally:
        sniffer.terminate()
        sniffer.wait()
        for host in ADDRESSES:
            ip("-n", host, "link", "set", "eth0", "gso_max_segs", "65535")
    shown = subprocess.run([f"{BUILD}/softverbs", "decode", path], capture_output=True, text=True, check=False)
    packets = sum("SEND" in line for line in shown.stdout.splitlines())
    if shown.returncode or packets < 20 * 2 * (20000 // 4096 + 1):
        raise Failure(f"{packets} packets, exit status {shown.returncode}:\n{shown.stdout[-1000:]}{shown.stderr[-1000:]}")
    return f"{packets} packets of messages"


def a_crowd_survives(suite):
    """100 processes on each host share its port in pairs, and 30 are killed; nobody whose partner lives sees an error."""
    command = [f"{BUILD}/tests/clients/crowd", SERVER, CLIENT, "100", "5", "30"]
    environment = {**suite.environment(), "ENDPOINT_GID": suite.gid}
    done = subprocess.run(suite.on(SERVER, command), env=environment, capture_output=True, text=True, timeout=200, check=False)
    if done.returncode:
        raise Failure(done.stdout + done.stderr)
    return done.stdout.strip()


def listens(suite, network):
    """A process on the server's host, on the network or not; and the number of its queue pair."""
    options = ["--net", "eth0"] if network else []
    command = ["ip", "netns", "exec", SERVER, f"{suite.root}/softverbs", "run", *options, "--", "/usr/bin/python3", LISTENER]
    os.makedirs(f"{suite.directory}/{SERVER}", mode=0o700, exist_ok=True)
    process = subprocess.Popen([*command, GID_INDEX[4] if network else "0"], env=suite.host_environment(SERVER), text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    return process, process.stdout.readline().strip()


def keeps_to_itself(suite):
    """A process that is on no network gets no datagram from there, although one that is gets them for all of the host."""
    (public, its), (private, others) = listens(suite, True), listens(suite, False)
    command = suite.on(CLIENT, ["/usr/bin/python3", LISTENER, GID_INDEX[4], ADDRESSES[SERVER][0], its, others])
    sent = subprocess.run(command, env=suite.host_environment(CLIENT), capture_output=True, text=True, check=False)
    came = [process.communicate("\n", timeout=20)[0].strip() for process in (public, private)]
    if sent.returncode or came != ["1", "0"]:
        raise Failure(f"{came[0]} datagrams came to the process on the network, {came[1]} to the other\n{sent.stderr}")


def parts_in_peace(suite):
    """A message that the receiver was told of is acknowledged, even if the queue pair ends at once."""
    port = free_port()
    command = ["/usr/bin/python3", PARTING, suite.gid, str(port)]
    serve(suite.on(SERVER, command), [*suite.on(CLIENT, command), ADDRESSES[SERVER][0]], port, suite.host_environment(SERVER),
          60, suite.host_environment(CLIENT), elsewhere=True)


def exchanges_with_losses(suite, program, size):
    """The side that ends first leaves at once; when the ACK of the other's last message was lost, nobody is there to send it
    again, and the other, which has all its data, sees its retries run out. Nothing else may go wrong."""
    try:
        exchanges(suite, program, size, 200, "-c")
    except Failure as failure:
        if not re.search(r"^    +200 iters in ", str(failure), re.M) or "invalid data" in str(failure) or \
                str(failure).count("exit status 0") != 1 or "transport retry counter exceeded (12)" not in str(failure):
            raise
        return "the last ACK was lost"
    return None


def add_losses(suite, mtu, version):
    """On a bad network: reliable services lose nothing."""
    fault = ["--fault", f"drop=5%,reorder=5%,dup=1%,seed={mtu + version}"]
    for program in ("rc", "srq"):
        for size in (100, 65536):
            suite.at(mtu, version, f"ibv_{program}_pingpong -c {size} bytes with losses",
                     lambda program=program, size=size: exchanges_with_losses(suite, program, size), fault)
    for program, options, size in (("ib_send_bw", ["-s", "65536"], 65536), ("ib_write_bw", ["-s", "65536"], 65536),
                                   ("ib_read_bw", ["-s", "65536"], 65536), ("ib_atomic_bw", [], 8),
                                   ("ib_write_bw", ["-c", "XRC", "-s", "8192"], 8192)):
        suite.at(mtu, version, " ".join([program, *options, "with losses"]),
                 lambda program=program, options=options, size=size: measures(suite, program, options, [size], 100), fault)


def perftests():
    """Programs with options and the sizes that they measure."""
    sizes = [1 << n for n in range(1, 24)]
    for service in ("RC", "UC", "UD"):
        yield "ib_send_lat", ["-c", service], [2]
        size = 1024 if service == "UD" else 65536
        yield "ib_send_bw", ["-c", service, "-s", str(size)], [size]
    yield "ib_send_bw", ["-c", "RC", "-a"], sizes
    yield "ib_send_bw", ["-c", "RC", "-s", "4096", "-b", "-q", "16"], [4096]
    yield "ib_send_bw", ["-c", "RC", "-s", "4096", "--use-srq"], [4096]
    yield "ib_write_lat", ["-c", "RC"], [2]
    yield "ib_write_bw", ["-c", "RC", "-a"], sizes
    yield "ib_write_bw", ["-c", "XRC", "-s", "65536"], [65536]
    yield "ib_read_lat", ["-c", "RC"], [2]
    yield "ib_read_bw", ["-c", "RC", "-a"], sizes
    yield "ib_atomic_lat", ["-c", "RC"], [8]
    yield "ib_atomic_bw", ["-c", "RC", "-A", "CMP_AND_SWAP", "-b"], [8]


def main():
    if not os.environ.get(INSIDE):
        enter_namespaces()
    make_hosts()
    suite = Wire()
    combinations = [(mtu, version) for mtu in (1500, 9000) for version in (4, 6)]
    for mtu, version in combinations:
        suite.at(mtu, version, "ibv_devinfo shows the interface's GIDs and MTU", lambda: shows_the_interface(suite))
        add_pingpongs(suite, mtu, version)
        if FULL or (mtu == 1500) == (version == 4):
            add_losses(suite, mtu, version)
        suite.at(mtu, version, "every ICRC is right on the wire", lambda: is_right_on_the_wire(suite))
    suite.at(1500, 4, "who is on no network is not reached from there", lambda: keeps_to_itself(suite))
    suite.at(1500, 4, "who destroys a queue pair has acknowledged", lambda: parts_in_peace(suite))
    suite.at(1500, 4, "a crowd of which some are killed shares the port", lambda: a_crowd_survives(suite))
    for number, (program, options, sizes) in enumerate(perftests()):
        for mtu, version in combinations if FULL else [combinations[number % len(combinations)]]:
            suite.at(mtu, version, " ".join([program, *options]),
                     lambda program=program, options=options, sizes=sizes: measures(suite, program, options, sizes, 100))
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
