#!/usr/bin/env python3
"""The text on the screen, without an option, of a student's first program with each of its classic mistakes (newcomer.c): the
call, the object, the numbers and the bound. Left to the checker: MTUs and address families that differ within a host, a buffer
that was freed, objects that are left at the end."""
import concurrent.futures
import os
import pty
import re
import select
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, SOFTVERBS, patience
from patience import tries

PROGRAM = f"{BUILD}/tests/tool/newcomer"

SERVER, CLIENT = "server", "client"

# Mistake: lines that this side prints, each once or more. % is a number.
MODIFY = "qp 0x%: ibv_modify_qp "
ENDS = "qp 0x%: send of wr_id 2 ends in IBV_WC_"
REFUSED = ": process % (newcomer) refused it: qp 0x%: "
REGION = "; the region is 0x% to 0x% with "
SHORT = "a packet of 64 bytes came, and the receive of wr_id 1 has room for 16"
ROWS = {
    "mr-zero": [(SERVER, "receive of wr_id 1 ends in IBV_WC_LOC_PROT_ERR, element 0: 4096 bytes at 0x% with lkey 0x%: the region of key 0x% was registered with no access, "
                 "and this needs IBV_ACCESS_LOCAL_WRITE (reason 204)"),
                (CLIENT, ENDS + "REM_OP_ERR" + REFUSED, "this needs IBV_ACCESS_LOCAL_WRITE (its reason 204) (reason 109)")],
    "mr-no-local-write": [(SERVER, "ibv_reg_mr of 8192 bytes at 0x%: IBV_ACCESS_REMOTE_WRITE: ", "need IBV_ACCESS_LOCAL_WRITE as well. (reason 315)")],
    "mr-no-remote-read": [(SERVER, "qp 0x% asks for IBV_ACCESS_REMOTE_READ to 64 bytes at 0x% with rkey 0x%" + REGION +
                           "IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE: ", "(reason 208)"),
                          (CLIENT, ENDS + "REM_ACCESS_ERR" + REFUSED, "asks for IBV_ACCESS_REMOTE_READ", "(its reason 208) (reason 108)")],
    "mr-no-remote-write": [(SERVER, "qp 0x% asks for IBV_ACCESS_REMOTE_WRITE to 64 bytes at 0x% with rkey 0x%" + REGION, "(reason 208)"),
                           (CLIENT, ENDS + "REM_ACCESS_ERR" + REFUSED, "(its reason 208) (reason 108)")],
    "qp-access-0": [(SERVER, "RC READ_REQUEST from qp 0x%, psn %, qp_access_flags are no access: ", "(reason 209)"),
                    (CLIENT, ENDS + "REM_INV_REQ_ERR" + REFUSED, "qp_access_flags are no access: The queue pair's qp_access_flags do not allow the peer's kind of access (its reason 209) (reason 107)")],
    "no-receive": [(SERVER, "RC SEND_ONLY from qp 0x%, psn %: ", "no receive is posted (ibv_post_recv)", "(reason 216)"),
                   (CLIENT, "qp 0x%: to qp 0x%, rnr_retry is 7 (for ever): ", "(reason 118)")],
    "no-receive-rnr-3": [(CLIENT, "qp 0x%: to qp 0x%, rnr_retry is 3: ", "(reason 118)"), (CLIENT, ENDS + "RNR_RETRY_EXC_ERR: queue pair 0x% of process % (newcomer) has no receive posted (ibv_post_recv) (reason 106)")],
    "no-receive-rnr-0": [(CLIENT, ENDS + "RNR_RETRY_EXC_ERR: queue pair 0x% of process % (newcomer) has no receive posted (ibv_post_recv) (reason 106)")],
    "forgot-state": [(CLIENT, MODIFY + "RESET to RESET: attr_mask has IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT, ",
                      "as it lacks IBV_QP_STATE (reason 303)")],
    **{f"forgot-{name}": [(CLIENT, MODIFY + f"{step}: attr_mask lacks IBV_QP_{bit} (reason 302)")] for step, names in {
        "RESET to INIT": {"pkey": "PKEY_INDEX", "port": "PORT", "access": "ACCESS_FLAGS"},
        "INIT to RTR": {"av": "AV", "mtu": "PATH_MTU", "qpn": "DEST_QPN", "rq-psn": "RQ_PSN", "reads-taken": "MAX_DEST_RD_ATOMIC",
                        "rnr-timer": "MIN_RNR_TIMER"},
        "RTR to RTS": {"timeout": "TIMEOUT", "retries": "RETRY_CNT", "rnr-retry": "RNR_RETRY", "sq-psn": "SQ_PSN",
                       "reads": "MAX_QP_RD_ATOMIC"}}.items() for name, bit in names.items()},
    "reads-taken-0": [(SERVER, "RC READ_REQUEST from qp 0x%, psn %, max_dest_rd_atomic is 0: ", "(reason 211)"),
                      (CLIENT, ENDS + "REM_INV_REQ_ERR" + REFUSED, "max_dest_rd_atomic is 0: ", "(its reason 211) (reason 107)")],
    "reads-0": [(CLIENT, ENDS + "LOC_QP_OP_ERR: ", "max_rd_atomic is 0. (reason 114)")],
    "psn": [(SERVER, "RC SEND_ONLY from qp 0x%, psn %, rq_psn is %: ", "(reason 31)"),
            (CLIENT, ENDS + "RETRY_EXC_ERR: queue pair 0x% of process % (newcomer) has rq_psn % and this one sq_psn %: ", "(reason 105)")],
    "psn-timeout-0": [(SERVER, "RC SEND_ONLY from qp 0x%, psn %, rq_psn is %: ", "(reason 31)"),
                      (CLIENT, "qp 0x%: queue pair 0x% waits for an answer to 1 packet (timeout is 0): queue pair 0x% of process % (newcomer) "
                       "has rq_psn % and this one sq_psn %: ", "(reason 122)")],
    "psn-given-up": [(CLIENT, "qp 0x%: queue pair 0x% waits for an answer to 1 packet (timeout is 0): ", "(reason 122)")],
    "gid-index": [(CLIENT, MODIFY + "INIT to RTR: sgid_index is 7, the indices that are used are 0 to %: ", "(reason 323)")],
    "gid-index-255": [(CLIENT, MODIFY + "INIT to RTR: sgid_index is 255, the indices that are used are 0 to %: ", "(reason 323)")],
    "query-gid": [(CLIENT, "ibv_query_gid: index is 77, and the table of GIDs has the indices 0 to % (reason 323)")],
    "rkey-own": [(SERVER, "qp 0x% asks for IBV_ACCESS_REMOTE_READ to 64 bytes at 0x% with rkey 0x%: ", "(reason 205)"),
                 (CLIENT, ENDS + "REM_ACCESS_ERR, rkey 0x% is of this process and not of the peer" + REFUSED, "(its reason 205) (reason 108)")],
    "rkey-other": [(CLIENT, ENDS + "REM_ACCESS_ERR" + REFUSED, "with rkey 0x%: ", "(its reason 205) (reason 108)")],
    "rkey-swapped": [(CLIENT, ENDS + "REM_ACCESS_ERR" + REFUSED, "with its bytes in the other order it is one of this process (ntohl)",
                      "(its reason 205) (reason 108)")],
    "address-swapped": [(CLIENT, ENDS + "REM_ACCESS_ERR" + REFUSED, "64 bytes at 0x% with rkey 0x%" + REGION, "(its reason 207) (reason 108)")],
    "address-behind": [(SERVER, "64 bytes at 0x% with rkey 0x%" + REGION, "(reason 207)"),
                       (CLIENT, ENDS + "REM_ACCESS_ERR" + REFUSED, "64 bytes at 0x%", REGION, "(its reason 207) (reason 108)")],
    "receive-short": [(SERVER, "receive of wr_id 1 ends in IBV_WC_LOC_LEN_ERR: " + SHORT, "(reason 200)"),
                      (CLIENT, ENDS + "REM_INV_REQ_ERR" + REFUSED, SHORT + " (its reason 200) (reason 107)")],
    "cq-small": [(SERVER, "the completion queue with handle % of 1 entries: ", "(reason 312)")],
    "no-poll": [(CLIENT, "ibv_post_send of wr_id 2: max_send_wr is 8: ", "(reason 327)"), (CLIENT, "% more lines of reason 327 were left out")],
    "unsignalled": [(CLIENT, "qp 0x%: 1 work request of queue pair 0x% ended without a completion, as it is not signalled", "(reason 120)")],
    "unsignalled-given-up": [(CLIENT, "qp 0x%: 1 work request of queue pair 0x% ended without a completion, as it is not signalled", "(reason 120)")],
    "inline": [(CLIENT, "ibv_post_send of wr_id 2: max_inline_data is %, and the data has 64 bytes: ", "cap.max_inline_data", "(reason 328)")],
    "send-in-init": [(CLIENT, "ibv_post_send of wr_id 2: the queue pair is in INIT: ", "(reason 329)")],
    "send-in-rtr": [(CLIENT, "ibv_post_send of wr_id 2: the queue pair is in RTR: ", "(reason 329)")],
    "receive-in-reset": [(CLIENT, "ibv_post_recv of wr_id 1: the queue pair is in RESET: ", "(reason 330)")],
    "skip-rtr": [(CLIENT, MODIFY + "INIT to RTS: RTR comes between: ", "(reason 301)")],
    "never-rtr": [(CLIENT, ENDS + "RETRY_EXC_ERR: queue pair 0x% of process % (newcomer) is in INIT, where it takes nothing: ibv_modify_qp to RTR is missing (reason 105)")],
    "mtu-0": [(CLIENT, MODIFY + "INIT to RTR: path_mtu is 0: ", "(reason 339)")],
    "mtu-bytes": [(CLIENT, MODIFY + "INIT to RTR: path_mtu is 1024: ", "(reason 339)")],
    "unmapped-receive": [(SERVER, "receive of wr_id 1 ends in IBV_WC_LOC_PROT_ERR, element 0: 4096 bytes at 0x% with lkey 0x%", "(reason 231)"),
                         (CLIENT, ENDS + "REM_OP_ERR" + REFUSED, "with lkey 0x%: The receive's memory was registered and is gone: the program unmapped or "
                          "protected it, or shortened the file that is mapped there (its reason 231) (reason 109)")],
    "unmapped-send": [(CLIENT, "ends in IBV_WC_LOC_PROT_ERR, element 0: 64 bytes at 0x% with lkey 0x%", "(reason 117)")],
    "unmapped-read": [(SERVER, "qp 0x%: RC READ_REQUEST from qp 0x%, psn %: A peer named memory that was registered and is gone", "(reason 232)"),
                      (CLIENT, ENDS + "REM_ACCESS_ERR" + REFUSED, "RC READ_REQUEST", "(its reason 232) (reason 108)")],
    "deregistered": [(SERVER, "receive of wr_id 1 ends in IBV_WC_LOC_PROT_ERR, element 0: 4096 bytes at 0x% with lkey 0x%: key 0x% named a memory region of 8192 bytes at 0x%, which was deregistered (ibv_dereg_mr) % ms before (reason 201)"),
                     (CLIENT, ENDS + "REM_OP_ERR" + REFUSED, "which was deregistered (ibv_dereg_mr) % ms before (its reason 201) (reason 109)")],
    "lid": [(CLIENT, MODIFY + "INIT to RTR: is_global is 0, dlid is 0: ", "--link-layer ib", "(reason 322)")],
    "port-0": [(CLIENT, MODIFY + "RESET to INIT: port_num is 0: ", "number 1. (reason 321)")],
    "port-2": [(CLIENT, MODIFY + "RESET to INIT: port_num is 2: ", "number 1. (reason 321)")],
    "path-port-0": [(CLIENT, MODIFY + "INIT to RTR: port_num is 0: ", "number 1. (reason 321)")],
    "path-port-2": [(CLIENT, MODIFY + "INIT to RTR: port_num is 2: ", "number 1. (reason 321)")],
    "query-port": [(CLIENT, "ibv_query_port: port is 2: ", "number 1. (reason 321)")],
    "two-pds": [(CLIENT, ENDS + "LOC_PROT_ERR, element 0: 64 bytes at 0x% with lkey 0x%: the region of key 0x% is of another protection domain than the "
                 "queue pair: of the one with handle % (reason 102)")],
    "unregistered": [(CLIENT, ENDS + "LOC_PROT_ERR, element 0: 64 bytes at 0x% with lkey 0x%: key 0x% belongs to a region of % bytes; 64 bytes at offset ", " do not fit (reason 103)")],
    "lkey-0": [(CLIENT, ENDS + "LOC_PROT_ERR, element 0: 64 bytes at 0x% with lkey 0x0: ", "(reason 101)")],
    "lkey-swapped": [(CLIENT, "with lkey 0x%: key 0x% names no memory region of this process, and with its bytes in the other order it does (ntohl) (reason 101)")],
    "element-behind": [(CLIENT, ENDS + "LOC_PROT_ERR, element 0: 12288 bytes at 0x% with lkey 0x%: key 0x% belongs to a region of % bytes; 12288 bytes at offset % do not fit (reason 103)")],
    "receive-lkey": [(SERVER, "element 0: 4096 bytes at 0x% with lkey 0x%: ", "(reason 201)"),
                     (CLIENT, ENDS + "REM_OP_ERR" + REFUSED, "element 0: 4096 bytes at 0x% with lkey 0x%: ", "(its reason 201) (reason 109)")],
    "qpn-swapped": [(CLIENT, MODIFY + "INIT to RTR: dest_qp_num is 0x%: ", "24 bits", "ntohl. (reason 394)")],
    "qpn-own": [(CLIENT, ENDS + "RETRY_EXC_ERR: dest_qp_num is 0x%, the queue pair's own number", "(reason 105)")],
    "qpn-timeout-0": [(SERVER, "qp 0x%, a number that this process never gave a queue pair: ", "(reason 7)"),
                      (CLIENT, "qp 0x%: queue pair 0x% waits for an answer to 1 packet (timeout is 0): process % (newcomer) "
                       "lives and has no queue pair 0x%: it was destroyed (ibv_destroy_qp), or never made; it has 0x%", "(reason 122)")],
    "other-directory": [(CLIENT, ENDS + "RETRY_EXC_ERR: no process of ", " has queue pair 0x%; processes meet in ", "(reason 105)")],
    "not-armed": [(SERVER, "completion queue with handle % has % completion", "no event is asked for (ibv_req_notify_cq)", "(reason 121)")],
    "gid-zero": [(CLIENT, MODIFY + "INIT to RTR: ", "grh.dgid is all zero. ", "(reason 395)")],
    "gid-of-nobody": [(CLIENT, MODIFY + "INIT to RTR: dgid fe80::", "softverbs run --net INTERFACE", "(reason 396)")],
    "no-acknowledgement": [(SERVER, "destroying the completion queue with handle % waits for % event", "(reason 357)")],
    "pd-first": [(CLIENT, "ibv_dealloc_pd: the protection domain with handle % has 2 users: ", "(reason 307)")],
    "cq-first": [(CLIENT, "ibv_destroy_cq: the completion queue with handle % has 2 users: ", "(reason 307)")],
    "deregistered-twice": [(CLIENT, "ibv_dereg_mr: the memory region with handle %, which was destroyed: ", "(reason 306)")],
    "elements-2": [(CLIENT, "ibv_post_send of wr_id 2: max_send_sge is 1, num_sge 2: ", "(reason 319)")],
    "receive-elements-2": [(SERVER, "ibv_post_recv of wr_id 1: 2 elements, and the queue was made for 1: ", "(reason 319)")],
    "cap-0": [(CLIENT, "ibv_post_send of wr_id 2: max_send_sge is 0, num_sge 1: ", "(reason 319)")],
    "cap-large": [(CLIENT, "ibv_create_qp: max_send_wr is 1000000, max_qp_wr %: ", "(reason 336)")],
    "inline-large": [(CLIENT, "ibv_create_qp: max_inline_data is 1048576, the device's limit %: ", "(reason 481)")],
    "cq-0": [(CLIENT, "ibv_create_cq: 0 entries, max_cqe is %: ", "(reason 308)")],
    "cq-large": [(CLIENT, "ibv_create_cq: 100000000 entries, max_cqe is %: ", "(reason 308)")],
    "no-cq": [(CLIENT, "ibv_create_qp: send_cq is NULL: ", "(reason 335)")],
    "type-0": [(CLIENT, "ibv_create_qp: qp_type is 0: ", "(reason 479)")],
    "pkey": [(CLIENT, MODIFY + "RESET to INIT: pkey_index is 5: ", "index 0. (reason 337)")],
    "memory-null": [(CLIENT, "ibv_reg_mr of 8192 bytes at (nil): ", "not mapped", "(reason 317)")],
    "opcode": [(CLIENT, "ibv_post_send of wr_id 2: ", "opcode 99: ", "(reason 324)")],
}

