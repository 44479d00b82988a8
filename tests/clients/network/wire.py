#!/usr/bin/env python3
"""The same programs between two hosts: network namespaces of our own, joined by a veth pair, at each MTU and IP version.

All that runs on one host runs here. Here a part of it at the smaller MTU with IPv4 and at the larger with IPv6;
SOFTVERBS_TEST_FULL=1 runs all with all (`make matrix`)."""
import json
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# pylint: disable=wrong-import-position
from clients import BUILD, FULL, Failure, Program, Suite, free_port, listening, need, serve
from patience import patience, until
from programs.perftest import LARGEST, Matrix, measures, service
from programs.pingpong import MIB, exchanges, exchanges_over_xrc

INSIDE = "SOFTVERBS_TEST_NAMESPACE"
SERVER, CLIENT = "server", "client"
ADDRESSES = {SERVER: ("10.91.0.1", "fd91::1"), CLIENT: ("10.91.0.2", "fd91::2")}
DATAGRAM = {1500: 1024, 9000: 4096}  # bytes of the longest one: the path MTU
MULTICAST_GROUP = "255:14:0:0:0:0:0:0:0:0:0:0:0:0:7:18"
GID_INDEX = {4: "1", 6: "2"}  # as the kernel orders them: the link-local one, IPv4, IPv6
STRANGER, BAD_SOURCE, BAD_PSN = "10.91.0.77", "12", "13"
HERE = os.path.dirname(os.path.abspath(__file__))
TRIAL = "mount -t tmpfs none /run && ip netns add trial && ip link add eth0 type veth peer name eth1 netns trial"
READY_RECEIVER, FORGED_SEND, LISTENER, DESTROYER, SNIFF = [
    f"{HERE}/{name}.py" for name in ("ready_receiver", "forged_send", "datagram_listener", "destroy_after_receive", "sniff")]


def enter_namespaces(without=0):
    """Starts this script again with a separate network and separate mounts; as an ordinary user also as root of a user
    namespace. Where that can't be made the script is skipped, with `without` as its status."""
    for option in ([], ["--user", "--map-root-user"]):
        unshare = ["unshare", *option, "--net", "--mount"]
        if subprocess.run([*unshare, "sh", "-c", TRIAL], capture_output=True, check=False).returncode == 0:
            os.environ[INSIDE] = "1"
            os.execvp("unshare", [*unshare, sys.executable, *sys.argv])
    print("1..0 # SKIP this machine allows no network namespaces joined by a veth pair")
    sys.exit(without)


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


def configure(host, *settings):
    """Sets sysctls there, without their program, which not every system has."""
    for name, value in (setting.split("=") for setting in settings):
        path = f"/proc/sys/{name.replace('.', '/')}"
        subprocess.run(["ip", "netns", "exec", host, "sh", "-c", f"echo {value} >{path}"], check=True)


def make_hosts():
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)  # where "ip netns" keeps its names
    for host in ADDRESSES:
        ip("netns", "add", host)
    ip("link", "add", "eth0", "netns", SERVER, "type", "veth", "peer", "name", "eth0", "netns", CLIENT)
    add_addresses()


def add_addresses():
    for host, addresses in ADDRESSES.items():
        ip("-n", host, "link", "set", "lo", "up")
        for address, length in zip(addresses, ("24", "64")):
            ip("-n", host, "address", "add", f"{address}/{length}", "dev", "eth0", *(["nodad"] if ":" in address else []))
    set_mtu(1500)


def set_mtu(mtu):
    for host in ADDRESSES:
        ip("-n", host, "link", "set", "eth0", "mtu", str(mtu), "up")


class Wire(Suite):
    """Pairs of programs on two hosts. Each host has a separate shared-memory directory."""

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
    for text in (f"active_mtu:\t\t{DATAGRAM[suite.mtu]} ", f"::ffff:{ADDRESSES[SERVER][0]}, RoCE v2", f"{ADDRESSES[SERVER][1]}, RoCE v2"):
        if text not in shown:
            raise Failure(f"no \"{text}\" in\n{shown}")
    index = subprocess.run(["ip", "-n", SERVER, "-j", "link", "show", "eth0"], capture_output=True, text=True, check=True)
    told = suite.run_here("/usr/bin/python3", "-c", "from pyverbs.device import Context, get_device_list as devices\n"
                          f"print(Context(name=devices()[0].name.decode()).query_gid_ex(1, {suite.gid}).ndev_ifindex)")
    if int(told) != json.loads(index.stdout)[0]["ifindex"]:
        raise Failure(f"GID {suite.gid} is of interface {told}")


