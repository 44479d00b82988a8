"""A program in a real terminal: a separate server of tmux, with keys that are sent and a screen that is read."""
import os
import shutil
import subprocess
import time

import cases


class Terminal:
    """`command` is a line of sh. The terminal stays when it has ended, and shows its status."""

    def __init__(self, command, columns=80, lines=24):
        if not shutil.which("tmux"):
            raise cases.Skip("tmux is not installed")
        self.socket = f"{cases.TEMPORARY}/tmux-{time.monotonic_ns()}"
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(lines),
                  f"{command}; echo \"[ended $?]\"; sleep 1000")

    def tmux(self, *arguments):
        done = subprocess.run(["tmux", "-S", self.socket, *arguments], env=cases.environment(TERM="screen", LC_ALL="C.UTF-8"),
                              capture_output=True, text=True, check=False, timeout=cases.patience(30))
        assert done.returncode == 0, done
        return done.stdout

    def screen(self, scrolled=0):
        """The text, each line as wide as the terminal at most; with lines that have left it above."""
        return self.tmux("capture-pane", "-p", "-J", *(["-S", f"-{scrolled}"] if scrolled else []))

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def until(self, holds, scrolled=0, seconds=30):
        deadline = cases.until(seconds)
        while True:
            text = self.screen(scrolled)
            if holds(text):
                return text
            assert time.monotonic() < deadline, text
            time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tmux("kill-server")
        if os.path.exists(self.socket):
            os.unlink(self.socket)
