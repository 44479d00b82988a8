#!/usr/bin/env python3
"""`softverbs why --qp` tells why a queue pair failed, from both ends: of live processes, and when they have ended."""
import contextlib
import json
import os
import re
import subprocess
import sys
import time

import cases
from cases import BUILD, SOFTVERBS, expect, softverbs, told

# What is said of each cause, line by line: C and S are the processes of client and server, c and s their queue pairs,
# K a key, A an address, N a number; a time stands in front where one is known.
OWN_ERROR = "Queue pair c of C is RC in ERR, connected with s of S."
SENT = "T C posted IBV_WR_SEND of 8 bytes, wr_id 7."
WRITTEN = "T C posted IBV_WR_RDMA_WRITE of 8 bytes, wr_id 7, to address A with rkey K."
UNKNOWN = "key K is that of no memory region of this process: never registered, deregistered, or another process's"
CONNECTED = "Queue pair c of C is RC in RTS, connected with s of S."
HANGS = "It had no error: it waits. Its peer answered N times that it has no receive posted (ibv_post_recv), and rnr_retry is 7, for ever."
SERVER_WAITS = "Completion queue N of S has 1 completion that was not polled, and no event is asked for (ibv_req_notify_cq), which was never called."
SILENCE = "No answer came: the ACK timer ran out N times (timeout is 10, retry_cnt 2)."
CAUSES = {
    "short-receive": [
        OWN_ERROR, "T C posted IBV_WR_SEND of 512 bytes, wr_id 7.",
        "T S refused it: the message has 512 bytes, and the receive of wr_id 5 has room for 256 (reason 200).",
        "S completed the receive of wr_id 5 with IBV_WC_LOC_LEN_ERR.", "T C completed it with IBV_WC_REM_INV_REQ_ERR (reason 107).",
        "3 later work requests of C ended with IBV_WC_WR_FLUSH_ERR.", "\"softverbs explain 200\" has causes and cures."],
    "misaligned": [
        OWN_ERROR, "T C posted IBV_WR_ATOMIC_FETCH_AND_ADD of 8 bytes, wr_id 7, to address A with rkey K.",
        "T S refused it: An atomic's remote address is not a multiple of eight (reason 210).",
        "T C completed it with IBV_WC_REM_INV_REQ_ERR (reason 107).", "\"softverbs explain 210\" has causes and cures."],
    "qp-permission": [
        OWN_ERROR, WRITTEN,
        "T S refused it: qp_access_flags of its queue pair are IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | "
        "IBV_ACCESS_REMOTE_ATOMIC (reason 209).",
        "T C completed it with IBV_WC_REM_INV_REQ_ERR (reason 107).", "\"softverbs explain 209\" has causes and cures."],
    "short-atomic": [
        OWN_ERROR, "T C posted IBV_WR_ATOMIC_FETCH_AND_ADD of 4 bytes, wr_id 7, to address A with rkey K.",
        "T C completed it with IBV_WC_LOC_LEN_ERR: The local scatter/gather list is shorter than the data that must land in it "
        "(reason 110).", "\"softverbs explain 110\" has causes and cures."],
    "long-send": [
        OWN_ERROR, "T C posted IBV_WR_SEND of 2147483649 bytes, wr_id 7.",
        "T C completed it with IBV_WC_LOC_LEN_ERR: The message is longer than the device's or the path's limit (reason 112).",
        "\"softverbs explain 112\" has causes and cures."],
    "send-key": [
        OWN_ERROR, SENT, f"T C completed it with IBV_WC_LOC_PROT_ERR: {UNKNOWN} (reason 101).",
        "\"softverbs explain 101\" has causes and cures."],
    "send-range": [
        OWN_ERROR, "T C posted IBV_WR_SEND of 2048 bytes, wr_id 7.",
        "T C completed it with IBV_WC_LOC_PROT_ERR: key K belongs to a region of 1024 bytes; 2048 bytes at offset 0 do not fit "
        "(reason 103).", "\"softverbs explain 103\" has causes and cures."],
    "receive-key": [
        OWN_ERROR, SENT, f"T S refused it: {UNKNOWN} (reason 201).", "S completed the receive of wr_id 5 with IBV_WC_LOC_PROT_ERR.",
        "T C completed it with IBV_WC_REM_OP_ERR (reason 109).", "\"softverbs explain 201\" has causes and cures."],
    "receive-permission": [
        OWN_ERROR, SENT, "T S refused it: the region of key K was registered with no access, and this needs "
        "IBV_ACCESS_LOCAL_WRITE (reason 204).", "S completed the receive of wr_id 5 with IBV_WC_LOC_PROT_ERR.",
        "T C completed it with IBV_WC_REM_OP_ERR (reason 109).", "\"softverbs explain 204\" has causes and cures."],
    "reads-disabled": [
        OWN_ERROR, "T C posted IBV_WR_RDMA_READ of 8 bytes, wr_id 7, to address A with rkey K.",
        "T C completed it with IBV_WC_LOC_QP_OP_ERR: A READ or atomic was posted, but the queue pair's max_rd_atomic is 0 "
        "(reason 114).", "\"softverbs explain 114\" has causes and cures."],
    "remote-range": [
        OWN_ERROR, "T C posted IBV_WR_RDMA_WRITE of 512 bytes, wr_id 7, to address A with rkey K.",
        "T S refused it: key K belongs to a region of 1024 bytes; 512 bytes at offset 768 do not fit (reason 207).",
        "T C completed it with IBV_WC_REM_ACCESS_ERR (reason 108).",
        "3 later work requests of C ended with IBV_WC_WR_FLUSH_ERR.", "\"softverbs explain 207\" has causes and cures."],
    "remote-key": [
        OWN_ERROR, WRITTEN, f"T S refused it: {UNKNOWN} (reason 205).",
        "T C completed it with IBV_WC_REM_ACCESS_ERR (reason 108).", "\"softverbs explain 205\" has causes and cures."],
    "remote-permission": [
        OWN_ERROR, WRITTEN, "T S refused it: the region of key K was registered with IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | "
        "IBV_ACCESS_REMOTE_ATOMIC, and this needs IBV_ACCESS_REMOTE_WRITE (reason 208).",
        "T C completed it with IBV_WC_REM_ACCESS_ERR (reason 108).", "\"softverbs explain 208\" has causes and cures."],
    "no-receive": [
        OWN_ERROR, SENT, "Its peer answered N times that it has no receive posted (ibv_post_recv); rnr_retry of C is 2.",
        "S has no receive posted to s.", "T C completed it with IBV_WC_RNR_RETRY_EXC_ERR (reason 106).",
        "\"softverbs explain 106\" has causes and cures."],
    "deaf": [
        OWN_ERROR, SENT, SILENCE, "S has queue pair s in INIT, where it takes nothing.",
        "T C completed it with IBV_WC_RETRY_EXC_ERR (reason 105).", "\"softverbs explain 105\" has causes and cures."],
    "dead": [
        "Queue pair c of C is RC in ERR, connected with s of process S.", SENT, SILENCE, "Process S, which had queue pair s, has ended.",
        "T C completed it with IBV_WC_RETRY_EXC_ERR (reason 113).",
        "What the other end saw is not known: its process has ended and left no story, or is not of this directory.",
        "\"softverbs explain 113\" has causes and cures."],
    "nobody": [
        "Queue pair c of C is RC in ERR, connected with 0xabcdef.", SENT, SILENCE,
        "No process of this directory has queue pair 0xabcdef or has left its story.",
        "T C completed it with IBV_WC_RETRY_EXC_ERR (reason 105).",
        "What the other end saw is not known: its process has ended and left no story, or is not of this directory.",
        "\"softverbs explain 105\" has causes and cures."],
    "hang": [CONNECTED, HANGS],
    **{name: [CONNECTED, "It had no error.", f"Completion queue N of C has 1 completion that was not polled, and {words}."]
       for name, words in (
           ("never-armed", "no event is asked for (ibv_req_notify_cq), which was never called"),
           ("armed-once", "no event is asked for (ibv_req_notify_cq) since the last one was fetched"),
           ("solicited", "an event is asked for solicited messages only, and none of these is one (IBV_SEND_SOLICITED)"),
           ("no-channel", "no event can come, since ibv_create_cq was called without a completion channel"),
           ("not-fetched", "an event waits that ibv_get_cq_event does not fetch"),
           ("not-polled", "their event was raised before the queue was armed again: it is to be polled until it is empty after each "
                          "ibv_req_notify_cq"))},
    "server-waits": [CONNECTED, "It had no error.", SERVER_WAITS],
    "both": [CONNECTED, HANGS, SERVER_WAITS],
    "own-end": [
        OWN_ERROR, "T It had no error: C itself moved the queue pair to ERR (ibv_modify_qp, or rdma_disconnect).",
        "1 work request of C ended with IBV_WC_WR_FLUSH_ERR."],
}
# Nothing failed, and nothing is under way: an ended process leaves no story.
LOST_EVENTS = ("never-armed", "armed-once", "solicited", "no-channel", "not-fetched", "not-polled", "server-waits", "both")
# What an ended process leaves differs only where nothing of the other end is worth to be kept.
ENDED = {name: [line.replace("s of S.", "s of process S.") for line in CAUSES[name][:1]] + CAUSES[name][1:]
         for name in ("short-atomic", "long-send", "send-key", "send-range", "reads-disabled")}
