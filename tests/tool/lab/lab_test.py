#!/usr/bin/env python3
"""softverbs lab and on: hosts that share no memory, programs that start others there, and nothing that is left."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import TREE, Skip, expect, softverbs, told
from patience import until

USER = "nobody"
PINGPONG = "softverbs on {there} -- ibv_{program} -g 1 -n 50 & sleep 0.1; for i in $(seq 60); do " \
           "ibv_{program} -g 1 -n 50 {there} && break; sleep 0.3; done; status=$?; wait && exit $status"
# A system that has no user namespaces, and where root may not make others.
WITHOUT_RIGHTS = ["unshare", "--user", "--map-root-user", "sh", "-c",
                  'echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --inh-caps=-all --bounding-set=-all "$@"', "sh"]


def _lab(*arguments, **options):
    done = softverbs("lab", *arguments, **options)
    if b"allows no namespaces" in done.stderr or b"can't be mounted" in done.stderr:
        raise Skip(done.stderr.decode())
    return done


def _shell(count, script, *options, status=0, **more):
    return expect(_lab("--hosts", str(count), *options, "--", "sh", "-c", script, **more), status, None, None).stdout.decode()


def _pingpong(program="rc_pingpong", there="h2"):
    return PINGPONG.format(program=program, there=there)


def a_program_talks_to_another_host():
    for program in ("rc_pingpong", "ud_pingpong", "srq_pingpong"):
        out = _shell(2, _pingpong(program))
        assert out.count("50 iters") == 2 and "::ffff:10.77.0.1" in out and "::ffff:10.77.0.2" in out, out


def hosts_have_names_addresses_and_memory_of_their_own():
    out = _shell(3, 'for h in h1 h2 h3; do softverbs on $h -- sh -c "hostname; cat /sys/class/net/eth0/address; touch /dev/shm/of-$h; ls /dev/shm"; '
                 "done; getent ahostsv4 h3; ibv_devinfo")
    assert re.search(r"h1\n02:73:76:00:00:01\nof-h1\nsoftverbs.*h2\n02:73:76:00:00:02\nof-h2\nsoftverbs.*h3\n02:73:76:00:00:03\nof-h3\n", out, re.S), out
    assert "of-h1\nof-h2" not in out and "10.77.0.3" in out and "PORT_ACTIVE" in out, out
    if os.path.isdir("/sys/fs/cgroup"):
        assert sorted(_shell(2, "softverbs on h2 -- ls -A /sys/fs/cgroup").split()) == sorted(os.listdir("/sys/fs/cgroup"))
    assert "here" in _shell("here,there", "softverbs on there -- hostname; hostname")


def the_status_is_that_of_the_program():
    _shell(1, "exit 7", status=7)
    _shell(1, "kill -9 $$", status=128 + signal.SIGKILL)
    _shell(2, "softverbs on h2 -- sh -c 'exit 3'", status=3)
    expect(_lab("--hosts", "1", "--", "./nowhere"), 127, b"", [b"There is no program"])


def mistakes_have_sentences():
    for arguments, said in ((["--hosts", "0", "true"], "not a number of hosts from 1 to 64"), (["--hosts", "65", "true"], "from 1 to 64"),
                            (["--hosts", "a,b,a", "true"], 'The name "a" is taken'), (["--hosts", "a,,b", "true"], "can't be the name of a host"),
                            (["true"], "It needs the number of hosts, such as --hosts 4."), (["--hosts", "2"], "It needs a program to run, or --shell."),
                            (["--hosts", "2", "--shell", "true"], "It needs a program"), (["--hosts", "1", "--profile", "no", "true"], "no profile")):
        done = softverbs("lab", *arguments)
        assert done.returncode == 2 and said in " ".join(done.stderr.decode().split()), told(done)
    expect(softverbs("on", "h2", "true"), 2, b"", [b"This is not a lab"])
    assert "The lab has no host" in _shell(1, "softverbs on h2 -- true 2>&1", status=2)
    assert "It needs a program to run on" in _shell(1, "softverbs on h1 2>&1", status=2)


def what_calls_ssh_reaches_a_host():
    assert _shell(2, "ssh -x -o BatchMode=yes -l me h2 hostname '&&' echo '$0'; rsh me@h2 'echo $((6 * 7))'") == "h2\n/bin/sh\n42\n"
    assert "The lab has no host" in _shell(2, "ssh h3 true 2>&1", status=2)


def a_lab_needs_no_root():
    if os.geteuid():
        raise Skip("the others are no root's already")
    out = _shell(2, f"id -un; {_pingpong()}", user=USER)
    assert out.startswith(USER) and out.count("50 iters") == 2, out


# A system whose root directory is not a mount point, as in a chroot, below mounts that a namespace outside of it shares with it, and this one
# does not: that has as many mounts after the command as before it.
CHROOT = ["unshare", "--mount", "--propagation", "private", "sh", "-c", """
    set -e; root=$1; shift
    mkdir $root
    mount --make-rshared /
    [ -z "$MOUNTED" ] || mount --bind $root $root
    mkdir $root/only-here
    for name in $(ls -A /); do
        if [ -L /$name ]; then cp -P /$name $root; elif [ -d /$name ]; then mkdir $root/$name && mount --rbind /$name $root/$name; fi
    done
    unshare --mount --propagation unchanged sh -c 'root=$1; shift; before=$(grep -c . /proc/$PPID/mountinfo)
        env --chdir=$root chroot $root "$@"; status=$?
        [ $before = $(grep -c . /proc/$PPID/mountinfo) ] || { echo "$before mounts outside, now $(grep -c . /proc/$PPID/mountinfo)"; exit 9; }
        exit $status' sh $root "$@"
    """, "sh"]


def _in_chroot(*command, mounted=""):
    """The command run in a chroot, whose directory is a mount point if it shall be."""
    if os.geteuid():
        raise Skip("only root can make a chroot")
    place = tempfile.mkdtemp(prefix="softverbs-chroot-")
    try:
        done = subprocess.run([*CHROOT, f"{place}/root", *command], capture_output=True, check=False, env=cases.environment(SOFTVERBS_DIR=None, MOUNTED=mounted),
                              timeout=cases.patience(60))
    finally:
        # The namespace in which the mounts were has ended; rmdir would not remove them if they were still there.
        subprocess.run(["find", place, "-xdev", "-depth", "(", "-type", "d", "-exec", "rmdir", "{}", ";", "-o", "-type", "l", "-delete", ")"], check=False)
    if b"unshare: " in done.stderr or b"mount: " in done.stderr:
        raise Skip(f"no chroot can be made: {done.stderr.decode()}")
    return done


def in_a_chroot_root_has_a_lab():
    """sbuild and its kin: / is no mount point, or one below the namespace's root. Nothing that the lab mounts is seen outside."""
    script = "pwd; ls -d /only-here; for h in h1 h2; do softverbs on $h -- sh -c 'hostname; ls -d /only-here; touch /dev/shm/of-$(hostname); ls /dev/shm/of-*'; done"
    for mounted in ("", "1"):
        done = _in_chroot("sh", "-c", f'cd /tmp; exec {cases.SOFTVERBS} lab --hosts 2 -- sh -c "$0"', script, mounted=mounted)
        expect(done, 0, b"/tmp\n/only-here\nh1\n/only-here\n/dev/shm/of-h1\nh2\n/only-here\n/dev/shm/of-h2\n", b"")


