#!/usr/bin/env python3
"""Runs the clients of Debian 12, each row by itself, and writes docs/evidence/clients.md: `make clients`.

    main.py [WORDS]    the rows whose family or name holds the words, all without; the page has of the others their last result
    main.py --short    in TAP, the rows that take seconds and whose packages `make check` installs
    main.py --checked [WORDS]    the rows under the checker, as checked.py has it

A row has its own network, processes and /dev/shm where the machine allows it, so that nothing of it outlives its time limit.
Exit status 1 when a row failed.
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from row import FAILED, OK, OWN, SKIPPED, Place, TwoHosts, missing
import family_ceph
import family_cm
import family_efa
import family_libfabric
import family_mlx5
import family_mpi
import family_perftest
import family_ucx
import family_verbs
import checked
import page
from clients import Failure, Skip

FAMILIES = (family_verbs, family_perftest, family_ucx, family_mpi, family_libfabric, family_cm, family_efa, family_mlx5, family_ceph)
MARK = "result of the row: "
FRESH = "mount -t tmpfs none /dev/shm && mount -t tmpfs none /run && ip link set lo up"


def all_rows():
    return [row for family in FAMILIES for row in family.rows()]


def isolation():
    """The command that gives a row its own of everything; without rights to that, no words."""
    for options in ([], ["--user", "--map-root-user"]):
        command = ["unshare", *options, "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", f"{FRESH} && exec \"$@\"", "row"]
        if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
            return command
    return []


def judge(row, run):
    """The verdict on a row, and what there is to say of it."""
    try:
        return OK, run() or ""
    except Skip as why:
        return SKIPPED, str(why)
    except (Failure, OSError, subprocess.SubprocessError) as why:
        if row.fault and re.search(row.fault.pattern, str(why)):
            return OWN, f"{row.fault.why} ({row.fault.source})"
        return FAILED, str(why)


def run_here(name):
    """Runs in the separate process of a row."""
    row = next(row for row in all_rows() if row.name == name)
    place = TwoHosts() if row.name.endswith("two hosts") else Place()
    print("\n" + MARK + json.dumps(judge(row, lambda: row.run(place))), flush=True)


def run_apart(row, command, extra=None):
    """Runs a row in a separate process, which is killed with all that it has started. `extra` is added to its environment."""
    absent = missing(row)
    if absent:
        return SKIPPED, f"not installed: {' '.join(absent)}"
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([*command, sys.executable, os.path.abspath(__file__), "--one", row.name], stdin=subprocess.DEVNULL,
                                   stdout=out, stderr=subprocess.STDOUT, start_new_session=True, env={**os.environ, **(extra or {})})
        try:
            process.wait(row.seconds)
        except subprocess.TimeoutExpired:
            return judge(row, lambda: late(row))
        finally:
            stop(process)
        out.seek(0)
        said = out.read().decode(errors="replace")
    found = re.search(f"^{MARK}(.*)$", said, re.MULTILINE)
    return tuple(json.loads(found.group(1))) if found else (FAILED, "no result: " + said[-2000:])


def late(row):
    raise Failure(f"not at its end after {row.seconds} seconds")


def stop(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def short():
    """Reports as the tests of `make check`."""
    rows, command, failed = [row for row in all_rows() if row.short], isolation(), 0
    print(f"1..{len(rows)}", flush=True)
    for number, row in enumerate(rows, 1):
        verdict, said = run_apart(row, command)
        failed += verdict == FAILED
        print(f"{'not ok' if verdict == FAILED else 'ok'} {number} - {row.name}{f' # SKIP {said}' if verdict == SKIPPED else ''}", flush=True)
        if verdict == FAILED:
            print("".join(f"# {line}\n" for line in said.splitlines()), end="", file=sys.stderr, flush=True)
    return 1 if failed else 0


def table(words):
    rows, command = [row for row in all_rows() if words in row.family or words in row.name], isolation()
    results, commit = [], page.commit()
    for row in rows:
        began = time.monotonic()
        verdict, said = run_apart(row, command)
        results.append((row, verdict, said))
        print(f"{verdict}\t{row.family}: {row.name}\t{time.monotonic() - began:.1f} s" + (f"\n{said}" if verdict != OK else ""), flush=True)
    page.remember({row.name: (verdict, said, commit) for row, verdict, said in results}, fresh=not words)
    page.write(all_rows())
    counts = [f"{sum(verdict == each for _, verdict, _ in results)} {each}" for each in (OK, FAILED, OWN, SKIPPED)]
    print(f"{len(results)} rows: {', '.join(counts)}")
    return 1 if any(verdict == FAILED for _, verdict, _ in results) else 0


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["--one"]:
        return run_here(arguments[1])
    if arguments[:1] == ["--checked"]:
        command = isolation()
        return checked.table(all_rows(), " ".join(arguments[1:]), lambda row, extra: run_apart(row, command, extra))
    return short() if arguments == ["--short"] else table(" ".join(arguments))


if __name__ == "__main__":
    sys.exit(main())
