#!/usr/bin/env python3
"""softverbs sweep: finds the call whose failure an unmodified program does not bear, and nothing in its mended twin."""
import contextlib
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, SOFTVERBS, TEMPORARY, TREE, Skip, expect, softverbs
from patience import patience, until

PROGRAM = f"{BUILD}/tests/tool/swept"
CALLS = 8  # of the program, each may fail
OF_CALLS = ("a_crash_a_hang_and_a_silent_loss_are_found", "the_mended_twin_has_none")
SWEEP = ("run", "-q", "--", SOFTVERBS, "sweep", "--around") if cases.AROUND else ("sweep",)


def _lines(*arguments, status=1):
    return expect(softverbs(*SWEEP, *arguments), status, None, b"").stdout.decode().splitlines()


def a_crash_a_hang_and_a_silent_loss_are_found():
    # One run lasts as long as its limit; each of the others must end before, also on a machine that is busy.
    for mistake, limit, said in ("crash", 60, r"calls at swept\+0x\w+, 1 of 1: ibv_alloc_pd.*: fails with ENOMEM\. The program crashes \(signal 11, .*\)\."), \
                                ("hang", 6, r"calls at swept\+0x\w+, 1 of 1: ibv_create_cq.*: fails with ENOMEM\. The program hangs\."), \
                                ("lose", 60, r"calls at swept\+0x\w+, 1 of 1: ibv_reg_mr.*: fails with ENOMEM\. The program ends with success\."):
        lines = _lines("--timeout", str(round(patience(limit))), "--", PROGRAM, mistake)
        assert len(lines) == 2 and re.fullmatch(said, lines[0]), lines
        assert re.fullmatch(r"\d+ faults, 1 unreported by the program\.", lines[1]), lines


def the_mended_twin_has_none():
    assert _lines("--", PROGRAM, "mended", status=0) == [f"{CALLS} faults, 0 unreported by the program."]
    assert _lines("--", PROGRAM, "status", status=0) == [f"{CALLS} faults, 0 unreported by the program."]
    assert ": ibv_alloc_pd" in _lines("--", "sh", "-c", f"{PROGRAM} crash; exit $?")[0]
    assert _lines("--error", "EPERM", "--", PROGRAM, "mended", status=0)[-1].startswith(f"{CALLS} faults, 0 ")


def completions_and_events_are_swept_when_asked():
    scripted = f"{BUILD}/tests/tool/scripted"
    lines = _lines("--completions", "--", scripted, "work")
    numbers = [re.match(r"completions at scripted\+0x\w+, (\d) of 4: ", line)[1] for line in lines[:-1]]
    assert numbers == ["1", "4", "2"], lines  # the first, the last, one in the middle
    assert "ends in RETRY_EXC_ERR" in lines[0] and "ends with success" in lines[0], lines
    lines = _lines("--events", "--", PROGRAM, "spurious")
    assert len(lines) == 2 and "event of cq" in lines[0] and "comes twice" in lines[0] and "ends with an error" in lines[0], lines
    assert _lines("--events", "--", PROGRAM, "looks", status=0) == ["1 faults, 0 unreported by the program."]
    assert _lines("--events", "--", scripted, "events", status=0) == ["3 faults, 0 unreported by the program."]
    assert _lines("--events", "--completions", "--", PROGRAM, "mended", status=0) == ["0 faults, 0 unreported by the program."]


def a_release_that_fails_unnoticed_is_no_loss():
    lines = _lines("--", "sh", "-c", f"{PROGRAM} mended; true")
    assert len(lines) == 4 + 1 and all(re.match(r"calls at \S+, 1 of 1: ibv_(open_device|alloc_pd|reg_mr|create_cq)", line) for line in lines[:-1]), lines


def a_leak_is_found_by_the_sanitizer():
    compiler = shutil.which("gcc") or shutil.which("clang")
    program = f"{TEMPORARY}/swept-address"
    empty = [compiler or "", "-fsanitize=address", "-x", "c", "-include", "infiniband/verbs.h", "-", "-o", program, "-libverbs"]
    if not compiler or subprocess.run(empty, input=b"int main() { return 0; }", capture_output=True, check=False).returncode:
        raise Skip("there is no compiler with AddressSanitizer")
    subprocess.run([compiler, "-g", "-fsanitize=address", f"-I{TREE}/tests/tool", f"{TREE}/tests/tool/disturb/swept.c", "-o", program, "-libverbs"], check=True)
    lines = _lines("--", program, "leak")
    # the sanitizer takes memory for reachable while a word of a stack that is not used any more leads to it
    assert CALLS - 3 <= len(lines) <= CALLS and all("The program leaks memory." in line for line in lines[:-1]), lines
    assert _lines("--", program, "mended", status=0) == [f"{CALLS} faults, 0 unreported by the program."]


