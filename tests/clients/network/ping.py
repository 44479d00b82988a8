#!/usr/bin/env python3
"""softverbs ping between two hosts with a router between them: network namespaces joined by veth pairs. Our own programs on the
network answer; requests that no honest sender makes are built here, with a separate codec."""
import json
import os
import re
import socket
import struct
import subprocess
import sys
import time
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# pylint: disable=wrong-import-position
from clients import BUILD, Failure, Program, Skip, Suite, need
from network.wire import INSIDE, configure, enter_namespaces, ip
from patience import patience, until

SERVER, CLIENT, ROUTER = "server", "client", "router"
ADDRESSES = {CLIENT: ("10.91.0.2", "fd91::2"), SERVER: ("10.92.0.2", "fd92::2")}
GATEWAYS = {CLIENT: ("10.91.0.1", "fd91::1"), SERVER: ("10.92.0.1", "fd92::1")}
LENGTHS = ("24", "64")
NOWHERE = "10.99.0.1"  # the router drops packets to there, without a word
UNREACHABLE = "10.97.0.1"  # the client itself knows no way
PORT = 4791
QUICKLY, PATIENTLY = ["-i", "0.1", "-W", "1"], ["-i", "0.1", "-W", "30"]  # with an answer, a busy machine may take its time
CROWD = 100
UD_SEND_ONLY, RC_SEND_ONLY = 0x64, 0x04
QKEY, PKEY = 0x80010000, 0xffff
REQUEST, REPLY, ALTERNATE = 0x17, 0x18, 0x19


def meet(host, address):
    """The first packet between two hosts waits for the neighbours' answers; this one is sent first, and ends with the ICMP error
    of a port without a listener."""
    program = "import socket, sys; s = socket.socket(socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM); " \
              "s.settimeout(5); s.connect((sys.argv[1], 9)); s.send(b''); s.recv(1)"
    subprocess.run(["ip", "netns", "exec", host, sys.executable, "-c", program, address], capture_output=True, check=False)


