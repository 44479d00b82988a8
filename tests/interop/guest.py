"""The virtual machine with the kernel's rxe, made and run by the scripts of a directory outside this tree ("rxe-guest"), and
this side of the bridge that it is on."""
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../clients"))

from clients import Failure, Program, read_all, tail  # noqa: E402
from patience import until

HERE = os.path.dirname(os.path.abspath(__file__))
LAB = os.path.abspath(os.environ.get("SOFTVERBS_RXE_GUEST", os.path.join(HERE, "../../../shared/wire/rxe-guest")))
STATE = os.environ.get("QLAB", "/var/tmp/rxe-guest")
NAMESPACE = os.environ.get("QNS", "rlab")
NAME = os.environ.get("QGUEST", "A")  # A to D
INTERFACE, TAP, NUMBER = "br0", f"tap{NAME}", 11 + "ABCD".index(NAME)
OUR_ADDRESS, GUEST_ADDRESS, GUEST_MAC = "192.0.2.1", f"192.0.2.{NUMBER}", f"52:54:00:00:02:{NUMBER:02x}"
OURS, THEIRS = {4: OUR_ADDRESS, 6: "fdb2::1"}, {4: GUEST_ADDRESS, 6: "fdb2::11"}  # by IP version
MTUS = {1024: 1500, 4096: 4500}  # of InfiniBand: of Ethernet
STARTING, NEARLY = 300, 5  # seconds
TAP_QUEUE = 10000  # packets: an emulated processor takes long to fetch what a fast sender sends at once


def obstacle():
    """Why there can be no guest here; None: a guest can run."""
    if not os.path.exists(f"{LAB}/guest.sh"):
        return f"there is no rxe-guest at {LAB} (SOFTVERBS_RXE_GUEST names another place)"
    if os.geteuid():
        return "only root can make the guest's network"
    if not shutil.which("apt-get"):
        return "the guest is made of Debian's packages"
    return None


def hears(port):
    """A command that succeeds in the guest when a process listens at this TCP port."""
    return f"grep -qi ':{port:04x} .* 0A ' /proc/net/tcp /proc/net/tcp6"


class Guest:
    """Guest A, or $QGUEST. No other program may use it meanwhile."""

    def __init__(self):
        self.mtu = None

    @staticmethod
    def _run(script, *arguments):
        done = subprocess.run([f"{LAB}/{script}", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              stdin=subprocess.DEVNULL, env={"QSIW": "0", **os.environ}, check=False)
        if done.returncode:
            raise Failure(f"{script} {' '.join(arguments)}: exit status {done.returncode}\n{tail(done.stdout)}")

    def start(self):
        """Makes it first when it was never made, which takes minutes."""
        self._run("mkguest.sh")
        self._run("guest.sh", "up", NAME)
        subprocess.run(["ip", "-n", NAMESPACE, "link", "set", TAP, "txqueuelen", str(TAP_QUEUE)], check=True)
        subprocess.run(["ip", "-n", NAMESPACE, "address", "replace", f"{OURS[6]}/64", "dev", INTERFACE, "nodad"], check=True)
        self.ask(f"ip address add {THEIRS[6]}/64 dev eth0 nodad")
        shutil.copy(f"{HERE}/exchange.py", f"{STATE}/share/exchange.py")

    def stop(self):
        self._run("guest.sh", "down", NAME)

    @staticmethod
    def command(text, seconds):
        return [f"{LAB}/guest.sh", "exec", NAME, "-t", str(seconds), text]

    def ask(self, text, seconds=60):
        """The output of a command in the guest."""
        done = Program(self.command(text, seconds), dict(os.environ)).finish(until(seconds + NEARLY))
        return done.check().out

    def set_mtu(self, mtu):
        """Sets the MTU of both sides, as the MTU of InfiniBand."""
        if mtu == self.mtu:
            return
        ethernet = str(MTUS[mtu])
        subprocess.run(["ip", "-n", NAMESPACE, "link", "set", INTERFACE, "mtu", ethernet], check=True)
        shown = self.ask(f"ip link set eth0 mtu {ethernet}; sleep 1; ibv_devinfo | grep active_mtu")
        if f"{mtu} " not in shown:
            raise Failure(f"at MTU {ethernet} the guest says {shown}")
        self.mtu = mtu

    def serve(self, text, ready, seconds):
        """Starts a server in the guest; returns it once the command `ready` succeeds there."""
        watch = f"for i in $(seq {seconds * 5}); do {ready} && break; kill -0 $! || break; sleep 0.2; done; echo listening >&2"
        server = Program(self.command(f"{text} & {watch}; wait $!", seconds), dict(os.environ))
        deadline = until(seconds)
        while time.monotonic() < deadline and server.process.poll() is None:
            if b"listening" in os.pread(server.err.fileno(), 4096, 0):
                return server
            time.sleep(0.05)
        server.kill()
        raise Failure(f"the guest's server did not listen: {text}\n{tail(read_all(server.out))}{tail(read_all(server.err))}")


def softverbs_here(build, command, options=()):
    """A command line on this side of the bridge."""
    return ["ip", "netns", "exec", NAMESPACE, f"{build}/softverbs", "run", "--net", INTERFACE, *options, "--", *command]
