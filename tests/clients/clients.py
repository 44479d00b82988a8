"""Runs real client programs under `softverbs run` and reports in TAP.

A test is a function that returns when all is well, raises Failure when not, and Skip when it cannot run here:

    suite = Suite()
    suite.add("ibv_rc_pingpong polls", lambda: suite.pair(["ibv_rc_pingpong", "-g", "0"]))
    sys.exit(suite.run())

Every suite has a separate shared-memory directory, so that the files that its programs leave there can be seen.
"""
import contextlib
import json
import os
import pwd
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from installation import install as install_build
from patience import until

BUILD = os.path.abspath(os.environ.get("SOFTVERBS_BUILD", os.path.join(os.path.dirname(__file__), "../../build")))
FULL = os.environ.get("SOFTVERBS_TEST_FULL") # of suites that have more than `make check` runs: all


def rounds(count):
    """The number of messages that a client exchanges: of `count` the share that TEST_ROUNDS has, for runs under many seeds."""
    return max(1, round(count * float(os.environ.get("TEST_ROUNDS") or 1)))


class Failure(Exception):
    """Something is wrong; the text says what."""


class Skip(Exception):
    """The test cannot run here; the text says why."""


class Finished:
    """The result of a program: exit status, standard output, standard error, seconds that it took."""

    def __init__(self, command, status, out, err, seconds):
        self.command, self.status, self.out, self.err, self.seconds = command, status, out, err, seconds

    def __str__(self):
        end = f"killed by {signal.Signals(-self.status).name}" if self.status < 0 else f"exit status {self.status}"
        return f"{' '.join(self.command)}: {end} after {self.seconds:.1f} s\n{tail(self.out)}{tail(self.err)}"

    def check(self):
        if self.status != 0:
            raise Failure(str(self))
        return self

    def find(self, pattern):
        """The match of a pattern in the output, which must be there."""
        found = re.search(pattern, self.out, re.MULTILINE)
        if not found:
            raise Failure(f"no /{pattern}/ in the output of\n{self}")
        return found


class Program:
    """A started program in a separate process group; finish() waits for it, and kills it when it takes too long."""

    def __init__(self, command, environment, cwd="/"):
        self.command, self.started = command, time.monotonic()
        self.out, self.err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err,
                                        env=environment, cwd=cwd, start_new_session=True)

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def wait_for(self, text, timeout=30, pause=0.01):
        """Waits until the program has written this to its standard output."""
        deadline = until(timeout)
        while text.encode() not in os.pread(self.out.fileno(), 1 << 20, 0):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Failure(f"no \"{text}\": {self.finish(deadline)}")
            time.sleep(pause)

    def finish(self, deadline):
        late = False
        try:
            self.process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            late = True
        self.kill()
        done = Finished(self.command, self.process.returncode, read_all(self.out), read_all(self.err),
                        time.monotonic() - self.started)
        if late:
            raise Failure(f"hangs: {done}")
        return done


def read_all(file):
    file.seek(0)
    text = file.read().decode(errors="replace")
    file.close()
    return text


def tail(text, lines=12):
    return "".join(f"    {line}\n" for line in text.splitlines()[-lines:])


RESERVED = []


def free_port():
    """Returns a TCP port that stays free until its server binds it: one below those that Linux assigns to connections
    (ip_local_port_range), and whose name no other test of this network namespace has as a socket."""
    while True:
        port = random.randrange(10240, 32768)
        name = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            name.bind(f"\0softverbs-test-port-{port}")
            with socket.socket() as probe:
                probe.bind(("", port))
        except OSError:
            name.close()
            continue
        RESERVED.append(name)
        return port


def listening(port, pid="self"):
    """Returns true if a process in this network namespace listens on this TCP port. Checks without connecting, which the server
    would notice."""
    for table in (f"/proc/{pid}/net/tcp", f"/proc/{pid}/net/tcp6"):
        with contextlib.suppress(FileNotFoundError), open(table, encoding="ascii") as lines:
            for line in list(lines)[1:]:
                fields = line.split()
                if fields[3] == "0A" and int(fields[1].rsplit(":", 1)[1], 16) == port:
                    return True
    return False


def need(program):
    path = shutil.which(program)
    if not path:
        raise Skip(f"{program} is not installed")
    return path


def serve(server_command, client_command, port, environment, timeout=60, client_environment=None, elsewhere=False):
    """Runs a server, and a client once the server listens on the port; both must end well. Returns both as Finished. The
    server is `elsewhere` when it is in another network namespace."""
    deadline = until(timeout)
    server = Program(server_command, environment)
    try:
        while not listening(port, server.process.pid if elsewhere else "self"):
            if server.process.poll() is not None or time.monotonic() > deadline:
                raise Failure(f"the server did not listen: {server.finish(deadline)}")
            time.sleep(0.01)
        try:
            client = Program(client_command, client_environment or environment).finish(deadline)
        except Failure as late:
            server.kill()
            raise Failure(f"{late}while the server says\n{tail(read_all(server.out))}") from late
        answer = server.finish(min(deadline, until(10)))
    finally:
        server.kill()
    if client.status or answer.status:
        raise Failure(f"{client}{answer}")
    return answer, client


