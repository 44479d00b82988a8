#!/usr/bin/env python3
"""Nothing that the library writes waits for its reader: a program, and its peer, continue while a pipe is full or a terminal
is stopped, and the losses are reported."""
import contextlib
import fcntl
import os
import pty
import subprocess
import sys
import tempfile
import termios

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, SOFTVERBS, patience

MISTAKES, HANGS = f"{BUILD}/tests/clients/mistakes", f"{BUILD}/tests/tool/hangs"


def _fill(descriptor):
    """With lines of a program, until there is no room for one more byte; the descriptor blocks as before."""
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    for size in (4096, 1):
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(descriptor, b"." * size)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags)


def _drained(descriptor):
    os.set_blocking(descriptor, False)
    text = b""
    with contextlib.suppress(BlockingIOError, OSError):
        while part := os.read(descriptor, 65536):
            text += part
    return text.decode().replace("\r", "").strip(".")


def _ends(stderr, *arguments, **env):
    """The output of a program of two processes, where one names a key that does not exist; it must end by itself."""
    done = subprocess.run([SOFTVERBS, "run", "--log", "info", "--", MISTAKES, "wrong-rkey", *arguments], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=stderr, env=cases.environment(**env), timeout=patience(30), check=True)
    assert b"remote access error" in done.stdout, done.stdout


def a_standard_error_that_is_full_stops_no_process():
    ours, theirs = os.pipe()
    _fill(theirs)
    _ends(theirs)
    assert _drained(ours) == ""
    os.close(theirs)
    os.close(ours)


def a_terminal_that_is_stopped_stops_no_process():
    ours, theirs = pty.openpty()
    termios.tcflow(theirs, termios.TCOOFF)
    _ends(theirs)
    assert _drained(ours) == ""
    termios.tcflow(theirs, termios.TCOON)
    _ends(theirs)
    assert "(reason 205)" in _drained(ours)
    os.close(theirs)
    os.close(ours)


def lines_come_when_there_is_room_again():
    """The program makes a hundred mistakes, sleeps, and makes the last ones; all its lines are short of a pipe."""
    ours, theirs = os.pipe()
    _fill(theirs)
    with subprocess.Popen([SOFTVERBS, "run", "--log", "info", "--", HANGS, "refusals"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=theirs, env=cases.environment()) as program:
        os.close(theirs)
        os.set_blocking(ours, True)
        text = b""
        while part := os.read(ours, 65536):
            text += part
        program.wait()
    os.close(ours)
    assert text.count(b"(reason 318)") >= 5, text[-2000:]


def _unread(name):
    """A named pipe that is open for reading, and full."""
    path = os.path.join(tempfile.mkdtemp(prefix="unread-", dir=cases.TEMPORARY), name)
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(path, os.O_WRONLY)
    _fill(writer)
    return path, (reader, writer)


def _goes_on_beside(setting, says, **env):
    path, ends = _unread(setting)
    with tempfile.TemporaryFile(dir=cases.TEMPORARY) as stderr:
        _ends(stderr, **{setting: path}, **env)
        stderr.seek(0)
        text = stderr.read().decode()
    for end in ends:
        os.close(end)
    assert not says or f'can\'t be written to "{path}": Resource temporarily unavailable' in text or f"{path} can't be written: Resource" in text, text


def a_named_log_that_is_not_read_stops_no_process():
    _goes_on_beside("SOFTVERBS_LOG_FILE", False)


def stories_that_are_not_read_stop_no_process():
    _goes_on_beside("SOFTVERBS_STORY", True)


def counters_that_are_not_read_stop_no_process():
    _goes_on_beside("SOFTVERBS_COUNTERS", True)


def findings_that_are_not_read_stop_no_process():
    _goes_on_beside("SOFTVERBS_CHECK_REPORT", True, SOFTVERBS_CHECK="notes")


def captures_and_recordings_are_never_pipes():
    """They are read back, so that nothing reads them as they grow; a file may wait for its disk only."""
    for setting in ("SOFTVERBS_CAPTURE", "SOFTVERBS_RECORD"):
        path, ends = _unread(setting)
        done = cases.softverbs("run", "--log", "info", "--", MISTAKES, "none", env={setting: path})
        assert b"Illegal seek" in done.stderr, done
        for end in ends:
            os.close(end)


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
