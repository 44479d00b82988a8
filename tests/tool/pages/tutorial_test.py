#!/usr/bin/env python3
"""The pages of docs/tutorial: their programs are in the tree, their commands run unchanged, and print the lines below them.

A block ```console has commands, each after a prompt, and below each what it prints at a terminal. After `$` a command ends by itself; after a name, such as
`server$`, it runs in another terminal beside the others; all of these end when a later command has the same name, or the page ends. Blanks and ends of lines
count as one blank; numbers of two digits and more may differ, except numbers of reasons; a line `...` matches anything.
"""
import contextlib
import fcntl
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, SOFTVERBS, TEMPORARY, TREE, Skip, patience, until

PROGRAM, PROGRAMS = "pingpong.c", ("pingpong.c", "both_ends.c", "efa_send.c", "sleeper.c")
PROMPT = re.compile(r"^(\w*)\$ (.*)$")
REPEATED = ("softverbs show", "softverbs why")  # these look at programs that may not be there yet


def _page(name):
    with open(f"{TREE}/docs/tutorial/{name}.md", encoding="utf-8") as file:
        return file.read()


def _blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def _commands(page):
    """Name of the terminal, command and expected text of each command of a page."""
    found = []
    for line in "".join(_blocks(page, "console")).splitlines():
        prompt = PROMPT.match(line)
        if prompt:
            found.append((prompt[1], prompt[2], []))
        else:
            found[-1][2].append(line)
    return [(name, command, "\n".join(lines)) for name, command, lines in found]


def _plain(text):
    """The text without colours and what varies from run to run."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    text = re.sub(r"0x[0-9a-f]+", "0x#", text)
    text = re.sub(r"(?<!reason )(?<!reason=)\b\d{2,}\b", "#", text)
    return " ".join(text.split())


def _is_like(text, expected):
    parts = [re.escape(_plain(part)) for part in re.split(r"^\.\.\.$", expected, flags=re.MULTILINE)]
    return re.fullmatch(r"\s*.*?\s*".join(parts), _plain(text)) is not None


class _Terminal:
    """A command at another terminal."""

    def __init__(self, command, folder, env):
        self.command, self.text = command, ""
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 120, 0, 0))
        self.process = subprocess.Popen(["bash", "-c", command], cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs,  # pylint: disable=consider-using-with
                                        start_new_session=True)
        os.close(theirs)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        with contextlib.suppress(OSError):  # the last one has closed it
            while part := os.read(self._ours, 65536):
                self.text += part.decode(errors="replace").replace("\r\n", "\n")
        os.close(self._ours)

    def wait(self):
        """Until it has ended and all that it printed is read."""
        self.process.wait(patience(60))
        self._reader.join(patience(10))
        return self.text

    def until_like(self, expected):
        end = until(30)
        while not _is_like(self.text, expected):
            assert time.monotonic() < end, f"{self.command}\nprints\n{self.text}\nand the page has\n{expected}"
            time.sleep(0.02)

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class _Run:
    """The commands of a page, in their order."""

    def __init__(self, folder, env):
        self._folder, self._env = folder, env
        self._beside = {}  # name: terminal, expected text

    def command(self, name, command, expected):
        if name:
            self._start(name, command, expected)
            return
        self._check_beside()
        end = until(30)
        while True:
            text = _Terminal(command, self._folder, self._env).wait()
            if _is_like(text, expected):
                return
            assert command.startswith(REPEATED) and time.monotonic() < end, f"{command}\nprints\n{text}\nand the page has\n{expected}"

    def _start(self, name, command, expected):
        if name in self._beside:
            self.end(True)
        terminal = _Terminal(command, self._folder, self._env)
        self._beside[name] = terminal, expected
        terminal.until_like(expected.partition("\n")[0] + "\n...")

    def _check_beside(self):
        """Commands that wait for one another have printed all that the page has, once all have started."""
        if len(self._beside) > 1:
            for terminal, expected in self._beside.values():
                terminal.until_like(expected)

    def end(self, well):
        """Ends all beside; their texts must equal the page's if all passed until now."""
        try:
            if well:
                for terminal, expected in self._beside.values():
                    terminal.until_like(expected)
        finally:
            for terminal, _ in self._beside.values():
                terminal.kill()
            self._beside.clear()