# The screen must not have these.
ABSENT = {"no-receive-rnr-0": "(reason 118)"} # nothing is sent again


def _stands(parts, pid, lines):
    """Returns true if a line of this process has all parts."""
    patterns = [re.escape(part).replace("%", "[0-9a-f]+") for part in parts]
    return any(f"newcomer[{pid}] " in line and all(re.search(pattern, line) for pattern in patterns) for line in lines)


def _missing(rows, text):
    """The rows whose line is not in the text."""
    sides = re.search(r"server (\d+) client (\d+)", text)
    if not sides:
        return rows
    pids = {SERVER: sides[1], CLIENT: sides[2]}
    return [row for row in rows if not _stands(row[1:], pids[row[0]], text.replace("\r", "").splitlines())]


def _screen(mistake, rows):
    """The lines of a terminal until all rows are there, or the program ends."""
    ours, theirs = pty.openpty()
    text, deadline = "", time.monotonic() + patience(30)
    with subprocess.Popen([SOFTVERBS, "run", "--", PROGRAM, mistake], env=cases.environment(), stdin=theirs, stdout=theirs,
                          stderr=theirs, start_new_session=True) as program:
        os.close(theirs)
        while time.monotonic() < deadline and (not rows or _missing(rows, text)):
            if select.select([ours], [], [], 0.5)[0]:
                try:
                    text += os.read(ours, 65536).decode()
                except OSError:  # the last one has closed it
                    break
        try:
            os.killpg(program.pid, 9)
        except ProcessLookupError:
            pass
    os.close(ours)
    return text