def in_a_chroot_others_hear_why_there_is_none():
    done = _in_chroot(*cases.identity(USER), cases.SOFTVERBS, "lab", "--hosts", "1", "--", "true")
    said = " ".join(done.stderr.decode().split())
    assert done.returncode == 125 and "its root directory is not a mount point (a chroot)" in said, told(done)


def without_rights_a_sentence_says_so():
    if subprocess.run([*WITHOUT_RIGHTS, "true"], capture_output=True, check=False).returncode:
        raise Skip("the system itself allows no user namespaces")
    done = subprocess.run([*WITHOUT_RIGHTS, cases.SOFTVERBS, "lab", "--hosts", "1", "--", "true"], capture_output=True, check=False,
                          env=cases.environment())
    said = " ".join(done.stderr.decode().split())
    assert done.returncode == 125 and "allows no namespaces of one's own" in said and "softverbs doctor" in said, told(done)
    done = subprocess.run([*WITHOUT_RIGHTS, cases.SOFTVERBS, "doctor"], capture_output=True, check=False, env=cases.environment())
    assert "sysctl user.max_user_namespaces=10000" in " ".join(done.stdout.decode().split()), told(done)


def without_veth_or_bridges_a_sentence_says_so():
    for kind, module in (("veth", "modprobe veth"), ("bridge", "modprobe bridge")):
        preload = {"LD_PRELOAD": f"{cases.BUILD}/tests/tool/without_kind.so", "WITHOUT_KIND": kind}
        expect(_lab("--hosts", "2", "--", "true", env=preload), 125, b"", [f'"{module}" as root'.encode()])