def _run(name, **more):
    """The commands of a page, in a folder that has the programs and, by their names, the page's files in Python."""
    for tool in ("cc", "bash"):
        if not shutil.which(tool):
            raise Skip(f"{tool} is not installed")
    folder = tempfile.mkdtemp(dir=TEMPORARY)
    for program in PROGRAMS:
        shutil.copy(f"{TREE}/examples/{program}", folder)
    page = _page(name)
    for text in _blocks(page, "python"):
        with open(f"{folder}/{re.search(r'`(test_[a-z_]+[.]py)`', page)[1]}", "w", encoding="utf-8") as file:
            file.write(text)
    run, well = _Run(folder, cases.environment(PATH=f"{BUILD}:{os.environ['PATH']}", SOFTVERBS_DIR=f"{folder}/node", **more)), False
    try:
        commands = _commands(page)
        assert commands
        for command in commands:
            run.command(*command)
        well = True
    finally:
        run.end(well)


def the_first_program_on_its_page_is_the_file():
    with open(f"{TREE}/examples/{PROGRAM}", encoding="utf-8") as file:
        program = [line for line in file.read().splitlines() if line]
    shown = [line for line in "".join(_blocks(_page("first-program"), "c")).splitlines() if line]
    different = next((pair for pair in zip(program, shown) if pair[0] != pair[1]), None)
    assert not different and len(program) == len(shown), (different, len(program), len(shown))


def the_first_program_runs_as_its_page_says():
    _run("first-program")


def the_first_program_keeps_the_rules_of_the_verbs():
    _run("first-program", SOFTVERBS_CHECK="error,adapter,fatal")


def the_test_in_pytest_passes_as_its_page_says():
    if not shutil.which("pytest") or subprocess.run(["pytest", "--version"], capture_output=True, check=False).returncode:
        raise Skip("pytest is not installed")
    _run("pytest", PYTHONPATH=f"{TREE}/python", PYTEST_PLUGINS="softverbs.pytest_plugin", PYTHONDONTWRITEBYTECODE="1")


def what_is_broken_on_purpose_ends_as_its_page_says():
    _run("break-it")


def the_hang_is_found_and_cured_as_its_page_says():
    _run("hang")


def the_adverse_adapter_finds_the_mistake_as_its_page_says():
    _run("adverse")


def the_race_is_found_and_mended_as_its_page_says():
    cases.needs_simulated_runs()
    _run("sim")


def programs_of_efa_run_as_their_page_says():
    for tool in ("fi_info", "fi_pingpong", "ib_send_lat"):
        if not shutil.which(tool):
            raise Skip(f"{tool} is not installed")
    if not os.path.exists("/usr/include/infiniband/efadv.h"):
        raise Skip("efadv.h is not installed")
    if subprocess.run([SOFTVERBS, "lab", "--hosts", "2", "--", "true"], capture_output=True, check=False).returncode:
        raise Skip("there are no labs on this machine")
    _run("efa", FI_EFA_ENABLE_SHM_TRANSFER="0")


def a_page_that_differs_is_seen():
    expected = "qp 0x12: ends (reason 105)\n...\nreceived 3"
    assert _is_like("qp 0x99:  ends\n  (reason 105)\nmore\nreceived 3\n", expected)
    assert not _is_like("qp 0x99: ends (reason 106)\nreceived 3", expected)
    assert not _is_like("qp 0x99: ends (reason 105)\nreceived 4", expected)
    folder = tempfile.mkdtemp(dir=TEMPORARY)
    try:
        _Run(folder, cases.environment()).command("", "echo ping", "pong")
    except AssertionError as error:
        assert "ping" in str(error) and "pong" in str(error)
    else:
        raise AssertionError("it was not seen")


if __name__ == "__main__":
    assert os.path.exists(SOFTVERBS)
    cases.main(sys.modules[__name__])
