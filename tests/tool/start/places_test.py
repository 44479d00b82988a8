#!/usr/bin/env python3
"""The directory where the processes of a user meet: what other users, user namespaces and a small /dev/shm do to it. Each case
has a fresh /dev/shm in a new mount namespace."""
import contextlib
import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import SOFTVERBS, Skip, TEMPORARY, expect, softverbs, told

UNSHARE = ["unshare", "--mount"]
INSIDE, SHARED = "SOFTVERBS_TEST_MOUNTS", "/dev/shm"
USER, STRANGER, SQUATTER = "nobody", "daemon", 12345
HERE = {"SOFTVERBS_DIR": None, "XDG_RUNTIME_DIR": None}  # the place that softverbs chooses
MESSAGES = "100"


def _may_mount():
    """Root of a container may not."""
    return os.geteuid() == 0 and shutil.which("unshare") and not subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode


def _enter_mounts():
    if not os.environ.get(INSIDE) and _may_mount():
        os.environ[INSIDE] = "1"
        os.execvp("unshare", [*UNSHARE, sys.executable, *sys.argv])


@contextlib.contextmanager
def _fresh(*options):
    """An empty /dev/shm."""
    if not os.environ.get(INSIDE):
        raise Skip("only root that may mount can have a /dev/shm of its own")
    subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join(["mode=1777", *options]), "none", SHARED], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", SHARED], check=True)


@contextlib.contextmanager
def _gone_later():
    """The directories that softverbs makes in /tmp meanwhile are removed, and no others."""
    own = re.compile(rf"softverbs-({pwd.getpwnam(USER).pw_uid}|{os.geteuid()})-[0-9]+-")
    before = set(os.listdir("/tmp"))
    try:
        yield
    finally:
        for name in set(os.listdir("/tmp")) - before:
            if own.match(name):
                shutil.rmtree(f"/tmp/{name}", ignore_errors=True)


def _command(user, *inner, prefix=()):
    return [*prefix, *cases.identity(user), _tool(), "run", "--", *inner]


def _tool():
    """A copy that every user may execute."""
    tool = f"{TEMPORARY}/installed/bin/softverbs"
    return tool if os.path.exists(tool) else cases.installed(f"{TEMPORARY}/installed")


def _run(user, *inner, prefix=(), **env):
    return subprocess.run(_command(user, *inner, prefix=prefix), capture_output=True, timeout=cases.patience(60), check=False, stdin=subprocess.DEVNULL,
                          env=cases.environment(**(HERE | env)))


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@contextlib.contextmanager
def _server(user, port, prefix=()):
    command = _command(user, "ibv_rc_pingpong", "-g", "0", "-n", MESSAGES, "-p", port, prefix=prefix)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=cases.environment(**HERE)) as process:
        try:
            yield process
        finally:
            process.kill()


def _wait_until_it_listens(server, port):
    """A server that listens has its device open."""
    deadline = cases.until(20)
    while server.poll() is None and time.monotonic() < deadline:
        for table in ("tcp", "tcp6"):
            with open(f"/proc/net/{table}", encoding="ascii") as lines:
                if any(f":{port:04X} " in line and " 0A " in line for line in lines):
                    return
        time.sleep(0.01)
    server.kill()
    raise AssertionError(f"the server does not listen: {server.communicate()}")


def _client(user, port, prefix=()):
    return _run(user, "ibv_rc_pingpong", "-g", "0", "-n", MESSAGES, "-p", port, "127.0.0.1", prefix=prefix)


def _meet(user, between=lambda: None, prefix=()):
    """Two processes of the user exchange data; `between` happens when the first has its device open."""
    port = _free_port()
    with _server(user, port, prefix) as server:
        _wait_until_it_listens(server, int(port))
        between()
        expect(_client(user, port, prefix), err=None)
        out, err = server.communicate(timeout=cases.patience(20))
        assert server.returncode == 0, (out, err)


