#!/usr/bin/env python3
"""Two releases side by side: versions.py PREVIOUS [THIS]

Each is a `softverbs` command, PREVIOUS of the release before (a tarball unpacked, or a build of its tag), THIS by default build/softverbs. Processes of both meet in
one directory and, as root, on a wire between two network namespaces; each one's commands look at processes of the other; files that one wrote are read by the other.
Prints TAP. A row passes where it works, and where a message names both versions, which the row then says."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../clients"))
from patience import patience, until  # pylint: disable=wrong-import-position

PING = ["ibv_rc_pingpong", "-c", "-g", "0", "-n", "50", "-p", "25417"]
BOTH_NAMED = re.compile(r"layout (\d+)\b.*\blayout (?!\1\b)\d+|the form \d+, and this softverbs reads \d+")
SCRIPT = "when ibv_reg_mr: error ENOMEM\n"


class Side:
    def __init__(self, name, tool):
        self.name, self.tool = name, os.path.abspath(tool)

    def command(self, *words):
        return [self.tool, *words]


class World:
    """A fresh directory for one row, and the processes that were started in it."""

    def __init__(self, top, number):
        self.place = f"{top}/{number}"
        os.makedirs(self.place)
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(("SOFTVERBS_", "LD_"))}
        self.environment["SOFTVERBS_DIR"] = f"{self.place}/directory"
        self.started = []

    def start(self, command, prefix=()):
        with open(f"{self.place}/log.{len(self.started)}", "wb") as log:
            process = subprocess.Popen([*prefix, *command], stdout=log, stderr=subprocess.STDOUT, env=self.environment, start_new_session=True)
        process.log = f"{self.place}/log.{len(self.started)}"
        self.started.append(process)
        return process

    def run(self, command, prefix=()):
        return subprocess.run([*prefix, *command], capture_output=True, text=True, env=self.environment, timeout=patience(60), check=False)

    def end(self):
        for process in self.started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def logs(self):
        """The output of the started processes."""
        text = ""
        for process in self.started:
            with open(process.log, encoding="utf-8", errors="replace") as log:
                text += log.read()
        return text


def client_of(world, command, prefix=()):
    """Runs a client until its server listens; what the last try said."""
    end = until(60)
    while True:
        done = world.run(command, prefix)
        if done.returncode == 0 or time.monotonic() > end or not re.search("Couldn't connect|RDMA_CM_EVENT_REJECTED|wait for CONNECTED", done.stdout + done.stderr):
            return done
        time.sleep(0.1)


def meet(world, server, client):
    world.start(server.command("run", "--", *PING))
    done = client_of(world, client.command("run", "--", *PING, "127.0.0.1"))
    return "50 iters" in done.stdout, done.stdout + done.stderr + world.logs()


def connect(world, server, client):
    world.start(server.command("run", "--", "rping", "-s", "-a", "127.0.0.1", "-p", "25418", "-C", "5"))
    done = client_of(world, client.command("run", "--", "rping", "-c", "-a", "127.0.0.1", "-p", "25418", "-C", "5"))
    return done.returncode == 0, done.stdout + done.stderr + world.logs()


def waiting_server(world, side):
    """A process with a device open, which its own release's command lists."""
    process = world.start(side.command("run", "--", *PING))
    end = until(30)
    while str(process.pid) not in world.run(side.command("show", "--json")).stdout and time.monotonic() < end:
        time.sleep(0.1)
    return process


def look(world, seen, looking):
    """The commands that ask live processes."""
    process = waiting_server(world, seen)
    said = ""
    for words in (("show", "--json"), ("stat", "--json", "--once"), ("why",)):
        done = world.run(looking.command(*words))
        said += done.stdout + done.stderr
        if str(process.pid) not in done.stdout:
            return False, said
    return True, said


def wire(world, server, client):
    """Two network namespaces that a veth pair joins."""
    names = [f"versions{os.getpid()}{end}" for end in "ab"]
    enter = [["ip", "netns", "exec", name] for name in names]
    try:
        for number, name in enumerate(names):
            subprocess.run(["ip", "netns", "add", name], check=True, capture_output=True)
            if number:
                subprocess.run(["ip", "link", "add", "eth0", "netns", names[0], "type", "veth", "peer", "name", "eth0", "netns", name], check=True, capture_output=True)
        for number, inside in enumerate(enter):
            for words in (f"address add 10.9.8.{number + 1}/24 dev eth0", "link set lo up", "link set eth0 up"):
                subprocess.run([*inside, "ip", *words.split()], check=True, capture_output=True)
        world.start(server.command("run", "--net", "eth0", "--dir", f"{world.place}/a", "--", *PING, "-g", "1"), enter[0])
        done = client_of(world, client.command("run", "--net", "eth0", "--dir", f"{world.place}/b", "--", *PING, "-g", "1", "10.9.8.1"), enter[1])
        return "50 iters" in done.stdout, done.stdout + done.stderr + world.logs()
    finally:
        world.end()
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