def _with(word):
    """Processes whose command line has this word, by all that can be seen from here."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if word.encode() in file.read() and int(pid) != os.getpid():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def _begin(word, *options):
    """A lab where each host has a process in a separate session; it says when all are there."""
    script = "for h in h1 h2 h3; do setsid softverbs on $h -- sh -c 'echo up; exec -a $0 sleep 1000' $0 & done; wait"
    begun = subprocess.Popen([cases.SOFTVERBS, "lab", "--hosts", "3", *options, "--", "bash", "-c", script.replace("sh -c", "bash -c"), word],  # pylint: disable=consider-using-with
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=cases.environment())
    for _ in range(3):
        line = begun.stdout.readline()
        if line != b"up\n":
            begun.kill()
            raise Skip(begun.communicate()[1].decode())
    return begun


def _expect_nothing_left(word, before):
    deadline = until(20)
    while _with(word) and time.monotonic() < deadline:
        time.sleep(0.02)
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        assert not _with(word) and before == (os.listdir("/sys/class/net"), mounts.read()), (_with(word), before)


def _child(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
        return int(file.read())


def hosts_may_have_labs_and_leave_programs_behind():
    assert _shell(2, 'setsid sleep 77 >&- 2>&- & softverbs lab --hosts 2 -- sh -c "hostname; softverbs on h2 -- hostname"') == "h1\nh2\n"


def nothing_is_left_behind():
    for number, whom in ((signal.SIGKILL, "outer"), (signal.SIGTERM, "outer"), (signal.SIGKILL, "inner")):
        word = f"softverbs-lab-test-{os.getpid()}-{number}-{whom}"
        with open("/proc/self/mounts", encoding="utf-8") as mounts:
            before = os.listdir("/sys/class/net"), mounts.read()
        begun = _begin(word)
        os.kill(_child(begun.pid) if whom == "inner" else begun.pid, number)
        begun.communicate()
        _expect_nothing_left(word, before)


def two_labs_are_beside_each_other():
    words = [f"softverbs-lab-two-{os.getpid()}-{i}" for i in range(2)]
    begun = [_begin(word, "--name", word[-10:]) for word in words]
    expect(softverbs("lab", "--hosts", "1", "--name", words[0][-10:], "--", "true"), 2, b"", [b"is taken"])
    for each in begun:
        each.kill()
        each.communicate()
    deadline = until(20)
    while any(map(_with, words)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(_with, words))
    expect(_lab("--hosts", "1", "--name", words[0][-10:], "--", "true"))


ECHO = """
import socket
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.bind(("", 7000))
print("ready", flush=True)
while True:
    end.sendto(*end.recvfrom(2000))
