#!/usr/bin/env python3
"""`run` and `lab` say at the end, at a terminal, that no process opened a device, where that is so."""
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import PYTHON, SOFTVERBS, Skip, expect, run
from terminal import Terminal

INFO = shutil.which("ibv_devinfo") or "ibv_devinfo"
TOLD = 'softverbs: No process opened a device in {} since "{}" began.\n'
DOCTOR = '    "softverbs doctor PROGRAM" says whether a program can.\n'
STARTS = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode)"


def _screen(*command, **env):
    """The text that a terminal shows of a program, which must end well."""
    status, text = cases.at_terminal([SOFTVERBS, *command], cases.environment(**env))
    assert status == 0, text
    return text


def _launch(*command):
    return "run", "--", PYTHON, "-c", STARTS, *command


def a_launcher_whose_programs_open_nothing_hears_of_it():
    assert _screen(*_launch("true")) == TOLD.format(cases.DIRECTORY, "python3") + DOCTOR


def it_says_so_each_time_though_earlier_runs_opened_one():
    expect(run(INFO), out=None)
    assert "No process opened" in _screen(*_launch("true"))


def one_that_opens_a_device_is_enough():
    assert _screen(*_launch(INFO)) == ""
    assert "No process" not in _screen("run", "--", INFO)


def a_program_that_starts_no_other_is_left_alone():
    for program in ("true", "ibv_devices", "cat /sys/class/infiniband/soft0/ports/1/counters/port_xmit_packets", "rdma link"):
        assert "No process" not in _screen("run", "--", *program.split()), program


def mpirun_hears_of_the_option():
    text = _screen("run", "--", "bash", "-c", "exec -a mpirun bash -c '/bin/true; exit 0'")
    assert text == TOLD.format(cases.DIRECTORY, "mpirun") + '    Open MPI opens one with "--mca pml ucx".\n', text


def without_a_terminal_or_quiet_nothing_is_said():
    expect(run(PYTHON, "-c", STARTS, "true"), err=b"")
    assert _screen("run", "--quiet", *_launch("true")[1:]) == ""
    assert _screen(*_launch("true"), SOFTVERBS_LOG="none") == ""


def a_process_that_was_forked_and_not_replaced_says_nothing():
    forks = "import os, subprocess\nif os.fork():\n    os.wait()\n    os._exit(0)\nsubprocess.run('true')"
    assert _screen("run", "--", PYTHON, "-c", forks) == ""


def a_shell_of_the_user_is_left_alone():
    with Terminal(f"{SOFTVERBS} run -- bash") as terminal:
        terminal.keys("/bin/ls >/dev/null; exit", "Enter")
        assert "No process" not in terminal.until(lambda text: "[ended 0]" in text)


def a_program_that_fails_keeps_its_status():
    status, text = cases.at_terminal([SOFTVERBS, *_launch("false")], cases.environment())
    assert status == 1 and "No process opened" in text, (status, text)
    status, text = cases.at_terminal([SOFTVERBS, "run", "--", "./nowhere"], cases.environment())
    assert status == 127 and "No process opened" not in text, text


def _lab(*command, status=0):
    got, text = cases.at_terminal([SOFTVERBS, "lab", *command], cases.environment())
    if "allows no namespaces" in text or "can't be mounted" in text:
        raise Skip(text)
    assert got == status, text
    return text


def a_lab_whose_hosts_open_nothing_says_so():
    assert _lab("--hosts", "2", "--", "true") == "softverbs: lab: No process opened a device in /dev/shm of its host. \"softverbs\n" \
        "    doctor PROGRAM\" says whether a program can.\n"


def a_lab_of_which_one_host_opens_a_device_says_nothing():
    assert "No process" not in _lab("--hosts", "2", "--", "softverbs", "on", "h2", "--", INFO)
    assert "No process" not in _lab("--hosts", "2", "--quiet", "--", "true")
    assert "No process" not in _lab("--hosts", "2", "--", "./nowhere", status=127)


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
