#!/usr/bin/env python3
"""softverbs run --script and --inject: calls of an unmodified program fail and wait as a script says, and others do not."""
import contextlib
import json
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, TEMPORARY, TREE, Skip, expect, front, run, softverbs, told
from patience import tries
from races import RPING_CLOSED

NEVER = "when ibv_bind_mw, nth 99: error EIO"
PROGRAM = f"{BUILD}/tests/tool/scripted"
ENOENT, EIO, ENOMEM, EINVAL = 2, 5, 12, 22
# The cases about calls and work, which are in front of any libibverbs.
OF_CALLS = ("a_call_fails_at_its_turn_and_no_other", "a_rule_that_never_acts_is_reported", "the_first_calls_of_a_program_fail", "a_poll_fails_below_zero",
            "a_list_of_work_requests_is_posted_up_to_the_one_that_fails", "a_batch_that_fails_is_given_up_with_its_lock", "a_call_waits",
            "a_signal_ends_the_program_at_a_call", "a_child_goes_on_with_the_count_and_reports_no_rule",
            "work_ends_as_the_script_says_and_what_is_behind_it_is_flushed", "any_status_and_vendor_err_can_be_asked_for", "a_receive_ends_as_the_script_says",
            "questions_get_other_answers", "a_completion_is_held_back_with_those_behind_it", "a_completion_is_lost",
            "an_event_is_lost_late_or_comes_twice", "asynchronous_events_of_every_kind_are_raised", "an_event_of_a_device_waits_for_the_program",
            "a_port_flaps", "a_signal_comes_at_what_is_no_call")


def _disturbed(rules, mode, status=0, log="warn"):
    """Lines of stdout and of stderr."""
    done = softverbs(*front("--log", log, "--inject", rules), "--", PROGRAM, mode)
    assert done.returncode == status, told(done)
    return done.stdout.decode().splitlines(), done.stderr.decode().splitlines()


def a_call_fails_at_its_turn_and_no_other():
    out, err = _disturbed("when ibv_reg_mr, nth 3: error ENOMEM", "regions")
    good, bad = "ibv_reg_mr 0 errno 0", f"ibv_reg_mr -1 errno {ENOMEM}"
    assert out == [good, good, bad, good], out
    assert len(err) == 1 and re.search(r"ibv_reg_mr of pd \d+: fails with ENOMEM by line 1 of the script \(reason 700\)$", err[0]), err
    assert _disturbed("when ibv_reg_mr, nth 5: error ENOMEM", "regions")[0] == [good] * 4
    assert _disturbed("ibv_reg_mr:error=ENOMEM:when=2+2", "regions")[0] == [good, bad] * 2
    assert _disturbed("when ibv_reg_mr, on pd 77: error ENOMEM", "regions")[0] == [good] * 4
    assert _disturbed("when ibv_reg_mr, device soft0, nth 1: error ENOMEM", "regions")[0] == [bad] + [good] * 3
    assert _disturbed("when ibv_reg_mr, device \"other*\": error ENOMEM", "regions")[0] == [good] * 4


def a_rule_that_never_acts_is_reported():
    for rule, turn in ("nth 9", ": its turn is from number 9 on"), ("chance 0%", ""):
        out, err = _disturbed(f"when ibv_reg_mr, {rule}: error ENOMEM", "regions")
        assert len(out) == 4 and len(err) == 1 and \
            err[0].endswith(f"The rule in line 1 of the script was met 4 times in this process, and never acted{turn}."), (rule, err)
    for rule in "when ibv_reg_mr, nth 9: note", "when ibv_reg_mr, chance 0%: note", "when ibv_reg_mr, chance 0.0001%: error ENOMEM":
        assert _disturbed(rule, "regions")[1] == [], rule
    _, err = _disturbed("when ibv_reg_mr, nth 2: error ENOMEM", "regions")
    assert len(err) == 1 and "reason 700" in err[0], err


def a_fault_that_met_no_packet_is_reported():
    for options, extra in (("--fault", "drop=100%"), {}), ((), {"SOFTVERBS_FAULT": "drop=100%"}):
        done = expect(softverbs("run", *options, "--", PROGRAM, "regions", env=extra), out=None, err=None)
        told_of = done.stderr.decode()
        assert 'The rule "fault drop=100%" of SOFTVERBS_FAULT has met no packet of this process.' in told_of, told_of
    expect(softverbs("run", "--fault", "drop=100%", "--", "true", env={"LD_PRELOAD": f"{BUILD}/lib/libibverbs.so.1"}), 0, b"", b"")