"""
# Commands by its arguments: ask a host (prints how many milliseconds that took, or lost), or change a link.
PROBE = """
import socket, subprocess, sys, time
HOSTS = [word for word in sys.argv[2:] if ":" not in word]
for host in dict.fromkeys(HOSTS):
    echo = subprocess.Popen(["softverbs", "on", host, "--", "/usr/bin/python3", "-c", sys.argv[1]], stdout=subprocess.PIPE)
    echo.stdout.readline()
for turn, word in enumerate(sys.argv[2:]):
    if ":" in word:
        subprocess.run(["softverbs", "lab", "link", *word.split(":")], check=True)
        continue
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.connect((word, 7000))
        begin, answer = time.monotonic(), None
        while answer != b"%d" % turn and time.monotonic() - begin < 8:
            end.settimeout(0.4)
            try:
                end.send(b"%d" % turn)
                answer = end.recv(2000)
            except OSError:
                if time.monotonic() - begin > 3:
                    break
        print("lost" if answer is None else round(1000 * (time.monotonic() - begin)), flush=True)
subprocess.run(["softverbs", "lab", "link"], check=True)
"""


def _probe(count, words, *options):
    done = expect(_lab("--hosts", str(count), *options, "--", "/usr/bin/python3", "-c", PROBE, ECHO, *words), 0, None, None)
    lines = done.stdout.decode().splitlines()
    answers = sum(":" not in word for word in words)
    return [line if line == "lost" else int(line) for line in lines[:answers]], "\n".join(lines[answers:])


def a_lab_is_reached_from_outside_by_its_name():
    for user in (None, USER) if os.geteuid() == 0 else (None,):
        name = f"out-{os.getpid()}"
        with subprocess.Popen([*cases.identity(user), cases.SOFTVERBS, "lab", "--hosts", "2", "--name", name, "--", "sh", "-c", "echo up; exec cat"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=cases.environment()) as lab:
            if lab.stdout.readline() != b"up\n":
                raise Skip("there can be no lab here")
            done = softverbs("on", "--lab", name, "h2", "--", "sh", "-c", "hostname; pwd; exit 5", user=user, cwd="/tmp")
            assert done.returncode == 5 and done.stdout == b"h2\n/tmp\n", told(done)
            expect(softverbs("lab", "--name", name, "link", "h1>h2", "delay=3ms", user=user))
            # The count is free, as the kernel also sends its frames on a link (multicast listener reports of IPv6).
            shown = expect(softverbs("lab", "--name", name, "link", user=user), 0, None)
            assert re.fullmatch(rb"h1>h2: delay=3000us jitter=0us, \d+ frames, 0 lost, 0 marked\n", shown.stdout), told(shown)
            expect(softverbs("on", "--lab", name, "h7", "--", "true", user=user), 2, b"", [b'no host "h7"'])
            lab.stdin.close()
        expect(softverbs("on", "--lab", name, "h2", "--", "true", user=user), 2, b"", [b"There is no lab of the name"])


def links_have_delays_and_losses_and_go_down():
    (near, slow, none, back, gone, again), links = _probe(
        2, ["h2", "h1-h2:delay=30ms", "h2", "h1>h2:loss=100%", "h2", "all:clear", "h1>h2:clear", "h2", "h1-h2:down", "h2", "h1-h2:up", "h2"])
    assert near != "lost" and slow != "lost" and slow >= 30 and none == "lost" and back != "lost" and gone == "lost" and again != "lost", \
        (near, slow, none, back, gone, again)
    assert re.search(r"^h1>h2: perfect, \d+ frames, [1-9]\d* lost", links, re.M) and "h2>h1: delay=30000us" in links, links
    (slow,), links = _probe(2, ["h2"], "--link", "delay=20ms,mtu=3000", "--link", "h1>h2:jitter=1ms")
    assert slow != "lost" and slow >= 40 and "h1>: delay=20000us" in links, (slow, links)


def a_host_sees_that_its_link_is_down():
    out = _shell(2, "for s in up down up; do softverbs lab link h1 $s; cat /sys/class/net/eth0/carrier; ibv_devinfo | grep state; done; "
                    "softverbs lab link all mtu=9000; softverbs on h2 -- cat /sys/class/net/eth0/mtu; ibv_devinfo | grep active_mtu")
    assert re.sub(r"\s+", " ", out) == "1 state: PORT_ACTIVE (4) 0 state: PORT_DOWN (1) 1 state: PORT_ACTIVE (4) 9000 active_mtu: 4096 (5) ", out


def a_topology_has_leaves_and_pairs():
    with tempfile.NamedTemporaryFile("w", suffix=".topology") as file:
        file.write("# two leaves\nleaf h1 h2\nleaf h3 h4\n\ncore delay=20ms,rate=1Gbit\nlink h1-h2 delay=1ms\n")
        file.flush()
        (near, far), links = _probe(4, ["h2", "h4"], "--topology", file.name)
        assert near != "lost" and far != "lost" and far >= 40 and "leaf 1>core: rate=1000Mbit delay=20000us" in links, (near, far, links)
        file.write("leaf h5\n")
        file.flush()
        expect(softverbs("lab", "--hosts", "4", "--topology", file.name, "true"), 2, b"", [b'line 7: the lab has no host "h5"'])
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("leaf h1\n" * 65 + "core rate=1Gbit\n")
        file.flush()
        expect(softverbs("lab", "--hosts", "2", "--topology", file.name, "true"), 2, b"", [b"line 65: a lab has at most 64 leaves"])
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("pair h1 h2\npair h3 h4\n")
        file.flush()
        (partner, stranger), _ = _probe(4, ["h2", "h3"], "--topology", file.name)
        assert partner != "lost" and stranger == "lost", (partner, stranger)


def mistakes_in_links_have_sentences():
    for words, said in (("nix=3", "nothing that a link can have"), ("rate=fast", "rate=10Gbit"), ("delay", "delay=5us"), ("loss=101%", "loss=0.1%"),
                        ("h1-h3:down", 'no link "h1-h3"'), ("h1-h1:down", "from a host to itself"), ("core:down", "There is no core"),
                        ("mtu=100", "is not from 1280")):
        done = softverbs("lab", "--hosts", "2", "--link", words, "true")
        assert done.returncode == 2 and said in " ".join(done.stderr.decode().split()), told(done)
    expect(softverbs("lab", "link", "h1", "down"), 2, b"", [b"This is not a lab"])
    assert _shell(2, "softverbs lab link h1 loss=1%; softverbs lab link >/dev/null; softverbs lab link h1 delay=1us") == ""
    assert "nothing that a link can have" in " ".join(_shell(2, "softverbs lab link h1 nix 2>&1", status=2).split())
    expect(softverbs("lab", "--hosts", "2", "--topology", "/nowhere", "true"), 2, b"", [b"can't be read"])


# The end of perftest waits for the peer's. The end of the ping-pongs does not: where the ACK of the last message is lost, its receiver has gone
# before the sender repeats it, and that sender ends with RETRY_EXC_ERR, on adapters as here (docs/how-to/faults.md).
SEND = "softverbs on h2 -- ib_send_lat -x 1 -n 300 >/dev/null & server=$!; for i in $(seq 60); do " \
       "ib_send_lat -x 1 -n 300 h2 && break; sleep 0.3; done; wait $server && softverbs lab link"


def queue_pairs_bear_losses():
    if not shutil.which("ib_send_lat"):
        raise Skip("perftest is not installed")
    out = _shell(2, SEND, "--link", "loss=2%")
    assert re.search(r"^ 2 +300 ", out, re.M) and re.search(r"^h1>: .* [1-9]\d* lost", out, re.M), out


# After a hundred of the 800 frames, each of 5 ms on any machine; with the timeout 18, a queue pair waits for at least eight seconds.
CUT = "(until softverbs lab link | grep -q '^h1>h2: .* [0-9]\\{3,\\} frames'; do sleep 0.05; done; softverbs lab link h1-h2 down; sleep 0.3; " \
      "softverbs lab link h1-h2 up) & cutter=$!; "


def queue_pairs_bear_links_that_come_back():
    if not shutil.which("ib_send_lat"):
        raise Skip("perftest is not installed")
    script = CUT + SEND.replace("-n 300", "-n 400 -u 18").replace("wait $server", "wait $server && wait $cutter")
    out = _shell(2, script, "--link", "h1-h2:delay=5ms")
    # A ping-pong has one frame under way, in one direction or the other.
    assert re.search(r"^ 2 +400 ", out, re.M) and re.search(r"^h(1>h2|2>h1): .* [1-9]\d* lost", out, re.M), out


def a_crowded_link_marks_and_nothing_is_lost():
    if not shutil.which("ib_write_bw"):
        raise Skip("perftest is not installed")
    out = _shell(2, "softverbs on h2 -- ib_write_bw -x 1 -n 200 >/dev/null & sleep 0.5; for i in $(seq 60); do "
                    "ib_write_bw -x 1 -n 200 h2 && break; sleep 0.5; done; wait; softverbs lab link", "--link", "rate=200Mbit,ecn=16K")
    rate = float(re.search(r"^ 65536 +200 +\S+ +(\S+)", out, re.M)[1])  # MiB in a second
    marked = re.search(r"^h1>: rate=200Mbit ecn=16K, \d+ frames, 0 lost, (\d+) marked", out, re.M)
    assert rate <= 200e6 / 8 / (1 << 20) and marked and int(marked[1]) > 0, out


def mpi_starts_its_ranks_on_the_hosts():
    launchers = {"mpirun.openmpi": ["-np", "3", "--host", "h1,h2,h3"], "mpiexec.hydra": ["-n", "3", "-hosts", "h1,h2,h3"]}
    found = [program for program in launchers if shutil.which(program)]
    if not found:
        raise Skip("neither Open MPI nor MPICH is installed")
    for program in found:
        done = expect(_lab("--hosts", "3", "--", program, *launchers[program], "hostname"), 0, None, None)
        assert sorted(done.stdout.split()) == [b"h1", b"h2", b"h3"], told(done)
        # Hydra gives its ranks the variables of h1, whose tree of /sys/class/infiniband the other hosts do not have.
        done = expect(_lab("--hosts", "3", "--", program, *launchers[program], "sh", "-c", "echo $(ls /sys/class/infiniband)"), 0, None, None)
        assert done.stdout.split() == 3 * [b"soft0"], told(done)


def the_examples_of_open_mpi_take_the_devices():
    """Open MPI uses TCP between hosts and shared memory within one unless its pml is named."""
    for folder, _, names in os.walk(f"{TREE}/docs/how-to"):
        for name in (each for each in names if each.endswith(".md")):
            with open(f"{folder}/{name}", encoding="utf-8") as page:
                for line in re.findall(r"^    .*\bmpirun .*$", page.read(), re.M):
                    assert "--mca pml ucx" in line, f"{name}: {line}"


def pdsh_starts_on_the_hosts():
    if not shutil.which("pdsh"):
        raise Skip("pdsh is not installed")
    for words in (["pdsh", "-w", "h[1-3]", "hostname"], ["pdsh", "-R", "exec", "-w", "h[1-3]", "softverbs", "on", "%h", "--", "hostname"]):
        done = expect(_lab("--hosts", "3", "--", *words), 0, None, None)
        assert sorted(done.stdout.splitlines()) == [b"h1: h1", b"h2: h2", b"h3: h3"], told(done)


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
