#!/usr/bin/env python3
"""softverbs stat: what live processes have counted, until now and as it changes."""
import contextlib
import ctypes
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import SOFTVERBS, Skip, TEMPORARY, expect, softverbs

PROGRAM = "/usr/bin/ib_write_bw"


def _name_of(pid, task):
    with open(f"/proc/{pid}/task/{task}/comm", encoding="utf-8") as file:
        return file.read().strip()


def _port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def _writing(*options):
    """Two processes, where one writes to the other for longer than a test takes; yields the writer's."""
    if not os.path.exists(PROGRAM):
        raise Skip("package perftest is not installed")
    port = _port()
    command = [SOFTVERBS, "run", *options, "--", PROGRAM, "-F", "-D", "60", "-s", "64", "-Q", "1", "-p", str(port)]
    os.makedirs(cases.DIRECTORY, 0o700, exist_ok=True)  # stat is asked whether or not a program has made it
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": cases.environment()}
    with subprocess.Popen(command, **quiet) as server:
        assert cases.await_listener(server, port)
        with subprocess.Popen([*command, "127.0.0.1"], **quiet) as client:
            try:
                deadline = cases.until(20)
                while time.monotonic() < deadline and not _counted(client.pid).get("RC WRITE_ONLY"):
                    time.sleep(0.1)
                yield server.pid, client.pid
            finally:
                for process in (client, server):
                    process.send_signal(signal.SIGKILL)


def _told():
    return {process["pid"]: process for process in json.loads(expect(softverbs("stat", "--once", "--json")).stdout)}


def _told_whole():
    """The same, once no queue pair's lock was held long enough to make its counts null, as by a thread without a processor."""
    deadline = cases.until(20)
    while time.monotonic() < deadline:
        told = _told()
        if all(pair["traffic"] for process in told.values() for pair in process["qps"]):
            break
    return told


def _counted(pid):
    process = _told().get(pid, {})
    return process["traffic"][0]["sent"] if process.get("traffic") else {}


def nobody_counts_when_nobody_is_there():
    os.mkdir(f"{TEMPORARY}/empty", 0o700)
    for options in (["--once"], ["--qps"]):
        expect(softverbs("stat", "--dir", f"{TEMPORARY}/empty", *options), out=b"No process has a softverbs device open. Start one: softverbs run -- PROGRAM\n")
    expect(softverbs("stat", "--dir", f"{TEMPORARY}/empty", "--once", "--json"), out=b"[]\n")


def devices_count_what_their_queue_pairs_count():
    with _writing() as (server, client):
        told, later = _told(), _told_whole()
        for before, after in ((told[client], later[client]), (told[server], later[server])):
            assert len(after["traffic"]) == 1 and after["traffic"][0]["device"] == "soft0", after
            assert len(after["qps"]) == 1, after
            assert before["traffic"][0]["bytes_sent"] <= after["qps"][0]["traffic"]["bytes_sent"], (before, after)
        sent, received = later[client]["traffic"][0], later[server]["traffic"][0]
        assert sent["bytes_sent"] == 64 * sent["sent"]["RC WRITE_ONLY"], sent
        assert received["bytes_received"] == 64 * received["received"]["RC WRITE_ONLY"], received
        assert received["sent"]["RC ACKNOWLEDGE"] > 0 and not sent["dropped"] and not sent["faults"], (sent, received)
        table = expect(softverbs("stat", "--once")).stdout.decode()
        assert re.search(rf"^{client} +ib_write_bw +soft0 +[1-9]\d* .* RC WRITE_ONLY [1-9]", table, re.M), table
        table = expect(softverbs("stat", "--qps")).stdout.decode()
        assert re.search(rf"^{server} +ib_write_bw +0x[0-9a-f]+ +0 +[1-9]", table, re.M), table


def losses_and_what_follows_are_counted():
    with _writing("--fault", "drop=5%,dup=5%,reorder=5%,delay=1us,corrupt=1%,seed=1") as (server, client):
        deadline = cases.until(20)
        while time.monotonic() < deadline and _told()[client]["traffic"][0]["repeated"] < 100:
            time.sleep(0.1)
        told = _told()
        sent, received = told[client]["traffic"][0], told[server]["traffic"][0]
        assert sent["faults"] > 0 and sent["repeated"] >= 100, sent
        kinds = sent["fault_kinds"]
        assert set(kinds) == {"drop", "dup", "reorder", "delay", "corrupt"} and all(kinds.values()), sent
        assert kinds["delay"] > 10 * kinds["drop"] > 10 * kinds["corrupt"] and sent["faults"] >= kinds["drop"], sent
        assert received["naks_sent"] > 0 and received["dropped"], received
        assert sent["naks_received"] > 0, sent