def make_hosts():
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)  # where "ip netns" keeps its names
    for host in (ROUTER, *ADDRESSES):
        ip("netns", "add", host)
        ip("-n", host, "link", "set", "lo", "up")
        configure(host, "net.ipv4.icmp_ratelimit=0", "net.ipv6.icmp.ratelimit=0")  # every question is to be refused
        configure(host, "net.ipv6.conf.default.accept_dad=0")  # else link-local addresses find no neighbour for a second
    configure(ROUTER, "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
    for host, addresses in ADDRESSES.items():
        ip("link", "add", "eth0", "netns", host, "type", "veth", "peer", "name", host, "netns", ROUTER)
        for place, interface, ours in ((host, "eth0", addresses), (ROUTER, host, GATEWAYS[host])):
            for address, length in zip(ours, LENGTHS):
                ip("-n", place, "address", "add", f"{address}/{length}", "dev", interface,
                   *(["nodad"] if ":" in address else []))
            ip("-n", place, "link", "set", interface, "up")
        for address in GATEWAYS[host]:
            ip("-n", host, "route", "add", "default", "via", address)
    ip("-n", ROUTER, "route", "add", "blackhole", f"{NOWHERE}/32")
    ip("-n", CLIENT, "route", "add", "unreachable", f"{UNREACHABLE}/32")
    for host in ADDRESSES:
        for address in ADDRESSES[SERVER if host == CLIENT else CLIENT]:
            meet(host, address)


def set_mtu(client=1500, router=1500, server=1500):
    """The MTU of the client's link, of the router's side towards the server, and of the server's."""
    for host, interface, mtu in ((CLIENT, "eth0", client), (ROUTER, CLIENT, client), (ROUTER, SERVER, router),
                                 (SERVER, "eth0", server)):
        ip("-n", host, "link", "set", interface, "mtu", str(mtu))
    for version in ("-4", "-6"):
        for host in (ROUTER, *ADDRESSES):
            ip(version, "-n", host, "route", "flush", "cache")


class Crowd:
    """Processes on a host that have a device open, on its network interface or not. Other processes may be there before."""

    def __init__(self, suite, host, number, options=("--net", "eth0")):
        self.suite, self.host = suite, host
        self.count, self.sockets = number + len(suite.told(host)), number + self._sockets()
        command = [*suite.on(host, "run", *options, "--"), need("ibv_asyncwatch"), "-d", "soft0"]
        self.programs = [Program(command, suite.host_environment(host)) for _ in range(number)]
        self.network = "--net" in options

    def __enter__(self):
        deadline = until(60)
        while len(self.suite.told(self.host)) < self.count or (self.network and self._sockets() < self.sockets):
            if time.monotonic() > deadline:
                self.__exit__()
                raise Failure(f"not all of {self.count} processes came up")
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        for program in self.programs:
            program.kill()

    def _sockets(self):
        """The sockets over IPv4 that are bound to the port."""
        shown = subprocess.run(["ip", "netns", "exec", self.host, "cat", "/proc/net/udp"], capture_output=True, text=True, check=True)
        return len(re.findall(rf" 0+:{PORT:04X} ", shown.stdout))


class Ping(Suite):
    """Each host has a separate shared-memory directory."""

    def host_environment(self, host):
        directory = f"{self.directory}/{host}"
        os.makedirs(directory, mode=0o700, exist_ok=True)
        return self.environment({"SOFTVERBS_DIR": directory})

    def on(self, host, *arguments):
        return ["ip", "netns", "exec", host, *self.softverbs(*arguments)]

    def ask(self, host, *arguments, status=0):
        """The output of the command on this host; it must end with that status."""
        done = Program(self.on(host, *arguments), self.host_environment(host)).finish(until(60))
        if done.status != status:
            raise Failure(f"status {status} was expected: {done}")
        return done

    def ping(self, address, *options, host=CLIENT, status=0, count=3):
        return self.ask(host, "ping", "-c", str(count), *(QUICKLY if status else PATIENTLY), *options, address, status=status)

    def told(self, host):
        """The counts of each process on the host."""
        return json.loads(self.ask(host, "stat", "--once", "--json").out)


def lacks(done, *texts):
    for text in texts:
        if text in done.out:
            raise Failure(f"\"{text}\" in the output of\n{done}")
    return done


def has(done, *texts):
    for text in texts:
        if text not in done.out:
            raise Failure(f"no \"{text}\" in the output of\n{done}")
    return done


def answers(suite, address):
    with Crowd(suite, SERVER, 1):
        done = suite.ping(address)
    for number in (1, 2, 3):
        done.find(rf"^{address}: softverbs \d+\.\d+\.\d+, seq {number}, \d+\.\d{{3}} ms$")
    done.find(rf"^--- {address}: 3 sent, 3 answered, 0% lost, min/avg/max \d+\.\d{{3}}/\d+\.\d{{3}}/\d+\.\d{{3}} ms$")


def asks_about_a_port(suite):
    """Ports of connections, and of datagrams; which one of them listens at is not the other's."""
    address = ADDRESSES[SERVER][0]
    server = Program([*suite.on(SERVER, "run", "--net", "eth0", "--"), need("rping"), "-s", "-a", address, "-p", "7174"],
                     suite.host_environment(SERVER))
    try:
        deadline = until(30)
        while "listen" not in suite.ask(SERVER, "show", "connections").out:
            if time.monotonic() > deadline:
                raise Failure("rping does not listen")
        here, nobody = [f"{address}: {who} listens at port " for who in ("a program", "no program")]
        has(suite.ping(address, "-p", "7174"), f"{here}7174 of librdmacm\n", "3 answered")
        has(suite.ping(address, "-p", "7175", status=1), f"{nobody}7175 of librdmacm\n", "3 answered")
        has(suite.ping(address, "-u", "-p", "7174", status=1), f"{nobody}7174 of librdmacm\n")
        if json.loads(suite.ping(address, "--json", "-p", "7174").out)["listens"] is not True or server.process.poll() is not None:
            raise Failure("the server noticed")
    finally:
        server.kill()


def answers_once(suite):
    """The process that gets the request answers, and no other."""
    with Crowd(suite, SERVER, 5):
        for _ in range(3):
            lacks(has(suite.ping(ADDRESSES[SERVER][0], count=10), "10 sent, 10 answered"), "again")


def finds_its_asker(suite, address):
    """The kernel hands the answer to any of the processes that share the port."""
    with Crowd(suite, CLIENT, CROWD), Crowd(suite, SERVER, 1):
        for _ in range(4):
            has(suite.ping(address, count=2), "2 sent, 2 answered")


def knows_the_path(suite, address, mtus, *expected):
    set_mtu(*mtus)
    try:
        with Crowd(suite, SERVER, 1):
            return has(suite.ping(address), *expected).find("^path MTU: .*").group()
    finally:
        set_mtu()


def hears_that_nobody_listens(suite, address):
    has(suite.ping(address, status=1), f"{address}: nothing listens on UDP port 4791\n", "3 sent, 0 answered, 100% lost",
        "The host is there, but nothing listens")


def hears_nothing(suite):
    has(suite.ping(NOWHERE, status=1), "3 sent, 0 answered, 100% lost\nNo answer.")


def hears_from_the_router(suite):
    ip("-n", ROUTER, "route", "add", "unreachable", "10.98.0.1/32")
    has(suite.ping("10.98.0.1", status=1), "10.91.0.1 says: No route to host\n", "0 answered, 100% lost\n10.91.0.1 says: No route to host.\n")


def keeps_to_itself(suite):
    """A program that its user has put on no network does not answer."""
    with Crowd(suite, SERVER, 1, options=()):
        hears_that_nobody_listens(suite, ADDRESSES[SERVER][0])


def pings_its_own_host(suite, address):
    has(suite.ping(address, host=SERVER, status=1), "3 sent, 0 answered", "own, and no program ")
    with Crowd(suite, SERVER, 3):
        has(suite.ping(address, host=SERVER), "3 sent, 3 answered")


def reaches_its_neighbour(suite):
    """By a link-local address, which needs the interface with it; the other end has two interfaces and is on one."""
    shown = subprocess.run(["ip", "-j", "-n", ROUTER, "-6", "address", "show", "dev", CLIENT, "scope", "link"],
                           capture_output=True, text=True, check=True)
    address = next(each["local"] for link in json.loads(shown.stdout) for each in link.get("addr_info", [])
                   if "local" in each)
    with Crowd(suite, ROUTER, 1, options=("--net", CLIENT)):
        has(suite.ping(f"{address}%eth0"), f"{address}%eth0: softverbs ", "3 sent, 3 answered", "proven: ")
        has(suite.ping(GATEWAYS[CLIENT][0], "--net", "eth0"), "3 sent, 3 answered")
        has(suite.ping(GATEWAYS[SERVER][0], status=1), "3 sent, 0 answered, 100% lost")


def is_no_endpoint_itself(suite):
    """While the server's host pings, it has the port: without other processes it answers nothing, and with one the process
    answers."""
    command = suite.on(SERVER, "ping", "-c", "0", *QUICKLY, ADDRESSES[CLIENT][0])
    other = Program(command, suite.host_environment(SERVER))
    try:
        while len(suite.told(SERVER)) < 1:
            time.sleep(0.05)
        has(suite.ping(ADDRESSES[SERVER][0], status=1), "3 sent, 0 answered", "No answer.")
        with Crowd(suite, SERVER, 1):
            for _ in range(8):
                has(suite.ping(ADDRESSES[SERVER][0], count=1), "1 sent, 1 answered")
    finally:
        other.kill()


def is_silent_when_the_port_is_down(suite):
    with Crowd(suite, SERVER, 1):
        suite.ask(SERVER, "event", "port-down", "soft0")
        try:
            has(suite.ping(ADDRESSES[SERVER][0], status=1), "No answer.")
        finally:
            suite.ask(SERVER, "event", "port-up", "soft0")
        has(suite.ping(ADDRESSES[SERVER][0]), "3 answered")


def works_for_anybody(suite):
    if os.geteuid() or "nobody" not in open("/etc/passwd", encoding="utf-8").read() or not maps_others():
        raise Skip("only root can become another user, and who is not has pinged as an ordinary user already")
    stranger = Ping.__new__(Ping)
    stranger.__dict__.update(suite.__dict__, directory=f"{suite.directory}/stranger")
    os.makedirs(stranger.directory, mode=0o755)
    os.chmod(suite.directory, 0o711)
    stranger._become("nobody")
    directory = f"{stranger.directory}/{CLIENT}"
    subprocess.run([*stranger._identity(), "mkdir", "-m", "700", directory], check=True)
    with Crowd(suite, SERVER, 1):
        for address in ADDRESSES[SERVER]:
            has(stranger.ping(address), "3 sent, 3 answered", "path MTU: RoCE 1024 (proven")
    whose = stranger.ping(ADDRESSES[SERVER][0], status=1)
    return whose.find("nothing listens").group()


def maps_others():
    """Returns true if the namespace has other users. A user namespace that was made for one user has no others."""
    with open("/proc/self/uid_map", encoding="ascii") as lines:
        return any(int(line.split()[2]) > 65534 for line in lines)


def names_who_has_the_port(suite):
    code = f"import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('', {PORT})); print(flush=True); " \
           "time.sleep(60)"
    with subprocess.Popen(["ip", "netns", "exec", CLIENT, sys.executable, "-c", code], stdout=subprocess.PIPE) as holder:
        try:
            holder.stdout.readline()
            done = suite.ping(ADDRESSES[SERVER][0], status=2)
        finally:
            holder.kill()
    if "another user or program has UDP port 4791 on eth0" not in done.err:
        raise Failure(str(done))


def names_the_other_directory(suite):
    """The processes of the other directory have the port, and could not hand on what they get for us."""
    command = suite.on(CLIENT, "ping", *QUICKLY, ADDRESSES[SERVER][0])
    with Crowd(suite, CLIENT, 1), Crowd(suite, SERVER, 1):
        done = Program(command, suite.host_environment("elsewhere")).finish(until(60))
    if done.status != 2 or "Processes of another directory use UDP port 4791" not in done.err or f"/{CLIENT})" not in done.err:
        raise Failure(str(done))


def refuses(suite, words, *arguments):
    done = suite.ask(CLIENT, "ping", *arguments, status=2)
    if words not in done.err or done.out:
        raise Failure(str(done))


# --- questions that no honest asker sends

def icrc(route, datagram):
    """The ICRC over IPv4 with DF and identification 0. `route`: source and destination, then source port."""
    length = 8 + len(datagram) + 4
    header = struct.pack(">BBHHHBBH4s4s", 0x45, 0xff, 20 + length, 0, 0x4000, 0xff, 17, 0xffff, socket.inet_aton(route[0]),
                         socket.inet_aton(route[1]))
    masked = datagram[:4] + b"\xff" + datagram[5:]
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + header + struct.pack(">HHHH", route[2], PORT, length, 0xffff) + masked))