def what_a_script_does_is_counted():
    path = f"{TEMPORARY}/scripted-counters"
    rules = "when ibv_reg_mr, nth 2: error ENOMEM; when ibv_reg_mr, from 3: delay 1ms, error EIO; when ibv_poll_cq: signal USR1"
    expect(softverbs("run", "--log", "none", "--counters", path, "--inject", rules, "--", PROGRAM, "regions"), err=None)
    with open(path, encoding="utf-8") as file:
        assert json.loads(file.read())["calls"] == {"refused": {}, "denied": {}, "scripted": {"error": 3, "delay": 2}}
    told_of = expect(softverbs("explain", "scripted")).stdout.decode()
    assert 'A rule of the user\'s script delayed a call. (event, counted as "scripted delay")' in " ".join(told_of.split()), told_of


def refused_calls_are_counted_by_their_reason():
    path = f"{TEMPORARY}/refused-counters"
    done = expect(softverbs("run", "--log", "info", "--counters", path, "--", PROGRAM, "receives"), err=None)
    number, = re.findall(r"ibv_post_recv.*\(reason (\d+)\)$", done.stderr.decode(), re.M)
    name = json.loads(expect(softverbs("explain", "--json", number)).stdout)[0]["name"]
    with open(path, encoding="utf-8") as file:
        calls = json.loads(file.read())["calls"]
    assert {**calls["refused"], **calls["denied"]} == {name: 1} and calls["scripted"] == {}, (name, calls)


def the_first_calls_of_a_program_fail():
    assert _disturbed("when ibv_open_device: error EIO", "polls", status=1)[0] == [f"ibv_open_device -1 errno {EIO}"]
    assert _disturbed("when ibv_get_device_list: error ENOENT", "polls", status=1)[0] == [f"ibv_open_device -1 errno {ENOENT}"]


def a_poll_fails_below_zero():
    out, _ = _disturbed("when ibv_poll_cq, nth 2: error EIO", "polls")
    assert out == ["ibv_poll_cq 0 errno 0", f"ibv_poll_cq {-EIO} errno {EIO}"], out


def a_list_of_work_requests_is_posted_up_to_the_one_that_fails():
    for at, room in ((1, 4), (3, 2), (4, 1)):
        out, _ = _disturbed(f"when ibv_post_recv, wr_id {at}: error EINVAL", "receives")
        assert out == [f"ibv_post_recv {EINVAL} errno {EINVAL}", f"bad {at}", f"room {room}"], out
    out, err = _disturbed("when ibv_post_recv, wr_id 9: error EINVAL", "receives")
    assert out == ["ibv_post_recv 0 errno 0", "bad 0", "room 0"], out
    assert "met no call" in err[-1], err


def a_batch_that_fails_is_given_up_with_its_lock():
    out, _ = _disturbed("when ibv_wr_complete, once: error ENOMEM", "batch")
    assert out == [f"ibv_wr_complete {ENOMEM} errno {ENOMEM}", "ibv_wr_complete 0 errno 0"], out


def what_is_noted_is_counted_and_nothing_else():
    good = "ibv_reg_mr 0 errno 0"
    out, err = _disturbed("when ibv_reg_mr: note", "regions")
    assert (out, err) == ([good] * 4, []), (out, err)
    out, err = _disturbed("when ibv_reg_mr, nth 2: note, error EIO", "regions")
    assert out.count(good) == 3 and len(err) == 1, (out, err)


def a_call_waits():
    began = time.monotonic()
    out, err = _disturbed("when ibv_poll_cq, nth 1: delay 0.4s", "polls")
    assert time.monotonic() - began >= 0.4 and out == ["ibv_poll_cq 0 errno 0"] * 2 and "begins 400000 us late" in err[0], (out, err)


def a_signal_ends_the_program_at_a_call():
    done = softverbs(*front("--inject", "when ibv_poll_cq, nth 2: signal KILL"), "--", PROGRAM, "polls")
    expect(done, -signal.SIGKILL)


def a_child_goes_on_with_the_count_and_reports_no_rule():
    out, err = _disturbed("when ibv_poll_cq, nth 3: error EIO; when ibv_alloc_mw: error EIO", "fork")
    assert [line.split()[1] for line in out] == ["0", "0", str(-EIO), "0"], out
    assert sum("line 1 of the script has met no call" in line for line in err) == 1, err


def a_process_without_verbs_reports_no_rule():
    loaded = {"LD_PRELOAD": f"{BUILD}/lib/libibverbs.so.1"}
    expect(softverbs("run", "--log", "warn", "--inject", "when ibv_reg_mr: error EIO", "--", "true", env=loaded), 0, b"", b"")


def commands_of_librdmacm_fail():
    if not os.path.exists("/usr/bin/rping"):
        raise Skip("rping is not installed")
    done = softverbs("run", "--inject", "when rdma_resolve_addr: error ENODEV", "--", "rping", "-c", "-a", "127.0.0.1")
    assert done.returncode and b"rdma_resolve_addr: No such device" in done.stderr + done.stdout, told(done)


