#!/usr/bin/env python3
"""Objects and stories of a stopped program and of core files, by gdb and lib/softverbs-gdb.py."""
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
import debugger
from cases import BUILD, SOFTVERBS, TEMPORARY, Skip, environment, expect, softverbs, until
from stories import CAUSES, LIKE_OTHERS, NO_GRH, UNASKED, compare, failed, plain

PROGRAM = f"{BUILD}/tests/tool/stories"


def _gdb(*commands, program=PROGRAM, symbols="off"):
    return debugger.gdb(*commands, program=program, symbols=symbols)


def _dump(*processes):
    return debugger.dump(*processes, program=PROGRAM)


def _take_stories(cores, path):
    for first in range(0, len(cores), 16):
        said = _gdb(*(command for core in cores[first:first + 16] for command in (f"core-file {core}", f"softverbs stories {path}")))
        assert os.path.exists(path), said[1][-1000:]


def _compare_part(name, out, numbers, wanted, err):
    """Among what gdb itself says."""
    lines = plain(out, numbers)
    begin = lines.index(wanted[0]) if wanted[0] in lines else 0
    assert lines[begin:begin + len(wanted)] == wanted, f"{name}: {lines} and {err[-1000:]}"


def every_cause_is_told_from_core_files():
    """Nothing else is left: no process, and no story in the directory."""
    path = f"{TEMPORARY}/stories-of-cores"
    cores, failures = [], {}
    for name in CAUSES.keys() - set(LIKE_OTHERS):
        with failed(name, "--log", "none") as (failures[name], end):
            cores += _dump(failures[name][0], failures[name][2])
            end()
    _take_stories(cores, path)
    for name, numbers in failures.items():
        done = expect(softverbs("why", "--from", path, "--qp", str(numbers[1]), str(numbers[0])))
        compare(f"{name}, a core file", plain(done.stdout.decode(), numbers), UNASKED[name])


def a_third_process_is_told_of_from_core_files():
    """By what it has left as it refused a message, and by its own core file where it waits for a receive."""
    with failed("short-third") as (numbers, end):
        core, = _dump(numbers[0])
        end()
    out, err = _gdb(f"core-file {core}", f"softverbs story {numbers[1]}")
    _compare_part("a third process that refused", out, numbers, CAUSES["short-third"], err)
    path = f"{TEMPORARY}/stories-of-three"
    with failed("empty-third", "--log", "none") as (numbers, end):
        ends = json.loads(expect(softverbs("why", "--json", "--qp", str(numbers[1]))).stdout)["ends"]
        cores = _dump(numbers[0], numbers[2], ends[2]["pid"])
        end()
    _take_stories(cores, path)
    done = expect(softverbs("why", "--from", path, "--qp", str(numbers[1]), str(numbers[0])))
    compare("a third process that waits", plain(done.stdout.decode(), numbers), CAUSES["empty-third"])


def a_datagram_without_room_for_the_grh_is_told_of_from_a_core_file():
    path = f"{TEMPORARY}/no-grh.stories"
    with failed("no-grh", "--log", "none") as (numbers, end):
        end_of_patience = until(20)
        while b"reason 17" not in softverbs("why", "--qp", str(numbers[3])).stdout and time.monotonic() < end_of_patience:
            time.sleep(0.1)
        _take_stories(_dump(numbers[2]), path)
        end()
    done = expect(softverbs("why", "--from", path, "--qp", str(numbers[3])))
    compare("no-grh, a core file", plain(done.stdout.decode(), numbers), NO_GRH)


def a_core_file_tells_what_the_process_tells():
    for name in ("remote-range", "receive-permission", "no-receive"):
        path = f"{TEMPORARY}/{name}.stories"
        with failed(name) as (numbers, end):
            live = json.loads(expect(softverbs("why", "--json", "--qp", str(numbers[1]))).stdout)["ends"]
            _take_stories(_dump(numbers[0], numbers[2]), path)
            end()
        ends = json.loads(expect(softverbs("why", "--json", "--from", path, "--qp", str(numbers[1]))).stdout)["ends"]
        for one, other in zip(live, ends, strict=True):
            assert _rounded(one) == _rounded(other), f"{name}:\n{one}\n{other}"