def question(message=REQUEST, head=b"\x01\x07\x02\x03", pkey=PKEY, qkey=QKEY, opcode=UD_SEND_ONLY, length=256, request=0x777,
             transaction=5):
    field = 1 << 8 if message == REPLY else PKEY  # status 1 and no information, or the P_Key
    mad = head + b"\0" * 4 + struct.pack(">QHHIIHHQ", transaction, message, 0, 0, request, field, 0, 0x1234)
    deth = struct.pack(">II", qkey, 1) if opcode >> 5 == 3 else b""
    return struct.pack(">BBHII", opcode, 0x40, pkey, 1, 0) + deth + mad.ljust(length, b"\0")[:length]


ASKER = """
import socket, sys
sys.path.insert(0, sys.argv[1])
from ping import PORT, icrc
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER, IP_PMTUDISC_DO
s.bind((sys.argv[2], 50000))
back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
back.bind((sys.argv[2], PORT))
back.settimeout(float(sys.argv[4]))
for line in sys.stdin:
    datagram = bytes.fromhex(line)
    s.sendto(datagram + icrc((sys.argv[2], sys.argv[3], 50000), datagram), (sys.argv[3], PORT))
    try:
        print(back.recv(65536).hex(), flush=True)
    except socket.timeout:
        print("nothing", flush=True)
"""