def _completions(rules, mode="work"):
    """(wr_id, status) in their order, and the state of the queue pair at the end."""
    out, err = _disturbed(rules, mode)
    ends = [tuple(map(int, re.match(r"wr_id (\d+) status (\d+) vendor (\d+) opcode (-?\d+) late (\d+)", line).groups())) for line in out[:-1]]
    return ends, int(out[-1].split()[1]), err


SUCCESS, LEN, FLUSHED, REM_INV, RETRY_EXC, GENERAL = 0, 1, 5, 9, 12, 21
RECV = 128
RTS, SQE, ERR = 3, 5, 6


def _sends(ends):
    return [(wr_id, status) for wr_id, status, *_ in ends if wr_id < 100]


def work_ends_as_the_script_says_and_what_is_behind_it_is_flushed():
    for mode in "work", "built":
        ends, state, err = _completions("when work, nth 3: complete RETRY_EXC_ERR", mode)
        assert _sends(ends) == [(1, SUCCESS), (2, SUCCESS), (3, RETRY_EXC), (4, FLUSHED)] and state == ERR, (mode, ends, state)
        # another library does the work, and what arrived before the error was polled has arrived
        assert cases.AROUND or [end[1] for end in ends if end[0] > 100] == [SUCCESS, SUCCESS, FLUSHED, FLUSHED], ends
        assert [end[2] for end in ends if end[0] == 3] == [700], ends
        assert re.search(r"work of qp 0x[0-9a-f]+: ends in RETRY_EXC_ERR by line 1 of the script \(reason 700\)$", err[0]), err
        ends, state, err = _completions("when work, nth 5: complete RETRY_EXC_ERR", mode)
        assert {end[1] for end in ends} == {SUCCESS} and len(ends) == 8 and state == RTS and "reason 700" not in str(err), (ends, err)


def any_status_and_vendor_err_can_be_asked_for():
    ends, _, _ = _completions("when work, wr_id 2, opcode SEND: complete IBV_WC_GENERAL_ERR, vendor 129")
    assert [end[1:3] for end in ends if end[0] == 2] == [(GENERAL, 129)], ends
    assert not [end for end in _completions("when work, opcode RDMA_WRITE: complete GENERAL_ERR")[0] if end[1]]


def a_message_is_lost_with_success():
    """Silently: the sender's work ends well, and the receiver gets what follows."""
    for mode in "work", "built":
        out = softverbs("run", "--inject", "when work, nth 2: complete SUCCESS", "--", "timeout", "2", PROGRAM, mode).stdout.decode().splitlines()
        assert not out, out  # 7 completions, and the program waits for 8


def work_of_datagrams_leaves_a_send_queue_in_error():
    ends, state, _ = _completions("when work, nth 2: complete LOC_LEN_ERR", "datagrams")
    assert _sends(ends) == [(1, SUCCESS), (2, LEN), (3, FLUSHED), (4, FLUSHED)] and state == SQE, (ends, state)
    ends, state, _ = _completions("when work, nth 2: complete SUCCESS", "datagrams")
    assert {end[1] for end in ends} == {SUCCESS} and state == RTS, (ends, state)


def a_receive_ends_as_the_script_says():
    ends, state, _ = _completions("when receive, nth 2: complete REM_INV_REQ_ERR, vendor 7")
    receives = [end[:3] for end in ends if end[0] > 100]
    assert receives == [(101, SUCCESS, 0), (102, REM_INV, 7), (103, FLUSHED, receives[2][2]), (104, FLUSHED, receives[3][2])] and state == ERR, ends
    assert not [end for end in _completions("when receive, wr_id 1: complete LOC_LEN_ERR")[0] if end[1]]


BUSY = "a program that waits for a processor is late without a rule"


def a_completion_is_held_back_with_those_behind_it():
    def _held():
        for mode in "work", "iterated":
            ends, state, _ = _completions("when completion, wr_id 3: delay 0.4s", mode)
            late = {end[0]: end[4] for end in ends}
            assert len(ends) == 8 and state == RTS and late[3] >= 4 and late[4] >= 4 and late[1] < 4 and late[2] < 4, (mode, ends)
            assert [end for end in ends if end[0] > 100] == [(wr_id, SUCCESS, 0, RECV, late[wr_id]) for wr_id in range(101, 105)], (mode, ends)

    def _not_held():
        late = [end[4] for end in _completions("when completion, on cq 77: delay 0.4s")[0]]
        assert max(late) < 4, late
    tries("a completion is held back", 5, BUSY, _held, AssertionError)
    tries("a completion of another queue is held back", 5, BUSY, _not_held, AssertionError)


