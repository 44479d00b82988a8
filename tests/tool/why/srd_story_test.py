#!/usr/bin/env python3
"""`softverbs why` names the message of SRD that failed or waits, and its receiver (srd_stories.c): of live processes, and when they have ended."""
import contextlib
import json
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, SOFTVERBS, TEMPORARY, expect, softverbs
from stories import compare, plain

PROGRAM = f"{BUILD}/tests/tool/srd_stories"
# As in stories.py; G is the GID.
HEAD = "Queue pair c of C is SRD in RTS."
GOES_ON = "An error of SRD ends one message: the queue pair is in RTS and goes on."
UNKNOWN = "key K names no memory region of this process: never registered, deregistered long ago, or another process's"
UNHEARD = "No answer has ever come from the peer's host to this queue pair, after all retries"
SILENT = "No answer came from the peer after all retries: it is not there, not ready to receive, or unreachable"


def _sent(length, number, receiver="s of S"):
    return f"T C posted IBV_WR_SEND of {length} bytes, wr_id {number}, to queue pair {receiver} at G."


def _to_memory(opcode, length, number):
    return f"T C posted IBV_WR_{opcode} of {length} bytes, wr_id {number}, to address A with rkey K of queue pair s of S at G."


def _ended(status, vendor, reason, words=""):
    return f"T C completed it with IBV_WC_{status}, vendor_err {vendor}{words and ': ' + words} (reason {reason})."


def _explained(*reasons):
    return [f"\"softverbs explain {reason}\" has causes and cures." for reason in reasons]


REFUSALS = {201: f"{UNKNOWN} (reason 201).",
            200: "the message has 48 bytes, and the receive of wr_id 5, which stays posted, has room for 32 (reason 200).",
            11: "the message has the Q_Key 0x11111112, and this queue pair 0x11111111 (reason 11).",
            219: "its protection domain has no address handle (ibv_create_ah) for G, which READs and WRITEs of EFA need (reason 219).",
            207: "key K belongs to a region of 64 bytes; 65 bytes at offset 0 do not fit (reason 207).",
            208: "the region of key K was registered with IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, and this needs "
                 "IBV_ACCESS_REMOTE_WRITE (reason 208).",
            8: "its queue pair was in ERR, where it takes nothing (reason 8)."}
REFUSED = {reason: f"T S refused it: {words}" for reason, words in REFUSALS.items()}
CAUSES = {
    "refused": [
        HEAD,
        _sent(8, 1), "Its receiver answered each time that it has no receive posted (ibv_post_recv); rnr_retry of C is 1.",
        "Queue pair s of S has 1 receive posted since (ibv_post_recv).", _ended("RNR_RETRY_EXC_ERR", 10, 106),
        _sent(16, 2), REFUSED[201], "S completed the receive of wr_id 5 with IBV_WC_LOC_PROT_ERR.", _ended("REM_INV_REQ_ERR", 11, 107),
        _sent(48, 3), REFUSED[200], _ended("REM_INV_REQ_ERR", 11, 107),
        _sent(8, 4), REFUSED[11], _ended("REM_INV_RD_REQ_ERR", 9, 126), "1 more message of C to queue pair s ended for this reason.",
        _to_memory("RDMA_READ", 8, 6), REFUSED[219], _ended("REM_OP_ERR", 14, 128),
        _to_memory("RDMA_READ", 65, 7), REFUSED[207], _ended("REM_ACCESS_ERR", 7, 108),
        _to_memory("RDMA_WRITE", 8, 8), REFUSED[208], _ended("REM_ACCESS_ERR", 7, 108),
        _sent(8, 9, "0x7fff"), "No process of this directory has queue pair 0x7fff: it was destroyed (ibv_destroy_qp), its process has ended, or it was "
        "never made.", _ended("REM_INV_RD_REQ_ERR", 9, 126, "The peer's host has no queue pair of this number that receives, or its Q_Key is another one"),
        GOES_ON, *_explained(106, 201, 200, 11, 219, 207, 208, 126)],
    "local": [
        HEAD,
        _sent(8, 1), _ended("LOC_PROT_ERR", 5, 101, UNKNOWN),
        _sent(8929, 2), _ended("LOC_LEN_ERR", 6, 112, "The message is longer than the device's or the path's limit"),
        _sent(8, 3), _ended("WR_FLUSH_ERR", 1, 100, "its address handle was destroyed (ibv_destroy_ah)"),
        GOES_ON, *_explained(101, 112, 100)],
    "failed": [HEAD, _sent(8, 2), REFUSED[8], _ended("REM_INV_RD_REQ_ERR", 9, 126), GOES_ON, *_explained(8)],
    "forgotten": [
        HEAD, _sent(8, 2),
        _ended("REM_ABORT_ERR", 8, 125, "The peer does not know any more what this queue pair has sent, as it was reset or knows too many senders: "
               "whether the message arrived is not known"), GOES_ON, *_explained(125)],
}
# A receiver that has refused nothing may leave no story.
WITHOUT_RECEIVER = ("local", "forgotten")
DROPS = 'when packet, opcode "SRD SEND_ONLY": drop'
ACTED = "A rule of the script of C acted on it: "
SILENCES = {"unheard": (("--fault", "drop=100%"), 127, _ended("RESP_TIMEOUT_ERR", 15, 127, UNHEARD), "fault drop=100%"),
            "silent": (("--inject", DROPS), 105, _ended("RESP_TIMEOUT_ERR", 13, 105, SILENT), DROPS)}


