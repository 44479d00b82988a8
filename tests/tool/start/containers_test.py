#!/usr/bin/env python3
"""Processes of different containers on one host: namespaces of users, processes and mounts, other users, with and without
single copy. docs/how-to/containers.md says the same to people."""
import contextlib
import json
import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, TEMPORARY, TREE, Skip, expect

sys.path.insert(0, f"{TREE}/tools/build")
from facts import facts  # pylint: disable=wrong-import-position

ONE, OTHER = "nobody", "daemon"
NAMESPACES = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--")
COPIES = ({"SOFTVERBS_NO_PULL": None}, {"SOFTVERBS_NO_PULL": "1"})
HERE = {"SOFTVERBS_DIR": None, "XDG_RUNTIME_DIR": None}
SHARED_MEMORY = "mount -t tmpfs none /dev/shm && exec "
MACHINE = "echo {} > {} && mount --bind {} /etc/machine-id && exec "
PINGPONG = "{} run -- ibv_rc_pingpong -c -g 0 -n 20 -s 1048576 -p {} {}"  # -c compares what has arrived


def _tool():
    """A copy that every user may execute."""
    tool = f"{TEMPORARY}/installed/bin/softverbs"
    return tool if os.path.exists(tool) else cases.installed(f"{TEMPORARY}/installed")


def _as(user, *namespaces):
    prefix = [*cases.identity(user), *namespaces]
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        raise Skip("this machine allows no user namespaces")
    return prefix


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _await_listener(server, port):
    """A server that listens has its device open."""
    if cases.await_listener(server, port, 60):
        return
    server.kill()
    raise AssertionError(f"the server does not listen: {server.communicate()}")


@contextlib.contextmanager
def _place(owner, mode=0o700):
    """A directory to meet in, as a volume that containers share."""
    place = tempfile.mkdtemp(dir=TEMPORARY)
    if owner:
        os.chown(place, pwd.getpwnam(owner).pw_uid, pwd.getpwnam(owner).pw_gid)
    os.chmod(place, mode)
    yield {"SOFTVERBS_DIR": place}


