#!/usr/bin/env python3
"""Errors of SRD: their codes of EFA (srd_errors.c), and their reasons in the log. Prints TAP."""
import json
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tool"))
from cases import BUILD, expect, softverbs
import cases

VENDORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/profile/vendors.def")
PROGRAM = f"{BUILD}/tests/profiles/srd_errors"
REASONS = {"SRD_MEMORY": 124, "PEER_FORGOT": 125, "PEER_NO_QP": 126, "PEER_NO_ADDRESS": 128, "SEND_UNSIGNALLED": 840, "RNR_EXCEEDED": 106,
           "REMOTE_INVALID_REQUEST": 107, "REMOTE_ACCESS": 108, "PACKET_QKEY": 11, "SENDER_UNADDRESSED": 219, "RECEIVE_TOO_SHORT": 200}
SILENCE = {"PEER_UNHEARD": (127, 15, "--fault", "drop=100%"), "RETRY_EXCEEDED": (105, 13, "--inject", 'when packet, opcode "SRD SEND_ONLY": drop')}


def _run(*arguments, options=()):
    """The output of the program and its log."""
    with tempfile.TemporaryDirectory() as folder:
        log = f"{folder}/log"
        done = softverbs("run", "--profile", "efa", "--log", "info", "--log-file", log, *options, "--", PROGRAM,
                         *arguments, env={"SOFTVERBS_LOG_LINES": None})
        with open(log, encoding="utf-8") as file:
            text = file.read()
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 0 and lines and lines[-1].startswith("1.."), (done, text)
    return done.stdout.decode(), text


def errors_end_one_message_and_have_their_reasons():
    told, text = _run()
    assert told.count("\nok") > 10, told
    for name, number in REASONS.items():
        assert f"(reason {number})" in text or "SKIP" in told and name == "SRD_MEMORY", (name, text)


def silence_of_a_receiver_that_was_heard_is_another_code():
    for name, (number, code, *options) in SILENCE.items():
        _, text = _run(str(code), options=options)
        assert re.search(rf"IBV_WC_RESP_TIMEOUT_ERR, for qp .*\(reason {number}\)", text), (name, text)


def a_script_gives_each_code_to_one_message():
    """The codes are those of the list that `softverbs explain efa:N` reads."""
    statuses = ("SUCCESS LOC_LEN_ERR LOC_QP_OP_ERR LOC_EEC_OP_ERR LOC_PROT_ERR WR_FLUSH_ERR MW_BIND_ERR BAD_RESP_ERR LOC_ACCESS_ERR REM_INV_REQ_ERR "
                "REM_ACCESS_ERR REM_OP_ERR RETRY_EXC_ERR RNR_RETRY_EXC_ERR LOC_RDD_VIOL_ERR REM_INV_RD_REQ_ERR REM_ABORT_ERR INV_EECN_ERR "
                "INV_EEC_STATE_ERR FATAL_ERR RESP_TIMEOUT_ERR GENERAL_ERR").split()
    with open(VENDORS, encoding="utf-8") as file:
        codes = re.findall(r'^VENDOR\("efa", (\d+), "(\w+)"', file.read(), re.MULTILINE)
    assert len(codes) == 16, codes
    for code, status in codes:
        _run(code, str(statuses.index(status)), options=("--inject", f"when work, nth 1: complete {status}, vendor {code}"))


def a_trace_names_the_type_and_the_receiver_of_each_message():
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/trace"
        expect(softverbs("run", "--profile", "efa3", "--trace=efadv_create_qp_ex,post_send,create_ah", "--trace-file", path, "--", PROGRAM), out=None, err=None)
        with open(path, encoding="utf-8") as file:
            text = file.read()
    made = re.findall(r"efadv_create_qp_ex\(.* attr=\{qp_type=DRIVER, .*, efa=\{driver_qp_type=EFADV_QP_DRIVER_TYPE_SRD, sl=0\}, inlen=\d+\) = qp (0x\w+)", text)
    assert len(made) == 2, text
    assert re.search(rf"opcode=IBV_WR_SEND, .*, ah=ah \d+, remote_qpn={made[1]}, remote_qkey=0x11111111\}}", text), text
    assert "=?" not in text, text


def a_recording_says_that_it_leaves_them_out():
    with tempfile.TemporaryDirectory() as folder:
        _, text = _run(options=("--record", f"{folder}/recording"))
        assert text.count("the recording leaves out queue pairs of type SRD") == 1, text
        assert json.loads(expect(softverbs("replay", "--json", f"{folder}/recording")).stdout)["steps"] == []
    assert "the recording leaves out" not in _run()[1]


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