def add_pingpongs(suite, mtu, version):
    sizes = (1, 64, 4096, 65536, MIB) if FULL else (1, 1000, 65536)
    for program in ("rc", "uc", "ud", "srq"):
        for size in (1, 64, DATAGRAM[mtu]) if program == "ud" else sizes:
            suite.at(mtu, version, f"ibv_{program}_pingpong {size} bytes",
                     lambda program=program, size=size: exchanges(suite, program, size, 1000, "-c"))
        suite.at(mtu, version, f"ibv_{program}_pingpong -e",
                 lambda program=program: exchanges(suite, program, 1000, 1000, "-e"))
    for size in (1, 4096, MIB) if FULL else (4096,):
        for options in ([], ["-e"]):
            suite.at(mtu, version, " ".join(["ibv_xsrq_pingpong", str(size), "bytes", *options]),
                     lambda size=size, options=options: exchanges_over_xrc(suite, size, *options))


def exchanges_among_processes(suite, size):
    """Two clients on one host share the XRC domain of a file there: the server's messages for the one come by way of the other."""
    port, deadline = free_port(), until(120)
    command = ["ibv_xsrq_pingpong", "-g", suite.gid, "-s", str(size), "-n", "50", "-p", str(port)]
    sides = [Program(suite.on(SERVER, [*command, "-c", "2"]), suite.host_environment(SERVER))]
    while not listening(port, sides[0].process.pid) and sides[0].process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    clients = [*suite.on(CLIENT, command), ADDRESSES[SERVER][0]]
    sides += [Program(clients, suite.host_environment(CLIENT)) for _ in range(2)]
    for side in [side.finish(deadline) for side in sides]:
        side.check().find(r"^success$")


