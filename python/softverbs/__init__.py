"""Programs of RDMA verbs on a software device, for tests: run them, let things go wrong, look at what came of it.

    from softverbs import Session

    with Session() as session:
        done = session.run("ibv_devinfo", rules=["when ibv_open_device: error EIO"])
        assert done.status != 0 and done.acted("ibv_open_device")

Needs nothing but the command `softverbs`. docs/how-to/testing.md of softverbs is the tutorial, docs/reference/scripts.md has the
language of the rules.
"""
from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Union

__all__ = ["Failure", "Program", "Result", "Session", "SoftverbsError"]


class SoftverbsError(Exception):
    """The command said no: a rule that is none, a process that is not there."""


class Failure(NamedTuple):
    """Work that ended in an error: a completion that the program has got, or will get."""

    qp: int  #: number of the queue pair
    kind: str  #: "send" or "receive"
    wr_id: int
    status: str  #: "IBV_WC_RETRY_EXC_ERR"


class Result:
    """A program that has ended."""

    def __init__(self, status: int, out: str, err: str, story: Sequence[str], counters: Sequence[Dict[str, Any]]) -> None:
        self.status = status  #: the exit status; below 0: the signal that ended it
        self.out = out
        self.err = err
        self.story = list(story)  #: the lines of the log: what failed, and which rule did what
        self.counters = list(counters)  #: an object for each of its processes (docs/reference/json.md, Counts)

    def acted(self, name: str) -> int:
        """How often a rule acted on what has this name, such as "ibv_reg_mr", "work" or "RC SEND_ONLY"."""
        return _acted(self.story, name)

    def failures(self) -> List[Failure]:
        """What its work has ended in, but for success and for what was flushed behind a failure."""
        return _failures(self.story)