ENDED["deaf"] = [
    "Queue pair c of C is RC in ERR, connected with s of process S.", SENT, SILENCE,
    "No process of this directory has queue pair s or has left its story.",
    "T C completed it with IBV_WC_RETRY_EXC_ERR (reason 105).",
    "What the other end saw is not known: its process has ended and left no story, or is not of this directory.",
    "\"softverbs explain 105\" has causes and cures."]


@contextlib.contextmanager
def _failed(cause, *options, first=7):
    """The numbers that the program prints when the error has happened, and how to end it."""
    command = [SOFTVERBS, "run", *options, "--", f"{BUILD}/tests/tool/stories", cause, str(first)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=cases.environment()) as program:
        try:
            client, qp, server, peer = map(int, program.stdout.readline().split())
            yield (client, qp, server, peer), lambda: (program.stdin.close(), program.wait())
        finally:
            program.kill()


def _plain(text, numbers):
    """The lines with what differs from run to run replaced."""
    client, qp, server, peer = numbers
    for found, word in ((f"stories ({client})", "C"), (f"stories ({server})", "S"), (f"rocess {server}", "rocess S"),
                        (f"{qp:#x}", "c"), (f"{peer:#x}", "s")):
        text = text.replace(found, word)
    # many answers that nothing is posted push the completion's time out of the records
    text = re.sub(r"^(?:[\d:.]+ )?(Completion queue) \d+", r"\1 N", text, flags=re.M)
    text = re.sub(r"key 0x\w+", "key K", text)
    text = re.sub(r"address 0x\w+", "address A", text)
    text = re.sub(r"(answered) \d+( times)|(ran out) \d+", lambda found: f"{found[1] or found[3]} N{found[2] or ''}", text)
    return re.sub(r"^\d\d:\d\d:\d\d\.\d\d\d ", "T ", text, flags=re.M).splitlines()


