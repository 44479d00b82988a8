"""The causes of tests/tool/stories.c, and the text of each: for the tests of stories."""
import contextlib
import re
import subprocess

import cases
from cases import BUILD, SOFTVERBS

# The text of each cause, line by line: C and S are the processes of client and server, X is a third one, c and s their queue pairs, K a key, A an address, N
# a number; a time is in front where one is known.
OWN_ERROR = "Queue pair c of C is RC in ERR, connected with s of S."
OWN_XRC_ERROR = OWN_ERROR.replace("RC", "XRC_SEND")
SENT = "T C posted IBV_WR_SEND of 8 bytes, wr_id 7."
WRITTEN = "T C posted IBV_WR_RDMA_WRITE of 8 bytes, wr_id 7, to address A with rkey K."
UNKNOWN = "key K names no memory region of this process: never registered, deregistered long ago, or another process's"
UNKNOWN_THERE = ("key K names no memory region and no bound memory window of this process: never registered or bound, ended long ago, "
                 "or another process's")
ENDED_KEY = "key K named a memory region of 1024 bytes at A, which was deregistered (ibv_dereg_mr) N ms before"
GONE = "The part of the other end is not known: its process has ended and left no story, or is not of this directory."
CONNECTED = "Queue pair c of C is RC in RTS, connected with s of S."
HANGS = "It had no error: it waits. Its peer answered N times that it has no receive posted (ibv_post_recv), and rnr_retry is 7, for ever."
SERVER_WAITS = "Completion queue with handle N of S has 1 completion that was not polled, and no event is asked for (ibv_req_notify_cq), which was never called."
FOUND = "T What was found out when it failed: "
LACKS = "queue pair s of process S has no receive posted"
SHARED = "Queue pair s of S has no receive posted (ibv_post_srq_recv to its shared receive queue with handle N)."
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
    "cut": [
        OWN_ERROR, WRITTEN, "T S refused it: address A was cut to 32 bits: it has the lower half of an address in the region of key K, "
        "which has 1024 bytes at A, and not the upper one (reason 207).",
        "T C completed it with IBV_WC_REM_ACCESS_ERR (reason 108).", "\"softverbs explain 207\" has causes and cures."],
    "swapped": [
        OWN_ERROR, WRITTEN, "T S refused it: address A has its bytes in the other order (be64toh): in this host's order it is in the "
        "region of key K, which has 1024 bytes at A (reason 207).",
        "T C completed it with IBV_WC_REM_ACCESS_ERR (reason 108).", "\"softverbs explain 207\" has causes and cures."],
    "remote-key": [
        OWN_ERROR, WRITTEN, f"T S refused it: {UNKNOWN_THERE} (reason 205).",
        "T C completed it with IBV_WC_REM_ACCESS_ERR (reason 108).", "\"softverbs explain 205\" has causes and cures."],
    "remote-gone": [
        OWN_ERROR, WRITTEN, f"T S refused it: {ENDED_KEY} (reason 205).",
        "T C completed it with IBV_WC_REM_ACCESS_ERR (reason 108).", "\"softverbs explain 205\" has causes and cures."],
    "receive-gone": [
        OWN_ERROR, SENT, f"T S refused it: {ENDED_KEY} (reason 201).", "S completed the receive of wr_id 5 with IBV_WC_LOC_PROT_ERR.",
        "T C completed it with IBV_WC_REM_OP_ERR (reason 109).", "\"softverbs explain 201\" has causes and cures."],
    "send-gone": [
        OWN_ERROR, SENT, f"T C completed it with IBV_WC_LOC_PROT_ERR: {ENDED_KEY} (reason 101).",
        "\"softverbs explain 101\" has causes and cures."],
    "atomic-key": [
        OWN_ERROR, "T C posted IBV_WR_ATOMIC_FETCH_AND_ADD of 8 bytes, wr_id 7, to address A with rkey K.",
        "T S refused it: the key of the atomic is 0, which no region has: it is taken from wr.atomic, and not from wr.rdma (reason 205).",
        "T C completed it with IBV_WC_REM_ACCESS_ERR (reason 108).", "\"softverbs explain 205\" has causes and cures."],
    "invalidated": [
        OWN_ERROR, WRITTEN, "T S refused it: key K names a memory window that is not bound: it never was, or was invalidated (reason 205).",
        "T C completed it with IBV_WC_REM_ACCESS_ERR (reason 108).", "\"softverbs explain 205\" has causes and cures."],
    "remote-permission": [
        OWN_ERROR, WRITTEN, "T S refused it: the region of key K was registered with IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | "
        "IBV_ACCESS_REMOTE_ATOMIC, and this needs IBV_ACCESS_REMOTE_WRITE (reason 208).",
        "T C completed it with IBV_WC_REM_ACCESS_ERR (reason 108).", "\"softverbs explain 208\" has causes and cures."],
    "no-receive": [
        OWN_ERROR, SENT, "Its peer answered N times that it has no receive posted (ibv_post_recv); rnr_retry of C is 2.",
        f"{FOUND}{LACKS} (ibv_post_recv).", "T C completed it with IBV_WC_RNR_RETRY_EXC_ERR (reason 106).",
        "\"softverbs explain 106\" has causes and cures."],
    "deaf": [
        OWN_ERROR, SENT, SILENCE, "Queue pair s of S is in INIT, where it takes nothing: ibv_modify_qp to RTR is missing.",
        "T C completed it with IBV_WC_RETRY_EXC_ERR (reason 105).", "\"softverbs explain 105\" has causes and cures."],
    "dead": [
        "Queue pair c of C is RC in ERR, connected with s of process S.", SENT, SILENCE, "Process S, which had queue pair s, has ended.",
        "T C completed it with IBV_WC_RETRY_EXC_ERR (reason 113).",
        GONE, "\"softverbs explain 113\" has causes and cures."],
    "exited": [
        "Queue pair c of C is RC in ERR, connected with s.", WRITTEN, SILENCE, "The process, which had queue pair s, has ended.",
        "T C completed it with IBV_WC_RETRY_EXC_ERR (reason 113).", GONE, "\"softverbs explain 113\" has causes and cures."],
    "nobody": [
        "Queue pair c of C is RC in ERR, connected with 0xabcdef.", SENT, SILENCE,
        f"{FOUND}no process of DIR has queue pair 0xabcdef; HINT",
        "T C completed it with IBV_WC_RETRY_EXC_ERR (reason 105).",
        "\"softverbs explain 105\" has causes and cures."],
    "atomics-disabled": [
        OWN_ERROR, "T C posted IBV_WR_ATOMIC_FETCH_AND_ADD of 8 bytes, wr_id 7, to address A with rkey K.",
        "T C completed it with IBV_WC_LOC_QP_OP_ERR: A READ or atomic was posted, but the queue pair's max_rd_atomic is 0 "
        "(reason 114).", "\"softverbs explain 114\" has causes and cures."],
    "segments": [
        "Queue pair c of C is RAW_PACKET in SQE.", "T C posted IBV_WR_TSO of 200 bytes, wr_id 7.",
        "T C completed it with IBV_WC_LOC_QP_OP_ERR: The header of an IBV_WR_TSO must be Ethernet, IPv4 or IPv6, and TCP or UDP, and end there; "
        "mss must not be 0 (reason 431).", "\"softverbs explain 431\" has causes and cures."],
    "reads-refused": [
        OWN_ERROR, "T C posted IBV_WR_RDMA_READ of 8 bytes, wr_id 7, to address A with rkey K.",
        "T S refused it: max_dest_rd_atomic of its queue pair is 0, so that it takes no READs and atomics (reason 211).",
        "T C completed it with IBV_WC_REM_INV_REQ_ERR (reason 107).", "\"softverbs explain 211\" has causes and cures."],
    "empty-srq": [
        OWN_ERROR, SENT, "Its peer answered N times that it has no receive posted (ibv_post_srq_recv); rnr_retry of C is 2.",
        f"{FOUND}{LACKS} (ibv_post_srq_recv to its shared receive queue with handle N).", "T C completed it with IBV_WC_RNR_RETRY_EXC_ERR (reason 106).",
        "\"softverbs explain 106\" has causes and cures."],
    "short-srq": [
        OWN_ERROR, "T C posted IBV_WR_SEND of 300 bytes, wr_id 7.",
        "T S refused it: the message has 300 bytes, and the receive of wr_id 5 has room for 299 (reason 200).",
        "S completed the receive of wr_id 5 with IBV_WC_LOC_LEN_ERR.", "T C completed it with IBV_WC_REM_INV_REQ_ERR (reason 107).",
        "\"softverbs explain 200\" has causes and cures."],
    "short-xrc": [
        OWN_XRC_ERROR, "T C posted IBV_WR_SEND of 300 bytes, wr_id 7.",
        "T S refused it: the message has 300 bytes, and the receive of wr_id 5 has room for 299 (reason 200).",
        "S completed the receive of wr_id 5 with IBV_WC_LOC_LEN_ERR.", "T C completed it with IBV_WC_REM_INV_REQ_ERR (reason 107).",
        "\"softverbs explain 200\" has causes and cures."],
    "empty-xrc": [
        OWN_XRC_ERROR, SENT, "Its peer answered N times that it has no receive posted (ibv_post_srq_recv); rnr_retry of C is 2.",
        SHARED, "T C completed it with IBV_WC_RNR_RETRY_EXC_ERR (reason 106).",
        "\"softverbs explain 106\" has causes and cures."],
    "short-third": [
        OWN_XRC_ERROR, "X has the shared receive queue with handle N of XRC and takes the messages that name it, in place of S.",
        "T C posted IBV_WR_SEND of 300 bytes, wr_id 7.",
        "T X refused it: the message has 300 bytes, and the receive of wr_id 5 has room for 299 (reason 200).",
        "X completed the receive of wr_id 5 with IBV_WC_LOC_LEN_ERR.", "T C completed it with IBV_WC_REM_INV_REQ_ERR (reason 107).",
        "\"softverbs explain 200\" has causes and cures."],
    "empty-third": [
        OWN_XRC_ERROR, "X has the shared receive queue with handle N of XRC and takes the messages that name it, in place of S.",
        SENT, "Its peer answered N times that it has no receive posted (ibv_post_srq_recv); rnr_retry of C is 2.",
        SHARED.replace("S", "X"), "T C completed it with IBV_WC_RNR_RETRY_EXC_ERR (reason 106).",
        "\"softverbs explain 106\" has causes and cures."],
    "hang-third": [
        CONNECTED.replace("RC", "XRC_SEND"), "X has the shared receive queue with handle N of XRC and takes the messages that name it, in place of S.",
        HANGS.replace("ibv_post_recv", "ibv_post_srq_recv")],
    "late-receive": [
        OWN_ERROR, SENT, "Its peer answered N times that it has no receive posted (ibv_post_recv); rnr_retry of C is 1.",
        f"{FOUND}{LACKS} (ibv_post_recv).", "Queue pair s of S has 1 receive posted since (ibv_post_recv).",
        "T C completed it with IBV_WC_RNR_RETRY_EXC_ERR (reason 106).",
        "\"softverbs explain 106\" has causes and cures."],
    "window": [
        OWN_ERROR, WRITTEN, "T S refused it: key K belongs to a memory window of 512 bytes; 8 bytes at offset 512 do not fit (reason 207).",
        "T C completed it with IBV_WC_REM_ACCESS_ERR (reason 108).", "\"softverbs explain 207\" has causes and cures."],
    "first-psn": [
        OWN_ERROR, SENT, SILENCE, "S dropped N packets (reason 31): The peer's first packet has another sequence number than this side's "
        "rq_psn: one side's rq_psn must be the other's sq_psn.", "T C completed it with IBV_WC_RETRY_EXC_ERR (reason 105).",
        "\"softverbs explain 31\" has causes and cures."],
    "peer-failed": [
        OWN_ERROR, "T S posted IBV_WR_SEND of 16 bytes, wr_id 3.", f"T S completed it with IBV_WC_LOC_PROT_ERR: {UNKNOWN} (reason 101).",
        WRITTEN, SILENCE, "Queue pair s of S is in ERR, where it takes nothing.", "T C completed it with IBV_WC_RETRY_EXC_ERR (reason 105).",
        "\"softverbs explain 101\" has causes and cures."],
    "peer-moved": [
        OWN_ERROR, WRITTEN, SILENCE, "Queue pair s of S is in ERR, where it takes nothing.",
        "T C completed it with IBV_WC_RETRY_EXC_ERR (reason 105).", "\"softverbs explain 105\" has causes and cures."],
    "strange": [
        "Queue pair c of C is RC in ERR, connected with s of process S.", WRITTEN, SILENCE,
        f"{FOUND}queue pair s of process S is connected with another, and not with c: its answers go there.",
        "T C completed it with IBV_WC_RETRY_EXC_ERR (reason 105).", "\"softverbs explain 105\" has causes and cures."],
    "destroyed": [
        "Queue pair c of C is RC in ERR, connected with s of process S.", WRITTEN, SILENCE,
        f"{FOUND}process S lives and has no queue pair s: it was destroyed (ibv_destroy_qp), or never made; HINT",
        "T C completed it with IBV_WC_RETRY_EXC_ERR (reason 105).",
        "\"softverbs explain 105\" has causes and cures."],
    "stopped": [
        "Queue pair c of C is RC in RTS, connected with s of process S.", "It had no error. \"softverbs why C\" says what its process waits for.",
        "The part of the other end is not known: process S does not answer: it is stopped (SIGSTOP, a debugger), has no time, ends, or is another user's and refuses."],
    "uc-key": [
        "Queue pair c of C is UC in RTS, connected with s of S.", "It had no error. \"softverbs why C\" says what its process waits for.",
        "S dropped N packets (reason 18): An unreliable write named memory that it may not write; it was dropped."],
    "uc-receive": [
        "Queue pair c of C is UC in RTS, connected with s of S.", "It had no error. \"softverbs why C\" says what its process waits for.",
        "S dropped N packets (reason 16): A message found no receive posted and, on this unreliable service, was dropped."],
    "hang": [CONNECTED, HANGS],
    **{name: [CONNECTED, "It had no error.", f"Completion queue with handle N of C has 1 completion that was not polled, and {words}."]
       for name, words in (
           ("never-armed", "no event is asked for (ibv_req_notify_cq), which was never called"),
           ("armed-once", "no event is asked for (ibv_req_notify_cq) since the last one was fetched"),
           ("solicited", "an event is asked for solicited messages only, and these are unsolicited (IBV_SEND_SOLICITED)"),
           ("no-channel", "no event can come, since ibv_create_cq was called without a completion channel"),
           ("not-fetched", "an event waits that ibv_get_cq_event does not fetch"),
           ("not-polled", "their event was raised before the queue was armed again: poll it until it is empty after each "
                          "ibv_req_notify_cq"))},
    "server-waits": [CONNECTED, "It had no error.", SERVER_WAITS],
    "both": [CONNECTED, HANGS, SERVER_WAITS],
    "own-end": [
        OWN_ERROR, "T It had no error: C itself moved the queue pair to ERR (ibv_modify_qp, or librdmacm when it disconnects or is rejected).",
        "1 work request of C ended with IBV_WC_WR_FLUSH_ERR."],
}
# Nothing failed: the story of an ended process is kept for the completions that were not polled, where the queue has a channel.
LOST_EVENTS = ("never-armed", "armed-once", "solicited", "no-channel", "not-fetched", "not-polled", "server-waits", "both")
# Nor does one whose messages were lost, as unreliable services may; the end that dropped them has it.
DROPPED = ("uc-key", "uc-receive")
# Their sentences from core files equal those for similar causes; each case takes a second, so these are left out there.
LIKE_OTHERS = ("atomic-key", "receive-gone", "send-gone", "invalidated", "no-channel", "solicited", "both", "reads-refused", "empty-srq", "short-srq", "short-third", "empty-third", "hang-third", "window", "peer-moved", "strange", "destroyed", "stopped", *DROPPED)
LOST_ENDED = {
    name: [CONNECTED.replace("of S", "of process S"), "It had no error.",
           CAUSES[name][2].replace("has 1", "had 1").replace("event waits", "event waited").replace("does not", "did not").replace(" is asked", " was asked")
           .replace("these are", "these were")]
    for name in LOST_EVENTS if name not in ("no-channel", "server-waits", "both")}