def _compare(mistake):
    text = _screen(mistake, ROWS[mistake])
    missing = _missing(ROWS[mistake], text)
    assert not missing, f"{mistake}: {missing} in\n{text}"
    assert mistake not in ABSENT or ABSENT[mistake] not in text, text


def _failure(mistake):
    """A program that finds its completion at the first look waits for no event, and then leaves no event unacknowledged."""
    times = 5 if mistake in ("no-acknowledgement", "not-armed") else 1
    try:
        tries(mistake, times, "the completion was there before the program waited for its event", lambda: _compare(mistake), AssertionError)
    except AssertionError as error:
        return str(error)
    return None


def each_mistake_is_named_on_the_screen():
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        failures = [failure for failure in pool.map(_failure, ROWS) if failure]
    assert not failures, "\n".join(failures)


def a_program_without_mistakes_shows_its_own_words_only():
    text = _screen("none", [])
    assert "server ends well" in text and "client ends well" in text and "softverbs" not in text, text


def each_mistake_of_the_program_has_a_row():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "newcomer.c"), encoding="utf-8") as source:
        names = re.findall(r'^    \{"([^"]+)", (?:CLIENT|SERVER), AT', source.read(), re.MULTILINE)
    assert sorted(names) == sorted([*ROWS, "none"]), set(names) ^ {*ROWS, "none"}


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