class Earlier:
    """The results of earlier runs, in the file $SOFTVERBS_TEST_EARLIER, so that a suite continues where it was stopped: a line
    for each test, (outcome, name, seconds, message). A test that has passed does not run again."""

    def __init__(self, path):
        self.path, self.passed = path, set()
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as lines:
                self.passed = {name for outcome, name, _, _ in map(json.loads, lines) if outcome == "passed"}

    def add(self, outcome, name, seconds, said=""):
        if self.path:
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps([outcome, name, round(seconds, 1), said]) + "\n")


class Suite:
    """Tests that run one after the other, as the user named by $SOFTVERBS_TEST_USER where that is set."""

    gid = "0"  # the index of the GID that the ping-pongs use

    def __init__(self):
        self.tests, self.user, self.root, self.early = [], None, BUILD, {}
        self.directory = tempfile.mkdtemp(prefix="softverbs-test-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        self.cleanup = [self.directory]
        user = os.environ.get("SOFTVERBS_TEST_USER")
        if user and os.geteuid() == 0:
            self._become(user)

    def _become(self, user):
        """The ordinary user gets the directory, and a copy of the build when it may not enter ours."""
        self.user = user
        identity = pwd.getpwnam(user)
        os.chown(self.directory, identity.pw_uid, identity.pw_gid)
        if subprocess.run([*self._identity(), "test", "-x", f"{BUILD}/softverbs"], check=False).returncode != 0:
            copy = tempfile.mkdtemp(prefix="softverbs-build-")
            self.cleanup.append(copy)
            os.chmod(copy, 0o755)
            self.root = install(copy)

    def _identity(self):
        if not self.user:
            return []
        return ["setpriv", f"--reuid={self.user}", f"--regid={pwd.getpwnam(self.user).pw_gid}", "--clear-groups", "--"]

    def environment(self, extra=None):
        return {**os.environ, "SOFTVERBS_DIR": self.directory, **(extra or {})}

    def softverbs(self, *arguments):
        return [*self._identity(), f"{self.root}/softverbs", *arguments]

    def start(self, command, extra=None):
        return Program(self.softverbs("run", "--", need(command[0]), *command[1:]), self.environment(extra))

    def run_one(self, command, timeout=60, extra=None):
        """Runs a program under softverbs to its end, which must be a good one."""
        return self.start(command, extra).finish(until(timeout)).check()

    def pair(self, command, server_options=(), client_options=(), timeout=120, extra=None):
        """Runs a program as server and, once it listens, as client; both must end well. Returns both as Finished."""
        port, program = free_port(), need(command[0])
        command = self.softverbs("run", "--", program, *command[1:], "-p", str(port))
        return serve([*command, *server_options], [*command, *client_options, "127.0.0.1"], port,
                     self.environment(extra), timeout)

    def add(self, name, test):
        self.tests.append((name, test))

    def add_early(self, name, start, finish):
        """A test of a program that mostly waits: `start` begins it before the first test, `finish` gets what that returned when it is its turn."""
        self.early[name] = start
        self.add(name, lambda: finish(self.early[name]))

    def add_tidiness(self):
        self.add("nothing but the table is left in the shared-memory directory", self.check_tidiness)

    def check_tidiness(self):
        left = [name for name in os.listdir(self.directory) if name != "xrc-domains" and not name.startswith("last-")] # a lock file, and the last lines of processes
        if len(left) != 1:
            raise Failure(f"left in {self.directory}: {' '.join(sorted(left)) or 'not even the table'}")

    def run(self):
        """Runs the tests whose name holds the script's last argument, all without one; returns the exit status."""
        wanted = sys.argv[1] if len(sys.argv) > 1 else ""
        tests, failed = [test for test in self.tests if wanted in test[0]], 0
        if os.environ.get("SOFTVERBS_TEST_USER") and not self.user:
            print("1..0 # SKIP only root can run it as another user; it has run as this one")
            return 0
        print(f"1..{len(tests)}", flush=True)
        self.early = {name: self.early[name]() for name, _ in tests if name in self.early}
        earlier = Earlier(os.environ.get("SOFTVERBS_TEST_EARLIER"))
        for number, (name, test) in enumerate(tests, 1):
            if name in earlier.passed:
                continue
            began = time.monotonic()
            try:
                note = test()
                print(f"ok {number} - {name}" + (f" ({note})" if isinstance(note, str) else ""), flush=True)
                earlier.add("passed", name, time.monotonic() - began)
            except Skip as why:
                print(f"ok {number} - {name} # SKIP {why}", flush=True)
                earlier.add("skipped", name, 0, str(why))
            except Failure as why:
                failed += 1
                told = f"not ok {number} - {name}\n" + "".join(f"# {line}\n" for line in str(why).splitlines())
                print(told, end="", flush=True)
                earlier.add("failed", name, time.monotonic() - began, str(why))
                if not os.path.sameopenfile(1, 2):  # meson shows nothing of a failed test in TAP but its stderr
                    print(told, end="", file=sys.stderr, flush=True)
        for path in self.cleanup:
            shutil.rmtree(path, ignore_errors=True)
        return 1 if failed else 0


def install(directory):
    """Installs the build below a directory that everybody may read; returns the directory of the command."""
    install_build(BUILD, directory)
    for folder, _, names in os.walk(directory):
        if "softverbs" in names and os.access(os.path.join(folder, "softverbs"), os.X_OK):
            return folder
    raise Failure(f"no softverbs command was installed below {directory}")

