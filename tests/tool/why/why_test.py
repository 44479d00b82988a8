#!/usr/bin/env python3
"""`softverbs why` names what hanging programs wait for."""
import concurrent.futures
import contextlib
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, SOFTVERBS, expect, softverbs, told


@contextlib.contextmanager
def _running(*command):
    """The number of a process, which prints it."""
    with subprocess.Popen([SOFTVERBS, "run", "--", *command], stdout=subprocess.PIPE, env=cases.environment()) as process:
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def _hanging(cause):
    return _running(f"{BUILD}/tests/tool/hangs", cause)


def _tells(pid, *words):
    """Checks that all words appear, and that each sentence has one of them."""
    end = cases.until(20)
    while True:  # the machine may be late: no processor yet, or the last packet on its way
        done = expect(softverbs("why", "--json", str(pid)))
        (waits,) = [each["waits"] for each in json.loads(done.stdout)]
        if all(word.decode() in "\n".join(waits) for word in words) or time.monotonic() > end:
            break
    assert all(word.decode() in "\n".join(waits) for word in words), told(done)
    assert all(any(word.decode() in line for word in words) for line in waits), told(done)


def _says(cause, *words):
    with _hanging(cause) as pid:
        _tells(pid, *words)


# For each cause of hangs.c a part of each sentence about its process; there are no others.
LONE = b"has nothing to send, and no receive is posted"
CROSSWISE = {
    "first-psn": (b" waits for an answer to 1 packet (timeout is 0): queue pair 0x", b"has rq_psn 0 and this one sq_psn 100: the peer's rq_psn must be this sq_psn.", LONE),
    "other-peer": (b" waits for an answer to 1 packet (timeout is 0): queue pair 0x", b", and not with 0x", b": its answers go there.", LONE),
    "peer-in-err": (b" waits for an answer to 1 packet (timeout is 0): queue pair 0x", b" is in ERR, where it takes nothing.", b" is in ERR: the program moved it there (or librdmacm, when it disconnects or is rejected), or its peer ended."),
    "in-err": (b" is in ERR: the program moved it there (or librdmacm, when it disconnects or is rejected), or its peer ended.",),
    "failed": (b" is in ERR since its first error, LOCAL_KEY_UNKNOWN: ", b": softverbs explain 101.", LONE),
    "no-receive": (LONE,),
    "peer-failed": (b" waits for an answer to 1 packet (timeout is 0): queue pair 0x", b" is in ERR, where it takes nothing: qp 0x", b" (its reason 101).",
                    b" is in ERR since its first error, LOCAL_KEY_UNKNOWN: "),
    "itself": (b" waits for an answer to 1 packet (timeout is 0): dest_qp_num is 0x", b", the queue pair's own number, and not its peer's."),
    "other-type": (b" waits for an answer to 1 packet (timeout is 0): queue pair 0x", b" is of type UC, and this one RC.", b" is in INIT: ibv_modify_qp to RTR"),
    "refused-post": (b"1 post to queue pair 0x", b" was refused, and none was taken since: ibv_post_send failed for reason 328, ", LONE),
    "refused-receive": (b" has no receive posted: 1 call of ibv_post_recv was refused, and none was taken since: the last for reason 319, ", LONE),
    "refused-shared-receive": (b" is empty: 1 call of ibv_post_srq_recv was refused, and none was taken since: the last for reason 319, ",),
    "refused-bind": (b"1 post to queue pair 0x", b" was refused, and none was taken since: ibv_bind_mw failed for reason ", LONE),
    "open-batch": (b"A batch of queue pair 0x", b" is open: ibv_wr_start was called, and neither ibv_wr_complete, which posts it, nor ibv_wr_abort."),
    "wrong-qkey": (b" has nothing to send; since it was made it dropped 1 packet (reason 11): ", LONE),
}


def each_cause_has_its_own_sentences_alone():
    with concurrent.futures.ThreadPoolExecutor(4) as several:  # each waits for its second look
        for told_well in [several.submit(_says, cause, *words) for cause, words in CROSSWISE.items()]:
            told_well.result()


def sends_that_are_not_signalled():
    _says("unsignalled", b"1 work request of queue pair 0x", b" ended without a completion, as it is not signalled (IBV_SEND_SIGNALED)")


def a_request_to_a_queue_pair_that_was_destroyed():
    """`why` took it for unsignalled."""
    _says("destroyed", b"waits for its peer: process ", b"lives and has no queue pair 0x", b": it was destroyed (ibv_destroy_qp), or never made.")