LOST_ENDED["server-waits"] = ["Queue pair s of S is RC in RTS, connected with c of process C.", "It had no error.",
                              SERVER_WAITS.replace("has 1", "had 1").replace(" is asked", " was asked")]
# Without a log no process is asked: the end of the peer says it where that is known, and of a receive that came later only that.
UNASKED = {name: [line.replace(f"{FOUND}queue pair s of process S has no", "Queue pair s of S has no") for line in lines if name != "late-receive" or FOUND not in line] for name, lines in CAUSES.items()} | {"nobody": CAUSES["nobody"][:3] + ["No process of this directory has queue pair 0xabcdef."] + CAUSES["nobody"][4:5] + [GONE] + CAUSES["nobody"][5:]}
# The story of an ended process differs only where nothing of the other end is worth keeping.
ENDED = {name: [line.replace("s of S.", "s of process S.") for line in CAUSES[name][:1]] + CAUSES[name][1:]
         for name in ("short-atomic", "long-send", "send-key", "send-gone", "send-range", "reads-disabled", "atomics-disabled")}
SERVER_HANGS = ["Queue pair s of S is RC in RTS, connected with c of C.",
                "It had no error. It has no receive posted (ibv_post_recv) for a message of its peer, and answered so N times."]
# The sender of a datagram does not learn it, so its receiver is asked.
NO_GRH = ["Queue pair s of S is UD in RTS.", "It had no error. \"softverbs why S\" says what its process waits for.",
          "S dropped N packets (reason 17): a datagram of 100 bytes needs a receive of 140, as the 40 bytes of the GRH precede its payload, and the "
          "receive of wr_id 5 has room for 139. Post receives that are 40 bytes longer than the longest datagram (ibv_post_recv)."]