def written(world, side, option, name):
    """A file that an exchange of one release has written."""
    path = f"{world.place}/{name}"
    world.start(side.command("run", option, path, "--", *PING))
    client_of(world, side.command("run", option, path, "--", *PING, "127.0.0.1"))
    for process in world.started:
        process.wait(timeout=patience(60))
    return path


def read_capture(world, writer, reader):
    done = world.run(reader.command("decode", written(world, writer, "--capture", "c.pcapng")))
    return done.returncode == 0 and "RC SEND_ONLY" in done.stdout, done.stdout[-500:] + done.stderr


def draw_capture(world, writer, reader):
    done = world.run(reader.command("draw", written(world, writer, "--capture", "c.pcapng"), "-o", f"{world.place}/c.html"))
    return done.returncode == 0 and os.path.getsize(f"{world.place}/c.html") > 1000, done.stdout[-500:] + done.stderr


def replay_recording(world, writer, reader):
    done = world.run(reader.command("replay", written(world, writer, "--record", "r.rec")))
    return done.returncode == 0 and "queue pair" in done.stdout, done.stdout[-500:] + done.stderr


def follow_script(world, older, newer):
    """A script that the older one follows."""
    return all(fails_as_told(world, side) for side in (older, newer)), ""


def fails_as_told(world, side):
    path = f"{world.place}/script"
    with open(path, "w", encoding="utf-8") as file:
        file.write(SCRIPT)
    return "Couldn't register MR" in world.run(side.command("run", "--script", path, "--", *PING)).stderr


def tell_story(world, writer, reader):
    """The story of a queue pair that failed, since its peer ended."""
    path = f"{world.place}/story"
    world.start(writer.command("run", "--story", path, "--time-scale", "0.01", "--fault", "drop=100%", "--", *PING))
    client_of(world, writer.command("run", "--story", path, "--time-scale", "0.01", "--fault", "drop=100%", "--", *PING, "127.0.0.1"))
    done = world.run(reader.command("why", "--from", path))
    return done.returncode in (0, 1) and "RETRY_EXC" in done.stdout, done.stdout[-500:] + done.stderr


def keys_of(value, path=""):
    """The paths of all keys, lists without their numbers."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{path}.{key}"
            yield from keys_of(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner, f"{path}[]")


JSON = [("version", "--json"), ("devices", "--json"), ("doctor", "--json"), ("show", "--json"), ("stat", "--json", "--once")]


def read_keys(world, side):
    """The keys of each command of JSON; the commands look at a process of the same release."""
    world.environment["SOFTVERBS_DIR"] = f"{world.place}/{side.name}"
    waiting_server(world, side)
    keys = {words: set(keys_of(json.loads(world.run(side.command(*words)).stdout))) for words in JSON}
    world.end()
    return keys


def keep_keys(world, older, newer):
    """The JSON of the newer one has each key of the older one's, of processes alike."""
    old, new = read_keys(world, older), read_keys(world, newer)
    lost = [f"{' '.join(words)}: {key}" for words in JSON for key in old[words] - new[words]]
    return not lost, "\n".join(lost)


ROWS = [("one directory: ibv_rc_pingpong", meet, True), ("one directory: rping", connect, True), ("one wire: ibv_rc_pingpong", wire, True),
        ("show, stat and why, of a process of the other", look, True), ("a capture, decoded", read_capture, True), ("a capture, drawn", draw_capture, True),
        ("a recording, replayed", replay_recording, True), ("a file of stories, told", tell_story, True), ("a script", follow_script, False),
        ("the keys of JSON stay", keep_keys, False)]


def attempt(top, number, row, first, second):
    world = World(top, number)
    try:
        works, said = row(world, first, second)
    except (subprocess.SubprocessError, json.JSONDecodeError, OSError) as error:
        works, said = False, str(error)
    finally:
        world.end()
    return works, said


def main():
    previous = Side("previous", sys.argv[1])
    this = Side("this", sys.argv[2] if len(sys.argv) > 2 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/softverbs"))
    plan = [(name, row, first, second) for name, row, both_ways in ROWS for first, second in [(previous, this), (this, previous)][:1 + both_ways]]
    failed = 0
    print(f"1..{len(plan)}")
    for side in (previous, this):
        print(f"# {side.name}: {subprocess.run(side.command('version'), capture_output=True, text=True, check=True).stdout.splitlines()[0]}, {side.tool}")
    with tempfile.TemporaryDirectory(prefix="softverbs-versions-") as top:
        for number, (name, row, first, second) in enumerate(plan, 1):
            works, said = attempt(top, number, row, first, second)
            named = BOTH_NAMED.search(said)
            verdict = "ok" if works or named else "not ok"
            failed += verdict != "ok"
            print(f"{verdict} {number} - {name}: {first.name}, then {second.name}" + ("" if works else f" (refused: {named[0]})" if named else ""), flush=True)
            if verdict != "ok":
                print("#   " + said[-1500:].replace("\n", "\n#   "))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
