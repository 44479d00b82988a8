#!/usr/bin/env python3
"""softverbs run --script and --inject: calls of an unmodified program fail and wait as a script says, and others do not."""
import json
import os
import re
import signal
import sys
import time

import cases
from cases import BUILD, TEMPORARY, Skip, expect, run, softverbs, told

PROGRAM = f"{BUILD}/tests/tool/scripted"
ENOENT, EIO, ENOMEM, EINVAL = 2, 5, 12, 22
TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")


def _disturbed(rules, mode, status=0, log="warn"):
    """Lines of stdout and of stderr."""
    done = softverbs("run", "--log", log, "--inject", rules, "--", PROGRAM, mode)
    assert done.returncode == status, told(done)
    return done.stdout.decode().splitlines(), done.stderr.decode().splitlines()


def a_call_fails_at_its_turn_and_no_other():
    out, err = _disturbed("when ibv_reg_mr, nth 3: error ENOMEM", "regions")
    good, bad = "ibv_reg_mr 0 errno 0", f"ibv_reg_mr -1 errno {ENOMEM}"
    assert out == [good, good, bad, good], out
    assert len(err) == 1 and re.search(r"ibv_reg_mr of pd \d+: fails with ENOMEM by line 1 of the script \(reason 700\)$", err[0]), err
    assert _disturbed("when ibv_reg_mr, nth 5: error ENOMEM", "regions") == ([good] * 4, [])
    assert _disturbed("ibv_reg_mr:error=ENOMEM:when=2+2", "regions")[0] == [good, bad] * 2
    assert _disturbed("when ibv_reg_mr, on pd 77: error ENOMEM", "regions")[0] == [good] * 4


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


def a_call_waits():
    began = time.monotonic()
    out, err = _disturbed("when ibv_poll_cq, nth 1: delay 0.4s", "polls")
    assert time.monotonic() - began >= 0.4 and out == ["ibv_poll_cq 0 errno 0"] * 2 and "begins 400000 us late" in err[0], (out, err)


def a_signal_ends_the_program_at_a_call():
    done = softverbs("run", "--inject", "when ibv_poll_cq, nth 2: signal KILL", "--", PROGRAM, "polls")
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


def a_script_is_a_file():
    path = f"{TEMPORARY}/a script"
    with open(path, "w", encoding="utf-8") as file:
        file.write("# comment\n\nwhen ibv_reg_mr, program \"scr*\", from 2: error ENOMEM # more\nwhen ibv_reg_mr, program other: error EIO\n")
    done = softverbs("run", "--log", "warn", "--script", "a script", "--", PROGRAM, "regions", cwd=TEMPORARY)
    assert done.stdout.decode().split("\n")[:2] == ["ibv_reg_mr 0 errno 0", f"ibv_reg_mr -1 errno {ENOMEM}"], told(done)
    assert done.stderr.count(b"by line 3 of the script") == 3, told(done)


def wrong_scripts_are_refused_before_the_program_starts():
    expect(softverbs("run", "--inject", "when ibv_reg_mr: explode", "--", "echo", "started"), 2, b"",
           [b"SOFTVERBS_INJECT, line 1, column 18: \"explode\" is no action."])
    expect(softverbs("run", "--script", "/no/such", "--", "echo", "started"), 2, b"", [b"/no/such can't be read: No such file"])


def without_run_a_wrong_script_is_reported_and_nothing_is_disturbed():
    done = run(PROGRAM, "polls", env={"LD_LIBRARY_PATH": f"{BUILD}/lib"})
    expect(done, 0, b"ibv_poll_cq 0 errno 0\n" * 2)
    done = cases.subprocess.run([PROGRAM, "polls"], capture_output=True, check=False,
                                env=cases.environment(LD_LIBRARY_PATH=f"{BUILD}/lib", SOFTVERBS_INJECT="ibv_poll_cq"))
    expect(done, 0, b"ibv_poll_cq 0 errno 0\n" * 2, [b"The script is ignored. SOFTVERBS_INJECT, line 1, column 1"])


def the_page_has_every_word():
    with open(f"{TOP}/src/script/words.def", encoding="utf-8") as file:
        words = re.findall(r'^(?:CONDITION|ACTION)\("([^"]+)", "[^"]*", \w+, "([^"]*)", "([^"]*)"\)', file.read(), re.M)
    with open(f"{TOP}/docs/user/scripts.md", encoding="utf-8") as file:
        page = file.read()
    assert len(words) > 10
    for word, form, meaning in words:
        assert f"| `{word}{' ' + form if form else ''}` | {meaning} |" in page, word


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