def _names_of(user):
    """The names that a user's first program makes below /dev/shm, which are then free again."""
    expect(_run(user, "true"), err=None)
    names = os.listdir(SHARED)
    assert names, "it has made nothing there"
    for name in names:
        shutil.rmtree(f"{SHARED}/{name}")
    return names


def _take(names):
    for name in names:
        os.mkdir(f"{SHARED}/{name}")
        os.chown(f"{SHARED}/{name}", SQUATTER, SQUATTER)


def _free(names):
    for name in names:
        os.rmdir(f"{SHARED}/{name}")


def names_that_somebody_else_took_keep_nobody_from_working():
    with _gone_later(), _fresh():
        names = _names_of(USER)
        _take(names)
        expect(_run(USER, "true"))
        _meet(USER)
        for name in names:
            assert not os.listdir(f"{SHARED}/{name}"), name


def who_takes_names_and_gives_them_back_separates_nobody():
    with _gone_later(), _fresh():
        names = _names_of(USER)
        _take(names)
        _meet(USER, lambda: _free(names))
        _meet(USER, lambda: [_take([name]) for name in names if not os.path.exists(f"{SHARED}/{name}")])


def many_who_start_at_once_beside_taken_names_agree():
    with _gone_later(), _fresh():
        names = _names_of(USER)
        _take(names)
        started = [subprocess.Popen(_command(USER, "true"), env=cases.environment(**HERE)) for _ in range(8)]
        assert [process.wait(30) for process in started] == [0] * 8
        tables = [name for name in os.listdir(SHARED) if os.path.exists(f"{SHARED}/{name}/table")]
        assert len(tables) == 1, tables


def a_link_in_the_place_of_the_directory_is_not_followed():
    with _gone_later(), _fresh():
        names = _names_of(USER)
        trap = f"{TEMPORARY}/trap"
        os.mkdir(trap, 0o700)
        os.chown(trap, pwd.getpwnam(USER).pw_uid, pwd.getpwnam(USER).pw_gid)
        for name in names:
            os.symlink(trap, f"{SHARED}/{name}")
            os.lchown(f"{SHARED}/{name}", SQUATTER, SQUATTER)
        expect(_run(USER, "true"))
        assert not os.listdir(trap), os.listdir(trap)