def a_request_to_a_queue_pair_that_was_reset():
    """`why` claimed that it had never been brought to RTR."""
    _says("reset", b"waits for an answer to 1 packet (timeout is 0): queue pair 0x", b" is in RESET, where it takes nothing: it was reset, or never brought to RTR.", b" is in RESET: ibv_modify_qp to RTR")


def a_peer_that_was_killed():
    """`why` did not mention it."""
    _says("killed", b"waits for its peer: process ", b", has ended.")


def a_peer_that_is_stopped():
    """`why` took the signalled requests to it for unsignalled."""
    with _hanging("stopped") as pid, _hanging("message") as other:
        done = expect(softverbs("why", "--json"))
        (said,) = [each["waits"] for each in json.loads(done.stdout) if each["pid"] == pid]
        (partner,) = [each for each in json.loads(done.stdout) if each["pid"] not in (pid, other)]
        # processes that live and have no such queue pair are not silent
        expect(softverbs("why", "--qp", "0x1"), 1, b"",
               [f"Process {partner['pid']} did not answer within a second (it is stopped, has no time, or is another user's and refuses): queue pair 0x1 may be of it.".encode()])
        expect(softverbs("why", "--cq", "99"), 1, b"", [b"did not answer within a second"])
        os.kill(partner["pid"], signal.SIGKILL)
        assert len(said) == 1 and f"process {partner['pid']} (exe), which has queue pair 0x" in said[0] and "does not answer: it is stopped" in said[0], said
        assert partner["waits"][0].startswith("It did not answer within a second: it is stopped"), partner


def receives_that_were_late_are_no_cause_of_a_later_wait():
    """`why` claimed that the peer had no receive posted, as it once had not."""
    _says("late-receive", b"2 work requests of queue pair 0x", b" ended without a completion, as they are not signalled")


def a_pair_that_moves_lacks_no_receive():
    """`why` claimed that the peer had no receive posted while 80,000 messages a second arrived there."""
    with _hanging("moves") as pid:
        done = expect(softverbs("why", str(pid)))
        assert b"no receive posted" not in done.stdout and b"No wait within softverbs was found" in done.stdout, told(done)


def completions_without_an_armed_event():
    _says("unarmed", b"has 2 completions that nothing polls, and no event is asked for (ibv_req_notify_cq)", b"2 completions wait in completion queue")


def a_peer_that_never_came_to_RTR():
    _says("deaf", b" waits for an answer to 1 packet (timeout is 0): queue pair 0x", b"(hangs) is in INIT, where it takes nothing: ibv_modify_qp to RTR is missing", b"is in INIT: ibv_modify_qp to RTR")


def a_queue_pair_that_never_came_to_RTR():
    _says("init", b"is in INIT: ibv_modify_qp to RTR", LONE)


def a_peer_without_receives():
    _says("receives", b"its peer has no receive posted (ibv_post_recv)")


def a_number_that_is_no_queue_pair():
    _says("nobody", b"waits for its peer: no process of this directory has queue pair 0x")


def a_queue_that_is_not_emptied_and_not_armed_again():
    """https://github.com/ofiwg/libfabric/issues/796, https://github.com/linux-rdma/perftest/issues/137"""
    _says("unemptied", b"completions that nothing polls, and no event is asked for (ibv_req_notify_cq)", b": it is not polled.")


def events_that_were_acknowledged_at_another_queue():
    """https://github.com/openucx/ucx/issues/1039"""
    _says("unacknowledged", b"The completion queue with handle", b"is being destroyed, and waits for 1 event to be acknowledged (ibv_ack_cq_events")


def events_of_another_queue_that_were_acknowledged_here():
    """findings/field-b.md, B5; (reason 357) had the difference as an unsigned number."""
    _says("overacknowledged", b"is being destroyed, and 2 more events of it were acknowledged than fetched")
    last = expect(softverbs("why", "--last")).stdout
    assert b"waits for ever: 2 more events were acknowledged than fetched" in b" ".join(last.split()), last


def a_shared_receive_queue_that_ran_out():
    """https://github.com/openucx/ucx/pull/10505"""
    _says("short-srq", b"shared receive queue with handle", b"is empty (ibv_post_srq_recv)", b"times that it is not ready")


