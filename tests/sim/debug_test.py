#!/usr/bin/env python3
"""softverbs sim --gdb: gdb has one process of a run, while time stands still, and the run is the one without gdb. Prints TAP."""
import os
import pty
import re
import select
import shutil
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tool"))
import cases
from cases import BUILD, PYTHON, SOFTVERBS, Skip, environment, expect, needs_simulated_runs, softverbs, told
from patience import until

THREADS = f"{BUILD}/tests/sim/threads"
PING_PONG = ("ibv_rc_pingpong", "-g", "0", "-n", "20")


def _needs_gdb():
    needs_simulated_runs()
    if not shutil.which("gdb"):
        raise Skip("gdb is not installed")
    done = softverbs("sim", "--gdb", "2", "--", "true", input=b"continue\n")
    if b"Operation not permitted" in done.stderr:
        raise Skip("this machine lets no debugger attach")
    if b"cripting" in done.stderr:
        raise Skip("gdb has no Python")


def _with_gdb(process, *commands, program, options=(), status=0):
    """The whole run, and its last line."""
    done = softverbs("sim", "--gdb", process, *options, "--", *program, input="\n".join(commands).encode() + b"\n", env={"DEBUGINFOD_URLS": None})
    assert done.returncode == status, told(done)
    return done, _last_line(done)


def _last_line(done):
    found = re.search(rb"softverbs: sim: Seed .* hash [0-9a-f]{16}\.", b" ".join(done.stderr.split()))
    assert found, told(done)
    return found[0]


def gdb_stops_a_process_and_the_run_is_the_one_without():
    _needs_gdb()
    for seed in ("1", "3", "6"):
        alone = softverbs("sim", "--seed", seed, "--", THREADS, "race")
        done, line = _with_gdb("2", "break count", "continue", "finish", "print first.__data.__lock", "print counter", "delete", "continue", options=("--seed", seed),
                               program=(THREADS, "race"), status=alone.returncode)
        assert b"hit Breakpoint 2" in done.stdout and b"= 0" in done.stdout and alone.stdout in done.stdout, told(done)
        assert line == _last_line(alone), (told(done), told(alone))


def signals_of_the_run_are_none_of_gdbs():
    """The client of a ping-pong: system calls, clocks, threads and processes."""
    _needs_gdb()
    program = (*PING_PONG, "---", "+500ms", *PING_PONG, "127.0.0.1")
    alone = softverbs("sim", "--seed", "4", "--", *program)
    for process in ("2", "3"):
        done, line = _with_gdb(process, "continue", options=("--seed", "4"), program=program)
        assert b"received signal" not in done.stdout and b"exited normally" in done.stdout and line == _last_line(alone), (told(done), told(alone))


def numbers_of_processes_and_threads_stay():
    _needs_gdb()
    source = "import os, sys, threading\n" \
             "for _ in range(2):\n    each = threading.Thread(target=lambda: print(threading.get_native_id(), file=sys.stderr))\n    each.start()\n    each.join()\n" \
             "child = os.fork()\nif not child:\n    os._exit(3)\nprint(child, os.waitpid(child, 0), file=sys.stderr)\n"
    done, _ = _with_gdb("2", "shell true", "continue", program=(PYTHON, "-c", source), options=("--patience", "60000"))
    said = [line for line in done.stderr.decode().splitlines() if re.fullmatch(r"\d+|\d+ \(\d+, \d+\)", line)]
    assert said == ["3", "4", "5 (5, 768)"], told(done)


def a_process_is_named_by_its_program_or_has_a_number():
    _needs_gdb()
    program = ("sh", "-c", "sleep 1; date +%Y; sleep 2")
    alone = softverbs("sim", "--", *program)
    for process, path, first in (("date", b"bin/date", 4), ("4", b"bin/dash", 4), ("sleep", b"bin/sleep", 3)):
        done, line = _with_gdb(process, "info proc", "continue", program=program)
        assert f"Attaching to process {first}".encode() in done.stdout and (path in done.stdout or process == "4"), told(done)
        assert line == _last_line(alone), (told(done), told(alone))
    done, _ = _with_gdb("9", "continue", program=("true",))
    assert b"gdb was not started: no process 9 has begun." in b" ".join(done.stderr.split()), told(done)