def _rounded(end):
    """Without the parts that differ: the time of the report, whether it was kept, and the small distance of two clocks."""
    def round_times(said):
        if isinstance(said, dict):
            return {key: value // 10**9 // 60 if key in ("time", "posted") else round_times(value) for key, value in said.items()}
        return [round_times(entry) for entry in said] if isinstance(said, list) else said
    return round_times({key: value for key, value in end.items() if key not in ("time", "ended")})


def a_stopped_program_is_looked_at():
    with failed("remote-range") as (numbers, end):
        out, err = _gdb(f"attach {numbers[0]}", "softverbs objects", f"softverbs story {numbers[1]:#x}", "print *qp", "print *cq", "print *mr",
                        "softverbs story 17", "softverbs objects house")
        for part in (f"stories ({numbers[0]})", "context of soft0", f"soft0 queue pair {numbers[1]:#x}, RC in ERR, connected with {numbers[3]:#x} of process",
                     "first error 108 REMOTE_ACCESS", "completion queue with handle ", "0 of 64 entries wait", "1024 bytes at 0x", "protection domain with handle "):
            assert part in out, (part, out, err)
        _compare_part("of a stopped program", out, numbers, CAUSES["remote-range"], err)
        printed = [line for line in plain(out, numbers) if line.startswith("$")]
        for part in ("$1 = queue pair c, RC in ERR", "$2 = completion queue", "$3 = memory region"):
            assert any(line.startswith(part) for line in printed), (part, printed, err)
        assert "has no queue pair 0x11" in err and "There are no objects \"house\"" in err, err
        end()


def a_program_that_crashes_is_explained():
    """The kernel's own core file, and what the other process has left."""
    with open("/proc/sys/kernel/core_pattern", encoding="utf-8") as file:
        pattern = file.read().strip()
    if not shutil.which("gdb"):
        raise Skip("gdb is not installed")
    if pattern != "core":
        raise Skip(f"the kernel hands core files elsewhere ({pattern})")
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if hard != resource.RLIM_INFINITY:
        raise Skip("core files are limited here")
    directory = f"{TEMPORARY}/crash"
    os.mkdir(directory)
    with subprocess.Popen([SOFTVERBS, "run", "--", PROGRAM, "remote-range"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=directory,
                          env=environment(), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))) as program:
        numbers = tuple(map(int, program.stdout.readline().split()))
        program.send_signal(signal.SIGABRT)
        program.wait()
    core = next(entry.path for entry in os.scandir(directory) if entry.name.startswith("core"))
    end = until(20)
    while os.path.exists(f"/proc/{numbers[2]}") and time.monotonic() < end:
        time.sleep(0.01)
    out, err = _gdb(f"core-file {core}", f"softverbs story {numbers[1]}")
    lines = plain(out, numbers)
    assert any(line.startswith("T S refused it: key K belongs") for line in lines), (out, err)
    assert "3 later work requests of C ended with IBV_WC_WR_FLUSH_ERR." in lines, (out, err)


def no_symbols_are_needed():
    """The library is as distributions ship it."""
    directory = f"{TEMPORARY}/stripped"
    os.mkdir(directory)
    library = f"{directory}/libibverbs.so.1"
    if not shutil.which("strip"):
        raise Skip("strip is not installed")
    subprocess.run(["strip", "-s", "-o", library, f"{BUILD}/lib/libibverbs.so.1"], check=True)
    with subprocess.Popen([PROGRAM, "remote-key"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env=environment(LD_LIBRARY_PATH=directory)) as program:
        numbers = tuple(map(int, program.stdout.readline().split()))
        with open(f"/proc/{program.pid}/maps", encoding="utf-8") as maps:
            assert library in maps.read()
        out, err = _gdb(f"attach {program.pid}", f"softverbs story {numbers[1]}")
        with contextlib.suppress(OSError):
            program.stdin.close()
        program.wait()
    _compare_part("without symbols", out, numbers, CAUSES["remote-key"], err)


def a_library_of_another_version_is_named():
    with open(debugger.SCRIPT, encoding="utf-8") as file:
        text = file.read()
    version = int(re.search(r'MAGIC, VERSION = b"softverbs layout ", (\d+)', text)[1])
    path = f"{TEMPORARY}/newer-gdb.py"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(f'layout ", {version}', f'layout ", {version + 1}'))
    with failed("remote-key") as (numbers, end):
        err = debugger.gdb(f"attach {numbers[0]}", "softverbs objects", program=PROGRAM, script=path)[1]
        assert f"has version {version}, and this script reads {version + 1}" in err, err
        end()


def what_has_no_softverbs_is_said_to_have_none():
    err = _gdb("starti", "softverbs objects", "kill", program=shutil.which("true"))[1]
    assert "There is no softverbs in this program" in err, err


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