SCRIPTED = [
    OWN_ERROR, SENT, "T C completed it with IBV_WC_LOC_QP_OP_ERR: A rule of the user's script (softverbs run --script or --inject) disturbed the "
    "call (reason 700).", "A rule of the script of C acted on it: when work, program stories, nth 1: complete LOC_QP_OP_ERR",
    "\"softverbs explain 700\" has causes and cures."]
for name_of_state in ("deaf", "peer-moved"):
    ENDED[name_of_state] = [line.replace("s of S is in", "s of S was in").replace("takes nothing", "took nothing") for line in CAUSES[name_of_state]]
ENDED["peer-failed"] = [line.replace("s of S is in", "s of S was in").replace("takes nothing", "took nothing") for line in CAUSES["peer-failed"]]


@contextlib.contextmanager
def failed(cause, *options, first=7, front=()):
    """The numbers that the program prints when the error has happened, and how to end it. `front`: the command that runs it."""
    command = [SOFTVERBS, "run", *options, "--", *front, f"{BUILD}/tests/tool/stories", cause, str(first)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=cases.environment()) as program:
        try:
            client, qp, server, peer = map(int, program.stdout.readline().split())
            yield (client, qp, server, peer), lambda: (program.stdin.close(), program.wait())
        finally:
            program.kill()


