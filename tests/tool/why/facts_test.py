#!/usr/bin/env python3
"""The reports of objects have the keys, in the order and with the values, of the files in golden/; prints TAP.

Values that differ from run to run are "N" there, and lists of events and counts of packets are left out. facts_test.py --write
makes the files anew, for a person to compare: what they hold is read by programs of others."""
import contextlib
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, SOFTVERBS, TEMPORARY, Skip, expect, softverbs
from stories import failed

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
VARY = {"pid", "number", "qp", "key", "address", "base", "time", "posted", "psn", "peer_qp", "peer_pid", "communication_id", "peer_communication_id", "id",
        "local", "peer", "seconds", "repeats", "repeated", "timeouts", "naks_sent", "naks_received", "rnrs_sent", "rnrs_received", "cnps_sent", "cnps_received",
        "asked", "raised", "cause", "waiting", "polled", "outstanding", "oldest_psn", "expected_psn", "handle", "pd", "send_cq", "recv_cq", "srq"}
LEFT_OUT = {"traffic", "strays", "calls", "messages", "devices", "down"}
STORIES = ("short-receive", "receive-permission", "send-range", "qp-permission", "remote-range", "remote-key", "reads-refused", "no-receive", "deaf", "dead",
           "window", "empty-srq", "short-xrc", "empty-third", "uc-key", "hang", "server-waits")


def _plain(said, key=""):
    """The value without what differs from run to run."""
    if isinstance(said, dict):
        return {name: _plain(value, name) for name, value in said.items()}
    if isinstance(said, list):
        return ["..."] if key in LEFT_OUT or (key == "events" and said and isinstance(said[0], dict)) else [_plain(each) for each in said]
    return "N" if key in VARY and not (key == "posted" and said < 10**9) else said  # receives, and a time


def _without_counts(said):
    if isinstance(said, dict):
        return {name: "..." if name in LEFT_OUT else _without_counts(value) for name, value in said.items()}
    return [_without_counts(each) for each in said] if isinstance(said, list) else said


def _compare(name, objects):
    """One object a line: the text in the file."""
    text = "".join(json.dumps(_plain(_without_counts(each)), separators=(",", ":")) + "\n" for each in objects)
    path = f"{GOLDEN}/{name}"
    if "--write" in sys.argv:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return
    with open(path, encoding="utf-8") as file:
        wanted = file.read()
    assert text == wanted, f"{name}:\n{text}and not\n{wanted}"


def _ask(*arguments):
    return json.loads(expect(softverbs(*arguments, "--json")).stdout)


def _happened(option, number, pid):
    """The story without the sentences, which have times."""
    return [{key: value for key, value in each.items() if key != "sentences"} for each in _ask("why", option, str(number), str(pid))]


@contextlib.contextmanager
def _running(program, *arguments, **environment):
    """The numbers of the program's first line."""
    if not os.path.exists(f"{BUILD}/tests/tool/{program}"):
        raise Skip(f"{program} is not built here")
    command = [SOFTVERBS, "run", "--", f"{BUILD}/tests/tool/{program}", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=cases.environment(**environment)) as process:
        try:
            yield list(map(int, process.stdout.readline().split()))
        finally:
            process.stdin.close()
            process.wait()


def _shown(pid):
    """The process, once the answer to its unsignalled request has come."""
    end = cases.until(10)
    while True:
        process = next(each for each in _ask("show") if each["pid"] == pid)
        if any("unsignalled" in qp for qp in process["qps"]) or time.monotonic() > end:
            return process


def each_kind_of_object_is_reported_as_ever():
    with _running("objects") as numbers:
        process = _shown(numbers[0])
        _compare("show", [process[name][i] for name in ("qps", "cqs", "srqs", "tags", "mrs", "pds") for i in range(len(process[name]))])
        _compare("process", [{name: value if isinstance(value, (int, str)) else [] for name, value in process.items()}])
        _compare("why-cq", [_happened("--cq", cq["handle"], numbers[0]) for cq in process["cqs"]])
        _compare("why-srq", [_happened("--srq", srq["handle"], numbers[0]) for srq in process["srqs"]])
        _compare("why-qp", [_ask("why", "--qp", str(qp["number"]), str(numbers[0]))["ends"] for qp in process["qps"]])


def _without_events(story):
    return {key: value for key, value in story.items() if key != "events"}


