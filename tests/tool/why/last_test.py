#!/usr/bin/env python3
"""The last lines of each process are in a file of the meeting directory, and `softverbs why --last` prints them."""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, SOFTVERBS, expect, softverbs, told

MISTAKES, HANGS = f"{BUILD}/tests/clients/mistakes", f"{BUILD}/tests/tool/hangs"
NUMBER, HEAD, LINE = 20, 56, 656  # lines, and the bytes of the head and of a line


def _files():
    return glob.glob(f"{cases.DIRECTORY}/last-*")


def _anew():
    for path in _files():
        os.unlink(path)


def _mistake(*command, **env):
    """The program's number, when it has made its mistakes and ended, and what it printed on stderr."""
    with subprocess.Popen([SOFTVERBS, "run", "--", *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=cases.environment(**env)) as process:
        _, errors = process.communicate(timeout=cases.patience(60))
        assert process.returncode == 0, errors
    return process.pid, errors


def lines_are_kept_although_nothing_is_printed():
    _anew()
    pid, errors = _mistake(MISTAKES, "short-mask")
    assert errors == b"", errors
    said = expect(softverbs("why", "--last")).stdout.decode()
    assert re.fullmatch(rf"{pid} mistakes \(ended\)\n    \d\d:\d\d:\d\d qp 0x\w+: ibv_modify_qp INIT to RTR: attr_mask lacks "
                        r"IBV_QP_MIN_RNR_TIMER \(reason 302\)\n", said), said
    expect(softverbs("why", "--last", str(pid)), out=said.encode())
    one, = json.loads(expect(softverbs("why", "--last", "--json")).stdout)
    assert one["pid"] == pid and one["ended"] is True and one["lines"][0]["text"].endswith("(reason 302)"), one
    expect(softverbs("why", "--last", "1"), 1, b"", [b"No process 1 has left a line here."])


def what_ended_last_is_the_first():
    _anew()
    pids = [_mistake(MISTAKES, "short-mask")[0] for _ in range(2)]
    assert [one["pid"] for one in json.loads(expect(softverbs("why", "--last", "--json")).stdout)] == pids[::-1]


def an_event_that_was_not_acknowledged_is_named_when_its_process_was_killed():
    """ibv_destroy_cq waits for that for ever."""
    with subprocess.Popen([SOFTVERBS, "run", "--", HANGS, "unacknowledged"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=cases.environment()) as process:
        end = cases.until(30)
        while b"(reason 357)" not in softverbs("why", "--last", str(process.pid)).stdout and time.monotonic() < end:
            time.sleep(0.2)
        process.kill()
    said = b" ".join(expect(softverbs("why", "--last", str(process.pid))).stdout.split())
    assert b"(ended)" in said and b"destroying the completion queue with handle" in said and b"waits for 1 event:" in said and b"ibv_ack_cq_events" in said, said


def a_datagram_with_another_q_key_leaves_its_line():
    """Nobody else learns it: its sender's work ends well."""
    with subprocess.Popen([SOFTVERBS, "run", "--", HANGS, "wrong-qkey"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=cases.environment()) as process:
        end = cases.until(30)
        while b"(reason 11)" not in softverbs("why", "--last", str(process.pid)).stdout and time.monotonic() < end:
            time.sleep(0.1)  # its helper thread takes the datagram
        process.kill()
    said = b" ".join(expect(softverbs("why", "--last", str(process.pid))).stdout.split())
    assert b"its Q_Key is 0x7, and this queue pair has 0x8: " in said and b"(reason 11)" in said, said


def _newcomer(mistake):
    """The number of the client. A shell outlives the program, which is neither side, and then both have ended."""
    with tempfile.TemporaryFile() as out:
        with subprocess.Popen([SOFTVERBS, "run", "--", f"{BUILD}/tests/tool/newcomer", mistake], stdin=subprocess.DEVNULL, stdout=out,
                              stderr=subprocess.DEVNULL, env=cases.environment()) as program:
            program.wait(cases.patience(60))
        out.seek(0)
        server, client = re.search(r"server (\d+) client (\d+)", out.read().decode()).groups()
    assert int(server) != program.pid and not os.path.exists(f"/proc/{client}"), "the program ends before its client"
    return client


def what_was_given_up_leaves_its_line_and_its_story():
    """The program polls for two seconds, as textbooks do, and ends."""
    for mistake, reason in ("unsignalled-given-up", 120), ("psn-given-up", 122):
        client = _newcomer(mistake)
        said = " ".join(expect(softverbs("why", "--last", client)).stdout.decode().split())
        found = re.search(rf"qp (0x\w+): (?:1 work request|queue pair)\b.*\(reason {reason}\)", said)
        assert found, said
        story = expect(softverbs("why", "--last", "--qp", found[1], client)).stdout.decode()
        assert "is RC in RTS" in story and "It had no error: " in story and f"(reason {reason})" in story, story


def a_program_without_mistakes_leaves_no_file():
    for _ in range(5):
        _anew()
        _mistake(MISTAKES, "none")
        assert not _files(), _files()
    expect(softverbs("why", "--last"), out=b"No process has left a line here.\n")


def who_wants_no_log_leaves_no_file():
    _anew()
    _mistake(MISTAKES, "short-mask", SOFTVERBS_LOG="none")
    assert not _files(), _files()


def a_file_is_its_owner_s_and_bounded():
    _anew()
    _, errors = _mistake(HANGS, "refusals", SOFTVERBS_LOG="warn")
    assert errors.count(b"(reason 318)") == 92, errors
    path, = _files()
    status = os.stat(path)
    assert status.st_mode & 0o777 == 0o600 and status.st_size <= HEAD + NUMBER * LINE, status
    one, = json.loads(expect(softverbs("why", "--last", "--json")).stdout)
    assert len(one["lines"]) == NUMBER, len(one["lines"])


def there_are_at_most_64_of_a_week():
    _anew()
    for number in range(80):
        path = f"{cases.DIRECTORY}/last-1-{number}"
        with open(path, "wb"):
            pass
        age = 8 * 24 * 3600 if number < 10 else 1000 - number
        os.utime(path, (time.time() - age,) * 2)
    _mistake(MISTAKES, "short-mask")
    names = {os.path.basename(path) for path in _files()}
    assert len(names) == 64 and names >= {f"last-1-{number}" for number in range(17, 80)}, sorted(names)
    _anew()


def what_stands_in_a_file_does_nothing_to_a_terminal():
    _anew()
    with open(f"{cases.DIRECTORY}/last-2-0", "wb") as file:
        file.write(b"garbage")
    head = b"softverbs lines\0" + (1).to_bytes(4, "little") + (77).to_bytes(4, "little") + b"\x1b[31mred".ljust(32, b"\0")
    line = (1).to_bytes(8, "little") + (2**63 - 1).to_bytes(8, "little") + b"\x1b]0;title\x07" + b"x" * 700
    with open(f"{cases.DIRECTORY}/last-3-0", "wb") as file:
        file.write(head + line)
    done = expect(softverbs("why", "--last"))
    assert b"\x1b" not in done.stdout and b"?[31mred" in done.stdout, told(done)
    _anew()


def a_file_that_can_t_be_written_harms_nothing():
    """Directories have the names that the next processes would take."""
    _anew()
    next_pid = int(expect(cases.run("sh", "-c", "echo $$")).stdout) + 1
    taken = [f"{cases.DIRECTORY}/last-{pid}-0" for pid in range(next_pid, next_pid + 3000)]
    for path in taken:
        os.mkdir(path)
    pid, errors = _mistake(HANGS, "refusals")
    for path in taken:
        os.rmdir(path)
    assert not errors, errors
    if not next_pid <= pid < next_pid + 3000:
        raise cases.Skip("other processes took all of these numbers")
    assert not _files(), _files()


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