def limits_of_real_time_wait_for_gdb():
    _needs_gdb()
    done, _ = _with_gdb("2", "shell sleep 2", "break take_backwards", "continue", "shell sleep 2", "continue", options=("--limit", "1"), program=(THREADS, "deadlock"))
    assert b"hit Breakpoint 2" in done.stdout, told(done)


def a_deadlock_stays_until_gdb_ends():
    _needs_gdb()
    seed = next(seed for seed in map(str, range(40)) if softverbs("sim", "--seed", seed, "--", THREADS, "deadlock").returncode == 3)
    done, _ = _with_gdb("2", "continue", "thread apply all backtrace", options=("--seed", seed), program=(THREADS, "deadlock"), status=3)
    said = done.stdout.decode()
    assert "take_backwards" in said and said.count("lock") >= 2 and b"The run ends when gdb does." in b" ".join(done.stderr.split()), told(done)


def faults_stop_in_gdb():
    """A read of the time stamp counter does not."""
    _needs_gdb()
    source = "import ctypes, time; time.sleep(1); ctypes.string_at(16)"
    done, _ = _with_gdb("2", "continue", "print $_siginfo._sifields._sigfault.si_addr", "continue", program=(PYTHON, "-c", source), status=139)
    assert done.stdout.count(b"SIGSEGV") >= 2 and b"= (void *) 0x10" in done.stdout, told(done)


class _Terminal:
    """A command whose controlling terminal this is, as a shell starts it."""

    def __init__(self, *command):
        self.process, self.file = pty.fork()
        if not self.process:
            os.execve(command[0], command, environment(TERM="dumb", DEBUGINFOD_URLS=None))
        self.text = b""

    def read(self, part, key=b""):
        """Reads until the part has come, and forgets all up to it; presses the key each second."""
        end, pressed = until(60), time.monotonic()
        while part not in self.text and time.monotonic() < end:
            if select.select([self.file], [], [], 1)[0]:
                self.text += os.read(self.file, 65536)
            if key and time.monotonic() - pressed > 1:
                self.write(key)
                pressed = time.monotonic()
        assert part in self.text, (part, self.text[-2000:])
        before, _, self.text = self.text.partition(part)
        return before

    def write(self, text):
        os.write(self.file, text)

    def end(self):
        """The status of the command."""
        status = os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
        os.close(self.file)
        return status


def gdb_has_the_terminal_and_its_keys():
    _needs_gdb()
    terminal = _Terminal(SOFTVERBS, "sim", "--gdb", "2", "--", "sh", "-c", "while :; do sleep 1; done")
    terminal.read(b"(gdb) ")
    terminal.write(b"print 6 * 7\n")
    terminal.read(b"= 42")
    terminal.read(b"(gdb) ")
    terminal.write(b"continue\n")
    terminal.read(b"Continuing.")
    terminal.read(b"(gdb) ", key=b"\x03")
    terminal.write(b"detach\n")
    terminal.read(b"(gdb) ")
    keys_of, end = os.tcgetpgrp(terminal.file), until(60)
    terminal.write(b"quit\n")
    while os.tcgetpgrp(terminal.file) == keys_of and time.monotonic() < end:
        time.sleep(0.01)
    terminal.write(b"\x03")  # which now is the run's
    status = terminal.end()
    assert status == 128 + 2, (status, terminal.text)


def wrong_words_are_refused():
    for words, part in ((("--gdb", "1", "--", "true"), b"number of a process, from 2"), (("--gdb", "a/b", "--", "true"), b"program's name"),
                        (("--gdb", "2", "--seeds", "1..2", "--", "true"), b"--gdb is for one run")):
        expect(softverbs("sim", *words), 2, b"", [part])
    expect(softverbs("sim", "--gdb", "2", "--", "true", env={"PATH": "/nonexistent"}), 127, b"", [b"There is no gdb"])


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