class Program:
    """A program that runs."""

    def __init__(self, session: "Session", process: "subprocess.Popen[str]", directory: str) -> None:
        self.session = session
        self.process = process
        self.pid = process.pid
        self._directory = directory
        self.hang: List[str] = []  #: what `why` said when it did not end in time and was killed

    def why(self) -> List[str]:
        """What it waits for, as `softverbs why` sees it now, in a second or two; nothing of one that has no device open."""
        if self.process.poll() is not None:
            return []
        try:
            return self.session.softverbs("why", str(self.pid), seconds=20).splitlines()
        except (SoftverbsError, subprocess.TimeoutExpired):
            return []

    def story(self) -> List[str]:
        """The lines of the log until now."""
        return _lines(os.path.join(self._directory, "log"))

    def acted(self, name: str) -> int:
        """As Result.acted, until now."""
        return _acted(self.story(), name)

    def failures(self) -> List[Failure]:
        """As Result.failures, until now."""
        return _failures(self.story())

    def out(self) -> str:
        """What it has written to standard output until now."""
        return _text(os.path.join(self._directory, "out"))

    def err(self) -> str:
        """What it has written to standard error until now."""
        return _text(os.path.join(self._directory, "err"))

    def say(self, text: str) -> None:
        """Writes to its standard input, which `wait` closes."""
        assert self.process.stdin
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def inject(self, *rules: str) -> List[Dict[str, Any]]:
        """Gives it these rules, which hold when this returns; all that it has now, each with "rule", "met" and "done"."""
        return self._rules(str(self.pid), *rules)

    def rules(self) -> List[Dict[str, Any]]:
        """The rules that it has, with what they met and did."""
        return self._rules("--list", str(self.pid))

    def clear(self) -> None:
        """Takes all its rules back."""
        self._rules("--clear", str(self.pid))

    def _rules(self, *arguments: str) -> List[Dict[str, Any]]:
        rules: List[Dict[str, Any]] = json.loads(self.session.softverbs("inject", "--json", *arguments))["rules"]
        return rules

    def watch(self, event: str) -> None:
        """Counts such events from now on: what stands between "when" and the colon of a rule, such as "work, nth 3"."""
        self.inject(f"when {event}: note")

    def count(self, event: str) -> int:
        """How often what is watched has come. SoftverbsError: it is not watched."""
        counts = [int(rule["done"]) for rule in self.rules() if rule["rule"] == f"when {event}: note"]
        if not counts:
            raise SoftverbsError(f'"{event}" is not watched.')
        return counts[-1]

    def wait_for(self, event: str, times: int = 1, seconds: float = 20) -> None:
        """Waits until what is watched has come so often."""
        self.until(lambda: self.count(event) >= times, seconds)

    def until(self, holds: Callable[[], Any], seconds: float = 20) -> None:
        """Waits until it holds; SoftverbsError when it does not in time."""
        deadline = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > deadline:
                raise SoftverbsError(f"It did not come in {seconds} s. Story: {self.story()}")
            time.sleep(0.02)

    def until_open(self, seconds: float = 20) -> None:
        """Waits until it has opened a device, so that it can be given rules."""
        self.until(lambda: any(process.get("pid") == self.pid for process in self.session.show()), seconds)

    def wait(self, seconds: float = 60) -> Result:
        """Waits for its end. One that does not end in time is asked why (`hang`) and killed; subprocess.TimeoutExpired then."""
        try:
            self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.hang = self.why()
            self.kill()
            raise
        counters = [json.loads(line) for line in _lines(os.path.join(self._directory, "counters"))]
        return Result(self.process.returncode, self.out(), self.err(), self.story(), counters)

    def kill(self) -> None:
        """Ends it with SIGKILL, and what it has started in its group. One that has ended may have left others there."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.process.returncode is None:
                os.killpg(self.pid, signal.SIGKILL)
            else:  # its number may be that of another process by now, and of its group
                _end_session(self.pid, self._directory)
        self.process.wait()
        if self.process.stdin:
            with contextlib.suppress(BrokenPipeError):  # of what it was told when it had ended
                self.process.stdin.close()


class Session:
    """A host of its own: its programs see each other and no others. Leaving it ends all of them."""

    def __init__(self, devices: int = 1, script: str = "", seed: Optional[int] = None, command: Optional[str] = None) -> None:
        self.directory = tempfile.mkdtemp(prefix="softverbs-")
        self.programs: List[Program] = []
        self.script = script
        self._command = command or os.environ.get("SOFTVERBS") or shutil.which("softverbs") or "softverbs"
        self._meeting = os.path.join(self.directory, "host")
        self._settings = {"SOFTVERBS_DIR": self._meeting, "SOFTVERBS_DEVICES": ",".join(f"soft{i}" for i in range(devices))}
        if seed is not None:
            self._settings["SOFTVERBS_SEED"] = str(seed)

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends all programs and removes what they have left."""
        for program in self.programs:
            program.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def environment(self, more: Optional[Mapping[str, str]] = None) -> Dict[str, str]:
        """That of its programs, but for what `softverbs run` adds."""
        return {**os.environ, **self._settings, **(more or {})}

    def start(self, *command: str, rules: Union[str, Sequence[str]] = (), capture: str = "", env: Optional[Mapping[str, str]] = None) -> Program:
        """Starts a program under the session's script and these rules. `capture`: its packets go to this file (pcapng)."""
        directory = tempfile.mkdtemp(prefix="program-", dir=self.directory)
        text = "\n".join([self.script, rules] if isinstance(rules, str) else [self.script, *rules])
        options = ["--log", "warn", "--log-file", os.path.join(directory, "log"), "--counters", os.path.join(directory, "counters")]
        options += ["--inject", text] if text.strip() else []
        options += ["--capture", capture] if capture else []
        # Files, and no pipes, which a program that writes much would fill while nobody reads.
        with open(os.path.join(directory, "out"), "wb") as out, open(os.path.join(directory, "err"), "wb") as err:
            process = subprocess.Popen([self._command, "run", *options, "--", *command], stdin=subprocess.PIPE,  # pylint: disable=consider-using-with
                                       stdout=out, stderr=err, text=True, start_new_session=True, env=self.environment(env))
        program = Program(self, process, directory)
        self.programs.append(program)
        return program

    def run(self, *command: str, rules: Union[str, Sequence[str]] = (), capture: str = "", env: Optional[Mapping[str, str]] = None,
            seconds: float = 60) -> Result:
        """Starts a program and waits for its end."""
        return self.start(*command, rules=rules, capture=capture, env=env).wait(seconds)

    def event(self, name: str, device: str = "soft0") -> None:
        """An asynchronous event such as "port-down" in all its programs: docs/reference/events.md."""
        self.softverbs("event", name, device)

    def counters(self) -> List[Dict[str, Any]]:
        """What its live programs have counted (docs/reference/json.md, Counts)."""
        counts: List[Dict[str, Any]] = json.loads(self.softverbs("stat", "--once", "--json"))
        return counts

    def show(self) -> List[Dict[str, Any]]:
        """The objects of its live programs (docs/reference/json.md, Process)."""
        processes: List[Dict[str, Any]] = json.loads(self.softverbs("show", "--json"))
        return processes

    def softverbs(self, *arguments: str, seconds: Optional[float] = None) -> str:
        """What a command of softverbs prints; SoftverbsError with what it complains of; subprocess.TimeoutExpired after so many seconds."""
        os.makedirs(self._meeting, mode=0o700, exist_ok=True)
        done = subprocess.run([self._command, *arguments], capture_output=True, text=True, check=False, env=self.environment(), timeout=seconds)
        if done.returncode:
            raise SoftverbsError(done.stderr.strip())
        return done.stdout


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def _lines(path: str) -> List[str]:
    return _text(path).splitlines()


def _end_session(leader: int, directory: str) -> None:
    """Ends the processes of this session that were started under a log file in this directory, which no others are."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            descriptor = os.pidfd_open(int(name))
            stack.callback(os.close, descriptor)
            with open(f"/proc/{name}/environ", "rb") as file:
                ours = os.fsencode(f"SOFTVERBS_LOG_FILE={directory}/") in file.read()
            if ours and os.getsid(int(name)) == leader:
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)


def _failures(story: Sequence[str]) -> List[Failure]:
    found = (re.search(r"\] qp (0x[0-9a-f]+): (\w+) of wr_id (\d+) ends in (IBV_WC_\w+)", line) for line in story)
    return [Failure(int(words[1], 16), words[2], int(words[3]), words[4]) for words in found if words]


def _acted(story: Sequence[str], name: str) -> int:
    pattern = re.compile(rf"\] {re.escape(name)}(?: of \w+ \w+)?:.* by line \d+ of the script \(reason 700\)$")
    return sum(bool(pattern.search(line)) for line in story)
