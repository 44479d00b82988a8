#!/usr/bin/env python3
"""softverbs sweep: finds the call whose failure an unmodified program does not bear, and nothing in its mended twin."""
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

import cases
from cases import BUILD, SOFTVERBS, TEMPORARY, expect, softverbs
from patience import patience, until

PROGRAM = f"{BUILD}/tests/tool/swept"
CALLS = 8  # of the program, each of which can fail


def _lines(*arguments, status=1):
    return expect(softverbs("sweep", *arguments), status, None, b"").stdout.decode().splitlines()


def a_crash_a_hang_and_a_silent_loss_are_found():
    for mistake, said in ("crash", r"calls 2: ibv_alloc_pd.*: fails with ENOMEM\. The program crashes \(signal 11, .*\)\."), \
                         ("hang", r"calls 4: ibv_create_cq.*: fails with ENOMEM\. The program hangs\."), \
                         ("lose", r"calls 3: ibv_reg_mr.*: fails with ENOMEM\. The program ends with success\."):
        lines = _lines("--timeout", "3", "--", PROGRAM, mistake)
        assert len(lines) == 2 and re.fullmatch(said, lines[0]), lines
        assert re.fullmatch(r"\d+ faults, 1 of which the program did not report\.", lines[1]), lines


def the_mended_twin_has_none():
    assert _lines("--", PROGRAM, "mended", status=0) == [f"{CALLS} faults, 0 of which the program did not report."]
    assert _lines("--", PROGRAM, "status", status=0) == [f"{CALLS} faults, 0 of which the program did not report."]
    assert _lines("--", "sh", "-c", f"{PROGRAM} crash; exit $?")[0].startswith("calls 2: ibv_alloc_pd")
    assert _lines("--error", "EPERM", "--", PROGRAM, "mended", status=0)[-1].startswith(f"{CALLS} faults, 0 ")


def completions_and_events_are_swept_when_asked():
    scripted = f"{BUILD}/tests/tool/scripted"
    lines = _lines("--completions", "--", scripted, "work")
    assert [line.split(":")[0] for line in lines[:-1]] == [f"completions {n}" for n in (1, 2, 3, 4)], lines
    assert "ends in RETRY_EXC_ERR" in lines[0] and "ends with success" in lines[0], lines
    lines = _lines("--events", "--", scripted, "events")
    assert len(lines) == 4 and "event of cq" in lines[0] and "is lost" in lines[0], lines
    assert _lines("--events", "--completions", "--", PROGRAM, "mended", status=0) == ["0 faults, 0 of which the program did not report."]


def a_sweep_goes_on_where_it_ended():
    path = f"{TEMPORARY}/sweep"
    first = softverbs("sweep", "--most", "3", "--resume", path, "--", PROGRAM, "lose")
    assert first.returncode == 1 and b"calls 3" in first.stdout and b"3 runs for calls are enough" in first.stderr, first
    lines = _lines("--resume", path, "--", PROGRAM, "lose")
    assert lines == [f"{CALLS} faults, 1 of which the program did not report."], lines
    with open(path, encoding="utf-8") as file:
        assert len(file.readlines()) == CALLS


def the_report_is_junit():
    path = f"{TEMPORARY}/junit.xml"
    _lines("--junit", path, "--", PROGRAM, "lose")
    suite = ElementTree.parse(path).getroot()
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert suite.get("tests") == str(CALLS) and suite.get("failures") == "1" and len(failed) == 1 and failed[0].startswith("3 ibv_reg_mr"), failed


def what_makes_no_sense_is_refused():
    expect(softverbs("sweep"), 2, b"", [b"needs a program"])
    expect(softverbs("sweep", "--error", "ENOTHING", "--", "true"), 2, b"", [b"ENOTHING"])
    expect(softverbs("sweep", "--timeout", "soon", "--", "true"), 2, b"", [b"number above 0"])
    expect(softverbs("sweep", "--", "false"), 1, b"", [b"Without a fault the program ends with an error"])


def _logs():
    return {name for name in os.listdir("/tmp") if name.startswith("softverbs-sweep-")}


def _wait(holds):
    end = until(20)
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def _lives(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def signals_end_the_program_too():
    for number, left in (signal.SIGINT, 0), (signal.SIGTERM, 0), (signal.SIGKILL, 1):
        before, path = _logs(), f"{TEMPORARY}/pid-{number}"
        sweep = subprocess.Popen([SOFTVERBS, "sweep", "--", "sh", "-c", f"echo $$ >{path}.new; mv {path}.new {path}; exec sleep 60"],
                                 env=cases.environment())
        _wait(lambda path=path: os.path.exists(path))
        with open(path, encoding="utf-8") as file:
            pid = int(file.read())
        sweep.send_signal(number)
        assert sweep.wait(patience(20)) == -number, sweep.returncode
        _wait(lambda pid=pid: not _lives(pid))
        assert len(_logs() - before) == left, _logs() - before
        for name in _logs() - before:
            os.unlink(f"/tmp/{name}")


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