def a_completion_is_lost():
    for wr_id in 1, 4:
        out, err = _disturbed(f"when completion, wr_id {wr_id}: drop", "slow")
        assert _sends(_ends(out)) == [end for end in GOOD if end[0] != wr_id] and "state 3" in out, (wr_id, out)
        assert re.search("completion of cq [0-9]+: is lost by line 1 of the script", err[0]), err
    out, err = _disturbed("when completion, every 3: drop", "again")
    assert out == ["good"] and len(err) > 1, (out, err)


def an_event_is_lost_late_or_comes_twice():
    good = ("1", "0")

    def _events(rule):  # on a machine that is busy each may be late
        out, _ = _disturbed(rule, "events")
        return [re.match(r"event (\d) more (\d) late (\d+)$", line).groups() for line in out]

    def _hit(rule, other):
        shown = _events(f"when event, {rule}")
        assert [each[:2] for each in shown] == [good, other, good], (rule, shown)
    for rule, other in ("nth 2: drop", ("0", "0")), ("nth 2: duplicate", ("1", "1")), ("nth 9: drop", good):
        tries(f"event, {rule}", 5, BUSY, lambda rule=rule, other=other: _hit(rule, other), AssertionError)

    def _late():
        late = _events("when event, nth 2: delay 0.3s")
        assert [each[:2] for each in late] == [good] * 3 and int(late[1][2]) >= 3, late
    tries("an event comes late", 5, BUSY, _late, AssertionError)


def _packets(rule):
    """(wr_id, status) of the sends of `work`, what happened to its packets, and the lines of the log."""
    path = f"{TEMPORARY}/counters"
    if os.path.exists(path):
        os.remove(path)
    done = softverbs("run", "--log", "warn", "--counters", path, "--inject", rule, "--", PROGRAM, "work")
    assert done.returncode == 0, told(done)
    ends = [tuple(map(int, line.split()[1:4:2])) for line in done.stdout.decode().splitlines()[:-1]]
    with open(path, encoding="utf-8") as file:
        counted = json.load(file)
    return _sends(ends), _kinds(counted), done.stderr.decode().splitlines()


def _counted(rule, mode="work"):
    """Lines of stdout and of the log, and what the script did."""
    path = f"{TEMPORARY}/script-counters"
    if os.path.exists(path):
        os.remove(path)
    done = softverbs("run", "--log", "warn", "--counters", path, "--inject", rule, "--", PROGRAM, mode)
    assert done.returncode == 0, told(done)
    with open(path, encoding="utf-8") as file:
        return done.stdout.decode().splitlines(), done.stderr.decode().splitlines(), json.load(file)["calls"]["scripted"]


def _ends(lines):
    return [tuple(map(int, re.findall(r" (-?\d+)", line))) for line in lines if line.startswith("wr_id")]


def _kinds(counted):
    """The sum over all objects that have fault_kinds of queue pairs."""
    sums = {}
    for device in counted["traffic"]:
        for kind, count in device.get("fault_kinds", {}).items():
            sums[kind] = sums.get(kind, 0) + count
    return {kind: count for kind, count in sums.items() if count}


GOOD = [(1, SUCCESS), (2, SUCCESS), (3, SUCCESS), (4, SUCCESS)]


def packets_meet_what_the_rule_says():
    for action, kind in ("drop", "drop"), ("duplicate", "dup"), ("reorder", "reorder"), ("delay 20ms", "delay"), ("corrupt", "corrupt"):
        ends, kinds, err = _packets(f"when packet, opcode SEND_ONLY, nth 2: {action}")
        assert ends == GOOD and kinds == {kind: 1} and "RC SEND_ONLY of qp" in err[0], (action, ends, kinds, err)
    ends, kinds, _ = _packets("when packet, opcode \"RC ACK*\", once: drop")
    assert ends == GOOD and kinds == {"drop": 1}, (ends, kinds)
    assert _packets("when packet, device \"soft*\", nth 1: duplicate")[1] == {"dup": 1}
    for other in "device other", "opcode READ_REQUEST", "peer nobody", "peer_qp 77", "on qp 77", "nth 999":
        ends, kinds, err = _packets(f"when packet, {other}: drop")
        assert ends == GOOD and kinds == {} and (other == "nth 999" or "met no call" in err[-1]), (other, ends, kinds, err)


REM_ACCESS, REM_OP = 10, 11