def a_line_a_second_says_what_came_to_it():
    with _writing():
        start = time.monotonic()
        with subprocess.Popen([SOFTVERBS, "stat"], stdout=subprocess.PIPE, env=cases.environment()) as process:
            lines = [process.stdout.readline().decode().split() for _ in range(3)]
            process.terminate()
        assert lines[0][0] == "procs" and 1.5 < time.monotonic() - start < 10, lines
        assert all(line[0] == "2" for line in lines[1:]), lines
        assert any(int(line[1]) > 0 and int(line[2]) > 0 for line in lines[1:]), lines  # one that does not answer in time adds nothing


def a_line_a_second_says_what_was_lost():
    with _writing("--fault", "drop=5%,seed=1"):
        with subprocess.Popen([SOFTVERBS, "stat"], stdout=subprocess.PIPE, env=cases.environment()) as process:
            titles, *lines = [process.stdout.readline().decode().split() for _ in range(6)]
            process.terminate()
        told = [dict(zip(titles, line)) for line in lines]
        assert titles[-2:] == ["drops", "fault"] and any(int(line["fault"]) > 0 for line in told), (titles, told)


def what_is_lost_at_a_port_that_is_down_is_counted():
    path = f"{TEMPORARY}/counted"
    with _writing("--counters", path) as (server, _):
        expect(softverbs("event", "--pid", str(server), "port-down", "soft0"), out=None)
        deadline, told = time.monotonic() + 60, {}
        while time.monotonic() < deadline and server not in told:  # until the writer's retries have run out, and both end
            time.sleep(0.1)
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    told = {process["pid"]: process["strays"] for process in map(json.loads, file)}
        dropped = told[server]["dropped"]
        assert dropped.get("21") and told[server]["reasons"]["PACKET_PORT_DOWN"] == dropped["21"], told


def a_process_that_does_not_answer_is_told_as_such():
    with _writing() as (_, client):
        assert _told()[client]["answers"] is True
        cases.stop(client)
        try:
            assert _told()[client] == {"pid": client, "program": "ib_write_bw", "answers": False}
            for options in (["--once"], ["--qps"], ["--lines"]):
                table = expect(softverbs("stat", *options)).stdout.decode()
                assert re.search(rf"^{client} +ib_write_bw \(does not answer\) +- +-", table, re.M), table
        finally:
            os.kill(client, signal.SIGCONT)


def counters_are_written_where_the_helper_gets_no_processor_for_a_while():
    """The library's thread is stopped by a tracer while the program ends, as a busy machine may stop it."""
    attach, detach = 0x4206, 17  # PTRACE_SEIZE, PTRACE_DETACH
    interrupt = 0x4207
    libc, path = ctypes.CDLL(None, use_errno=True), f"{TEMPORARY}/late-counters"
    with subprocess.Popen([SOFTVERBS, "run", "--counters", path, "--", f"{cases.BUILD}/tests/tool/scripted", "lines"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, env=cases.environment()) as program:
        program.stdout.readline()
        deadline, helpers = cases.until(20), []
        while not helpers and time.monotonic() < deadline:
            helpers = [int(task) for task in os.listdir(f"/proc/{program.pid}/task") if _name_of(program.pid, task) == "softverbs"]
        helper = helpers[0]
        if libc.ptrace(attach, helper, None, None):
            program.kill()
            raise Skip(f"no thread can be traced here: {os.strerror(ctypes.get_errno())}")
        assert libc.ptrace(interrupt, helper, None, None) == 0
        assert os.waitpid(helper, 0x40000000)[0] == helper  # __WALL
        program.stdin.close()
        end = time.monotonic() + 1.2  # longer than a process waits that has nothing to write
        while time.monotonic() < end:
            assert not os.path.exists(path) and program.poll() is None
            time.sleep(0.05)
        assert libc.ptrace(detach, helper, None, None) == 0
        assert program.wait(cases.patience(30)) == 0
    with open(path, encoding="utf-8") as file:
        assert json.loads(file.readline())["program"] == "scripted"


def output_that_cannot_be_written_is_an_error():
    for command in (["stat"], ["stat", "--json"], ["stat", "--once"], ["top", "--batch", "--count", "2", "--interval", "0.1"]):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([SOFTVERBS, *command], stdout=full, stderr=subprocess.PIPE, env=cases.environment(), timeout=cases.patience(60), check=False)
        assert done.returncode == 1 and done.stderr == b"softverbs: The output can't be written: No space left on device.\n", (command, done)
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([SOFTVERBS, *command], stdout=writer, stderr=subprocess.PIPE, env=cases.environment(), timeout=cases.patience(60),
                              restore_signals=False, check=False)  # SIGPIPE is ignored, as Python does
        os.close(writer)
        assert done.returncode == 0 and not done.stderr, (command, done)


def arguments_are_refused():
    expect(softverbs("stat", "everything"), 2, b"", [b"no argument \"everything\""])
    expect(softverbs("stat", "--twice"), 2, b"", [b"no option --twice"])


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