def asked(datagrams, silence=0.3):
    """The reply of the server to each datagram."""
    command = ["ip", "netns", "exec", CLIENT, sys.executable, "-c", ASKER, os.path.dirname(os.path.abspath(__file__)),
               ADDRESSES[CLIENT][0], ADDRESSES[SERVER][0], str(silence)]
    done = subprocess.run(command, input="".join(f"{each.hex()}\n" for each in datagrams), capture_output=True, text=True,
                          timeout=patience(60), check=False)
    if done.returncode:
        raise Failure(done.stderr)
    return [b"" if line == "nothing" else bytes.fromhex(line) for line in done.stdout.split()]


def strays(suite):
    return {int(number): count for number, count in suite.told(SERVER)[0]["strays"]["dropped"].items()}


def answers_to_the_letter(suite):
    """Field by field, with the ICRC: what another implementation reads."""
    with Crowd(suite, SERVER, 1):
        plain, long = asked([question(transaction=0x0102030405060708), question(length=1024)])
    bth, deth, mad = plain[:12], plain[12:20], plain[20:-4]
    private = mad[24 + 96:]
    if bth[:4] != b"\x64\x40\xff\xff" or bth[4:8] != b"\0\0\0\x01" or deth != struct.pack(">II", QKEY, 1) or len(mad) != 256:
        raise Failure(f"headers {bth.hex()} {deth.hex()}, {len(mad)} bytes of payload")
    if mad[:24] != b"\x01\x07\x02\x03" + b"\0" * 4 + bytes(range(1, 9)) + b"\0\x18" + b"\0" * 6:
        raise Failure(f"the MAD begins {mad[:24].hex()}")
    if mad[24:24 + 20] != struct.pack(">IBBHIQ", 0x777, 1, 0, 0, 0, 0x1234) or not re.match(rb"softverbs \d+\.\d+\.\d+\0", private):
        raise Failure(f"the message is {mad[24:].hex()}")
    if len(long) != len(plain) + 1024 - 256 or any(long[20 + 256:-4]):
        raise Failure(f"{len(long)} bytes came back for 1024 of payload")


