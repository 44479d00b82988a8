#!/usr/bin/env python3
"""Every command at 60, 80 and 200 columns, into a pipe, into a full disk, and with --json in the form of docs/reference/json.md."""
import contextlib
import fcntl
import glob
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
import connected
import made_pages
from cases import SOFTVERBS, TEMPORARY, TREE, expect, softverbs
from stories import failed

PAIR = f"{cases.BUILD}/tests/clients/mistakes"
REPORT = f"{TEMPORARY}/checks.report"
RECORDING = f"{TREE}/tests/golden/remote-range.rec"
CAPTURE = f"{TREE}/tests/golden/rc_pingpong.pcap"

# Each command as it prints something; "run" by itself prints nothing, and its help is taken instead.
COMMANDS = {
    "run": [["run", "--help"]],
    "env": [["env"], ["env", "--help"]],
    "devices": [["devices"], ["devices", "--help"]],
    "show": [["show"], *(["show", what] for what in ("processes", "qps", "cqs", "srqs", "tags", "mrs", "pds", "connections")),
             ["show", "--help"]],
    "why": [["why"], ["why", "--help"]],
    "checks": [["checks"], ["checks", REPORT], ["checks", "--help"]],
    "stat": [["stat", "--once"], ["stat", "--qps"], ["stat", "--lines"], ["stat", "--help"]],
    "top": [["top", "--batch", "-n", "1", "-i", "0.1"], ["top", "--help"]],
    "sysfs": [["sysfs", "--help"]],
    "event": [["event", "gid-change", "soft0"], ["event", "--help"]],
    "inject": [["inject", "--help"]],
    "around": [["around", "--help"]],
    "trace": [["trace", "--help"]],
    "replay": [["replay", "--ends", RECORDING], ["replay", "--help"]],
    "lab": [["lab", "--help"]],
    "on": [["on", "--help"]],
    "sim": [["sim", "--seeds", "0..1", "--", "true"], ["sim", "--help"]],
    "demo": [["demo", "--help"]],
    "sweep": [["sweep", "--help"]],
    "adverse": [["adverse", "--bisect", "--seeds", "1-2", "--", "true"], ["adverse", "--bisect", "--", "false"], ["adverse", "--help"]],
    "doctor": [["doctor"], ["doctor", "ibv_rc_pingpong"], ["doctor", "--net", "lo"], ["doctor", "--help"]],
    "ping": [["ping", "127.0.0.1", "-c", "1", "-W", "0.1"], ["ping", "--help"]],
    "explain": [["explain"], ["explain", "--help"]],
    "decode": [["decode", CAPTURE], ["decode", "--help"]],
    "draw": [["draw", "-o", "/dev/null", CAPTURE], ["draw", "--help"]],
    "report": [["report", "--help"]],
    "live": [["live", "--help"]],
    "missing": [["missing", "--provider"], ["missing", "--help"]],
    "version": [["version"], ["version", "--help"]],
    "help": [["help"], *(["help", name] for name in ("run", "stat"))],
}
REFUSALS = [["run", "--link-layer", "ib", "--net", "lo", "true"], ["run", "--net", "nowhere0", "true"]]  # sentences on stderr
AS_JSON = {  # and what docs/reference/json.md says that it is
    "devices": ([["devices"]], "list of Device"),
    "show": ([["show"], *(["show", what] for what in ("processes", "qps", "cqs", "srqs", "tags", "mrs", "pds", "connections"))], "list of Process"),
    "why": ([["why"]], "list of Waiting"),
    "why --last": ([["why", "--last"]], "list of Left"),
    "why --qp": ([], "Story"),
    "why --id": ([], "list of ConnectionStory"),
    "why --cq": ([["why", "--events"]], "list of Happened"),
    "checks": ([["checks", REPORT]], "list of Checked"),
    "stat": ([["stat", "--once"], ["stat", "--qps"]], "list of Counts"),
    "event": ([["event", "gid-change", "soft0"]], "Event"),
    "inject": ([["inject", "PID", "when ibv_reg_mr: delay 1us"], ["inject", "--list", "PID"]], "Injected"),  # PID: of the pair
    "trace": ([], "Call"),
    "replay": ([["replay", RECORDING]], "Replayed"),
    "adverse": ([], "Bisected"),  # the test adverse bisect has it
    "doctor": ([["doctor"], ["doctor", "ibv_rc_pingpong"], ["doctor", "--net", "lo"], ["doctor", "no-such"]], "list of Finding"),
    "ping": ([["ping", "127.0.0.1", "-c", "1", "-W", "0.1"]], "Ping"),
    "explain": ([["explain"], ["explain", "105"]], "list of Reason"),
    "decode": ([["decode", CAPTURE]], "Decoded"),
    "report": ([["report"], ["report", "--capture", CAPTURE]], "Report"),
    "missing": ([["missing"], ["missing", "--provider"]], "list of Gap"),
    "version": ([["version"]], "Version"),
    "env": ([["env"]], "map of string"),
}
UNBROKEN = re.compile(r"\S{60,}")  # a path, which no line end may cut


