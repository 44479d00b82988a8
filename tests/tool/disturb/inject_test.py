#!/usr/bin/env python3
"""softverbs inject: rules for a process that runs, which is unmodified."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, SOFTVERBS, Skip, expect, front, softverbs
from patience import patience, until

PROGRAM = f"{BUILD}/tests/tool/scripted"
SUCCESS, FLUSHED, RETRY_EXC = 0, 5, 12
ENOMEM = 12
# The cases about calls and work, which are in front of any libibverbs.
OF_CALLS = ("work_of_a_live_process_goes_wrong_and_then_does_not", "another_process_goes_on", "rules_that_were_refused_do_not_come_later", "rules_are_taken_back",
            "what_is_wrong_is_refused_and_nothing_changes", "what_only_own_devices_do_is_refused", "completions_of_a_live_process_are_held_back",
            "a_process_that_began_without_such_a_rule_gets_none", "a_process_that_ends_loses_nothing")


class _Program:
    """A process that sends a message to itself for each line."""

    def __init__(self, process):
        self.process = process
        self.pid = str(process.pid)
        self.qp = int(process.stdout.readline().split()[1])

    def send(self):
        """How the send ended: a status, or an errno below 0."""
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline().split()
        if line[0] == b"errno":
            return -int(line[1])
        lines = [line, self.process.stdout.readline().split()]
        return {int(each[1]) < 100: int(each[3]) for each in lines}[True]


@contextlib.contextmanager
def _running(*options):
    with subprocess.Popen([SOFTVERBS, *front(*options), "--", PROGRAM, "lines"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=cases.environment()) as process:
        try:
            yield _Program(process)
        finally:
            process.kill()


def work_of_a_live_process_goes_wrong_and_then_does_not():
    with _running() as program:
        assert program.send() == SUCCESS
        done = softverbs("inject", program.pid, f"when work, on qp {program.qp}, nth 2: complete RETRY_EXC_ERR")
        expect(done, out=None)
        assert b"when work" in done.stdout and b"(met 0, done 0)" in done.stdout, done
        assert program.send() == SUCCESS and program.send() == RETRY_EXC and program.send() == FLUSHED


def another_process_goes_on():
    with _running() as meant, _running() as other:
        expect(softverbs("inject", meant.pid, "when work: complete RETRY_EXC_ERR"), out=None)
        assert other.send() == SUCCESS and meant.send() == RETRY_EXC and other.send() == SUCCESS


def rules_that_were_refused_do_not_come_later():
    with _running() as program:
        cases.stop(program.process.pid)
        expect(softverbs("inject", program.pid, "when ibv_post_send: error ENOMEM"), 1, b"", [b"does not answer"])
        cases.resume(program.process.pid)
        expect(softverbs("inject", "--list", program.pid), out=b"The process has no rules.\n")
        assert program.send() == SUCCESS


def rules_are_taken_back():
    with _running() as program:
        expect(softverbs("inject", program.pid, "when ibv_post_send: error ENOMEM", "when ibv_reg_mr: error ENOMEM"), out=None)
        assert program.send() == -ENOMEM
        done = softverbs("inject", "--list", "--json", program.pid)
        rules = json.loads(expect(done, out=None).stdout)["rules"]
        assert [(rule["met"], rule["done"]) for rule in rules] == [(1, 1), (0, 0)] and rules[0]["rule"] == "when ibv_post_send: error ENOMEM", rules
        expect(softverbs("inject", "--clear", program.pid), out=b"The process has no rules.\n")
        assert program.send() == SUCCESS
        expect(softverbs("inject", program.pid, "when ibv_post_send, once: error ENOMEM"), out=None)
        assert program.send() == -ENOMEM and program.send() == SUCCESS


def packets_of_a_live_process_are_lost():
    with _running() as program:
        assert program.send() == SUCCESS
        expect(softverbs("inject", program.pid, "when packet, opcode SEND_ONLY, nth 1: drop"), out=None)
        assert program.send() == SUCCESS and program.send() == SUCCESS
        done = softverbs("stat", "--once", "--json")
        assert b'"drop": 1' in done.stdout or b'"drop":1' in done.stdout, done.stdout
        expect(softverbs("inject", program.pid, "when packet, opcode SEND_ONLY: drop"), out=None)
        assert program.send() == RETRY_EXC


def a_share_of_the_packets_of_a_live_process_is_lost():
    with _running() as program:
        expect(softverbs("inject", program.pid, "fault drop=100%"), out=None)
        assert program.send() == RETRY_EXC
    with _running() as program:
        expect(softverbs("inject", program.pid, "fault dup=50%,reorder=20%,delay=0.1ms+-0.1ms,seed=3", "fault drop=0%"), out=None)
        assert [program.send() for _ in range(20)] == [SUCCESS] * 20
        done = softverbs("inject", "--list", "--json", program.pid)
        rules = {rule["rule"]: rule["done"] for rule in json.loads(expect(done, out=None).stdout)["rules"]}
        assert rules["fault drop=0%"] == 0 and rules["fault dup=50%"] > 5 and rules["fault delay=0.1ms+-0.1ms"] >= 20, rules


def rules_of_the_option_fault_are_rules_as_well():
    with _running("--fault", "drop=100%", "--inject", "when ibv_reg_mr: note") as program:
        done = softverbs("inject", "--list", "--json", program.pid)
        rules = [(rule["rule"], rule["done"]) for rule in json.loads(expect(done, out=None).stdout)["rules"]]
        assert rules == [("when ibv_reg_mr: note", 1), ("fault drop=100%", 0)], rules
        assert program.send() == RETRY_EXC
        done = softverbs("inject", "--list", "--json", program.pid)
        rule = json.loads(expect(done, out=None).stdout)["rules"][1]
        assert rule["rule"] == "fault drop=100%" and rule["met"] == rule["done"] >= 8, rule
        shown = json.loads(expect(softverbs("show", "--json"), out=None).stdout)
        calls = next(each["calls"]["scripted"] for each in shown if each["pid"] == program.process.pid)
        assert calls == {"drop": rule["done"]}, (calls, rule)
        story = softverbs("why", "--json", "--qp", str(program.qp)).stdout
        assert b"fault drop=100%" in story, story
    with _running("--fault", "drop=100%") as program:
        expect(softverbs("inject", "--clear", program.pid), out=b"The process has no rules.\n")
        assert program.send() == SUCCESS
        expect(softverbs("inject", program.pid, "fault drop=100%"), out=None)
        assert program.send() == RETRY_EXC
    with _running("--fault", "drop=100%", "--log", "warn") as program:
        assert program.send() == RETRY_EXC
        program.process.stdin.close()
        assert b"reason 700" not in program.process.stderr.read(), "a line for each packet"
    with _running("--fault", "drop=1%", "--inject", "when packet, nth 99: drop; ibv_reg_mr:error=EIO:when=9", "--log", "warn") as program:
        program.process.stdin.close()
        told = program.process.stderr.read().decode()
        assert 'The rule "fault drop=1%" of SOFTVERBS_FAULT has met no packet' in told and "The rule in line 1 of the script has met no call" in told, told


def _held_and_released():
    """How the work ended whose packet was held until the rules were taken back."""
    with _running() as program:
        expect(softverbs("inject", program.pid, "when packet, opcode SEND_ONLY: hold"), out=None)
        program.process.stdin.write(b"\n")
        program.process.stdin.flush()
        while b"(met 0," in softverbs("inject", "--list", program.pid).stdout:
            pass
        expect(softverbs("inject", "--clear", program.pid), out=None)
        return sorted(int(program.process.stdout.readline().split()[3]) for _ in range(2))


def _start(*arguments):
    return subprocess.Popen([SOFTVERBS, "run", "--log", "none", "--", "rping", *arguments, "-a", "127.0.0.1", "-p", str(22000 + os.getpid() % 10000)],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=cases.environment())


def _accesses(pid):
    """The READs and WRITEs that a process did by itself in its peer's memory, and its others, sent in packets."""
    reports = json.loads(expect(softverbs("stat", "--once", "--json"), out=None, err=None).stdout)
    traffic = next((report["traffic"][0] for report in reports if report["pid"] == pid and report.get("traffic")), {"direct": {}, "sent": {}})
    return sum(traffic["direct"].values()), sum(count for name, count in traffic["sent"].items() if "READ_REQUEST" in name or "WRITE_ONLY" in name)