def the_headers_of_packets_are_changed():
    for change, kind in ("set psn 5", "set"), ("set destination 7", "set"), ("set pkey 1", "set"), ("cut 3", "cut"):
        out, err, calls = _counted(f"when packet, opcode SEND_ONLY, nth 2: {change}")
        ends = _sends(_ends(out))
        assert ends == GOOD and calls == {kind: 1} and "by line 1 of the script" in err[0], (change, ends, calls, err)
        assert re.findall("wr_id 102 .* bytes ([0-9]+)", "\n".join(out)) == ["3" if kind == "cut" else "8"], out
    for syndrome, status in ("NAK_REMOTE_ACCESS", REM_ACCESS), ("NAK_REMOTE_OPERATION", REM_OP), ("NAK_INVALID_REQUEST", REM_INV):
        ends = _sends(_ends(_counted(f'when packet, opcode "RC ACK*": set syndrome {syndrome}')[0]))
        assert (status in [end[1] for end in ends]) and ends[-1][1] in (status, FLUSHED), (syndrome, ends)
    out, err, calls = _counted('when packet, opcode READ_REQUEST: set psn 5')
    assert _sends(_ends(out)) == GOOD and not calls and "met no call" in err[-1], (out, err)


def a_receiver_is_not_ready_for_a_while():
    out, _, calls = _counted('when packet, opcode "RC ACK*", to 3: set syndrome RNR')
    assert _sends(_ends(out)) == GOOD and 1 <= calls["set"] <= 3, (out, calls)


def packets_are_forged():
    for kind, status in ("NAK_REMOTE_ACCESS", REM_ACCESS), ("NAK_REMOTE_OPERATION", REM_OP), ("NAK_INVALID_REQUEST", REM_INV):
        out, err, calls = _counted(f'when packet, opcode "RC ACK*", once: forge {kind}, drop')
        assert status in [end[1] for end in _sends(_ends(out))] and calls == {"forge": 1, "drop": 1} and "by line 1" in err[0], (kind, out, err)
    for kind in "CNP", "OLD_ACK", "RNR", "NAK_SEQUENCE":
        out, err, calls = _counted(f'when packet, opcode "RC ACK*", once: forge {kind}')
        assert _sends(_ends(out)) == GOOD and calls == {"forge": 1} and "follows a forged packet" in err[0], (kind, out, err)
    assert _sends(_ends(_counted('when packet, opcode "RC ACK*", nth 99: forge NAK_REMOTE_ACCESS')[0])) == GOOD


def a_forged_packet_is_counted_and_captured():
    capture, path = f"{TEMPORARY}/forged.pcapng", f"{TEMPORARY}/forged"
    rule = 'when packet, opcode "RC ACK*", once: forge CNP, set msn 77'
    expect(softverbs("run", "--log", "none", "--capture", capture, "--counters", path, "--inject", rule, "--", PROGRAM, "work"))
    with open(path, encoding="utf-8") as file:
        counted = json.load(file)
    assert '"cnps_sent": 1' in json.dumps(counted) or re.search(r'"cnp[^"]*": 1\b', json.dumps(counted)), counted["traffic"]
    with open(capture, "rb") as file:
        shown = file.read()
    assert b"fault: forged" in shown and b"fault: changed" in shown, "comments of the capture"


def packets_wait_until_they_are_released():
    rule = "when packet, opcode SEND_ONLY, nth 3: hold"
    out, _, calls = _counted(f"{rule}; when ibv_query_qp: release", "slow")
    at = out.index("state 3")
    assert [end[0] for end in _ends(out[:at]) if end[0] > 100] == [101, 102] and _sends(_ends(out)) == GOOD and calls == {"hold": 1, "release": 1}, (out, calls)
    out, _, _ = _counted(rule + "; when ibv_query_srq: release", "slow")
    assert 103 not in [end[0] for end in _ends(out)], out
    out, _, _ = _counted("when packet, opcode SEND_ONLY, nth 5: hold", "slow")
    assert out.index("state 3") == 8 and _sends(_ends(out)) == GOOD, out