def a_long_line_of_arguments_is_passed_whole():
    many = [str(n) for n in range(1000)]
    assert _lines("--", "sh", "-c", "[ $# = 1000 ]", "sh", *many, status=0) == ["0 faults, 0 unreported by the program."]


def a_sweep_goes_on_where_it_ended():
    path = f"{TEMPORARY}/sweep"
    first = softverbs("sweep", "--most", "3", "--resume", path, "--", PROGRAM, "lose")
    assert first.returncode == 1 and b": ibv_reg_mr" in first.stdout and b"3 runs for calls are enough" in first.stderr, first
    lines = _lines("--resume", path, "--", PROGRAM, "lose")
    assert lines == [f"{CALLS} faults, 1 unreported by the program."], lines
    with open(path, encoding="utf-8") as file:
        assert len(file.readlines()) == 1 + CALLS
    expect(softverbs("sweep", "--resume", path, "--", PROGRAM, "mended"), 1, b"", [b"it is of another program"])
    expect(softverbs("sweep", "--resume", __file__, "--", PROGRAM, "mended"), 1, b"", [b"it is of another program"])


def the_report_is_junit():
    path = f"{TEMPORARY}/junit.xml"
    _lines("--junit", path, "--", PROGRAM, "lose")
    suite = ElementTree.parse(path).getroot()
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert suite.get("tests") == str(CALLS) and suite.get("failures") == "1" and len(failed) == 1 and re.fullmatch(r"ibv_reg_mr of pd \d+: fails with ENOMEM \(calls at swept\+0x\w+, 1 of 1\)", failed[0]), failed


def what_makes_no_sense_is_refused():
    expect(softverbs("sweep"), 2, b"", [b"needs a program"])
    expect(softverbs("sweep", "--error", "ENOTHING", "--", "true"), 2, b"", [b"ENOTHING"])
    expect(softverbs("sweep", "--timeout", "soon", "--", "true"), 2, b"", [b"whole number above 0"])
    expect(softverbs("sweep", "--", "false"), 1, b"", [b"Without a fault the program ends with an error"])


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


def calls_of_a_place_fail_at_first_at_last_and_in_between():
    """A program with a hundred calls from one line and thirty from another has six faults there, in a short time."""
    lines = _lines("--junit", f"{TEMPORARY}/places.xml", "--", PROGRAM, "places", status=0)
    assert lines == ["8 faults, 0 unreported by the program."], lines
    names = [case.get("name") for case in ElementTree.parse(f"{TEMPORARY}/places.xml").getroot()]
    regions = [re.search(r"ibv_reg_mr of .*\((calls at \S+), (\d+) of (\d+)\)", name) for name in names]
    places = [tuple(map(int, match.groups()[1:])) for match in regions if match]
    assert sorted(places) == [(1, 30), (1, 100), (15, 30), (30, 30), (50, 100), (100, 100)], names
    assert len({match[1] for match in regions if match}) == 1, names  # the function of the program around the call


def a_program_that_goes_on_another_way_loses_nothing():
    """It writes what it writes without the fault, among other lines; or it posts what it could not post."""
    another = ["The program went on another way after 8 faults.", f"{CALLS} faults, 0 unreported by the program."]
    assert _lines("--", "sh", "-c", f"{PROGRAM} mended || echo no device 7; echo sum 42", status=0) == another
    assert len(_lines("--", "sh", "-c", f"{PROGRAM} mended && echo sum 42; true")) == 5
    lines = _lines("--", PROGRAM, "again", status=0)
    assert lines[0] == "The program went on another way after 1 fault." and lines[1].endswith(" 0 unreported by the program."), lines
    lines = _lines("--", PROGRAM, "forgets")
    assert len(lines) == 2 and ": ibv_post_recv of " in lines[0] and "ends with success" in lines[0], lines


