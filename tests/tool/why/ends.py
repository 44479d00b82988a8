"""Two ends of a connection. Each is a separate program that obeys its input (commanded.c), on one host or on two."""
import os
import subprocess
import time

import cases
from cases import BUILD, SOFTVERBS, TEMPORARY


class End:
    """One of the two programs. It ends with its test."""

    def __init__(self, name, *command, host=None, directory=cases.DIRECTORY):
        self.log = f"{TEMPORARY}/{name}.log"
        self.there = ["ip", "netns", "exec", host] if host else []
        self.environment = cases.environment(SOFTVERBS_DIR=directory)
        command = [SOFTVERBS, "run", "--log", "info", "--log-file", self.log, *(["--net", "eth0"] if host else []), "--", *command]
        self.process = subprocess.Popen([*self.there, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        env=self.environment)

    @property
    def pid(self):
        return self.process.pid

    def hear(self):
        return self.process.stdout.readline().strip()

    def tell(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def ask(self, *arguments):
        done = subprocess.run([*self.there, SOFTVERBS, *arguments], env=self.environment, capture_output=True, text=True, check=False)
        return " ".join((done.stdout + done.stderr).split())

    def says(self, words, *arguments):
        """Waits until all words are in the answer; it is a report of a moment."""
        until, said = cases.until(30), self.ask(*arguments)
        while not all(word in said for word in words) and time.monotonic() < until:
            time.sleep(0.2)
            said = self.ask(*arguments)
        assert all(word in said for word in words), (words, said)

    def end(self):
        self.process.kill()
        self.process.wait()


def connect(name, kind, timeout, hosts=False):
    """A server and a client, connected by a queue pair of this kind; each has posted a receive."""
    for end in ("server", "client") if hosts else ():
        os.makedirs(f"{TEMPORARY}/{end}", 0o700, exist_ok=True)
    server, client = [End(f"{name}-{end}", f"{BUILD}/tests/tool/commanded", kind, str(timeout),
                           **({"host": end, "directory": f"{TEMPORARY}/{end}"} if hosts else {})) for end in ("server", "client")]
    numbers = [end.hear().split() for end in (server, client)]
    server.number, client.number = [number[1] for number in numbers]
    for end, (_, *others) in ((server, numbers[1]), (client, numbers[0])):
        end.tell(" ".join(others))
    assert (server.hear(), client.hear()) == ("connected", "connected")
    return server, client