def _until_more(pid, which, than):
    """The accesses of the process when there are more of these."""
    end = until(20)
    while (now := _accesses(pid))[which] <= than:
        assert time.monotonic() < end, now
        time.sleep(0.02)
    return now


@contextlib.contextmanager
def _rping():
    """A server that reads and writes the memory of its client for ever, both without packets."""
    if not shutil.which("rping"):
        raise Skip("rping is not installed")
    with _start("-s") as server:
        client = _start("-c")
        try:
            end = until(20)
            while client.poll() is not None and time.monotonic() < end:  # there was no listener yet
                client = _start("-c")
            while _accesses(server.pid)[0] == 0:
                assert time.monotonic() < end
                if client.poll() is not None:
                    client = _start("-c")
                time.sleep(0.02)
            yield server, client
        finally:
            client.kill()
            client.wait()
            server.kill()


def access_without_packets_ends_before_the_command_does():
    """The command is given to the process that has the memory, and to the one that reads and writes it."""
    for side in 0, 1:
        with _rping() as processes:
            server = processes[0].pid
            expect(softverbs("inject", str(processes[side].pid), "when packet, nth 1000000000: drop"), out=None)
            before, packets = _accesses(server)
            after, _ = _until_more(server, 1, packets + 100)
            assert after == before, (side, before, after)