@contextlib.contextmanager
def _pair():
    """Two processes with objects of every usual kind, one with a first error, until the end."""
    end = f"{TEMPORARY}/end"
    with subprocess.Popen([SOFTVERBS, "run", "--", PAIR, "wrong-rkey"], stdout=subprocess.DEVNULL,
                          env=cases.environment(MISTAKES_THEN=f"touch {end}.there; while [ ! -e {end} ]; do sleep 0.05; done")) as process:
        try:
            deadline = cases.until(20)
            while not os.path.exists(f"{end}.there") and time.monotonic() < deadline:
                time.sleep(0.05)
            yield
        finally:
            with open(end, "w", encoding="ascii"):
                pass
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
            os.unlink(end)
            os.unlink(f"{end}.there")


def _screen(columns, command):
    """The picture on a terminal of `columns` columns, by lines."""
    return cases.at_terminal([SOFTVERBS, *command], cases.environment(COLUMNS=None), columns)[1].splitlines()


def _fits(columns):
    """Help is written for 80 columns, as a manual page is; everything else fits what there is."""
    with _pair():
        for command in sum(COMMANDS.values(), REFUSALS):
            if columns < 80 and {"--help", "help"} & set(command):
                continue
            lines = _screen(columns, command)
            assert lines, command
            if command == ["env"]:  # lines for a shell are not text
                continue
            long = [line for line in lines if len(line) > columns and not UNBROKEN.search(line)]
            assert not long, (command, long)


def the_table_names_every_command():
    overview = expect(softverbs("--help")).stdout.decode()
    assert set(COMMANDS) == set(re.findall(r"^  (\w+) ", overview, re.MULTILINE)), overview


def every_command_fits_60_columns():
    _fits(60)


def every_command_fits_80_columns():
    _fits(80)


def every_command_fits_200_columns():
    _fits(200)


def a_wider_screen_needs_fewer_lines():
    with _pair():
        for command in (["show", "qps"], ["stat", "--once"], ["explain"]):
            narrow, wide = _screen(80, command), _screen(240, command)
            assert len(narrow) > len(wide), (command, narrow, wide)
            assert "".join(narrow).replace(" ", "") == "".join(wide).replace(" ", ""), (command, narrow, wide)


def a_line_of_stat_fits_80_columns():
    process, terminal = pty.fork()
    if process == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 80, 0, 0))
        os.execve(SOFTVERBS, ["softverbs", "stat"], cases.environment())
    text = b""
    while text.count(b"\n") < 3:
        text += os.read(terminal, 4096)
    os.kill(process, signal.SIGTERM)
    os.waitpid(process, 0)
    assert all(len(line) <= 80 for line in text.decode().replace("\r", "").splitlines()), text


