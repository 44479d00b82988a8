#!/usr/bin/env python3
"""softverbs trace: the calls of unmodified programs, of one that it starts and of one that runs."""
import contextlib
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, SOFTVERBS, TEMPORARY, expect, front, softverbs

PROGRAM = f"{BUILD}/tests/tool/scripted"
LINE = re.compile(r"(\d\d:\d\d:\d\d\.\d{6}) (\d+)(?:/\d+)? (\w+)\((.*)\)(?: = (.*?))?(?:, (\d+) times more in)?( waits|(?: <(\d+) us>))")


# The cases about a process that runs, in front of any libibverbs; for a program that is started around_test.py has a case.
OF_CALLS = ("a_trace_joins_a_process_and_leaves_it", "a_program_does_not_care_that_its_trace_was_killed", "a_trace_ends_with_its_process",
            "polls_that_find_nothing_are_counted", "a_poll_that_finds_nothing_is_no_line_of_its_own")


def _lines(text):
    """Call, arguments, result and further calls of each line."""
    found = [(line, LINE.fullmatch(line)) for line in text.splitlines()]
    assert all(match for _, match in found), [line for line, match in found if not match]
    return [(match[3], match[4], match[5], int(match[6] or 0)) for _, match in found]


def _of(lines, call):
    return [line for line in lines if line[0] == call]