def _kept(path, qp):
    """The story of the queue pair, as far as the moment of its writing decides nothing; empty where nothing failed."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        kept = [json.loads(line) for line in file]
    return [_without_events(story) | {"flushed_sends": "N", "flushed_receives": "N", "send_posted": "N", "cqs": []} for story in kept if story.get("qp") == qp][:1]


def stories_of_queue_pairs_are_reported_as_ever():
    said, left = [], []
    for name in STORIES:
        path = f"{TEMPORARY}/kept-{name}"
        with failed(name, "--story", path) as (numbers, end):
            said += [{"case": name} | _without_events(story) for story in _ask("why", "--qp", str(numbers[1]))["ends"]]
            end()
        left += [{"case": name} | story for story in _kept(path, numbers[1])]
    _compare("stories", said)
    _compare("kept", left)


def _identifiers(pid):
    process = next((each for each in _ask("show", "connections") if each["pid"] == pid), {})
    return sorted(process.get("connections", []), key=lambda each: each["state"])


def identifiers_are_reported_as_ever():
    listed, told = [], []
    for name in ("connected", "not-accepted", "rejected", "datagram-rejected"):
        with _running("connected", name) as numbers:
            end, shown = cases.until(10), []
            while len(shown) < 2 and time.monotonic() < end:
                shown = [(pid, each) for pid in numbers[:2] for each in _identifiers(pid)]
            listed += [{"case": name} | each for _, each in shown]
            told += [{"case": name} | each for pid, one in shown for each in _happened("--id", one["id"], pid)]
    _compare("connections", listed)
    _compare("why-id", told)


# -- reports that belong to no process of ours

FALSE = f"{TEMPORARY}/false-report"
LISTS = ("qps", "cqs", "srqs", "tags", "mrs", "pds")
COMMANDS = (("show",), *(("show", name) for name in LISTS), ("show", "connections"), ("stat", "--once"), ("stat", "--qps"), ("stat", "--lines"),
            ("stat", "--prometheus"), ("top", "--count", "1", "--totals", "--qps"))


def _see(report, commands=COMMANDS):
    """The output of each command about a process that answers with this: it ends well, and no letter moves a cursor."""
    text = report if isinstance(report, str) else json.dumps(report)
    with open(f"{FALSE}.new", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(f"{FALSE}.new", FALSE)
    printed = [expect(softverbs(*command)).stdout.decode() for command in commands]
    for command, each in zip(commands, printed):
        assert not [letter for letter in each if letter < " " and letter != "\n" or "\x7f" <= letter < "\xa0"], (command, each)
    return printed


def _changed(said, change):
    """A copy in which each value of an object is what `change` makes of it."""
    if isinstance(said, dict):
        return {key: _changed(value, change) if isinstance(value, (dict, list)) else change(key, value) for key, value in said.items() if change(key, value) is not None}
    return [_changed(each, change) for each in said] if isinstance(said, list) else said


@contextlib.contextmanager
def _false():
    """A process that answers what _see says, and its true report."""
    with _running("objects", LD_PRELOAD=f"{BUILD}/tests/tool/false_reports.so", FALSE_REPORT=FALSE) as numbers:
        try:
            yield next(each for each in _ask("show") if each["pid"] == numbers[0])
        finally:
            if os.path.exists(FALSE):
                os.remove(FALSE)


def keys_that_nobody_knows_are_left():
    with _false() as true:
        more = {"colour": [1, {"of": "red"}]}
        seen, wanted = _see(true | more | {name: [each | more for each in true[name]] for name in LISTS}), _see(true)
        assert [each[len("12:00:00"):] for each in seen] == [each[len("12:00:00"):] for each in wanted], (seen, wanted)  # top begins with the time


def what_is_missing_is_not_known():
    """Each object has its row, without its numbers."""
    with _false() as true:
        for name in LISTS:
            whole, none = (_see(true | {name: each}, [("show", name)])[0].splitlines() for each in (true[name], [{} for _ in true[name]]))
            assert len(none) == len(whole) and all(set(row.split()[2:]) == {"-"} for row in none[1:]), (whole, none)
        assert _see({"pid": true["pid"]}, [("show", "qps")])[0].splitlines()[1].split()[2:] == ["-"] * 11
        counts = _see({"traffic": [{}], "qps": [{}]}, [("stat", "--once"), ("stat", "--qps"), ("top", "--count", "1", "--totals", "--qps")])
        assert all(set(each.splitlines()[-1].split()[3:] if each is not counts[2] else each.split()[-3:]) == {"-"} for each in counts), counts


def letters_that_move_a_cursor_are_shown_as_text():
    with _false() as true:
        printed = _see(_changed(true, lambda key, value: value + "\x1b[31m\x07\x9b\n" if isinstance(value, str) else value))
        assert "(does not answer)" not in printed[0], printed[0]
        os.remove(FALSE)
        story = _ask("why", "--qp", str(true["qps"][0]["number"]))["ends"][0]
        shown = _see(story | {"program": "of\x1b[31m others"}, [("why", "--qp", str(story["qp"]))])
        assert "others" in shown[0], shown
        _see(_changed(true, lambda key, value: "\x1b[2J" if isinstance(value, str) else value))


def values_of_another_type_and_numbers_that_cannot_be_are_refused():
    """An object is not shown then; a process is shown as one that does not answer."""
    with _false() as true:
        rows = len(_see(true, [("show", "qps")])[0].splitlines())
        for wrong in ('"7"', "[]", "{}", "true", "1.5", "-1", "4294967296", "99999999999999999999", "1e400"):
            text = json.dumps(true).replace('"send_wr": ' + str(true["qps"][0]["send_wr"]), f'"send_wr": {wrong}')
            shown = _see(text, [("show", "qps")])[0].splitlines()
            assert len(shown) < rows or "(does not answer)" in shown[1], (wrong, shown)
        for wrong in ("7", "[]", "null", "", "{", '{"pid":1}x', "[" * 100000, '{"qps":' + "[" * 100000, '{"busy":1}', json.dumps({"qps": 3})):
            shown = _see(wrong, [("show",)])[0]
            assert "(does not answer)" in shown or wrong == '{"pid":1}x', (wrong[:40], shown)
        for wrong in (7, -1, 2**70, True, "x", [], [[]], [1], {}, {"a": 1}, None):
            _see(_changed(true, lambda key, value, wrong=wrong: wrong))
            _see({key: wrong for key in true})
            _see({key: [wrong] for key in true})


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
