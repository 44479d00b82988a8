"""Hosts of a lab (`softverbs lab`), for scripts and tests.

    with Lab(2, "--link", "delay=1ms") as lab:
        server = lab.hosts[1].start("ibv_rc_pingpong", "-g", "1")
        assert lab.hosts[0].run("ibv_rc_pingpong", "-g", "1", "h2").returncode == 0

Needs no other package.
"""
from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from typing import Any, List, Optional

SELF = 125  # the exit status of a lab that could not be made


class LabError(Exception):
    """There can be no lab here; the text says why."""


class Host:
    """A host of a lab; programs on it have the environment of softverbs run there."""

    def __init__(self, lab: "Lab", number: int) -> None:
        self.lab = lab
        self.name = f"h{number}"  #: as the others know it
        self.address = f"10.77.0.{number}"

    def start(self, *command: str, **options: Any) -> "subprocess.Popen[str]":
        """Begins a program here; its streams are pipes of text unless the options of Popen say otherwise."""
        for stream in ("stdout", "stderr"):
            options.setdefault(stream, subprocess.PIPE)
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen(self.lab.on(self, *command), text=True, **options)

    def run(self, *command: str, seconds: float = 60) -> "subprocess.CompletedProcess[str]":
        """Runs a program to its end."""
        return subprocess.run(self.lab.on(self, *command), text=True, capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=seconds)


class Lab:
    """A lab of so many hosts, with options of `softverbs lab`, until it is closed."""

    def __init__(self, hosts: int, *options: str, command: Optional[str] = None) -> None:
        self._command = command or os.environ.get("SOFTVERBS") or shutil.which("softverbs") or "softverbs"
        self.name = uuid.uuid4().hex[:12]
        self.hosts: List[Host] = [Host(self, number + 1) for number in range(hosts)]
        # Ends with the standard input, so also when this process ends.
        self._lab = subprocess.Popen([self._command, "lab", "--hosts", str(hosts), "--name", self.name, *options, "--", "sh", "-c", "echo ready; exec cat"],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self._lab.stdout is not None
        if self._lab.stdout.readline() != "ready\n":
            raise LabError(self._lab.communicate()[1].strip())

    def __enter__(self) -> "Lab":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends all that runs on its hosts."""
        self._lab.communicate()

    def on(self, host: Host, *command: str) -> List[str]:
        """The command line of a program on this host."""
        return [self._command, "on", "--lab", self.name, host.name, "--", *command]

    def link(self, which: str, words: str) -> None:
        """Changes a link, as `softverbs lab link` does."""
        done = subprocess.run([self._command, "lab", "--name", self.name, "link", which, words], text=True, capture_output=True, check=False)
        if done.returncode:
            raise ValueError(done.stderr.strip())

    def links(self) -> str:
        """What is not perfect, a line each."""
        return subprocess.run([self._command, "lab", "--name", self.name, "link"], text=True, capture_output=True, check=True).stdout
