"""Pairs of tests/tool/why/connected.c, which a cause keeps from being connected, or ends: for the tests of their stories."""
import contextlib
import json
import os
import subprocess

import cases
from cases import BUILD, SOFTVERBS, softverbs

PROGRAM = f"{BUILD}/tests/tool/connected"


@contextlib.contextmanager
def made(cause, *options, env=None):
    """The numbers of client, server and port when it has happened, the client's last identifier, and how to end it."""
    if not os.path.exists(PROGRAM):
        raise cases.Skip("librdmacm is not installed")
    with subprocess.Popen([SOFTVERBS, "run", *options, "--", PROGRAM, cause], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env=cases.environment(**(env or {}))) as program:
        try:
            client, server, port = map(int, program.stdout.readline().split())
            yield (client, server, port), _identifier(client), lambda: (program.stdin.close(), program.wait())
        finally:
            program.kill()


def _identifier(pid):
    shown = json.loads(softverbs("show", "connections", "--json").stdout)
    return max(connection["id"] for process in shown if process["pid"] == pid for connection in process["connections"])