def _compare(name, said, wanted):
    assert said == wanted, f"{name}:\n" + "\n".join(said) + "\nand not\n" + "\n".join(wanted)


def _wait_until_told(numbers, lines):
    """The completion of what was sent comes by itself, and only the program could wait for it."""
    end = cases.until(20)
    while True:
        said = _plain(expect(softverbs("why", "--qp", f"{numbers[1]:#x}")).stdout.decode(), numbers)
        if said == lines or time.monotonic() > end:
            return said
        time.sleep(0.1)


def a_lost_event_is_told_live():
    for name in LOST_EVENTS:
        with _failed(name) as (numbers, end):
            _compare(name, _wait_until_told(numbers, CAUSES[name]), CAUSES[name])
            end()


def an_event_that_a_script_loses_or_holds_back_is_told_live():
    for action, became in (("drop", "was lost"), ("delay 1000s", "is held back")):
        lines = [CONNECTED, "It had no error.",
                 f"Completion queue N of C has 1 completion that was not polled, and their event {became} by a rule of the script "
                 "(softverbs run --script)."]
        with _failed("not-fetched", "--inject", f"when event: {action}") as (numbers, end):
            _compare(action, _wait_until_told(numbers, lines), lines)
            end()


def every_cause_is_told_live_and_afterwards():
    for name in CAUSES.keys() - set(LOST_EVENTS):
        lines = CAUSES[name]
        with _failed(name) as (numbers, end):
            live = expect(softverbs("why", "--qp", f"{numbers[1]:#x}"))
            _compare(name, _plain(live.stdout.decode(), numbers), lines)
            end()
            last = expect(softverbs("why", "--last", "--qp", str(numbers[1]), str(numbers[0])))
            _compare(f"{name}, ended", _plain(last.stdout.decode(), numbers), ENDED.get(name, lines))


def what_a_fault_loses_is_said_to_be_lost():
    with _failed("fine", "--fault", "drop=100%,seed=1") as (numbers, end):
        said = json.loads(expect(softverbs("why", "--json", "--qp", str(numbers[1]))).stdout)
        text = re.sub(r"\d+ packets", "N packets", "\n".join(said["sentences"]))
        assert "Faults that were asked for lost N packets of this end and 0 of the other." in text, text
        lost = [event for event in said["ends"][0]["events"] if event["event"] == "FRAME_LOST"]
        assert lost and all(event["psn"] == 0 for event in lost), lost
        end()