def is_right_on_the_wire(suite):
    """The packets that another implementation would see: ours as they leave, cut up by the kernel, with the identifications that
    it gives them; each has the ICRC that it should. There a message asks for its ACK even if no program waits for its end, as is
    so for nearly all messages of ib_send_bw."""
    path = f"{suite.directory}/wire.pcap"
    for host in ADDRESSES:  # the kernel cuts them up before they reach the interface, as for an adapter that can't
        ip("-n", host, "link", "set", "eth0", "gso_max_segs", "1")
    sniffer = subprocess.Popen(["ip", "netns", "exec", CLIENT, sys.executable, SNIFF, "eth0", path], stdout=subprocess.PIPE)
    try:
        sniffer.stdout.readline()
        exchanges(suite, "rc", 20000, 20, "-c")
        exchanges(suite, "ud", 1000, 20, "-c")
        suite.pair(["ib_send_bw", "-F", "-n", "200", "-s", "64"])
    finally:
        sniffer.terminate()
        sniffer.wait()
        for host in ADDRESSES:
            ip("-n", host, "link", "set", "eth0", "gso_max_segs", "65535")
    shown = subprocess.run([f"{BUILD}/softverbs", "decode", path], capture_output=True, text=True, check=False)
    packets = sum("SEND" in line for line in shown.stdout.splitlines())
    if shown.returncode or packets < 20 * 2 * (20000 // 4096 + 1):
        raise Failure(f"{packets} packets, exit status {shown.returncode}:\n{shown.stdout[-1000:]}{shown.stderr[-1000:]}")
    whole = [line for line in shown.stdout.splitlines() if "RC SEND_ONLY" in line]
    silent = [line for line in whole if " ack" not in line]
    if len(whole) < 200 or silent:
        raise Failure(f"{len(silent)} of {len(whole)} messages ask for no ACK: {silent[:1]}")
    return f"{packets} packets of messages"


def a_crowd_survives(suite):
    """100 processes on each host share its port in pairs, and 30 are killed; no process whose partner lives sees an error."""
    return on_both(suite, "kills_two_hosts", SERVER, CLIENT, "100", "5", "30", seconds=200)


def stays(suite, *command, network=True):
    """A process on the server's host, on the network or not, that waits for a line; and the number of its queue pair."""
    options = ["--net", "eth0"] if network else []
    command = ["ip", "netns", "exec", SERVER, f"{suite.root}/softverbs", "run", *options, "--", "/usr/bin/python3", *command]
    os.makedirs(f"{suite.directory}/{SERVER}", mode=0o700, exist_ok=True)
    process = subprocess.Popen(command, env=suite.host_environment(SERVER), text=True, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
    return process, process.stdout.readline().strip()


def keeps_to_itself(suite):
    """A process that is on no network gets no datagram from there, although one that is gets them for all of the host."""
    (public, its), (private, others) = stays(suite, LISTENER, GID_INDEX[4]), stays(suite, LISTENER, "0", network=False)
    command = suite.on(CLIENT, ["/usr/bin/python3", LISTENER, GID_INDEX[4], ADDRESSES[SERVER][0], its, others])
    sent = subprocess.run(command, env=suite.host_environment(CLIENT), capture_output=True, text=True, check=False)
    came = [process.communicate("\n", timeout=patience(20))[0].strip() for process in (public, private)]
    if sent.returncode or came != ["1", "0"]:
        raise Failure(f"{came[0]} datagrams came to the process on the network, {came[1]} to the other\n{sent.stderr}")


def must_agree_on_the_path_mtu(suite):
    """A sender that cuts messages otherwise than the other end expects gets an error, as from adapters."""
    port = free_port()
    command = ["ibv_rc_pingpong", "-g", suite.gid, "-s", "4096", "-n", "10", "-p", str(port)]
    try:
        serve(suite.on(SERVER, [*command, "-m", "512"]), [*suite.on(CLIENT, [*command, "-m", "1024"]), ADDRESSES[SERVER][0]], port,
              suite.host_environment(SERVER), 20, suite.host_environment(CLIENT), elsewhere=True)
    except Failure as failure:
        if "Failed status remote invalid request error (9)" in str(failure):
            return
        raise
    raise Failure("nobody noticed")


def preferring_sockets():
    """How many sockets of the server's host take RoCE from one sender only."""
    shown = subprocess.run(["ip", "netns", "exec", SERVER, "cat", "/proc/net/udp"], capture_output=True, text=True, check=True)
    lines = [line.split() for line in shown.stdout.splitlines()[1:]]
    return sum(line[1].endswith(":12B7") and line[2] != "00000000:0000" for line in lines)


def refused(suite, counted, reason=BAD_SOURCE):
    """How many packets the processes of the server's host have dropped for a reason, once there are as many."""
    deadline = until(10)
    while True:
        shown = subprocess.run([f"{suite.root}/softverbs", "stat", "--once", "--json"], env=suite.host_environment(SERVER),
                               capture_output=True, text=True, check=True)
        number = sum(report["traffic"][0]["dropped"].get(reason, 0) for report in json.loads(shown.stdout))
        if number >= counted or time.monotonic() > deadline:
            return number
        time.sleep(0.1)


def prefers_only_peers(suite):
    """Either of two processes that share the port gets some of the other's datagrams and passes them on. Then the other one
    opens a socket for that sender, unless the sender uses made-up addresses."""
    (one, first), (other, second) = [stays(suite, READY_RECEIVER, GID_INDEX[4], ADDRESSES[CLIENT][0]) for _ in range(2)]
    ip("-n", CLIENT, "address", "add", f"{STRANGER}/24", "dev", "eth0")
    forge = ["ip", "netns", "exec", CLIENT, sys.executable, FORGED_SEND]
    try:
        subprocess.run([*forge, STRANGER, ADDRESSES[SERVER][0], "32", first, second], check=True)
        number, opened = refused(suite, 64), preferring_sockets()
        ahead = [f"{pair}:{0x400000}" for pair in (first, second)]  # the peer's address, and a guess at the rest
        subprocess.run([*forge, ADDRESSES[CLIENT][0], ADDRESSES[SERVER][0], "32", *ahead], check=True)
        guessed, guesses = refused(suite, 64, BAD_PSN), preferring_sockets()
        subprocess.run([*forge, ADDRESSES[CLIENT][0], ADDRESSES[SERVER][0], "32", first, second], check=True)
        deadline = until(10)
        while not preferring_sockets() and time.monotonic() < deadline:
            time.sleep(0.1)
        peers = preferring_sockets()
    finally:
        ip("-n", CLIENT, "address", "delete", f"{STRANGER}/24", "dev", "eth0")
        for process in (one, other):
            process.communicate("\n", timeout=patience(20))
    if number != 64 or opened or guessed != 64 or guesses or not peers:
        raise Failure(f"of 64 packets of a stranger {number} were refused, of guesses {guessed}; {opened} and {guesses} sockets were "
                      f"opened for them, {peers} for a peer")
    return f"{peers} for a peer"


def parts_in_peace(suite):
    """A message whose receive has completed is acknowledged, even if the queue pair ends at once."""
    port = free_port()
    command = ["/usr/bin/python3", DESTROYER, suite.gid, str(port)]
    serve(suite.on(SERVER, command), [*suite.on(CLIENT, command), ADDRESSES[SERVER][0]], port, suite.host_environment(SERVER),
          60, suite.host_environment(CLIENT), elsewhere=True)


def on_both(suite, program, *arguments, seconds):
    """One of our programs, which has processes on both hosts by itself."""
    command = [f"{BUILD}/tests/clients/{program}", *arguments]
    environment = {**suite.environment(), "ENDPOINT_GID": suite.gid}
    done = subprocess.run(suite.on(SERVER, command), env=environment, capture_output=True, text=True, timeout=seconds, check=False)
    if done.returncode:
        raise Failure(done.stdout + done.stderr)
    return done.stdout.strip()


def exchanges_with_losses(suite, program, size, option):
    """The side that ends first leaves at once; when the ACK of the other's last message was lost, no process is left to send it
    again, and the other, which has all its data, sees its retries run out. Nothing else may go wrong."""
    try:
        exchanges(suite, program, size, 200, option)
    except Failure as failure:
        if not re.search(r"^    +200 iters in ", str(failure), re.M) or "invalid data" in str(failure) or \
                str(failure).count("exit status 0") != 1 or "transport retry counter exceeded (12)" not in str(failure):
            raise
        return "the last ACK was lost"
    return None


def losses(mtu, version):
    """Options of a bad network."""
    return ["--fault", f"drop=5%,reorder=5%,dup=1%,seed={mtu + version}"]


def add_lossy_pingpongs(suite, mtu, version):
    """Tests of the reliable services: they lose nothing."""
    for program in ("rc", "srq"):
        for size, option in ((100, "-c"), (65536, "-c"), (4096, "-e")):
            suite.at(mtu, version, f"ibv_{program}_pingpong {option} {size} bytes with losses",
                     lambda program=program, size=size, option=option: exchanges_with_losses(suite, program, size, option),
                     losses(mtu, version))
    suite.at(mtu, version, "ibv_xsrq_pingpong with losses", lambda: exchanges_over_xrc(suite, 4096), losses(mtu, version))


class Collection(Matrix):
    """The tests of the matrix that a network with this MTU and IP version can do."""

    def __init__(self, mtu, version):
        largest = DATAGRAM[mtu]
        super().__init__(min(2048, largest))
        self.add_all()
        for program in ("ib_send_lat", "ib_send_bw"):
            self.add(program, "-c", "UD", "-a", sizes=[1 << n for n in range(1, largest.bit_length())])
            if version == 6:  # perftest refuses a group's GID beside one of IPv4; its own group is never to leave a host (ff01::)
                self.add(program, "-c", "UD", "-g", "-M", MULTICAST_GROUP, "-s", "1024", sizes=[1024])

    def add(self, program, *options, sizes, count=100):
        """Receivers of unreliable services wait for ever for what overran their sockets' buffers (8 MiB), since nothing holds
        such a sender back on a network. So fewer bytes are sent to them than that."""
        case = program, list(options), sizes, count
        if program != "ib_send_bw" or service(case) not in ("UC", "UD"):
            self.cases.append(case)
        elif "-q" in options and service(case) == "UC":
            self.cases.append((program, ["2048" if word == "65536" else word for word in options], [2048], 100))
        elif service(case) == "UD" or "-a" not in options:
            self.cases.append((program, list(options), sizes, 100))

    def some(self, number):
        """One case of each program, others for each number; the numbers go through the services, too."""
        for program in sorted({case[0] for case in self.cases}):
            cases = [case for case in self.cases if case[0] == program and "-a" not in case[1]]
            services = sorted({service(case) for case in cases})
            cases = [case for case in cases if service(case) == services[number % len(services)]]
            yield cases[number % len(cases)]


def survives_losses(case):
    """The services that repeat what is lost; of the others the tests that do not wait for what was lost. Not all sizes up to
    8 MiB: that takes minutes. And ib_send_lat -e of perftest 4.5 has one channel for both its CQs: when an ACK arrives later
    than the answer, which a network may do, it takes the event of one CQ for the other's and posts too much."""
    program, options = case[:2]
    if "-a" in options or (program == "ib_send_lat" and "-e" in options):
        return False
    return service(case) in ("RC", "XRC") or (program, service(case)) == ("ib_write_bw", "UC")


def add_perftests(suite, number, mtu, version):
    every = Collection(mtu, version)
    sizes = [1 << n for n in range(1, LARGEST + 1)]
    more = [(f"ib_{verb}_bw", ["-c", "RC", "-a"], sizes, 100) for verb in ("send", "write", "read")]
    more.append(("ib_send_bw", ["-c", "RC", "-s", "1024", "--use-srq"], [1024], 100))
    multicast = [case for case in every.cases if "-g" in case[1]]
    for program, options, sizes, count in every.cases if FULL else [*every.some(number), more[number], *multicast]:
        suite.at(mtu, version, " ".join([program, *options]),
                 lambda program=program, options=options, sizes=sizes, count=count:
                 measures(suite, program, options, sizes, count))
    every.cases = [case for case in every.cases if survives_losses(case)]
    for program, options, sizes, _ in every.cases if FULL else every.some(number + 2):
        suite.at(mtu, version, " ".join([program, *options, "with losses"]),
                 lambda program=program, options=options, sizes=sizes: measures(suite, program, options, sizes, 100),
                 losses(mtu, version))


def main():
    if not os.environ.get(INSIDE):
        enter_namespaces()
    make_hosts()
    suite = Wire()
    combinations = [(mtu, version) for mtu in (1500, 9000) for version in (4, 6) if FULL or (mtu == 1500) == (version == 4)]
    for mtu, version in combinations:
        suite.at(mtu, version, "ibv_devinfo shows the interface's GIDs and MTU", lambda: shows_the_interface(suite))
        add_pingpongs(suite, mtu, version)
        add_lossy_pingpongs(suite, mtu, version)
        suite.at(mtu, version, "every ICRC is right on the wire", lambda: is_right_on_the_wire(suite))
    suite.at(1500, 4, "processes of a host share an XRC domain", lambda: exchanges_among_processes(suite, 20000))
    suite.at(1500, 6, "they do where packets get lost", lambda: exchanges_among_processes(suite, 20000), losses(1500, 6))
    suite.at(1500, 4, "who is on no network is not reached from there", lambda: keeps_to_itself(suite))
    suite.at(1500, 4, "both ends need the same path MTU", lambda: must_agree_on_the_path_mtu(suite))
    suite.at(1500, 4, "a stranger opens no sockets", lambda: prefers_only_peers(suite))
    suite.at(1500, 4, "who destroys a queue pair has acknowledged", lambda: parts_in_peace(suite))
    suite.at(1500, 4, "memory that is gone is an error", lambda: on_both(suite, "unmapped_memory", CLIENT, SERVER, seconds=100))
    suite.at(1500, 4, "who ends has acknowledged", lambda: on_both(suite, "exit_after_receive", CLIENT, SERVER, "100", seconds=100))
    suite.at(1500, 4, "a late receive needs no ACK timer", lambda: on_both(suite, "late_receive_no_timer", CLIENT, SERVER, "100", seconds=100))
    suite.at(1500, 4, "a crowd of which some are killed shares the port", lambda: a_crowd_survives(suite))
    for number, (mtu, version) in enumerate(combinations):
        add_perftests(suite, number, mtu, version)
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