def a_pipe_gets_a_line_for_each_row():
    with _pair():
        for commands in COMMANDS.values():
            for command in commands:
                done = softverbs(*command, env={"COLUMNS": "40"})
                assert done.stdout and done.returncode in (0, 1), (command, done)
        rows = expect(softverbs("show", "qps", env={"COLUMNS": "40"})).stdout.decode().splitlines()
        assert len(rows) == 3 and all(len(row) > 80 for row in rows), rows
        lines = expect(softverbs("stat", "--lines")).stdout.decode().splitlines()
        assert lines[0].split() == ["PID", "PROGRAM", "DEVICE", "COUNT", "COUNTER"], lines
        assert any(re.fullmatch(r"\d+ +mistakes +soft0 +1 +reasons REMOTE_ACCESS", line) for line in lines), lines
        assert any(re.fullmatch(r"\d+ +mistakes +soft0 +\d+ +bytes_sent", line) for line in lines), lines


def a_reader_that_has_gone_is_no_error():
    done = subprocess.run(f"{SOFTVERBS} explain | head -n 1", shell=True, capture_output=True, check=False, env=cases.environment())
    assert done.returncode == 0 and done.stderr == b"" and done.stdout.count(b"\n") == 1, done


def a_full_disk_is_an_error_of_every_command():
    more = [[*command, "--json"] for commands, _ in AS_JSON.values() for command in commands if "PID" not in command]  # no process
    for command in sum(COMMANDS.values(), []) + more:
        with open("/dev/full", "wb") as full:
            done = subprocess.run([SOFTVERBS, *command], stdout=full, stderr=subprocess.PIPE, check=False, env=cases.environment())
        assert done.returncode in (1, 125) and b"No space left on device" in done.stderr, (command, done)


def _forms():
    """The forms of docs/reference/json.md: name to {field: (type, optional)}."""
    chapters = made_pages.whole(TREE, "docs/reference/json.md").split("\n## ")[1:]
    forms = {}
    for chapter in chapters:
        rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", chapter, re.MULTILINE)
        forms[chapter.splitlines()[0]] = {name: (said.replace(", optional", ""), said.endswith(", optional")) for name, said in rows}
    return forms


PLAIN = {"string": str, "integer": int, "boolean": bool, "number": (int, float)}


def _check(value, said, forms, at):
    """Asserts that the value has the documented form. Each field must be known, and there unless it is optional."""
    if said.endswith(" or null"):
        return None if value is None else _check(value, said.removesuffix(" or null"), forms, at)
    if said.startswith("list of "):
        assert isinstance(value, list), (at, value)
        for i, each in enumerate(value):
            _check(each, said.removeprefix("list of "), forms, f"{at}[{i}]")
    elif said.startswith("map of "):
        assert isinstance(value, dict), (at, value)
        for name, each in value.items():
            _check(each, said.removeprefix("map of "), forms, f"{at}.{name}")
    elif said in PLAIN:
        assert isinstance(value, PLAIN[said]) and isinstance(value, bool) == (said == "boolean"), (at, said, value)
    else:
        assert isinstance(value, dict) and set(value) <= set(forms[said]), (at, said, set(value) - set(forms[said]))
        for name, (kind, optional) in forms[said].items():
            assert optional or name in value, (at, said, name)
            if name in value:
                _check(value[name], kind, forms, f"{at}.{name}")
    return None


def _told(command, *more):
    done = softverbs(*command, *more)
    assert done.returncode in (0, 1) and (done.stdout or command == "ping"), (command, done)
    return json.loads(done.stdout)


def what_json_prints_is_in_its_documented_form():
    forms = _forms()
    with _pair():
        pid = str(_told(["show", "--json", "processes"])[0]["pid"])
        for name, (commands, said) in AS_JSON.items():
            for command in ([pid if word == "PID" else word for word in words] for words in commands):
                for arguments in ([*command, "--json"], [command[0], "--json", *command[1:]]):
                    _check(_told(arguments), said, forms, name)