def a_success_is_no_story():
    with _failed("fine") as (numbers, end):
        _compare("fine", _plain(expect(softverbs("why", "--qp", str(numbers[1]))).stdout.decode(), numbers), [
            "Queue pair c of C is RC in RTS, connected with s of S.", f"It had no error. \"softverbs why {numbers[0]}\" says what its process waits for."])
        end()
        expect(softverbs("why", "--last", "--qp", str(numbers[1]), str(numbers[0])), 1, b"", [b"No process has a queue pair"])


def the_other_end_tells_the_same():
    with _failed("remote-range") as (numbers, end):
        done = expect(softverbs("why", "--qp", str(numbers[3])))
        said = _plain(done.stdout.decode(), numbers)
        _compare("the server's", said[1:], CAUSES["remote-range"][1:])
        assert said[0] == "Queue pair s of S is RC in ERR, connected with c of C.", said
        end()


def it_has_a_form_for_programs():
    with _failed("remote-range") as (numbers, end):
        said = json.loads(expect(softverbs("why", "--json", "--qp", str(numbers[1]))).stdout)
        own, peer = said["ends"]
        assert (own["pid"], own["qp"], peer["pid"], peer["qp"]) == numbers, said
        assert own["error"]["status"] == "IBV_WC_REM_ACCESS_ERR" and own["error"]["wr_id"] == 7 and own["flushed_sends"] == 3, own
        assert 0 <= own["error"]["time"] - own["error"]["posted"] < 60e9, own
        assert peer["error"]["memory"]["size"] == 1024 and peer["error"]["name"] == "REMOTE_RANGE", peer
        events = [event["event"] for event in own["events"]]
        assert "NAK_RECEIVED" in events and events.count("SEND_ENDED") == 1, events
        assert any("offset 768" in sentence for sentence in said["sentences"]), said
        end()


def _holders(pid, sought):
    """The permissions of the mappings of a process that hold these bytes."""
    found = set()
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            begin, end, access = re.match(r"(\w+)-(\w+) (\S+)", line).groups()
            if "r" not in access or "[v" in line:
                continue
            with contextlib.suppress(OSError):  # the end of a file that has become shorter
                memory.seek(int(begin, 16))
                if sought in memory.read(int(end, 16) - int(begin, 16)):
                    found.add(access)
    return found


def no_peer_maps_a_record():
    """What a peer can map is mapped here as shared; wr_id is never sent, so that it stands in records and queues only."""
    first = 0x51c0ffee7a11c0de
    with _failed("remote-range", first=first) as (numbers, end):
        said = json.loads(expect(softverbs("why", "--json", "--qp", str(numbers[1]))).stdout)
        assert any(event.get("wr_id") == first for event in said["ends"][0]["events"]), said
        found = _holders(numbers[0], first.to_bytes(8, "little"))
        assert found and not any("s" in access for access in found), found
        assert any("s" in access for access in _holders(numbers[0], b"stories")), "no shared mapping was looked at"
        end()


def only_its_user_can_read_what_is_kept():
    with _failed("remote-range") as (_, end):
        end()
    kept = [name for name in os.listdir(cases.DIRECTORY) if name.endswith(".story")]
    assert kept and all(os.stat(f"{cases.DIRECTORY}/{name}").st_mode & 0o777 == 0o600 for name in kept), kept


def who_wants_no_lines_keeps_no_story():
    for name in os.listdir(cases.DIRECTORY):
        if name.endswith(".story"):
            os.unlink(f"{cases.DIRECTORY}/{name}")
    with _failed("remote-range", "--log", "none") as (_, end):
        end()
    assert not [name for name in os.listdir(cases.DIRECTORY) if name.endswith(".story")]


def what_stands_in_a_file_is_not_trusted():
    for text in (b"\x00" * 100, b"{}\n", b"[]\n{\"qp\":17}\n", b"{\"qp\":17,\"error\":7,\"events\":[1,{}],\"program\":\"\\u001b[2J\"}\n", b"{" * 100000):
        with open(f"{cases.DIRECTORY}/last-1-1.story", "wb") as file:
            file.write(text)
        done = softverbs("why", "--last", "--qp", "17")
        assert done.returncode in (0, 1) and b"\x1b" not in done.stdout, told(done)
    os.unlink(f"{cases.DIRECTORY}/last-1-1.story")


def what_is_not_there_is_said():
    expect(softverbs("why", "--qp", "17"), 1, b"", [b"No process that lives has a queue pair 0x11 here, and none has left its story."])
    expect(softverbs("why", "--qp", "ten"), 2, b"", [b"\"ten\" is not the number of a queue pair."])


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
