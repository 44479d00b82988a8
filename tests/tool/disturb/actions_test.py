#!/usr/bin/env python3
"""Every action of the language of scripts: it happens to an unmodified program, is counted, logged, captured and part of the
story, and a rule that does not fit does nothing of that. The actions are in src/script/words.def; one without a row
fails."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, SOFTVERBS, TEMPORARY, TREE, Skip, expect, softverbs
from patience import until

ACK, SEND = 'when packet, opcode "RC ACK*"', "when packet, opcode SEND_ONLY"

# action: the rule, the same of what does not come, the mode of `scripted` or "server" or "client" of rping, what is counted, words of the capture's comment
ROWS = {
    "error": ("when ibv_reg_mr, nth 2: error ENOMEM", "nth 9", "regions", {"error"}, None),
    "delay": (f"{SEND}, nth 2: delay 5ms", "nth 99", "work", {"delay"}, "fault: delayed"),
    "signal": ("when ibv_poll_cq, once: signal USR1", "on cq 77", "polls", {"signal"}, None),
    "stop": ("when ibv_poll_cq, once: stop 50ms", "nth 9", "polls", {"stop"}, None),
    "freeze": ("when ibv_post_send, once: freeze 10ms", "opcode RDMA_READ", "work", {"freeze"}, None),
    "complete": ("when work, nth 2: complete RETRY_EXC_ERR", "nth 9", "work", {"complete"}, None),
    "vendor": ("when receive, nth 2: complete GENERAL_ERR, vendor 129", "wr_id 7", "work", {"complete"}, None),
    "set": (f"{ACK}, to 2: set syndrome RNR", "peer nobody", "work", {"set"}, "fault: changed"),
    "hide": ('when ibv_get_device_list, nth 2: hide "*"', "nth 9", "lists", {"hide"}, None),
    "cut": (f"{SEND}, nth 2: cut 3", "peer_qp 77", "work", {"cut"}, "fault: cut"),
    "forge": (f"{ACK}, once: forge CNP", "device other", "work", {"forge"}, "fault: forged"),
    "bandwidth": (f"{SEND}: bandwidth 100kbit", "on qp 77", "work", {"delay"}, "fault: delayed"),
    "hold": (f"{SEND}, nth 3: hold; when ibv_query_qp: release", "nth 99", "slow", {"hold"}, " held"),
    "release": ("when ibv_poll_cq, once: release", "on cq 77", "work", {"release"}, None),
    "overrun": ("when completion, wr_id 3: overrun", "wr_id 9", "slow", {"overrun"}, None),
    "drop": (f"{SEND}, nth 2: drop", "after 500s", "work", {"drop"}, "fault: dropped"),
    "duplicate": (f"{SEND}, nth 2: duplicate", "chance 0%", "work", {"duplicate"}, "fault: repeated"),
    "reorder": (f"{SEND}, nth 2: reorder", "program other", "work", {"reorder"}, "fault: reordered"),
    "corrupt": (f"{SEND}, nth 2: corrupt", "nth 99", "work", {"corrupt"}, "fault: corrupted"),
    "note": ("when ibv_reg_mr, nth 2: note", "on pd 77", "regions", None, None),
    "raise": ("when ibv_query_qp, once: raise qp-fatal", "on qp 77", "asyncs", {"raise"}, None),
    "reject": ("when request, once: reject 28", "nth 5", "server", {"reject"}, None),
    "data": ('when request, once: reject 28, data "go away"', "nth 5", "server", {"reject"}, None),
}

# The same of stand-ins for something else, besides packets.
MORE = {
    "delay of a completion": ("when completion, wr_id 3: delay 20ms", "wr_id 9", "work", {"delay"}, None),
    "delay of an event": ("when event, nth 2: delay 20ms", "nth 9", "events", {"delay"}, None),
    "drop of an event": ("when event, nth 2: drop", "nth 9", "events", {"drop"}, None),
    "duplicate of an event": ("when event, nth 2: duplicate", "nth 9", "events", {"duplicate"}, None),
    "drop of a message": ("when message, opcode REJ: drop; when request: reject 28", "nth 99", "server", {"drop", "reject"}, "fault: dropped"),
    "set of an answer": ("when ibv_query_port: set state DOWN", "nth 9", "asks", {"set"}, None),
    "raise at the opening": ("event port-down soft0", None, "asks", {"raise"}, None),
}


def _rules(pid):
    """The packets that each rule has met and changed, or None where no process answered."""
    done = softverbs("inject", "--list", "--json", str(pid))
    return [(rule["met"], rule["done"]) for rule in json.loads(done.stdout)["rules"]] if not done.returncode else None


def _command(mode):
    if mode == "server":
        return ["rping", "-s", "-a", "127.0.0.1", "-P", "-p", str(21000 + os.getpid() % 10000)]
    return [f"{BUILD}/tests/tool/scripted", mode, "stay"]


def _connect():
    """One attempt; it is of another directory of settings, but of the same host."""
    softverbs("run", "--log", "none", "--time-scale", "0.1", "--", "timeout", "5", "rping", "-c", "-C", "1", "-a", "127.0.0.1", "-p", str(21000 + os.getpid() % 10000))


class _Run:
    """A program that has met what it meets, and stays: what is known of it then, and what it leaves."""

    def __init__(self, rule, mode):
        self.files = {name: f"{TEMPORARY}/{name}" for name in ("counters", "capture", "log")}
        for path in self.files.values():
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)
        command = [SOFTVERBS, "run", "--log", "warn", "--log-file", self.files["log"], "--counters", self.files["counters"], "--capture", self.files["capture"],
                   "--inject", rule, "--", *_command(mode)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=cases.environment(),
                              preexec_fn=lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN)) as process:
            try:
                self.rules = self._wait(process, mode)
                told = json.loads(expect(softverbs("why", "--events", "--json", str(process.pid)), out=None).stdout)
                self.events = [event["event"] for event in told[0]["events"] if event["event"].startswith("SCRIPTED_")]
                show = json.loads(expect(softverbs("show", "--json"), out=None).stdout)
                self.calls = next(each["calls"]["scripted"] for each in show if each["pid"] == process.pid)
                self.story = self._stories(show, process.pid)
            finally:
                process.stdin.close()
                if mode == "server":
                    process.kill()
                process.wait()
        self.log = self._read("log", "r")
        self.comments = re.findall(rb"fault: [a-z0-9. ()]+", self._read("capture", "rb"))

    def _read(self, name, how):
        if not os.path.exists(self.files[name]):
            return "" if how == "r" else b""
        with open(self.files[name], how) as file:  # pylint: disable=unspecified-encoding
            return file.read()

    @staticmethod
    def _wait(process, mode):
        """Until it has done all that it does."""
        end = until(20)
        while _rules(process.pid) is None:
            assert process.poll() is None and time.monotonic() < end, "no device was opened"
            time.sleep(0.01)
        if mode == "server":
            _connect()
        before = None
        while time.monotonic() < end:
            now = _rules(process.pid)
            if now == before and now is not None and any(line.split()[2] == "S" for line in _stat(process.pid)):
                break
            before = now
            time.sleep(0.15)
        return now

    @staticmethod
    def _stories(show, pid):
        """The rules that the stories of its queue pairs have."""
        numbers = [qp["number"] for each in show if each["pid"] == pid for qp in each.get("qps", [])]
        stories = [json.loads(softverbs("why", "--json", "--qp", str(number)).stdout or "{}") for number in numbers]
        return json.dumps(stories)


def _stat(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return [re.sub(r"\(.*\)", "name", file.read())]


def _is_of_a_queue_pair(rule):
    return any(word in rule for word in ("packet", "work", "receive", "completion", "qp"))


def _check(title, row):
    rule, other, mode, counted, comment = row
    if mode == "server" and not shutil.which("rping"):
        raise Skip("rping is not installed")
    run = _Run(rule, mode)
    assert run.rules and all(met for met, _ in run.rules) or "release" in rule, (title, run.rules)
    assert run.rules[0][1] >= 1, (title, run.rules)
    if counted is None:
        assert not run.calls and not run.events and not run.log, (title, run.calls, run.events, run.log)
    else:
        assert set(run.calls) >= counted and set(run.calls) <= counted | {"release"}, (title, run.calls)
        assert {f"SCRIPTED_{word.upper()}" for word in counted} <= set(run.events), (title, run.events)
        assert "by line 1 of the script (reason 700)" in run.log, (title, run.log)
    assert not comment or comment.encode() in b" ".join(run.comments), (title, run.comments)
    if counted and _is_of_a_queue_pair(rule) and "cq" not in rule:
        assert json.dumps(rule.partition(";")[0].strip())[1:-1] in run.story, (title, run.story)
    without = rule.partition(";")[0].replace(":", f", {other}:", 1) if other else "event port-down other"
    idle = _Run(without, mode)
    assert all(done == 0 for _, done in idle.rules) and not idle.calls and not idle.events, (without, idle.rules, idle.calls)
    assert "reason 700" not in idle.log and not idle.comments and '"rules"' not in idle.story, (without, idle.log, idle.comments)


def _check_all(rows):
    """All that can be; a skip at the end names what is missing for the others."""
    missing = set()
    for title, row in rows.items():
        try:
            _check(title, row)
        except Skip as reason:
            missing.add(str(reason))
    if missing:
        raise Skip(", ".join(sorted(missing)))


def each_action_has_a_row():
    with open(f"{TREE}/src/script/words.def", encoding="utf-8") as file:
        actions = re.findall(r'^ACTION\("(\w+)"', file.read(), re.M)
    actions.remove("places")  # only counts calls: script_test.py
    assert len(actions) > 20 and sorted(actions) == sorted(ROWS), set(actions) ^ set(ROWS)


def each_action_happens_where_it_is_asked_for_and_nowhere_else():
    _check_all(ROWS)


def so_does_what_is_done_to_other_things():
    _check_all(MORE)


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
