#!/usr/bin/env python3
"""In the guest: runs the commands of a list, a line of JSON each, and appends to a file what each did. Commands that the file has are left out, so a run that
was stopped goes on where it was.

Usage: around_list.py LIST RESULTS"""
import json
import os
import signal
import subprocess
import sys

MOST = 20000  # characters of an output, the last ones


def _output(row):
    """Exit status, "late" for a command that did not end in time, and the two outputs."""
    with subprocess.Popen(["bash", "-c", row["command"]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, start_new_session=True, text=True,
                          errors="replace") as program:
        try:
            out, err = program.communicate(timeout=row["seconds"])
            return program.returncode, out, err
        except subprocess.TimeoutExpired:
            os.killpg(program.pid, signal.SIGKILL)
            return "late", *program.communicate()


def _taken(path):
    """The text of a file that a command has left, or None."""
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    os.unlink(path)
    return text


def finish(row):
    """The result of the command, and the text of the files that the row names."""
    status, out, err = _output(row)
    return {"name": row["name"], "status": status, "out": out[-MOST:], "err": err[-MOST:], "files": {path: _taken(path) for path in row["files"]}}


def main():
    wanted, results = sys.argv[1:3]
    finished = set()
    if os.path.exists(results):
        with open(results, encoding="utf-8") as file:
            finished = {json.loads(line)["name"] for line in file}
    with open(wanted, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    for row in rows:
        if row["name"] not in finished:
            line = json.dumps(finish(row))
            with open(results, "a", encoding="utf-8") as file:
                file.write(line + "\n")
            print(row["name"], flush=True)


if __name__ == "__main__":
    main()