def plain(text, numbers):
    """The lines with what differs from run to run replaced."""
    client, qp, server, peer = numbers
    for found, word in ((f"softverbs why {client}", "softverbs why C"), (f"softverbs why {server}", "softverbs why S"), (f"stories ({client})", "C"), (f"stories ({server})", "S"), (f"rocess {server}", "rocess S"),
                        (f"rocess {client}", "rocess C"),
                        (f"{qp:#x}", "c"), (f"{peer:#x}", "s")):
        text = text.replace(found, word)
    # many answers that nothing is posted push the completion's time out of the records
    text = re.sub(r"^(?:[\d:.]+ )?(Completion queue with handle) \d+", r"\1 N", text, flags=re.M)
    text = re.sub(r"shared receive queue with handle \d+", "shared receive queue with handle N", text)
    text = re.sub(r"connected with queue pair 0x\w+, and not", "connected with another, and not", text)
    text = re.sub(r"(rocess S) \(stories\)", r"\1", text)
    text = re.sub(r"no process of /\S+ has", "no process of DIR has", text)
    text = re.sub(r"(What was found out .*?); .*", r"\1; HINT", text)
    text = re.sub(r"dropped \d+ packets?", "dropped N packets", text)
    text = re.sub(r"key 0x\w+", "key K", text)
    text = re.sub(r"bytes at 0x\w+", "bytes at A", text)
    text = re.sub(r"\d+ ms before", "N ms before", text)
    text = re.sub(r"address 0x\w+", "address A", text)
    text = re.sub(r"(answered(?: so)?) \d+( times)|(ran out) \d+", lambda found: f"{found[1] or found[3]} N{found[2] or ''}", text)
    text = re.sub(r"stories \(\d+\)", "X", text)
    return re.sub(r"^\d\d:\d\d:\d\d\.\d\d\d ", "T ", text, flags=re.M).splitlines()


def _anonymous(lines):
    """The lines without the number of a process that has left: its peers may still know it, or no longer."""
    return [line.replace("connected with s of process S.", "connected with s.").replace("Process S, which had queue pair s, has ended.", "The process, which had queue pair s, has ended.")
            for line in lines]


def compare(name, said, wanted):
    if name.startswith("exited"):
        said = _anonymous(said)
    assert said == wanted, f"{name}:\n" + "\n".join(said) + "\nand not\n" + "\n".join(wanted)