def a_send_queue_that_nobody_empties():
    """https://github.com/ofiwg/libfabric/pull/4345, https://github.com/spdk/spdk/issues/3195"""
    _says("full", b"16 completions wait in completion queue", b"it is not polled, and the send queue is full, so that ibv_post_send gives ENOMEM",
          b"has 16 completions that nothing polls, and no event is asked for (ibv_req_notify_cq), which was never called.")


def _happened(pid, kind):
    """The output of `softverbs why` for the process's only object of this kind, as text and as JSON."""
    shown = [process for process in json.loads(expect(softverbs("show", "--json")).stdout) if process["pid"] == pid]
    number = str(shown[0][kind + "s"][0]["handle"])
    text = b" ".join(expect(softverbs("why", f"--{kind}", number, str(pid))).stdout.split())
    (answer,) = json.loads(expect(softverbs("why", f"--{kind}", number, "--json")).stdout)
    expect(softverbs("why", f"--{kind}", "99", str(pid)), 1, b"", [b"No process with this number that lives has"])
    return text, answer[kind]


def the_last_events_of_a_completion_queue():
    with _hanging("unemptied") as pid:
        text, cq = _happened(pid, "cq")
        events = [event["event"] for event in cq["events"]]
        assert events[:3] == ["CQ_ARMED", "CQ_EVENT", "CQ_EVENT_FETCHED"] and len(events) <= 16, events
        assert b"The program fetched an event of the CQ (ibv_get_cq_event)." in text and b"since the last one was fetched." in text, text


def the_last_events_of_a_shared_receive_queue():
    with _hanging("short-srq") as pid:
        text, srq = _happened(pid, "srq")
        empty = srq["events"][-1]
        assert empty["event"] == "SRQ_EMPTY" and empty["times"] > 0 and empty["qp"], srq
        assert b"receives posted, and no limit is armed." in text and b"A message of a queue pair found no receive in the SRQ (qp" in text, text


def the_last_events_of_a_process():
    with _hanging("full") as pid:
        expect(softverbs("event", "port-down", "soft0"))
        expect(softverbs("event", "port-up", "soft0"))
        text = b" ".join(expect(softverbs("why", "--events", str(pid))).stdout.split())
        (answer,) = json.loads(expect(softverbs("why", "--events", "--json", str(pid))).stdout)
        events = {event["event"]: event for event in answer["events"]}
        assert events["CALL_REFUSED"]["call"] == "ibv_post_send" and events["ASYNC_EVENT"]["device"] == 0, events
        assert b"A call was refused, by the name of the reason (reason" in text and b"An asynchronous event was raised (type" in text, text
    expect(softverbs("why", "--events", "1"), 1, b"", [b"No process 1 has a softverbs device open here; \"softverbs show\" lists those that have."])
    expect(softverbs("why", "--cq", "no"), 2, b"", [b"\"no\" is not the number of a completion queue."])


def a_port_that_is_down():
    """https://github.com/ROCm/rocm-systems/pull/9091: ports that nothing had brought up"""
    expect(softverbs("event", "port-down", "soft0"))
    try:
        _says("receives", b"is on a port that is down: softverbs event port-up soft0")
    finally:
        expect(softverbs("event", "port-up", "soft0"))