def every_field_that_must_be_there_was_seen():
    """The page promises no form that nothing prints."""
    forms = _forms()
    reached, todo = set(), [said for _, said in AS_JSON.values()]
    while todo:
        name = re.sub(r"^(list|map) of |( or null)$", "", todo.pop())
        if name in forms and name not in reached:
            reached.add(name)
            todo += [kind for kind, _ in forms[name].values()]
    assert reached == set(forms), set(forms) - reached


def the_page_has_each_command_with_json():
    page = made_pages.whole(TREE, "docs/reference/json.md")
    rows = dict(re.findall(r"^\| `softverbs (.*?)` \| (.*?) \|$", page, re.MULTILINE))
    for name, (_, said) in AS_JSON.items():
        row = [text for command, text in rows.items() if command.startswith(f"{name} ")]
        assert row and row[0].startswith(said), (name, row)
        assert "--json" in expect(softverbs("help", name.split()[0])).stdout.decode(), name


def lists_of_show_are_filtered():
    with _pair():
        told = _told(["show", "qps", "--json"])
        assert len(told) == 2 and all(len(process["qps"]) == 1 and "mrs" not in process and "traffic" not in process for process in told), told
        assert {process["qps"][0]["first_error_name"] for process in told} == {"REMOTE_ACCESS", "REMOTE_KEY_UNKNOWN"}, told
        told = _told(["show", "--json", "processes"])
        assert all(process["objects"]["qps"] == 1 and "qps" not in process for process in told), told
        assert _told(["show", "mrs", "--json"])[0]["mrs"][0]["length"] == 8192


def counters_are_in_the_form_too():
    path = f"{TEMPORARY}/counters"
    expect(softverbs("run", "--counters", path, "--", PAIR, "none"), out=None, err=None)
    with open(path, encoding="utf-8") as lines:
        told = [json.loads(line) for line in lines]
    assert len(told) == 2
    _check(told, "list of Counts", _forms(), "counters")


def traces_are_in_the_form_too():
    done = expect(softverbs("trace", "--json", "--", PAIR, "none"), out=None, err=None)
    calls = [json.loads(line) for line in done.stderr.decode().splitlines()]
    assert len(calls) > 20
    _check(calls, "list of Call", _forms(), "trace")


def stories_are_in_the_form_too():
    with _pair():
        for process in _told(["show", "qps", "--json"]):
            said = _told(["why", "--json", "--qp", str(process["qps"][0]["number"])])
            assert len(said["ends"]) == 2, said
            _check(said, "Story", _forms(), "story")
            _check(_told(["why", "--json", "--cq", str(process["qps"][0]["send_cq"])]), "list of Happened", _forms(), "happened")


def stories_of_rare_kinds_are_in_the_form_too():
    """The stories of a stand-in of XRC, and of a datagram without room for the GRH."""
    for cause, of_server, rare in (("short-third", False, "stands_in"), ("no-grh", True, "too_short")):
        with failed(cause) as (numbers, end):
            until, said = cases.until(20), {"ends": []}
            while not any(rare in each for each in said["ends"]):
                assert time.monotonic() < until, said
                said = _told(["why", "--json", "--qp", str(numbers[3 if of_server else 1])])
            _check(said, "Story", _forms(), cause)
            end()


def stories_of_connections_are_in_the_form_too():
    with connected.made("rejected") as (numbers, identifier, end):
        _check(_told(["why", "--json", "--id", str(identifier), str(numbers[0])]), "list of ConnectionStory", _forms(), "connection")
        end()


def captures_decode_to_the_form():
    for path in sorted(glob.glob(f"{TREE}/tests/golden/*.pcap"))[:6]:
        _check(_told(["decode", path, "--json"]), "Decoded", _forms(), path)


if __name__ == "__main__":
    softverbs("run", "--check=notes", f"--check-report={REPORT}", "--", f"{cases.BUILD}/tests/check/mistakes", "send-buffer-changed", "faulty")
    cases.main(sys.modules[__name__])
