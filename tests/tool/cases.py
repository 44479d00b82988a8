"""Runs the functions of a test module whose names are sentences (they contain an underscore and are not private) in TAP.

A case returns when all is well, fails by AssertionError and is left out by Skip. $SOFTVERBS_BUILD is the build directory.
"""
import contextlib
import ctypes
import fcntl
import json
import os
import pty
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import traceback

sys.path += [os.path.join(os.path.dirname(os.path.abspath(__file__)), folder) for folder in ("../clients", "../../tools/build")]
from patience import patience, until  # pylint: disable=wrong-import-position

TREE = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BUILD = os.path.abspath(os.environ.get("SOFTVERBS_BUILD", f"{TREE}/build"))
SOFTVERBS = f"{BUILD}/softverbs"
CLONE_NEWNET, SIOCSIFFLAGS, IFF_UP = 0x40000000, 0x8914, 1
PYTHON = "/usr/bin/python3"  # the distribution's: it is no script that a version manager put in the way


def _library():
    """Where `make install` puts the libraries, below the prefix."""
    with open(f"{BUILD}/meson-info/intro-buildoptions.json", encoding="utf-8") as options:
        return next(option["value"] for option in json.load(options) if option["name"] == "libdir") + "/softverbs"


LIBRARY = _library()
AROUND = "--around" in sys.argv  # the cases of OF_CALLS of a module run, with the layers in front of a libibverbs, here softverbs' own


def front(*options):
    """`run` with these options of the layers, before "--" and a program; with --around, `softverbs around` has them."""
    return ("run", "-q", "--", SOFTVERBS, "around", *options) if AROUND else ("run", *options)


class Skip(Exception):
    """The test cannot run here; the text says why."""


def environment(**extra):
    """Ours without what an outer softverbs set; a value of None removes a variable."""
    result = {name: value for name, value in os.environ.items()
              if not name.startswith(("SOFTVERBS_", "LD_")) and name not in ("ASAN_OPTIONS", "CI", "GITHUB_ACTIONS", "GITLAB_CI")}
    result["SOFTVERBS_DIR"] = DIRECTORY
    result.update(extra)
    return {name: value for name, value in result.items() if value is not None}


def softverbs(*arguments, tool=SOFTVERBS, user=None, env=None, **options):
    """Runs softverbs to its end; streams are bytes."""
    if "input" not in options:
        options.setdefault("stdin", subprocess.DEVNULL)
    command = [*identity(user), tool, *arguments]
    return subprocess.run(command, capture_output=True, timeout=patience(60), check=False,
                          env=environment(**({"SOFTVERBS_DIR": _directory(user)} | (env or {}))), **options)


def at_terminal(command, env, columns=None):
    """Status and text of a program at a terminal, which is not its controlling one: when the leader of a terminal's session ends,
    the kernel hangs up and drops the text that has not been read yet."""
    ours, theirs = pty.openpty()
    if columns:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    with subprocess.Popen(command, env=env, stdin=theirs, stdout=theirs, stderr=theirs) as program:
        os.close(theirs)
        text = b""
        with contextlib.suppress(OSError):  # the last one has closed it
            while part := os.read(ours, 65536):
                text += part
        os.close(ours)
    return program.returncode, text.decode().replace("\r\n", "\n")


def needs_simulated_runs():
    """Skips where `softverbs sim` can run no program; what it says of one that does nothing."""
    done = softverbs("sim", "--", "true")
    for why in ("allows no namespaces", "forbids syscall user dispatch"):
        if why in " ".join(done.stderr.decode().split()):
            raise Skip(f"this system {why}")
    return done


def run(*arguments, **options):
    """softverbs run -- ARGUMENTS"""
    return softverbs("run", "--", *arguments, **options)


def python(source, *arguments, **options):
    """The output of a Python program under softverbs run; it must end well."""
    done = run(PYTHON, "-c", source, *arguments, **options)
    assert done.returncode == 0, told(done)
    return done.stdout.decode()


def _directory(user):
    """Where this user's processes meet, which no other user may enter."""
    if not user:
        return DIRECTORY
    parent = f"{TEMPORARY}/{user}"
    if not os.path.isdir(parent):
        os.mkdir(parent)
        os.chown(parent, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
    return f"{parent}/node"


def identity(user):
    if not user:
        return []
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    return ["setpriv", f"--reuid={user}", f"--regid={pwd.getpwnam(user).pw_gid}", "--clear-groups", "--"]


def told(done):
    return f"exit status {done.returncode}\nstdout: {done.stdout!r}\nstderr: {done.stderr!r}"


def listens(port):
    """Whether a process listens at this TCP port."""
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError), open(f"/proc/net/{table}", encoding="ascii") as lines:
            if any(f":{int(port):04X} " in line and " 0A " in line for line in lines):
                return True
    return False