def a_name_that_a_user_without_a_number_took_keeps_nobody_from_working():
    """In a user namespace, where the kernel shows the owner of the name by the number of the program's user."""
    prefix = ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", "--", "unshare", "--user", "--map-user=65534", "--"]
    if not os.environ.get(INSIDE) or subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        raise Skip("this machine allows no user namespaces")
    script = f"stat -Lc %i /proc/self/ns/net /proc/self/ns/user; read -r go; {_tool()} run -- ibv_devinfo >/dev/null; echo $?"
    with _gone_later(), _fresh(), subprocess.Popen([*prefix, "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                                   stderr=subprocess.PIPE, text=True, env=cases.environment(**HERE)) as program:
        name = "-".join(["softverbs-65534", *(program.stdout.readline().strip() for _ in range(2))])
        _take([name])
        out, err = program.communicate("go\n", timeout=cases.patience(60))
        assert (out, err) == ("0\n", ""), (out, err)
        assert not os.listdir(f"{SHARED}/{name}")


@contextlib.contextmanager
def _place_in_use():
    """The directory where the processes of a user meet, while one of them has its device open."""
    with _gone_later(), _fresh(), _server(USER, port := _free_port()) as server:
        _wait_until_it_listens(server, int(port))
        place, = [f"{SHARED}/{name}" for name in os.listdir(SHARED) if os.path.exists(f"{SHARED}/{name}/table")]
        yield place


def _as_stranger(*command, **env):
    return subprocess.run([*cases.identity(STRANGER), *command], capture_output=True, check=False, env=cases.environment(**(HERE | env)))


def another_user_neither_enters_the_place_nor_sees_its_processes():
    with _place_in_use() as place:
        files = [f"{place}/{name}" for name in os.listdir(place)]
        assert f"{place}/table" in files and len(files) > 1, files
        attempts = [["ls", place], ["touch", f"{place}/x"], ["mv", place, f"{SHARED}/x"], ["chmod", "777", place]]
        attempts += [["head", "-c1", file] for file in files] + [["truncate", "-s", "0", file] for file in files]
        for attempt in attempts:
            done = _as_stranger(*attempt)
            assert done.returncode and (b"denied" in done.stderr or b"not permitted" in done.stderr), (attempt, told(done))
        assert b"ibv_rc_pingpong" in subprocess.run([*cases.identity(USER), _tool(), "show"], capture_output=True, check=True,
                                                    env=cases.environment(**HERE)).stdout
        shown = _as_stranger(_tool(), "show")
        assert shown.returncode == 0 and b"ibv_rc_pingpong" not in shown.stdout, told(shown)
        for command in (["show"], ["stat", "--once"], ["run", "--", "true"]):
            done = _as_stranger(_tool(), *command, SOFTVERBS_DIR=place)
            assert done.returncode and b"belongs to user" in done.stderr, told(done)


def _user_namespace(user):
    """The words in front of a command that make it root of a user namespace that the user made."""
    prefix = [*cases.identity(user), "unshare", "--user", "--map-root-user", "--"]
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        raise Skip("this machine allows no user namespaces")
    return prefix


def root_of_a_user_namespace_and_of_the_host_do_not_keep_each_other_out():
    prefix = _user_namespace(USER)
    for first, second in ((prefix, ()), ((), prefix)):
        with _gone_later(), _fresh():
            expect(_run(None, "ibv_devinfo", prefix=first), err=None)
            expect(_run(None, "ibv_devinfo", prefix=second), err=None)
            _meet(None, prefix=())


def a_shared_memory_that_is_too_small_is_passed_over():
    with _gone_later(), _fresh("size=400k"):
        expect(_run(USER, "true"))
        _meet(USER)


def who_met_elsewhere_goes_on_to_meet_there_when_there_is_room():
    with _gone_later(), _fresh("size=400k"):
        _meet(USER, lambda: subprocess.run(["mount", "-o", "remount,size=16m", SHARED], check=True))


def without_proc_the_sentence_says_so():
    if not _may_mount():
        raise Skip("only root that may mount can change its root")
    root = f"{TEMPORARY}/root"
    for place in ("usr", "lib", "lib64", "bin", TEMPORARY.lstrip("/"), "dev/shm"):
        if os.path.isdir(f"/{place}"):
            os.makedirs(f"{root}/{place}")
    _tool()
    script = "".join(f"mount --bind /{place} {root}/{place}; " for place in os.listdir(root) if place in ("usr", "lib", "lib64", "bin"))
    script += f"mount --bind {TEMPORARY}/installed {root}/mnt; exec chroot {root} /mnt/bin/softverbs run -- /bin/true"
    os.makedirs(f"{root}/mnt")
    done = subprocess.run([*UNSHARE, "sh", "-c", script], capture_output=True, check=False, env=cases.environment(**HERE))
    assert done.returncode == 125 and b"/proc" in done.stderr and done.stderr.count(b"\n") == 1, told(done)


def the_sentence_about_a_directory_of_somebody_else_names_the_cure():
    if os.geteuid() != 0:
        raise Skip("only root can make another user's directory")
    place = f"{TEMPORARY}/others"
    os.mkdir(place, 0o700)
    os.chown(place, SQUATTER, SQUATTER)
    expect(softverbs("run", "true", env={"SOFTVERBS_DIR": place}), 125, b"", [f"user {SQUATTER}".encode(), b"SOFTVERBS_DIR"])


if __name__ == "__main__":
    _enter_mounts()
    assert SOFTVERBS
    cases.main(sys.modules[__name__])