def a_port_of_the_peer_that_is_down():
    """The peer is on another device. The program has sent nothing before its peer's port is down."""
    with subprocess.Popen([SOFTVERBS, "run", "--", f"{BUILD}/tests/tool/hangs", "peer-port-down"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env=cases.environment(SOFTVERBS_DEVICES="2")) as process:
        try:
            pid = int(process.stdout.readline())
            expect(softverbs("event", "port-down", "soft1"))
            process.stdin.write(b"\n")
            process.stdin.flush()
            process.stdout.readline()
            _tells(pid, b" waits for an answer to 1 packet (timeout is 0): the port of queue pair 0x", b" is down (softverbs event port-up).",
                   b" is on a port that is down: softverbs event port-up soft1")
        finally:
            process.kill()


def a_thread_within_a_call():
    """It posts bytes of a page whose bytes never arrive. The list claimed that an open batch does the same, which holds another lock."""
    try:
        _says("within-call", b" is in use: a thread is within a call of it.", b" waits for an answer to 1 packet (timeout is 0): a thread of process ",
              b" is within a call of queue pair 0x")
    except ValueError as nothing:  # it ended before it printed its number
        raise cases.Skip("this machine lets no program have userfaultfd") from nothing


def _free_port():
    with socket.socket() as one:
        one.bind(("", 0))
        return str(one.getsockname()[1])


def an_end_that_nobody_asks_for():
    """https://github.com/linux-rdma/perftest/pull/201: both wait for DISCONNECTED, and neither calls rdma_disconnect"""
    program, port = f"{BUILD}/tests/clients/no_disconnect", _free_port()
    if not os.path.exists(program):
        raise cases.Skip("librdmacm is not installed")
    wanted = b"Identifier", b"has been connected with", b"RDMA_CM_EVENT_DISCONNECTED comes when one side calls rdma_disconnect"
    with _running(program, port) as server, _running(program, port, "127.0.0.1") as client:
        for pid in (server, client):
            deadline = cases.until(20)  # the other end may be on its way to where it waits
            while True:
                done = expect(softverbs("why", str(pid)))
                if all(words in done.stdout for words in wanted):
                    break
                assert time.monotonic() < deadline, told(done)
                time.sleep(0.1)


def a_connection_that_nobody_answers_fails_as_soon_as_it_is_asked_to():
    """findings/newcomer.md, 11: it took 97 seconds, which nothing shortened."""
    program, port = f"{BUILD}/tests/clients/no_disconnect", _free_port()
    if not os.path.exists(program):
        raise cases.Skip("librdmacm is not installed")
    with _running(program, port):
        begun = time.monotonic()
        done = cases.run(program, port, "127.0.0.1", env={"SOFTVERBS_FAULT": "drop=100%", "SOFTVERBS_CM_RETRIES": "0"})
        assert done.returncode == 1 and b"RDMA_CM_EVENT_UNREACHABLE" in done.stderr, told(done)
        assert 4 < time.monotonic() - begun < 40, time.monotonic() - begun
    expect(cases.run("true", env={"SOFTVERBS_CM_RETRIES": "16"}), 2, b"", [b"SOFTVERBS_CM_RETRIES=16"])


def a_message_that_does_not_come():
    _says("message", b"has nothing to send; 1 receive waits for a message of the peer")


def _switches(pid):
    """How often the process's threads have slept and been woken."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/status", encoding="utf-8") as file:
            total += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", file.read(), re.M)[1])
    return total


@contextlib.contextmanager
def _at_terminal(cause):
    """The process, and a function that gives what its terminal has shown."""
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    shown = bytearray()
    with subprocess.Popen([SOFTVERBS, "run", "--", f"{BUILD}/tests/tool/hangs", cause], stdout=subprocess.DEVNULL, stderr=theirs, env=cases.environment()) as process:
        os.close(theirs)

        def look():
            with contextlib.suppress(OSError):
                while part := os.read(ours, 65536):
                    shown.extend(part)
            return shown.decode()

        try:
            yield process.pid, look
        finally:
            process.kill()
            os.close(ours)


def a_hang_is_said_after_some_seconds_without_being_asked():
    """Once, at a terminal; and a process that has nothing to say sleeps on."""
    with _at_terminal("unsignalled") as (_, mute), _at_terminal("unarmed") as (_, unarmed), _at_terminal("message") as (idle, nothing):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not ("(reason 120)" in mute() and "(reason 121)" in unarmed()):
            time.sleep(0.2)
        assert "ended without a completion, as it is not signalled" in mute() and "has 2 completions that nothing polls" in unarmed(), (mute(), unarmed())
        for _ in range(2):
            before = _switches(idle)
            time.sleep(6)  # the one that waits for a message has looked once by then, and will not again
        assert nothing() == "" and _switches(idle) == before, (nothing(), before, _switches(idle))
        assert mute().count("softverbs:") == 1 and unarmed().count("softverbs:") == 1, (mute(), unarmed())


def it_has_a_form_for_programs():
    with _hanging("unsignalled") as pid:
        said, = json.loads(expect(softverbs("why", "--json", str(pid))).stdout)
        assert said["pid"] == pid and said["program"] == "hangs" and "not signalled" in said["waits"][0], said


def what_is_not_there_is_said():
    expect(softverbs("why", "1"), 1, b"", [b"No process 1 has a softverbs device open"])
    expect(softverbs("why", "nothing"), 2, b"", [b"number of one process"])
    expect(softverbs("why"), out=b"No process has a softverbs device open. Start one: softverbs run -- PROGRAM\n")


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