def the_sum_is_there_when_the_time_is_up():
    # Without a fault it ends at once; with the first it sleeps, and the limit ends the sweep.
    done = softverbs("sweep", "--timeout", "500", "--seconds", str(round(patience(2))), "--", "sh", "-c", f"{PROGRAM} mended || sleep 600")
    lines = expect(done, 0, None, b"").stdout.decode().splitlines()
    assert lines == ["8 of 8 faults were not tried, as the time was up.", "0 faults, 0 unreported by the program."], lines


def the_time_is_that_of_the_run_without_a_fault_too():
    done = softverbs("sweep", "--seconds", "1", "--", "sleep", "600")
    expect(done, 1, b"", [b"Without a fault the program did not end within 1 s (--seconds)"])


def the_sum_is_there_when_a_signal_ends_the_sweep():
    for number in signal.SIGINT, signal.SIGTERM:
        path, report = f"{TEMPORARY}/summed-{number}", f"{TEMPORARY}/summed-{number}.xml"
        sweep = subprocess.Popen([SOFTVERBS, "sweep", "--junit", report, "--", "sh", "-c", f"{PROGRAM} mended || {{ >{path}; sleep 600; }}"],
                                 env=cases.environment(), stdout=subprocess.PIPE)
        _wait(lambda path=path: os.path.exists(path))
        sweep.send_signal(number)
        out = sweep.communicate(timeout=patience(20))[0].decode().splitlines()
        assert sweep.returncode == -number and out == ["8 of 8 faults were not tried, as a signal ended the sweep.", "0 faults, 0 unreported by the program."], out
        assert ElementTree.parse(report).getroot().get("tests") == "0"


def progress_is_shown_at_a_terminal():
    ours, programs = pty.openpty()
    done = subprocess.run([SOFTVERBS, "sweep", "--most", "2", "--", "sh", "-c", f"sleep 0.6; {PROGRAM} mended"], env=cases.environment(),
                          stdout=subprocess.PIPE, stderr=programs, check=False, timeout=patience(60))
    os.close(programs)
    shown = os.read(ours, 1 << 16)
    os.close(ours)
    assert done.stdout == b"2 faults, 0 unreported by the program.\n", done
    assert re.search(rb"\r[01] of 2 faults, \d+ s ", shown) and b"2 runs for calls are enough" in shown, shown


def what_a_program_starts_ends_with_each_run():
    path = f"{TEMPORARY}/left"
    done = softverbs("sweep", "--timeout", str(round(patience(3))), "--most", "1", "--", "sh", "-c",
                     f"{PROGRAM} mended || {{ setsid sh -c 'echo $$ >{path}; exec sleep 600' & sleep 60; }}")
    assert b"The program hangs." in expect(done, 1, None, None).stdout, done
    with open(path, encoding="utf-8") as file:
        pid = int(file.read())
    _wait(lambda: not _lives(pid))


def what_a_shell_had_started_before_goes_on():
    """The shell becomes the command, whose children they are then."""
    path = f"{TEMPORARY}/went-on"
    line = f"(sleep 3; echo on >{path}) & exec {SOFTVERBS} sweep --most 1 -- true"
    subprocess.run(["sh", "-c", line], env=cases.environment(), check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _wait(lambda: os.path.exists(path))


def _environment(pid):
    """The environment of the process, which is empty for a moment while it becomes another program (execve)."""
    with open(f"/proc/{pid}/environ", "rb") as file:
        return file.read()


def signals_end_the_program_too():
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGKILL:
        path = f"{TEMPORARY}/pid-{number}"
        sweep = subprocess.Popen([SOFTVERBS, "sweep", "--", "sh", "-c", f"echo $$ >{path}.new; mv {path}.new {path}; exec sleep 60"],
                                 env=cases.environment())
        _wait(lambda path=path: os.path.exists(path))
        with open(path, encoding="utf-8") as file:
            pid = int(file.read())
        _wait(lambda pid=pid, log=b"\0SOFTVERBS_LOG_FILE=/proc/%d/fd/" % sweep.pid: log in b"\0" + _environment(pid))  # a command that is killed leaves no file
        sweep.send_signal(number)
        assert sweep.wait(patience(20)) == -number, sweep.returncode
        _wait(lambda pid=pid: not _lives(pid))


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