def drops_what_is_wrong(suite):
    """Each is dropped for its reason, and no answer is sent."""
    wrong = {11: question(qkey=0x11111111), 10: question(pkey=0x1234), 9: question(opcode=RC_SEND_ONLY), 22: question(length=252),
             23: question(head=b"\x01\x03\x02\x03"), 24: question(message=ALTERNATE), 25: question(message=REPLY)}
    with Crowd(suite, SERVER, 1):
        before = strays(suite)
        come = asked(wrong.values())
        dropped = {number: count - before.get(number, 0) for number, count in strays(suite).items() if count != before.get(number, 0)}
        if any(come) or dropped != {number: 1 for number in wrong}:
            raise Failure(f"dropped for each reason: {dropped}; answered: {[each.hex() for each in come if each]}")
        if not asked([question()])[0]:
            raise Failure("what is right is not answered any more")


def believes_no_stranger(suite):
    """Replies without a request, whatever number they name, do not reach the pinging program."""
    with Crowd(suite, SERVER, 1):
        pinging = Program(suite.on(SERVER, "ping", "-c", "0", *QUICKLY, NOWHERE), suite.host_environment(SERVER))
        try:
            while len(suite.told(SERVER)) < 2:
                time.sleep(0.05)
            before = suite.told(SERVER)
            asked([question(message=REPLY, request=block * 256 + 1) for block in range(1, 20)], 0.02)
            after = suite.told(SERVER)
        finally:
            pinging.process.terminate()
            done = pinging.finish(until(20))
    count = sum(told["strays"]["dropped"].get("25", 0) * sign for all_told, sign in ((after, 1), (before, -1)) for told in all_told)
    lacks(done, "seq")
    if count != 19:
        raise Failure(f"{count} of 19 were dropped as unsolicited\n{done}")