def a_rule_for_no_packets_leaves_the_access_alone():
    with _rping() as (server, client):
        expect(softverbs("inject", str(client.pid), "when ibv_dereg_mr, nth 99: note"), out=None)
        before, packets = _accesses(server.pid)
        assert _until_more(server.pid, 0, before + 100)[1] == packets == 0


def what_is_held_leaves_when_the_rules_are_taken_back():
    for _ in range(8):  # on a machine that is busy the sender may have given up before
        ends = _held_and_released()
        if ends != [FLUSHED, RETRY_EXC]:
            break
    assert ends == [SUCCESS, SUCCESS], ends


def completions_of_a_live_process_are_held_back():
    with _running(*(("--inject", "when event: note") if cases.AROUND else ())) as program:
        expect(softverbs("inject", program.pid, "when completion, wr_id 1: delay 300ms"), out=None)
        program.process.stdin.write(b"\n")
        program.process.stdin.flush()
        lines = [program.process.stdout.readline().split() for _ in range(2)]
        late = {int(line[1]): int(line[line.index(b"late") + 1]) for line in lines}
        assert late[1] >= 3, lines


def an_event_of_a_device_comes_at_once():
    with _running() as program:
        expect(softverbs("inject", program.pid, "event port-down other"), out=None)
        assert program.send() == SUCCESS
        done = softverbs("inject", program.pid, "event port-down soft0")
        expect(done, out=None)
        assert b"event port-down soft0" in done.stdout and b"(met 1, done 1)" in done.stdout, done
        assert program.send() == RETRY_EXC
        expect(softverbs("inject", program.pid, "event port-up soft0"), out=None)
        assert b"(met 2" not in softverbs("inject", "--list", program.pid).stdout, "a rule meets what is there when it comes"


