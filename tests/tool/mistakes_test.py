#!/usr/bin/env python3
"""What stands on the screen when a program makes one of the usual mistakes: the line must name what to change."""
import os
import pty
import re
import sys

import cases
from cases import BUILD, SOFTVERBS, TEMPORARY

MISTAKES = f"{BUILD}/tests/clients/mistakes"


def _screen(*arguments, options=(), env=None):
    """All that a terminal shows of the program; it must end well."""
    process, terminal = pty.fork()
    if process == 0:
        os.execve(SOFTVERBS, ["softverbs", "run", *options, "--", *arguments], cases.environment(**(env or {})))
    text = b""
    try:
        while part := os.read(terminal, 4096):
            text += part
    except OSError:  # the last one has closed it
        pass
    assert os.waitpid(process, 0)[1] == 0, text
    return text.decode().replace("\r\n", "\n")


def _lines(name, **options):
    """Ours among the screen's lines; the program's own are returned behind them."""
    screen = _screen(MISTAKES, name, **options).splitlines()
    ours = [line for line in screen if line.startswith("softverbs: ")]
    return ours, [line for line in screen if line not in ours]


def _one(lines, *parts):
    found = [line for line in lines if all(part in line for part in parts)]
    assert len(found) == 1, f"{parts} in {len(found)} of {lines}"
    return found[0]


def a_program_without_mistakes_shows_its_own_words_only():
    ours, own = _lines("none")
    assert not ours and own == ["success, vendor_err 0"], (ours, own)


def each_line_names_program_process_object_and_call():
    ours, own = _lines("short-mask")
    assert own == ["EINVAL from ibv_modify_qp"] and len(ours) == 1, (ours, own)
    assert re.fullmatch(r"softverbs: mistakes\[\d+\] qp 0x[0-9a-f]+: ibv_modify_qp INIT to RTR: attr_mask lacks "
                        r"IBV_QP_MIN_RNR_TIMER \(reason 302\)", ours[0]), ours


def an_address_without_a_grh_says_which_field_to_set():
    for name in ("no-grh", "lid"):
        ours, _ = _lines(name)
        _one(ours, "ibv_modify_qp INIT to RTR: ", "is_global", "(reason 322)")
        assert len(ours) == 1, ours


def a_wrong_gid_index_says_which_there_are():
    ours, _ = _lines("gid-index")
    _one(ours, "sgid_index is 7, the indices that are used are 0 to 1", "(reason 323)")


def a_gid_that_was_never_copied_is_refused():
    ours, own = _lines("zero-gid")
    assert own == ["EINVAL from ibv_modify_qp"], own
    _one(ours, "grh.dgid is all zero", "(reason 395)")


def a_region_without_local_write_names_the_flag():
    ours, _ = _lines("no-local-write")
    _one(ours, "ibv_reg_mr of 8192 bytes", "IBV_ACCESS_REMOTE_WRITE: ", "need IBV_ACCESS_LOCAL_WRITE", "(reason 315)")


def quiet_shows_nothing():
    for options in (["--quiet"], ["-q"]):
        ours, own = _lines("short-mask", options=options)
        assert not ours and own, (ours, own)


def what_the_user_asked_for_counts():
    assert not _lines("short-mask", env={"SOFTVERBS_LOG": "error"})[0]
    assert not _lines("short-mask", options=["--log", "none"])[0]


def where_stderr_is_no_terminal_nothing_is_added():
    done = cases.run(MISTAKES, "short-mask")
    cases.expect(done, out=b"EINVAL from ibv_modify_qp\n", err=b"")
    assert "softverbs:" not in _screen("sh", "-c", f"{MISTAKES} short-mask 2>{TEMPORARY}/errors")
    with open(f"{TEMPORARY}/errors", encoding="ascii") as errors:
        assert errors.read() == ""


def a_flood_is_held_back():
    source = ("import ctypes, os; v = ctypes.CDLL('libibverbs.so.1', use_errno=True);"
              "v.ibv_get_device_list.restype = v.ibv_open_device.restype = ctypes.c_void_p;"
              "d = v.ibv_get_device_list(None); c = v.ibv_open_device(ctypes.c_void_p(ctypes.c_void_p.from_address(d).value));"
              "v.ibv_create_cq.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int];"
              "[v.ibv_create_cq(c, 0, None, None, 0) for _ in range(1000)]")
    screen = _screen(cases.PYTHON, "-c", source)
    assert 1 <= screen.count("ibv_create_cq") <= 15, screen


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
