#!/usr/bin/env python3
"""User 65534 of a user namespace, as in a container whose image has the user "nobody": the kernel shows all users that have no number
there by the same one. Each case has another user of the host, from which it must take nothing."""
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import LIBRARY, Skip, TEMPORARY, expect, told

NOBODY, OUTSIDE, OTHER = 65534, 54321, 12345
BECOME = ("setpriv", f"--reuid={OUTSIDE}", f"--regid={OUTSIDE}", "--clear-groups", "--",
          "unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}", "--")
BE_OTHER = ("setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", "--")
HEAD, LINE = 56, 656  # bytes of a file of last lines, and of each line


def _tool():
    """A copy that every user may execute."""
    tool = f"{TEMPORARY}/installed/bin/softverbs"
    return tool if os.path.exists(tool) else cases.installed(f"{TEMPORARY}/installed")


def _require_nobody():
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    if subprocess.run([*BECOME, "true"], capture_output=True, check=False).returncode:
        raise Skip("this machine allows no user namespaces")


def _place(owner, mode):
    place = tempfile.mkdtemp(dir=TEMPORARY)
    os.chown(place, owner, owner)
    os.chmod(place, mode)
    return place


def _run(who, *command, **env):
    return subprocess.run([*who, *command], capture_output=True, timeout=cases.patience(60), check=False, stdin=subprocess.DEVNULL,
                          env=cases.environment(HOME="/tmp", **env))


