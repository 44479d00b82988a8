#!/usr/bin/env python3
"""softverbs top: in a real terminal, and as tables."""
import contextlib
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, SOFTVERBS, TEMPORARY, expect, softverbs
from terminal import Terminal

PROGRAM = f"{BUILD}/tests/tool/scripted"


class Program:
    """A process that sends a message to itself for each line."""

    def __init__(self, *options):
        self.process = subprocess.Popen([SOFTVERBS, "run", *options, "--", PROGRAM, "lines"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=cases.environment())
        self.pid = self.process.pid
        self.process.stdout.readline()

    def send(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        return self.process.stdout.readline(), self.process.stdout.readline()

    def kill(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                stream.close()


@contextlib.contextmanager
def _program(*options):
    program = Program(*options)
    try:
        yield program
    finally:
        program.kill()


def _number(program):
    """The number of the program's queue pair."""
    return re.search(rf"^{program.pid} +\S+ +(0x\w+)", expect(softverbs("show", "qps")).stdout.decode(), re.M)[1]


def _top(*options, columns=80, lines=24, before=""):
    return Terminal(f"{before}{SOFTVERBS} top -i 0.2 {' '.join(options)}", columns, lines)


def _table(*options):
    """The rows of one table, each a list of words."""
    text = expect(softverbs("top", "--batch", "-n", "1", "-i", "0.2", *options)).stdout.decode()
    assert re.match(r"\d\d:\d\d:\d\d, \d+ process(es)?, \d+ queue pairs?", text), text
    return [line.split() for line in text.splitlines()[1:] if line]


def processes_come_and_are_killed_while_it_runs():
    os.makedirs(cases.DIRECTORY, 0o700, exist_ok=True)
    with _top() as terminal:
        terminal.until(lambda text: "No process has a softverbs device open." in text)
        with _program() as first:
            terminal.until(lambda text: f"{first.pid} scripted " in text and "1 process, 1 queue pair" in text)
            with _program() as second:
                terminal.until(lambda text: f"{second.pid} scripted " in text and f"{first.pid} scripted " in text)
            terminal.until(lambda text: f"{second.pid} scripted " not in text and f"{first.pid} scripted " in text)
        terminal.keys("q")
        terminal.until(lambda text: "[ended 0]" in text and "softverbs top:" not in text)


def rates_and_totals_are_those_of_stat():
    with _program() as program:
        for _ in range(5):
            program.send()
        (titles, row) = _table("--totals")
        cells = dict(zip(titles, row))
        assert titles[:3] == ["PID", "PROGRAM", "QPS"] and row[:3] == [str(program.pid), "scripted", "1"], (titles, row)
        counted = next(line.split() for line in expect(softverbs("stat", "--lines")).stdout.decode().splitlines() if line.endswith("bytes_sent"))
        assert cells["OUTv"] == counted[3] and int(cells["PKTS"]) >= 5, (cells, counted)
        assert cells["RPT"] == cells["RNR"] == cells["TMO"] == cells["NAK"] == "0", cells  # each column has its own counter
        with _top("--qps") as terminal:
            def rises(text):
                program.send()
                row = re.search(rf"{program.pid} scripted +0x\w+ +\S+ +RTS +(\S+)", text)
                return row and row[1] not in ("-", "0")
            terminal.until(rises)


def a_process_that_is_stopped_is_named_silent_and_keys_still_work():
    with _program() as program, _top() as terminal:
        terminal.until(lambda text: f"{program.pid} scripted " in text)
        os.kill(program.pid, signal.SIGSTOP)
        terminal.until(lambda text: f"{program.pid} silent:scripted" in text)
        terminal.keys("h")
        terminal.until(lambda text: "Columns of processes" in text)
        terminal.keys("Escape")
        terminal.until(lambda text: "silent:scripted" in text)


def enter_leads_to_a_queue_pair_and_its_story():
    with _program() as program, _top() as terminal:
        number = _number(program)
        terminal.until(lambda text: f"{program.pid} scripted " in text)
        terminal.keys("Down", "Enter")
        terminal.until(lambda text: f"{number} " in text and "STATE" in text)
        terminal.keys("Down", "Enter")
        text = terminal.until(lambda text: f"Queue pair {number} of process {program.pid}" in text)
        assert "send_wr" in text and "counted: " in text, text
        program.kill()
        terminal.until(lambda text: "It is gone: it was destroyed, or its process has ended." in text)
        terminal.keys("Escape")
        terminal.until(lambda text: "No process has a softverbs device open." in text)


def rows_are_sorted_and_filtered_by_keys():
    with _program() as first, _program() as second, _top() as terminal:
        low, high = sorted((first.pid, second.pid))
        terminal.until(lambda text: f"{low} scripted" in text and f"{high} scripted" in text)
        terminal.keys("<", "<", "<")  # from OUT/s to PID
        terminal.until(lambda text: "PIDv" in text and text.index(f"{high} scripted") < text.index(f"{low} scripted"))
        terminal.keys("r")
        terminal.until(lambda text: "PID^" in text and text.index(f"{high} scripted") > text.index(f"{low} scripted"))
        terminal.keys("/", *str(high), "Enter")
        terminal.until(lambda text: f"{high} scripted" in text and f"{low} scripted" not in text)
        terminal.keys("Escape")
        terminal.until(lambda text: f"{low} scripted" in text)


def it_fits_the_terminal_whatever_its_size():
    with _program() as program, _top("--qps") as terminal:
        text = terminal.until(lambda text: f"{program.pid} scripted" in text)
        assert max(map(len, text.splitlines())) <= 80 and "more columns" in text, text
        terminal.tmux("resize-window", "-x", "50", "-y", "8")
        text = terminal.until(lambda text: "IN/s" not in text and f"{program.pid} scripted" in text)
        assert max(map(len, text.splitlines())) <= 50 and len(text.splitlines()) <= 8, text
        terminal.tmux("resize-window", "-x", "200", "-y", "30")
        terminal.until(lambda text: "DIRECT/s" in text and f"{program.pid} scripted" in text and "more columns" not in text)
        terminal.keys("Right", "Right", "Right")  # PEER, STATE and OUT/s
        terminal.until(lambda text: "STATE" not in text and "OUT/s" not in text and "PROGRAM" in text and "IN/s" in text)


def a_signal_gives_the_screen_back():
    for number in (signal.SIGTERM, signal.SIGINT):
        with _top(before="echo before; ") as terminal:
            terminal.until(lambda text: "softverbs top:" in text)
            pid = int(terminal.tmux("list-panes", "-F", "#{pane_pid}"))
            child = subprocess.run(["pgrep", "-P", str(pid), "softverbs"], capture_output=True, text=True, check=True).stdout.split()
            os.kill(int(child[0]), number)
            text = terminal.until(lambda text: "[ended 0]" in text)
            assert "before" in text and "softverbs top:" not in text, text
            assert terminal.tmux("display", "-p", "#{cursor_flag}").strip() == "1"  # it is shown again


def without_a_terminal_it_says_what_does_without():
    expect(softverbs("top"), 2, err=[b"Standard input and output are not a terminal", b"softverbs top --batch"])
    with Terminal(f"TERM=dumb {SOFTVERBS} top") as terminal:
        terminal.until(lambda text: 'The terminal is "dumb"' in text and "[ended 2]" in text)
    for wrong, words in ((["--sort", "nothing"], b'There is no column "nothing"'), (["-n", "0"], b'"0" is not a number of tables'),
                         (["-i", "0"], b'"0" is not an interval'), (["--json"], b"softverbs stat --json"), (["x"], b'no argument "x"')):
        expect(softverbs("top", "--batch", *wrong), 2, err=[words])


def tables_are_for_files():
    with _program() as program:
        rows = _table("--qps", "--sort", "pid")
        cells = dict(zip(*rows))
        assert cells["OUTST"] == "0" and cells["WINDOW"] == "-", cells  # all has arrived, on no network
        assert rows[0][:5] == ["PIDv", "PROGRAM", "QP", "PEER", "STATE"] and rows[1][0] == str(program.pid) and rows[1][2] == _number(program), rows
        assert len(_table("--filter", "nothing-has-this")) == 1
        done = subprocess.run(["sh", "-c", f"{SOFTVERBS} top --batch -i 0.1 | head -n 2"], env=cases.environment(), capture_output=True, timeout=cases.patience(60), check=True)
        assert done.stdout.count(b"\n") == 2 and not done.stderr, done
    os.makedirs(f"{TEMPORARY}/nobody", 0o700, exist_ok=True)
    assert len(_table("--dir", f"{TEMPORARY}/nobody")) == 1


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