def rules_that_come_later_are_met_alone_where_some_of_the_script_are_for_another_program():
    script = "when ibv_reg_mr, program other: error EIO; when ibv_reg_mr, program other: error EIO; when open: note"
    with _running("--inject", script) as program:
        done = softverbs("inject", "--list", "--json", program.pid)
        assert [rule["done"] for rule in json.loads(done.stdout)["rules"]] == [1], done
        done = softverbs("inject", "--json", program.pid, "when open, device other: raise port-down")
        assert [rule["done"] for rule in json.loads(done.stdout)["rules"]] == [1, 0], "the device was opened once"


def what_is_wrong_is_refused_and_nothing_changes():
    with _running() as program:
        expect(softverbs("inject", program.pid, "when work: explode"), 1, b"", [b'line 1, column 12: "explode" is not an action.'])
        expect(softverbs("inject", program.pid, "when work: complete GENERAL_ERR", "when"), 1, b"", [b"line 2, column 5"])
        expect(softverbs("inject", "--list", program.pid), out=b"The process has no rules.\n")
        expect(softverbs("inject", program.pid), 2, b"", [b"either rules, or --list or --clear"])
        expect(softverbs("inject"), 2, b"", [b"number of a process"])
        expect(softverbs("inject", program.pid, "when work: signal KILL" + " " * 2000), 2, b"", [b"longer than"])
        assert program.send() == SUCCESS
    expect(softverbs("inject", "--list", program.pid), 1, b"", [b"has a softverbs device open"])


def a_process_that_began_without_such_a_rule_gets_none():
    with _running() as program:
        for rule, cure in (("when event: drop", b"'when event: note'"), ("when completion: delay 1ms", b"'when event: note'"),
                           ("event port-down soft0", b"raise port-up'")):
            done = softverbs("inject", program.pid, rule)
            assert not cases.AROUND or done.returncode == 1 and cure in done.stderr and b"only if it began with one" in done.stderr, (rule, done)
    with _running("--inject", "when open, nth 2: raise port-up") as program:
        done = softverbs("inject", program.pid, "event port-down soft0")
        assert b"(met 1, done 1)" in done.stdout, done


def what_only_own_devices_do_is_refused():
    with _running() as program:
        done = softverbs("inject", program.pid, "when packet: drop")
        assert not cases.AROUND or done.returncode == 1 and b"for softverbs' own devices" in done.stderr, done


def a_process_that_ends_loses_nothing():
    with _running() as program:
        expect(softverbs("inject", program.pid, "when work, nth 2: signal TERM"), out=None)
        assert program.send() == SUCCESS
        program.process.stdin.write(b"\n")
        program.process.stdin.flush()
        assert program.process.wait(cases.PATIENCE if hasattr(cases, "PATIENCE") else 60) == -signal.SIGTERM
        assert not os.path.exists(f"/proc/{program.pid}/fd")


def a_process_that_ends_meanwhile_is_named():
    """The process may end at any moment of the question: there is an answer, or one line that says that there is no answer. In the
    last try the program is stopped before the question, so that it is not quicker than this script, which may wait for a processor."""
    answers = set()
    for delay in [*(step / 2000 for step in range(12)), 0.05, None]:
        with _running() as program:
            if delay is None:
                program.process.send_signal(signal.SIGSTOP)
            with subprocess.Popen([SOFTVERBS, "inject", program.pid, "when work: complete GENERAL_ERR", "when packet: drop"], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, env=cases.environment()) as asking:
                time.sleep(delay or 0)
                program.process.kill()
                out, err = asking.communicate(timeout=patience(30))
        answers.add(asking.returncode)
        if asking.returncode == 0:
            assert b"when work" in out and not err, (out, err)
        else:
            assert asking.returncode == 1 and not out and err.count(b"\n") == 1, (asking.returncode, out, err)
            assert b"has a softverbs device open" in err or b"does not answer" in err or b"no process has met another" in err, err
    assert 1 in answers, answers


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