@contextlib.contextmanager
def _started(who, *command, **env):
    """A program that says a line when it has begun."""
    with subprocess.Popen([*who, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          env=cases.environment(HOME="/tmp", **env)) as process:
        try:
            yield process, process.stdout.readline()
        finally:
            process.kill()


def _leave(path, owner, content):
    with open(path, "wb") as file:
        file.write(content)
    os.chown(path, owner, owner)
    os.chmod(path, 0o644)


# A process that has a device open, and the report of its user, which is in its namespace.
VICTIM = """
exec 3<&0
{tool} run -- {python} -c '
import ctypes, os
verbs, number = ctypes.CDLL("libibverbs.so.1"), ctypes.c_int()
verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
verbs.ibv_open_device.restype = ctypes.c_void_p
context = verbs.ibv_open_device(ctypes.c_void_p(verbs.ibv_get_device_list(ctypes.byref(number))[0]))
print("opened" if context else "refused", flush=True)
os.read(3, 1)' | {{
read -r word
echo "$word $({tool} show --json | tr -d "\\n")"
cat >/dev/null
}}
"""


def a_process_obeys_and_answers_its_own_user_alone():
    _require_nobody()
    place = _place(OUTSIDE, 0o777)
    script = VICTIM.format(tool=_tool(), python=cases.PYTHON)
    with _started(BECOME, "sh", "-c", script, SOFTVERBS_DIR=place) as (_, said):
        word, _, report = said.partition(" ")
        own, = json.loads(report) if word == "opened" else [{}]
        assert own.get("answers") is True, said
        shown, = json.loads(_run(BE_OTHER, _tool(), "show", "--json", SOFTVERBS_DIR=place).stdout)
        assert shown["answers"] is False and shown["refuses"] is True, shown
        waits, = json.loads(_run(BE_OTHER, _tool(), "why", "--json", SOFTVERBS_DIR=place).stdout)
        assert waits["waits"] == ["It did not answer: another user runs it, and it is not asked."], waits
        done = _run(BE_OTHER, _tool(), "inject", str(shown["pid"]), "when ibv_post_send: error ENOMEM", SOFTVERBS_DIR=place)
        assert done.returncode and b"does not answer" in done.stderr, told(done)


def lines_and_stories_of_others_are_not_its_own():
    _require_nobody()
    place = _place(OUTSIDE, 0o777)
    for slot, (owner, text) in enumerate(((OUTSIDE, b"of its own"), (OTHER, b"of another"))):
        head = b"softverbs lines\0" + (1).to_bytes(4, "little") + (77 + slot).to_bytes(4, "little") + b"program".ljust(32, b"\0")
        line = (1).to_bytes(8, "little") + (2**62).to_bytes(8, "little") + text.ljust(LINE - 16, b"\0")
        _leave(f"{place}/last-{77 + slot}-{slot}", owner, head.ljust(HEAD, b"\0") + line)
        story = {"qp": 17 + slot, "pid": 77 + slot, "program": text.decode()}
        _leave(f"{place}/last-{77 + slot}-{slot}.story", owner, json.dumps(story).encode() + b"\n")
    said = _run(BECOME, _tool(), "why", "--last", SOFTVERBS_DIR=place)
    assert said.returncode == 0 and b"of its own" in said.stdout and b"of another" not in said.stdout, told(said)
    kept = [_run(BECOME, _tool(), "why", "--last", "--qp", str(number), SOFTVERBS_DIR=place) for number in (17, 18)]
    assert b"and has left its story" not in kept[0].stderr and b"and has left its story" in kept[1].stderr, [told(one) for one in kept]


def _tree(path, owner, device):
    os.makedirs(f"{path}/class/infiniband/{device}")
    os.chown(path, owner, owner)


def a_tree_of_another_is_not_taken_for_its_own():
    """The tree that a program was started with has gone, and the newest of its user takes its place."""
    _require_nobody()
    place = _place(0, 0o1777)
    shim, prefix = f"{TEMPORARY}/installed/{LIBRARY}/libsoftverbs-paths.so", f"{place}/softverbs-{NOBODY}-1-paths-"
    _tool()
    _tree(f"{prefix}2", OTHER, "of_another")

    def listed():
        return _run(BECOME, "ls", "/sys/class/infiniband", LD_PRELOAD=shim, SOFTVERBS_PATHS=f"{prefix}1").stdout
    assert b"of_another" not in listed(), listed()
    _tree(f"{prefix}3", OUTSIDE, "of_its_own")
    os.utime(f"{prefix}3", (1e9, 1e9))  # the other is newer
    assert listed() == b"of_its_own\n", listed()


def libraries_where_everybody_may_put_files_have_to_be_its_own():
    """The command and its libraries belong to two users that have no number here."""
    _require_nobody()
    place = _place(0, 0o1777)
    tool = _tool()
    shutil.copy(tool, f"{place}/softverbs")
    shutil.copytree(f"{TEMPORARY}/installed/{LIBRARY}", f"{place}/lib", symlinks=True)
    os.chown(f"{place}/softverbs", OTHER, OTHER)
    os.chown(f"{place}/lib", OTHER + 1, OTHER + 1)
    done = _run(BECOME, f"{place}/softverbs", "run", "--", "true", SOFTVERBS_DIR=_place(OUTSIDE, 0o700))
    assert done.returncode == 125 and b"belong to another user" in done.stderr, told(done)
    os.chown(f"{place}/lib", OUTSIDE, OUTSIDE)
    expect(_run(BECOME, f"{place}/softverbs", "run", "--", "true", SOFTVERBS_DIR=_place(OUTSIDE, 0o700)))
    expect(_run(BECOME, tool, "run", "--", "true", SOFTVERBS_DIR=_place(OUTSIDE, 0o700)))


def the_doctor_does_not_call_a_port_its_own_that_may_be_another_s():
    _require_nobody()
    hold = "import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('', 4791)); print('bound', flush=True); input()"
    with _started(BE_OTHER, cases.PYTHON, "-c", hold) as (_, said):
        assert said == "bound\n", said
        done = _run(BECOME, _tool(), "doctor", "--net", "lo", SOFTVERBS_DIR=_place(OUTSIDE, 0o700))
        words = b" ".join(done.stdout.split())
        assert b"perhaps of a user without a number here" in words and b"A program of this user" not in words, told(done)


# Imitates a process of a container that shares the host's network: it has taken the name of a lab, and has a child.
CLAIM = """
import os, socket, sys
holder = socket.socket(socket.AF_UNIX)
holder.bind("\\0softverbs-lab/" + sys.argv[1])
holder.listen()
ends = os.pipe()
os.chroot(sys.argv[2])
if not os.fork():
    os.close(ends[1])
    os.read(ends[0], 1)
    os._exit(0)
print("bound", flush=True)
input()
"""


def a_lab_is_of_this_system():
    """A process that enters one gets its files. A container with the network of the host is another system."""
    if os.geteuid() != 0:
        raise Skip("only root has root's rights in a container")
    if subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True, check=False).returncode:
        raise Skip("this machine allows no namespaces of processes")
    name = f"claimed-{os.getpid()}"
    apart = ["unshare", "--pid", "--fork", "--kill-child"]
    for number, (prefix, root, is_here) in enumerate(((apart, "/", False), ((), TEMPORARY, False), ((), "/", True))):
        with _started(prefix, cases.PYTHON, "-c", CLAIM, f"0/{name}-{number}", root) as (_, said):
            assert said == "bound\n", said
            done = _run((), _tool(), "on", "--lab", f"{name}-{number}", "h1", "--", "true")
            assert done.returncode == 2 and (b"There is no lab of the name" in done.stderr) != is_here, (prefix, root, told(done))


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