def packets_share_a_bandwidth():
    out, _, calls = _counted("when packet, opcode SEND_ONLY: bandwidth 0.8kbit", "slow")
    late = {end[0]: end[4] for end in _ends(out)}
    assert sorted(_sends(_ends(out))) == GOOD[:len(late) // 2] and out.index("state 3") <= 4 and calls["delay"] == 4, (out, calls)
    out, _, _ = _counted("when packet, opcode SEND_ONLY: bandwidth 1.5Gbit", "slow")
    assert _sends(_ends(out)) == GOOD and out.index("state 3") == 8, out


def a_completion_queue_overruns():
    out, err, calls = _counted("when completion, wr_id 3: overrun", "slow")
    assert _sends(_ends(out))[:2] == GOOD[:2] and (3, SUCCESS) not in _sends(_ends(out)), out
    assert "state 6" in out and calls == {"overrun": 1}, (out, calls)
    assert [line for line in out if line.startswith("async")] == ["async CQ error", "async local work queue catastrophic error"], out
    out, _, _ = _counted("when completion, wr_id 9: overrun", "slow")
    assert _sends(_ends(out)) == GOOD and "state 3" in out and not [line for line in out if line.startswith("async")], out


def a_peer_is_out_of_reach():
    ends, kinds, _ = _packets("when packet, peer \"scri*\", opcode SEND*: drop")
    assert ends == [(1, RETRY_EXC), (2, FLUSHED), (3, FLUSHED), (4, FLUSHED)] and kinds["drop"] >= 8, (ends, kinds)


def _rping(server, client, **options):
    """The output of a server and a client of rping with these rules, and the client's status."""
    if not os.path.exists("/usr/bin/rping"):
        raise Skip("rping is not installed")
    port = str(20000 + os.getpid() % 10000)
    with cases.subprocess.Popen([cases.SOFTVERBS, "run", "--log", "warn", "--inject", server, "--", "rping", "-s", "-a", "127.0.0.1", "-p", port],
                                stdout=cases.subprocess.PIPE, stderr=cases.subprocess.STDOUT, env=cases.environment()) as listening:
        try:
            for _ in range(100):
                done = softverbs("run", "--log", "warn", "--inject", client, "--", "rping", "-c", "-a", "127.0.0.1", "-p", port, "-C", "1", "-V")
                if not re.search(rb"(status|error) 8\b", done.stdout + done.stderr):  # there is no listener yet
                    break
                time.sleep(0.1)
        finally:
            with contextlib.suppress(cases.subprocess.TimeoutExpired):  # it ends, or waits for another client
                listening.wait(timeout=cases.patience(0.2))
            listening.kill()
            shown = listening.communicate()[0].decode()
    client = (done.stdout + done.stderr).decode()
    closed = RPING_CLOSED in client and "RDMA_CM_EVENT" not in client
    return shown, client, 0 if closed else done.returncode


def a_request_is_rejected_with_reason_and_data():
    shown, client, status = _rping("when request, once: reject 28, data \"go away\"", NEVER)
    assert status and "RDMA_CM_EVENT_REJECTED" in client and re.search(r"error -?28|status 28", client), client
    assert "request: is rejected by line 1 of the script (reason 700)" in shown, shown
    _, client, status = _rping("when request, nth 5: reject 28", NEVER)
    assert status == 0 and "REJECTED" not in client, client


def messages_of_the_connection_manager_are_lost():
    _, client, status = _rping(NEVER, "when message, opcode DREQ, once: drop; when message, opcode REJ: drop")
    assert status == 0 and "DREQ: is lost by line 1 of the script" in client and "REJ" not in client.replace("rule", ""), (status, client)


def _asyncs(rule):
    out, err = _disturbed(rule, "asyncs")
    return [line.split(" ", 1)[1] for line in out[:-1]], int(out[-1].split()[1]), err


def asynchronous_events_of_every_kind_are_raised():
    with open(f"{TREE}/src/script/words.def", encoding="utf-8") as file:
        known = re.findall(r'^RAISED\("([^"]+)", (\w+), "(\w*)"\)', file.read(), re.M)
    assert len(known) >= 20
    fatal = {"qp-fatal", "qp-req-err", "qp-access-err"} | (set() if cases.AROUND else {"device-fatal", "device-removal"})
    for name, _, of in known:
        if of == "srq":
            continue
        events, state, err = _asyncs(f"when {'ibv_poll_cq' if of == 'cq' else 'ibv_query_qp'}, once: raise {name}")
        if name == "port-up" and not cases.AROUND:  # it was up
            assert not events, events
        else:
            assert len(events) == (2 if name.startswith("device") else 1) or len(events) == 1, (name, events)
        assert state == (ERR if name in fatal else RTS) and f"raises {name} by line 1" in err[0], (name, state, err)
    assert _asyncs("when ibv_query_qp, once: raise cq-err")[:2] == ([], RTS)
    assert _asyncs("when ibv_query_qp, nth 3: raise qp-fatal")[:2] == ([], RTS)


def an_event_of_a_device_comes_when_it_is_opened():
    down, up = "port 0 state 1 ", "port 0 state 4 "
    for rule in "event port-down soft0", "when open: raise port-down", "when ibv_open_device: raise port-down", 'event port-down "soft*"':
        out, err = _asked(rule)
        assert out[0].startswith(down) and "raises port-down by line 1" in err[0], (rule, out, err)
    for rule in "event port-down other", "when open, nth 2: raise port-down", "when open, program other: raise port-down":
        out, err = _asked(rule)
        assert out[0].startswith(up) and not any("raises" in line for line in err), (rule, out, err)


def an_event_of_a_device_waits_for_the_program():
    for event in "gid-change", "device-fatal":
        assert len(_asyncs(f"event {event} soft0")[0]) >= 1, event


def a_port_flaps():
    events, state, _ = _asyncs("when ibv_query_qp, once: raise port-down; when ibv_poll_cq, once: raise port-up")
    assert len(events) == 2 and "port" in events[0].lower() and events[0] != events[1] and state == RTS, events


def a_limit_is_reached():
    good, bad = "ibv_reg_mr 0 errno 0", f"ibv_reg_mr -1 errno {ENOMEM}"
    assert _disturbed("when ibv_reg_mr, from 3: error ENOMEM", "regions")[0] == [good, good, bad, bad]


def _asked(rule):
    out, err = _disturbed(rule, "asks")
    return out, err


def questions_get_other_answers():
    good, _ = _asked(NEVER)
    assert good[0].startswith("port 0 state 4 ") and good[3] == "gid 0 0 gone 0 ex 0 gone 0", good
    for number, rule, line in (
            (0, "when ibv_query_port: set state DOWN, set active_mtu 256, set active_speed 16, set lid 7", "port 0 state 1 active_mtu 1 active_speed 16 lid 7"),
            (1, "when ibv_query_device: set max_qp 4, set max_mr 5", "device 0 max_qp 4 max_mr 5"),
            (2, "when ibv_query_device_ex: set max_qp 4, set odp_caps 1", "device_ex 0 max_qp 4 odp 1"),
            (3, 'when ibv_query_gid*, index 0: set gid "::"', "gid 0 0 gone 1 ex 0 gone 1")):
        out, err = _asked(rule)
        assert out[number] == line and out[:number] + out[number + 1:] == good[:number] + good[number + 1:], (rule, out)
        assert "is changed by line 1 of the script (reason 700)" in err[0], err
    for other in "when ibv_query_port, nth 2: set state DOWN", "when ibv_query_port, on context 77: set state DOWN", 'when ibv_query_gid, index 9: set gid "::"':
        assert _asked(other)[0] == good, other
    assert _asked("when ibv_query_device*: set max_qp 3")[0][1:3] == [re.sub("max_qp [0-9]+", "max_qp 3", line) for line in good[1:3]]
    assert _asked("when ibv_query_port: error EIO")[0][0].startswith(f"port {EIO} "), "it can be refused, too"


def a_device_leaves_and_returns():
    out, _, calls = _counted('when ibv_get_device_list, from 2, to 3: hide "*"', "lists")
    assert out[:2] == ["devices 0 first none"] * 2 and out[2].startswith("devices ") and out[2].endswith("first there") and calls == {"hide": 2}, out
    out, _, _ = _counted("when ibv_get_device_list: hide other", "lists")
    assert [line.endswith("there") for line in out] == [True] * 3, out


def a_process_stops_and_goes_on():
    began = time.monotonic()
    with cases.subprocess.Popen([cases.SOFTVERBS, "run", "--log", "none", "--inject", "when ibv_poll_cq, once: stop 0.4s", "--", PROGRAM, "polls"],
                                stdout=cases.subprocess.PIPE, env=cases.environment()) as stopping:
        _, status = os.waitpid(stopping.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), status
        assert stopping.communicate()[0] == b"ibv_poll_cq 0 errno 0\n" * 2 and stopping.returncode == 0, stopping.returncode
    assert time.monotonic() - began >= 0.4
    began = time.monotonic()
    with cases.subprocess.Popen([cases.SOFTVERBS, "run", "--log", "none", "--inject", "when ibv_poll_cq, once: stop 60s", "--", PROGRAM, "polls"],
                                stdout=cases.subprocess.PIPE, env=cases.environment()) as killed:
        os.waitpid(killed.pid, os.WUNTRACED)
        killed.kill()
        killed.communicate()  # ends when no process has its standard output open any more
    assert time.monotonic() - began < 30
    assert _counted("when work: stop 5s", "polls")[2] == {}


def the_helper_is_frozen():
    def _late(rule):
        return [int(re.fullmatch(r"event 1 more 0 late (\d+)", line)[1]) for line in _counted(rule, "events")[0]]

    def _frozen():
        late = _late("when ibv_post_send, nth 2: freeze 0.5s")
        assert late[1] >= 4 and late[0] < 4 and late[2] < 4, late

    def _not_frozen():
        late = _late("when ibv_post_send, nth 4: freeze 0.5s")
        assert max(late) < 4, late
    tries("the helper is frozen", 5, BUSY, _frozen, AssertionError)
    tries("the helper goes on", 5, BUSY, _not_frozen, AssertionError)


def an_address_gives_no_answer():
    _, client, status = _rping(NEVER, "when address: drop")
    assert status and "RDMA_CM_EVENT_ADDR_ERROR" in client and "address: is lost by line 1" in client, client
    _, client, status = _rping(NEVER, "when address, peer 10.9.9.9: drop")
    assert status == 0 and "ADDR_ERROR" not in client, client


def a_timewait_lasts():
    _, client, status = _rping(NEVER, "when timewait: delay 3s")
    assert status == 0 and "timewait: begins 3000000 us late" in client, client
    _, client, status = _rping(NEVER, "when timewait, nth 9: delay 3s")
    assert status == 0 and "timewait" not in client, client


def a_signal_comes_at_what_is_no_call():
    for rule in "when work, nth 3: signal KILL", "when completion, nth 2: signal KILL", "when receive, nth 4: signal KILL":
        expect(softverbs(*front("--inject", rule), "--", PROGRAM, "work"), -signal.SIGKILL)


def a_script_is_a_file():
    path = f"{TEMPORARY}/a script"
    with open(path, "w", encoding="utf-8") as file:
        file.write("# comment\n\nwhen ibv_reg_mr, program \"scr*\", from 2: error ENOMEM # more\nwhen ibv_reg_mr, program other: error EIO\n")
    done = softverbs("run", "--log", "warn", "--script", "a script", "--", PROGRAM, "regions", cwd=TEMPORARY)
    assert done.stdout.decode().split("\n")[:2] == ["ibv_reg_mr 0 errno 0", f"ibv_reg_mr -1 errno {ENOMEM}"], told(done)
    assert done.stderr.count(b"by line 3 of the script") == 3, told(done)


def wrong_scripts_are_refused_before_the_program_starts():
    expect(softverbs("run", "--inject", "when ibv_reg_mr: explode", "--", "echo", "started"), 2, b"",
           [b"SOFTVERBS_INJECT, line 1, column 18: \"explode\" is not an action."])
    expect(softverbs("run", "--script", "/no/such", "--", "echo", "started"), 2, b"", [b"/no/such can't be read: No such file"])
    expect(softverbs("run", "--script", "/dev/stdin", "--", "echo", "started", input=b"ibv_reg_mr:error=ENOMEM"), 2, b"",
           [b"/dev/stdin is not a regular file"])


def without_run_a_wrong_script_is_reported_and_nothing_is_disturbed():
    done = run(PROGRAM, "polls", env={"LD_LIBRARY_PATH": f"{BUILD}/lib"})
    expect(done, 0, b"ibv_poll_cq 0 errno 0\n" * 2)
    done = cases.subprocess.run([PROGRAM, "polls"], capture_output=True, check=False,
                                env=cases.environment(LD_LIBRARY_PATH=f"{BUILD}/lib", SOFTVERBS_INJECT="ibv_poll_cq"))
    expect(done, 0, b"ibv_poll_cq 0 errno 0\n" * 2, [b"The script is ignored. SOFTVERBS_INJECT, line 1, column 1"])


def the_page_says_how_to_have_each_event_of_librdmacm():
    """A rule that is in the table is a script; rows of faults_test.py show it at work."""
    with open(f"{TREE}/src/cm/events.h", encoding="utf-8") as file:
        names = re.findall(r"\bCM_(\w+) = (\d+)", file.read())
    with open(f"{TREE}/docs/reference/scripts.md", encoding="utf-8") as file:
        rows = [line for line in file if line.startswith("| `RDMA_CM_EVENT_")]
    for name, number in names:
        assert int(number) > 15 or sum(f"`RDMA_CM_EVENT_{name}`" in row for row in rows) == 1, name
    for rule in re.findall("`(when [^`]+)`", "".join(rows)):
        expect(softverbs("run", "--inject", rule, "--", "true"), 0, b"", b"")


def the_page_has_every_word():
    with open(f"{TREE}/src/script/words.def", encoding="utf-8") as file:
        words = re.findall(r'^(?:CONDITION|ACTION)\("([^"]+)", "[^"]*", \w+, "([^"]*)", (?:[A-Z| ]+, )?"((?:[^"\\]|\\.)*)"\)', file.read(), re.M)
    with open(f"{TREE}/docs/reference/scripts.md", encoding="utf-8") as file:
        page = file.read()
    with open(f"{TREE}/src/script/words.def", encoding="utf-8") as file:
        happenings = re.findall(r'^HAPPENING\((\w+), \w+, "((?:[^"\\]|\\.)*)"\)', file.read(), re.M)
    assert len(words) > 10 and len(happenings) > 9
    for word, meaning in happenings:
        assert f"| `{word}` | {meaning} |" in page, word
    for word, form, meaning in words:
        assert f"| `{word}{' ' + form if form else ''}` | {meaning} |".replace('\\', '') in page, word


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