def await_listener(server, port, seconds=20):
    """Whether this process listens at the TCP port before it ends, or the seconds do."""
    deadline = until(seconds)
    while not listens(port) and server.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    return server.poll() is None and listens(port)


def expect(done, status=0, out=None, err=b""):
    """Exit status, stdout (None: whatever) and stderr (None: whatever; a list: one line in which all of these occur)."""
    assert done.returncode == status, told(done)
    assert out is None or done.stdout == out, told(done)
    if isinstance(err, list):
        assert all(part in done.stderr for part in err) and done.stderr.count(b"\n") == 1, told(done)
    elif err is not None:
        assert done.stderr == err, told(done)
    return done


def installed(to):
    """A copy of the build as `make install` lays it out, readable by everybody; the path of its softverbs."""
    os.makedirs(f"{to}/bin")
    shutil.copy(SOFTVERBS, f"{to}/bin")
    os.makedirs(f"{to}/{LIBRARY}")
    for name in os.listdir(f"{BUILD}/lib"):
        if (".so" in name or name in ("softverbs-counter", "softverbs-selftest")) and not name.endswith((".p", ".symbols")):
            shutil.copy(f"{BUILD}/lib/{name}", f"{to}/{LIBRARY}", follow_symlinks=False)
    os.makedirs(f"{to}/{LIBRARY}/bin")
    shutil.copy(f"{BUILD}/lib/bin/rdma", f"{to}/{LIBRARY}/bin")
    for folder, _, _ in os.walk(to):
        os.chmod(folder, 0o755)
    return f"{to}/bin/softverbs"


def stop(pid):
    """SIGSTOP, and until all threads have stopped: one on another processor still runs for a moment."""
    os.kill(pid, signal.SIGSTOP)
    deadline = until(10)
    for task in os.listdir(f"/proc/{pid}/task"):
        while time.monotonic() < deadline:
            with open(f"/proc/{pid}/task/{task}/stat", encoding="ascii", errors="replace") as stat:
                if stat.read().rpartition(")")[2].split()[0] == "T":
                    break
            time.sleep(0.001)


def resume(pid):
    """Continues a stopped process, and returns when it answers: its thread may have no processor for the second that a question waits."""
    os.kill(pid, signal.SIGCONT)
    end = until(20)
    while not any(one["pid"] == pid and one["answers"] for one in json.loads(softverbs("show", "processes", "--json").stdout)):
        assert time.monotonic() < end, f"process {pid} does not answer"


def tell_meson(text):
    """No report of meson's has the output of a test in TAP, but its stderr. Not twice on one screen."""
    if not os.path.sameopenfile(1, 2):
        print(text, end="", file=sys.stderr, flush=True)


def _own_network():
    """A network namespace for this process and its children, where no other process uses UDP port 4791 of `lo`. Where that is
    refused, the suites that run at the same time wait for each other here."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not libc.unshare(CLONE_NEWNET):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", IFF_UP))
        return None
    turn = open(f"{tempfile.gettempdir()}/softverbs-tool-{os.geteuid()}.turn", "ab")  # pylint: disable=consider-using-with
    fcntl.flock(turn, fcntl.LOCK_EX)
    return turn


def main(module):
    turn = _own_network()
    cases = [(name, value) for name, value in vars(module).items()
             if callable(value) and "_" in name and not name.startswith("_") and value.__module__ == module.__name__
             and (not AROUND or name in getattr(module, "OF_CALLS", (name,)))]
    print(f"1..{len(cases)}")
    failed = 0
    for number, (name, case) in enumerate(cases, 1):
        sentence = name.replace("_", " ")
        try:
            case()
            print(f"ok {number} - {sentence}", flush=True)
        except Skip as reason:
            print(f"ok {number} - {sentence} # SKIP {reason}", flush=True)
        except Exception:  # pylint: disable=broad-except
            failed += 1
            told = f"not ok {number} - {sentence}\n" + "".join(f"# {line}\n" for line in traceback.format_exc().splitlines())
            print(told, end="", flush=True)
            tell_meson(told)
    shutil.rmtree(TEMPORARY, ignore_errors=True)
    if turn:
        turn.close()
    sys.exit(1 if failed else 0)


TEMPORARY = tempfile.mkdtemp(prefix="softverbs-tool-")
os.chmod(TEMPORARY, 0o755)
DIRECTORY = f"{TEMPORARY}/node"