@contextlib.contextmanager
def _running():
    """A process that sends a message to itself for each line, and what sends one."""
    with subprocess.Popen([SOFTVERBS, *front(), "--", PROGRAM, "lines"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env=cases.environment()) as process:
        def send():
            process.stdin.write(b"\n")
            process.stdin.flush()
            return process.stdout.readline(), process.stdout.readline()
        try:
            process.stdout.readline()
            yield process, send
        finally:
            process.kill()


@contextlib.contextmanager
def _tracing(pid, *options):
    """A trace of the process, and what reads its lines until they hold."""
    path = f"{TEMPORARY}/trace-{time.monotonic_ns()}"
    with subprocess.Popen([SOFTVERBS, "trace", "-p", str(pid), "-o", path, *options], env=cases.environment(), stderr=subprocess.PIPE) as trace:
        def until(holds):
            for _ in range(1000):
                text = _read(path)
                if holds(text):
                    return text
                assert trace.poll() is None, trace.stderr.read()
                time.sleep(0.02)
            raise AssertionError(_read(path))
        try:
            yield trace, until, path
        finally:
            trace.kill()


def _read(path):
    with contextlib.suppress(FileNotFoundError):
        with open(path, encoding="utf-8") as file:
            return file.read().rpartition("\n")[0]
    return ""


def each_call_is_a_line_with_arguments_and_result():
    done = expect(softverbs("trace", "--", PROGRAM, "work"), out=None, err=None)
    lines = _lines(done.stderr.decode())
    assert lines[0][0] == "ibv_get_device_list" and lines[1][:2] == ("ibv_open_device", "device=device soft0"), lines[:2]
    (_, arguments, result, _), = _of(lines, "ibv_reg_mr")
    assert "access=IBV_ACCESS_LOCAL_WRITE" in arguments and re.fullmatch(r"mr \d+", result), (arguments, result)
    number = re.fullmatch("qp (0x[0-9a-f]+)", _of(lines, "ibv_create_qp_ex")[0][2])[1]
    states = [arguments for _, arguments, _, _ in _of(lines, "ibv_modify_qp")]
    assert [re.search("qp_state=(\\w+)", text)[1] for text in states] == ["INIT", "RTR", "RTS"], states
    assert f"dest_qp_num={number}" in states[1] and all(f"qp=qp {number}" in text for text in states), states
    posts = _of(lines, "ibv_post_send")
    assert "opcode=IBV_WR_SEND" in posts[0][1] and posts[0][2] == "0", posts
    ends = "".join(result for _, _, result, _ in _of(lines, "ibv_poll_cq"))
    assert ends.count("status=IBV_WC_SUCCESS") == done.stdout.count(b" status 0 ") == 8, (ends, done.stdout)
    assert ends.count("opcode=IBV_WC_RECV, byte_len=8") == 4, ends


def a_refused_call_shows_its_error():
    done = softverbs("trace", "-e", "reg_mr", "--", PROGRAM, "regions", env={"SOFTVERBS_INJECT": "when ibv_reg_mr, nth 2: error ENOMEM"})
    lines = _lines(done.stderr.decode())
    assert {call for call, *_ in lines} == {"ibv_reg_mr"} and [result for *_, result, _ in lines].count("NULL ENOMEM") == 1, lines


def a_call_that_waits_is_a_line_when_it_begins():
    done = expect(softverbs("trace", "-e", "ibv_get_cq_event,req_notify_cq", "--", PROGRAM, "events"), out=None, err=None)
    lines = _lines(done.stderr.decode())
    waits = _of(lines, "ibv_get_cq_event")
    assert waits and len(_of(lines, "ibv_req_notify_cq")) >= 1, lines
    assert [result is None for _, _, result, _ in waits] == [True, False] * (len(waits) // 2), waits
    assert all(re.fullmatch(r"0 cq \d+", result) for _, _, result, _ in waits if result), waits


CONNECTING = """
import ctypes, ctypes.util, struct, socket
cm = ctypes.CDLL("librdmacm.so.1", use_errno=True)
cm.rdma_create_event_channel.restype = ctypes.c_void_p
channel, identifier = ctypes.c_void_p(cm.rdma_create_event_channel()), ctypes.c_void_p()
assert cm.rdma_create_id(channel, ctypes.byref(identifier), None, 0x106) == 0
address = struct.pack("<HH", socket.AF_INET, socket.htons(7471)) + socket.inet_aton("127.0.0.1") + bytes(8)
assert cm.rdma_set_option(identifier, 0, 1, ctypes.byref(ctypes.c_int(1)), 4) == 0
assert cm.rdma_resolve_addr(identifier, None, address, 2000) == 0
event = ctypes.c_void_p()
assert cm.rdma_get_cm_event(channel, ctypes.byref(event)) == 0
cm.rdma_ack_cm_event(event)
assert cm.rdma_listen(identifier, 3) < 0
assert cm.rdma_destroy_id(identifier) == 0
"""


def commands_of_librdmacm_show_arguments_and_answers():
    try:
        ctypes.CDLL("librdmacm.so.1")
    except OSError as error:
        raise cases.Skip("librdmacm is not installed") from error
    done = expect(softverbs("run", "--trace=create_id,resolve_addr,get_cm_event,set_option,listen,destroy_id", "--", cases.PYTHON, "-c", CONNECTING), err=None)
    lines = [line for line in _lines(done.stderr.decode()) if "query=" not in line[1]]
    made = next(line for line in lines if line[1] == "ps=RDMA_PS_TCP, qp_type=RC")
    assert made[0] == "rdma_create_id" and re.fullmatch(r"0 identifier \d+", made[2]), made
    name = made[2][2:]
    rest = lines[lines.index(made) + 1:]
    assert [line[:3] for line in rest if "destroy" not in line[0]] == [
        ("rdma_set_option", f"id={name}, level=RDMA_OPTION_ID, optname=REUSEADDR, optlen=4", "0"),
        ("rdma_resolve_addr", f"id={name}, src_addr=NULL, dst_addr=127.0.0.1:7471, timeout_ms=2000", "0"),
        ("rdma_get_cm_event", "", None),
        ("rdma_get_cm_event", "", f"0 RDMA_CM_EVENT_ADDR_RESOLVED of {name}, status 0"),
        ("rdma_listen", f"id={name}, backlog=3", "EINVAL")], rest
    assert rest[-1][:3] == ("rdma_destroy_id", f"id={name}", "0 events 1"), rest


def run_traces_as_trace_does():
    path = f"{TEMPORARY}/run-trace"
    done = expect(softverbs("run", "--trace=reg_mr,post_send", "--trace-file", path, "--no-paths", "--", PROGRAM, "work"), out=None)
    with open(path, encoding="utf-8") as file:
        lines = _lines(file.read())
    assert {line[0] for line in lines} == {"ibv_reg_mr", "ibv_post_send"} and done.stdout.count(b" status 0 ") == 8, lines
    done = expect(softverbs("run", "--trace", "--fault", "delay=1us", "--", PROGRAM, "work"), out=None, err=None)
    assert _of(_lines(done.stderr.decode()), "ibv_post_send"), cases.told(done)
    for program, status in ((["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill -KILL $$"], 137), (["/nowhere"], 127)):
        assert softverbs("run", "--trace", "--", *program).returncode == status, program


def a_request_may_be_freed_while_its_post_is_inside():
    """By the thread that has got the completion; a schedule pauses after the post, within the call that is traced."""
    path = f"{TEMPORARY}/freed"
    for seed in (1, 2):
        expect(softverbs("run", "--trace=post_send", "--trace-file", path, "--schedule", f"seed={seed}", "--", f"{BUILD}/tests/adverse/frees_work"), out=None)
        with open(path, encoding="utf-8") as file:
            assert len([line for line in file if "ibv_post_send(" in line]) > 2000, seed


def flags_and_datagrams_are_in_words():
    done = expect(softverbs("run", "--trace=post_send,query_qp,modify_qp", "--", PROGRAM, "datagrams"), out=None, err=None)
    lines = _lines(done.stderr.decode())
    sends = _of(lines, "ibv_post_send")
    assert sends and all(re.search(r"ah=ah \d+, remote_qpn=0x[0-9a-f]+, remote_qkey=0x", line[1]) for line in sends), sends
    (_, arguments, result, _), *_ = _of(lines, "ibv_query_qp")
    assert "attr={qp_state=RTS}" in arguments and "mask=IBV_QP_STATE" in arguments and result == "0", arguments


def lines_of_json_have_the_same():
    done = expect(softverbs("trace", "--json", "--", PROGRAM, "work"), out=None, err=None)
    calls = [json.loads(line) for line in done.stderr.decode().splitlines()]
    made = [call for call in calls if call["call"] == "ibv_create_qp_ex"]
    assert len(made) == 1 and made[0]["result"].startswith("qp 0x") and "qp_type=RC" in made[0]["arguments"]["attr"], made
    assert all(abs(call["time"] - time.time()) < 600 and call["pid"] == call["tid"] for call in calls), calls
    assert all(0 <= call["seconds"] < 60 for call in calls), calls


def the_exit_status_is_that_of_the_program():
    for program, status in ((["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill -KILL $$"], 137), (["/nowhere"], 127)):
        assert softverbs("trace", "--", *program).returncode == status, program


def a_disk_that_is_full_ends_the_trace_and_not_the_program():
    done = softverbs("trace", "-o", "/dev/full", "--", "sh", "-c", f"{PROGRAM} work && exit 7")
    assert done.returncode == 7 and done.stdout.count(b" status 0 ") == 8, cases.told(done)
    assert done.stderr == b"softverbs: The trace can't be written: No space left on device.\n", cases.told(done)
    with _running() as (process, send):
        with subprocess.Popen([SOFTVERBS, "trace", "-p", str(process.pid), "-o", "/dev/full"], env=cases.environment(), stderr=subprocess.PIPE) as trace:
            while trace.poll() is None:
                send()
            assert trace.returncode == 1 and b"can't be written" in trace.stderr.read()
        assert send() and process.poll() is None


def a_command_whose_file_was_removed_starts_itself():
    """A package may be upgraded meanwhile: the command's path leads to nothing, and its file stays open."""
    with open(cases.installed(f"{TEMPORARY}/removed"), "rb") as file:
        os.remove(file.name)
        done = subprocess.run([f"/proc/self/fd/{file.fileno()}", "trace", "--", PROGRAM, "regions"], pass_fds=[file.fileno()], env=cases.environment(), capture_output=True,
                              check=False, timeout=cases.patience(60))
    assert done.returncode == 0 and b"ibv_reg_mr(" in done.stderr, cases.told(done)


def signals_do_in_the_program_what_they_did():
    assert softverbs("trace", "--", "sh", "-c", "kill -PIPE $$").returncode == 128 + signal.SIGPIPE
    ignoring = "trap '' INT TERM; exec %s trace -- sh -c 'kill -INT $$; kill -TERM $$; exit 3'" % SOFTVERBS
    assert subprocess.run(["sh", "-c", ignoring], env=cases.environment(), check=False).returncode == 3


def a_query_that_fails_shows_pointers():
    """The struct that the query would have filled may hold anything."""
    def query(**env):
        done = expect(softverbs("trace", "-e", "query_qp", "--", PROGRAM, "asyncs", env=env), out=None, err=None)
        return _lines(done.stderr.decode())[0][1:3]
    arguments, result = query()
    assert result == "0" and "init={qp_type=RC" in arguments, arguments
    arguments, result = query(SOFTVERBS_INJECT="when ibv_query_qp, nth 1: error EINVAL")
    assert result == "EINVAL" and re.search(r"init=0x[0-9a-f]+$", arguments), arguments


def programs_that_the_program_starts_are_there():
    done = softverbs("trace", "-e", "alloc_pd", "--", "sh", "-c", f"{PROGRAM} work >&2; {PROGRAM} work >&2")
    text = "\n".join(line for line in done.stderr.decode().splitlines() if "ibv_" in line)
    assert len(_lines(text)) == 2 and len({line.split()[1] for line in text.splitlines()}) == 2, text


def a_trace_joins_a_process_and_leaves_it():
    with _running() as (process, send):
        send()
        with _tracing(process.pid) as (trace, until, path):
            text = until(lambda text: send() and "IBV_WC_SEND" in text and "post_send" in text)
            assert {call for call, *_ in _lines(text)} == {"ibv_post_recv", "ibv_post_send", "ibv_poll_cq"}, text
            trace.send_signal(signal.SIGINT)
            assert trace.wait() == 0
            ended = _read(path)
        send()
        assert _read(path) == ended
        assert process.poll() is None


def a_program_does_not_care_that_its_trace_was_killed():
    with _running() as (process, send):
        with _tracing(process.pid) as (trace, until, _):
            until(lambda text: send() and "post_send" in text)
            trace.kill()
            trace.wait()
        for _ in range(10000):
            send()
        with _tracing(process.pid, "-e", "post_send") as (_, until, _):
            assert {call for call, *_ in _lines(until(lambda text: send() and "post_send" in text))} == {"ibv_post_send"}


def a_trace_ends_with_its_process():
    with _running() as (process, send):
        with _tracing(process.pid) as (trace, until, _):
            until(lambda text: send() and "post_send" in text)
            process.kill()
            process.wait()
            assert trace.wait(timeout=cases.patience(30)) == 0


def polls_that_find_nothing_are_counted():
    with _running() as (process, send):
        with _tracing(process.pid) as (_, until, _):
            lines = _lines(until(lambda text: send() and re.search(r"ibv_poll_cq\(.*\) = 0.*\n(.*\n)*.*IBV_WC_SEND", text)))
            empty = [line for line in lines if line[0] == "ibv_poll_cq" and line[2] == "0"]
            assert empty and all(re.fullmatch(r"cq=cq \d+, count=\d+", line[1]) for line in empty), lines
            assert len(empty) <= len([line for line in lines if line not in empty]) + 1, lines


def a_poll_that_finds_nothing_is_no_line_of_its_own():
    """Except where a second is between, as a line for each says how long."""
    with _running() as (process, send):
        with _tracing(process.pid, "-e", "poll_cq,post_send", "--json") as (_, until, _):
            text = until(lambda text: send() and text.count('"ibv_post_send"') > 20)
        lines = [json.loads(line) for line in text.splitlines()]
        for one, other in zip(lines, lines[1:]):
            assert one["result"] != "0" or other["result"] != "0" or one["call"] != other["call"] or one["seconds"] >= 1, (one, other)


def polls_of_several_queues_that_find_nothing_are_one_line():
    done = expect(softverbs("trace", "--", PROGRAM, "queues"), out=None, err=None)
    lines = [line for line in _lines(done.stderr.decode()) if line[0] in ("ibv_poll_cq", "ibv_query_device")]
    assert [line[0] for line in lines] == ["ibv_poll_cq", "ibv_query_device"] * 2, lines
    assert re.fullmatch(r"cq=cq \d+, cq \d+, count=1", lines[0][1]) and lines[0][2:] == ("0", 99), lines[0]
    assert re.fullmatch(r"cq=cq \d+, cq \d+, cq \d+, cq \d+, \.\.\., count=1, 2, 3, 4", lines[2][1]) and lines[2][2:] == ("0", 99), lines[2]
    done = expect(softverbs("trace", "--json", "-e", "poll_cq,query_device", "--", PROGRAM, "queues"), out=None, err=None)
    polls = [line for line in map(json.loads, done.stderr.decode().splitlines()) if line["call"] == "ibv_poll_cq"]
    assert len(polls) == 2 and re.fullmatch(r"cq \d+, cq \d+", polls[0]["arguments"]["cq"]) and polls[0]["arguments"]["count"] == "1", polls


def calls_can_be_left_out():
    done = expect(softverbs("trace", "-e", "!poll_cq,ibv_query_device", "--", PROGRAM, "queues"), out=None, err=None)
    calls = {line[0] for line in _lines(done.stderr.decode())}
    assert calls == {"ibv_get_device_list", "ibv_open_device", "ibv_alloc_pd", "ibv_create_cq"}, calls
    done = expect(softverbs("run", "--trace=!create_cq", "--", PROGRAM, "queues"), out=None, err=None)
    assert {"ibv_poll_cq", "ibv_alloc_pd"} < {line[0] for line in _lines(done.stderr.decode())}, done
    expect(softverbs("trace", "-e", "!explode", "--", "true"), status=2, err=[b'There is no call "explode"'])
    expect(softverbs("trace", "-e", "alloc_pd,!poll_cq", "--", "true"), status=2,
           err=[b'There is no call "!poll_cq". A "!" before the first name leaves out all calls of the list.'])
    with _running() as (process, send), _tracing(process.pid, "-e", "!poll_cq") as (_, until, _):
        assert {call for call, *_ in _lines(until(lambda text: send() and "post_send" in text))} == {"ibv_post_recv", "ibv_post_send"}


def what_is_wrong_is_said():
    with _running() as (process, _):
        expect(softverbs("trace", "-p", str(process.pid), "-e", "post_send,explode"), status=1, err=[b"there is no call \"explode\""])
    expect(softverbs("trace", "-p", str(process.pid)), status=1, err=[f"No process {process.pid} has a softverbs device open here; ".encode()])
    expect(softverbs("trace", "-o", "/nowhere/file", "--", "true"), status=1, err=[b"/nowhere/file can't be written: No such file"])
    for command in (["trace", "-e", "reg_mr,post_snd", "--"], ["run", "--trace=reg_mr,post_snd", "--"]):
        expect(softverbs(*command, "sh", "-c", "echo begun"), status=2, out=b"", err=[b'softverbs: There is no call "post_snd". Did you mean "post_send"?'])
    expect(softverbs("trace", "-e", ",rdma_connect,", "--", "true"))
    expect(softverbs("trace"), status=2, err=None)
    expect(softverbs("trace", "-p", "x"), status=2, err=None)


def a_ring_that_is_none_is_not_written_to():
    path = f"{TEMPORARY}/no-ring"
    with open(path, "wb") as file:
        file.write(bytes(1 << 20))
    done = cases.run(PROGRAM, "work", env={"SOFTVERBS_TRACE_RING": path, "SOFTVERBS_LOG": "warn"})
    assert done.returncode == 0 and b"no trace is written: it is not the ring of a trace" in done.stderr, cases.told(done)
    with open(path, "rb") as file:
        assert not any(file.read())
    os.unlink(path)


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