@contextlib.contextmanager
def _messages(cause, *options):
    """The numbers that the program prints when its messages have ended, and how to end it."""
    command = [SOFTVERBS, "run", "--profile", "efa3", *options, "--", PROGRAM, cause]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=cases.environment()) as program:
        try:
            numbers = tuple(map(int, program.stdout.readline().split()))
            yield numbers, lambda: (program.stdin.close(), program.wait())
        finally:
            program.kill()


def _plain(done, numbers):
    text = expect(done).stdout.decode().replace("srd_stories (", "stories (")
    text = re.sub(r"\bfe80::[0-9a-f:]*[0-9a-f]", "G", " ".join(re.sub(r"\n {4,}", " ", text).split(" ")))
    return plain(text, numbers)


def _why(numbers, *options, of=0):
    return _plain(softverbs("why", *options, "--qp", str(numbers[of + 1]), str(numbers[of])), numbers)


def _named(name, lines):
    return [line.replace("s of S at", "s at") for line in lines] if name in WITHOUT_RECEIVER else lines


def each_message_that_failed_is_told_with_its_receiver():
    for name, lines in CAUSES.items():
        with _messages(name) as (numbers, end):
            compare(name, _why(numbers), lines)
            end()
            compare(f"{name}, ended", _named(name, _why(numbers, "--last")), _named(name, lines))


def the_receiver_tells_what_it_has_refused():
    with _messages("refused") as (numbers, end):
        of = "bytes of queue pair c at G"
        lengths = {201: 16, 200: 48, 11: 8, 219: 8, 207: 65, 208: 8}
        lines = ["Queue pair s of S is SRD in RTS."]
        for reason, length in lengths.items():
            lines.append(f"T S refused a message of {length} {of}: {REFUSALS[reason]}")
            lines += ["S refused 1 more message of queue pair c for this reason."] * (reason == 11)
        lines += _explained(*lengths)
        compare("the server's", _why(numbers, of=2), lines)
        end()
        compare("the server's, ended", _why(numbers, "--last", of=2), lines)


def silence_is_told():
    with contextlib.ExitStack() as stack:
        programs = {name: stack.enter_context(_messages("silent", *options)) for name, (options, *_) in SILENCES.items()}
        for name, (numbers, end) in programs.items():
            _, reason, completed, rule = SILENCES[name]
            compare(name, _why(numbers), [HEAD, _sent(8, 1), completed, GOES_ON, ACTED + rule, *_explained(reason)])
            end()


WAITS = "Queue pair c has 2 messages for queue pair s, which has no receive posted (ibv_post_recv): the oldest, IBV_WR_SEND of 8 bytes with wr_id 1, was posted "


def _wait_until(read, holds):
    until = cases.until(30)
    while not holds(said := read()) and time.monotonic() < until:
        time.sleep(0.1)
    return said


def messages_that_wait_are_told_with_their_receiver():
    with _messages("hang") as (numbers, end):
        said = _wait_until(lambda: _why(numbers), lambda said: "no receive posted" in said[-1])
        said = [re.sub(r"posted \d+ seconds? ago", "posted N seconds ago", line) for line in said]
        compare("hang", said, [HEAD, "It had no error.", WAITS + "N seconds ago."])
        waits = expect(softverbs("why", str(numbers[0]))).stdout.decode().replace(f"{numbers[1]:#x}", "c").replace(f"{numbers[3]:#x}", "s")
        assert WAITS in " ".join(waits.split()), waits
        qp, = (qp for process in json.loads(expect(softverbs("show", "--json", "qps")).stdout) for qp in process["qps"] if qp["number"] == numbers[1])
        message, = qp["messages"]
        assert message.pop("seconds") >= 0 and message == {"peer_qp": numbers[3], "count": 2, "wr_id": 1, "opcode": "IBV_WR_SEND", "length": 8, "not_ready": True}, message
        end()
        said = [re.sub(r"posted \d+ seconds? before", "posted N seconds before", line) for line in _why(numbers, "--last")]
        compare("hang, ended", said, [HEAD, "It had no error.", WAITS.replace("has 2", "had 2").replace("has no", "had no") + "N seconds before."])


def it_has_a_form_for_programs():
    path = f"{TEMPORARY}/srd"
    with _messages("refused", "--story", path) as (numbers, end):
        said = json.loads(expect(softverbs("why", "--json", "--qp", str(numbers[1]))).stdout)
        own, receiver = said["ends"]
        assert (own["pid"], own["qp"], receiver["pid"], receiver["qp"]) == numbers and said["reason"] == 106, said
        failed = {(message["peer_qp"], message["vendor_err"], message["wr_id"]): message["times"] for message in own["failed"]}
        assert failed == {(numbers[3], 10, 1): 1, (numbers[3], 11, 2): 1, (numbers[3], 11, 3): 1, (numbers[3], 9, 4): 2, (numbers[3], 14, 6): 1,
                          (numbers[3], 7, 7): 1, (numbers[3], 7, 8): 1, (0x7fff, 9, 9): 1}, failed
        assert [message["name"] for message in receiver["refused"]] == ["RECEIVE_KEY_UNKNOWN", "RECEIVE_TOO_SHORT", "PACKET_QKEY", "SENDER_UNADDRESSED",
                                                                        "REMOTE_RANGE", "REMOTE_PERMISSION"], receiver["refused"]
        assert receiver["refused"][1]["too_short"] == {"wr_id": 5, "room": 32, "bytes": 48}, receiver["refused"][1]
        end()
    lines = expect(softverbs("why", "--from", path, "--github")).stdout.decode().splitlines()
    assert [re.match(r"::error title=softverbs (\w+)::", line)[1] for line in lines] == ["RNR_EXCEEDED", "RECEIVE_KEY_UNKNOWN"], lines


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