def is_captured(suite):
    path = f"{suite.directory}/ping.pcapng"
    with Crowd(suite, SERVER, 1, options=("--net", "eth0", "--capture", path)):
        suite.ping(ADDRESSES[SERVER][0])
    shown = subprocess.run([f"{BUILD}/softverbs", "decode", path], capture_output=True, text=True, check=False)
    there, back = ADDRESSES[SERVER][0], ADDRESSES[CLIENT][0]
    for way in (f"{back} > {there}", f"{there} > {back}"):
        if len(re.findall(rf"{way} UD SEND_ONLY qp 0x1 ", shown.stdout)) < 3 or shown.returncode:
            raise Failure(f"{way}:\n{shown.stdout}{shown.stderr}")


def main():
    if not os.environ.get(INSIDE):
        enter_namespaces()
    make_hosts()
    suite = Ping()
    (ipv4, ipv6), larger = ADDRESSES[SERVER], (9000, 9000, 9000)
    for address in (ipv4, ipv6):
        suite.add(f"softverbs answers at {address}", lambda address=address: answers(suite, address))
    suite.add("whether a program of librdmacm listens at a port", lambda: asks_about_a_port(suite))
    suite.add("each question is answered once, of whatever many processes", lambda: answers_once(suite))
    for address in (ipv4, ipv6):
        suite.add(f"the answer from {address} finds its asker among {CROWD} processes", lambda address=address: finds_its_asker(suite, address))
        suite.add(f"the path to {address} at MTU 1500", lambda address=address: knows_the_path(
            suite, address, (), "path MTU: RoCE 1024 (proven: as much came back), IP 1500 (no router says less)\n"))
        suite.add(f"the path to {address} at MTU 9000", lambda address=address: knows_the_path(
            suite, address, larger, "path MTU: RoCE 4096 (proven: as much came back), IP 9000 (no router says less)\n"))
        says = GATEWAYS[CLIENT][":" in address]
        suite.add(f"the path to {address} at MTU 9000 and then 2300", lambda address=address, says=says: knows_the_path(
            suite, address, (9000, 2300, 2300), f"path MTU: RoCE 2048 (proven: as much came back), IP 2300 (says {says})\n"))
        suite.add(f"the path to {address} loses large packets without a word", lambda address=address: knows_the_path(
            suite, address, (9000, 9000, 1500),
            "path MTU: RoCE 1024 (proven: as much came back), IP 9000 (no router says less); packets of 2048 get lost "))
        own = GATEWAYS[CLIENT][":" in address]
        suite.add(f"nothing listens at {own}", lambda own=own: hears_that_nobody_listens(suite, own))
        suite.add(f"one's own host at {address}", lambda address=address: pings_its_own_host(suite, address))
    suite.add("a neighbour on one of its interfaces", lambda: reaches_its_neighbour(suite))
    suite.add("nobody answers", lambda: hears_nothing(suite))
    suite.add("a router says that there is no way", lambda: hears_from_the_router(suite))
    suite.add("who is on no network is not found", lambda: keeps_to_itself(suite))
    suite.add("who pings is no endpoint, and hands on what is for one", lambda: is_no_endpoint_itself(suite))
    suite.add("a port that is down is silent", lambda: is_silent_when_the_port_is_down(suite))
    suite.add("an ordinary user may ping", lambda: works_for_anybody(suite))
    suite.add("somebody else has the port", lambda: names_who_has_the_port(suite))
    suite.add("processes of another directory have the port", lambda: names_the_other_directory(suite))
    suite.add("there is no such interface", lambda: refuses(suite, "There is no network interface \"eth9\".", "--net", "eth9", ipv4))
    suite.add("no route leads there", lambda: refuses(suite, f"No route leads from this host to {UNREACHABLE}.", UNREACHABLE))
    suite.add("there is no such host", lambda: refuses(suite, "There is no host \"no-such-host.invalid\"", "no-such-host.invalid"))
    suite.add("an answer is right to the letter", lambda: answers_to_the_letter(suite))
    suite.add("wrong management datagrams are dropped, each for its reason", lambda: drops_what_is_wrong(suite))
    suite.add("answers that nobody asked for are dropped", lambda: believes_no_stranger(suite))
    suite.add("questions and answers are captured", lambda: is_captured(suite))
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