def _meet(first, second, env, before=("exec ", "exec ")):
    """A server and a client exchange data, each after its prefix, which sets the user and the place."""
    port = _free_port()
    texts = [what + PINGPONG.format(_tool(), port, peer) for what, peer in zip(before, ("", "127.0.0.1"))]
    env = cases.environment(**env)
    with subprocess.Popen([*first, "sh", "-c", texts[0]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as server:
        try:
            _await_listener(server, port)
            client = subprocess.run([*second, "sh", "-c", texts[1]], capture_output=True, timeout=cases.patience(60), check=False, env=env)
            expect(client, err=b"")
            out, err = server.communicate(timeout=cases.patience(60))
            assert server.returncode == 0 and b" iters in " in out and not err, (out, err)
        finally:
            server.kill()


def two_processes_meet_in_a_rootless_namespace():
    """The processes meet in the place that softverbs chooses there."""
    port = _free_port()
    server, client = (PINGPONG.format(_tool(), port, peer) for peer in ("", "127.0.0.1"))
    script = f"mount -t tmpfs none /dev/shm; ({server}) & looks=0\n" \
             f"until grep -q ':{port:04X} .* 0A ' /proc/net/tcp /proc/net/tcp6 || [ $((looks += 1)) -gt 600 ]; do sleep 0.1; done\n" \
             f"{client} && wait $!"
    for copies in COPIES:
        done = subprocess.run([*_as(ONE, *NAMESPACES), "sh", "-c", script], capture_output=True, timeout=cases.patience(120), check=False,
                              env=cases.environment(**HERE, **copies))
        expect(done, err=b"")
        assert done.stdout.count(b" iters in ") == 2, cases.told(done)


def two_namespaces_meet_in_a_directory_that_they_share():
    inside = _as(ONE, *NAMESPACES)
    for copies in COPIES:
        with _place(ONE) as place:
            _meet(inside, inside, {**HERE, **copies, **place}, (SHARED_MEMORY, SHARED_MEMORY))


def a_namespace_meets_its_host_in_a_directory_that_they_share():
    """The host sees the other's process, and may read its memory; the namespace does not see the host's."""
    inside, outside = _as(ONE, *NAMESPACES), _as(ONE)
    for copies in COPIES:
        for first, second in ((inside, outside), (outside, inside)):
            with _place(ONE) as place:
                _meet(first, second, {**HERE, **copies, **place})


def containers_with_a_machine_id_each_know_each_other():
    inside = _as(ONE, *NAMESPACES)
    if not os.path.exists("/etc/machine-id"):
        raise Skip("there is no /etc/machine-id to put another in place of")
    with _place(ONE) as place, _place(ONE) as files:
        names = [f"{files['SOFTVERBS_DIR']}/{who}" for who in ("one", "other")]
        before = [MACHINE.format(letter * 32, name, name) for letter, name in zip("ab", names)]
        _meet(inside, inside, {**HERE, **place}, before)


def two_users_meet_in_a_directory_that_its_owner_opened():
    for copies in COPIES:
        for first, second in ((_as(ONE), _as(OTHER)), (_as(OTHER), _as(ONE))):
            with _place(ONE, 0o777) as place:
                _meet(first, second, {**HERE, **copies, **place})


def two_users_in_namespaces_of_their_own_meet_in_such_a_directory():
    for copies in COPIES:
        with _place(None, 0o777) as place:
            _meet(_as(ONE, *NAMESPACES), _as(OTHER, *NAMESPACES), {**HERE, **copies, **place}, (SHARED_MEMORY, SHARED_MEMORY))


def a_group_meets_in_a_directory_that_was_opened_to_it():
    member = [*cases.identity(OTHER)[:2], f"--regid={pwd.getpwnam(ONE).pw_gid}", "--clear-groups", "--"]
    with _place(ONE, 0o2770) as place:
        _meet(_as(ONE), member, {**HERE, **place})
        stranger = subprocess.run([*_as(OTHER), _tool(), "run", "true"], capture_output=True, check=False,
                                  env=cases.environment(**{**HERE, **place}))
        expect(stranger, 125, b"", [b"Permission denied", place["SOFTVERBS_DIR"].encode()])


def _own(said):
    """All values in a report whose form says that they are the program's own: addresses, keys, tags, wr_ids; and where their ranges end."""
    forms = re.findall(r"FACT_(\w+)", re.search(r"\bfact_form_is_own\(.*?\n\}", _text(f"{TREE}/src/facts/facts.h"), re.S)[0])
    own = {name for _, name, form, *_ in facts(TREE) if form in forms}
    if isinstance(said, list):
        return set().union(*map(_own, said))
    if not isinstance(said, dict):
        return set()
    here = {int(str(value), 0) for name, value in said.items() if name in own and not isinstance(value, (dict, list))}
    ends = {said[name] + said[size] for name, size in (("address", "length"), ("base", "size")) if name in said and size in said}
    return here | ends | _own(list(said.values()))


def _text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def _shown(user, place):
    """The output of the tools for this user about all processes there."""
    commands = (("show",), ("stat", "--once"), ("why",), ("why", "--last"), ("why", "--events"), ("why", "--from", "/dev/null"))
    done = (subprocess.run([*_as(user), _tool(), *command, "--json"], capture_output=True, check=False, env=cases.environment(**place)) for command in commands)
    return "".join((each.stdout + each.stderr).decode() for each in done)


def a_peer_of_another_user_learns_nothing_of_the_programs_own():
    """The peer's WRITE with a wrong key is refused; both users' tools are asked before and after."""
    port, pingpong = str(_free_port()), shutil.copy(f"{BUILD}/lib/softverbs-pingpong", TEMPORARY)
    with _place(ONE, 0o777) as place, tempfile.TemporaryDirectory(dir=TEMPORARY) as files:
        os.chmod(files, 0o777)
        env = cases.environment(**(HERE | place))
        # The failed work of the client would name a line of pingpong.c, too.
        run = {user: [*_as(user), _tool(), "run", "--check=-failed-work", "--story", f"{files}/{user}", "--", pingpong, "-p", port] for user in (ONE, OTHER)}
        with subprocess.Popen(run[ONE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as server:
            end, mine = cases.until(30), []
            while time.monotonic() < end and not (mine and mine[0].get("mrs") and mine[0].get("qps")):
                mine = json.loads(subprocess.run([*_as(ONE), _tool(), "show", "--json"], capture_output=True, check=True, env=env).stdout)
            theirs = _shown(OTHER, HERE | place)
            client = subprocess.run([*run[OTHER], "-w", "127.0.0.1"], capture_output=True, check=False, env=env | {"SOFTVERBS_LOG": "debug"})
            server.communicate(timeout=cases.patience(60))
        theirs += _shown(OTHER, HERE | place) + client.stderr.decode() + client.stdout.decode()
        left = [_text(f"{files}/{user}") for user in (ONE, OTHER)]
    stories = [[json.loads(line) for line in text.splitlines()] for text in left]
    theirs += left[1]
    assert mine[0]["mrs"] and stories[0] and stories[1] and "remote access error" in theirs, (mine, stories, theirs)
    secrets = {value for value in _own(mine) | _own(stories[0]) if value > 0xffff} - _own(stories[1][0]["error"])
    assert secrets, mine
    told = [f"{value:#x}" for value in secrets if f"{value}" in theirs or f"{value:x}" in theirs.lower()]
    assert not told and "pingpong.c" not in theirs, (told, theirs)


if __name__ == "__main__":
    os.chmod(TEMPORARY, 0o755)
    cases.main(sys.modules[__name__])
