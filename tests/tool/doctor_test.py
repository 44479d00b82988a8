#!/usr/bin/env python3
"""softverbs doctor: one line for each check, a sentence about cost and cure for what this machine lacks."""
import ctypes
import glob
import os
import platform
import re
import resource
import struct
import subprocess
import sys

import cases
from cases import SOFTVERBS, Skip, TEMPORARY, expect, softverbs

SYSTEM_CALLS = {"x86_64": {"process_vm_readv": 310, "memfd_create": 319},
                "aarch64": {"process_vm_readv": 270, "memfd_create": 279}}


def _lines(done):
    found = re.findall(r"^(ok|warning|problem) +(\S+(?: \S+)*?)  +(\S.*[.)])$", done.stdout.decode(), re.MULTILINE)
    assert len(found) == done.stdout.count(b"\n") >= 12, cases.told(done)
    return {name: (verdict, sentence) for verdict, name, sentence in found}


def _refusing(call):
    """A function for the child to call: from then on the kernel refuses this system call with EPERM."""
    number = SYSTEM_CALLS.get(platform.machine(), {}).get(call)
    if number is None:
        raise Skip(f"the number of {call} on {platform.machine()} is not known to this test")
    program = b"".join(struct.pack("HBBI", *line) for line in (
        (0x20, 0, 0, 0),             # load the number of the system call
        (0x15, 0, 1, number),        # is it this one?
        (0x06, 0, 0, 0x00050001),    # then SECCOMP_RET_ERRNO with EPERM
        (0x06, 0, 0, 0x7FFF0000)))   # else SECCOMP_RET_ALLOW
    text = ctypes.create_string_buffer(program)
    filter_ = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(text)))
    libc = ctypes.CDLL(None, use_errno=True)

    def refuse():  # PR_SET_NO_NEW_PRIVS, then PR_SET_SECCOMP with SECCOMP_MODE_FILTER
        assert text.raw and not libc.prctl(38, 1, 0, 0, 0) and not libc.prctl(22, 2, filter_, 0, 0)
    return refuse


def _doctor(**options):
    try:
        return subprocess.run([SOFTVERBS, "doctor"], capture_output=True, env=cases.environment(**options.pop("env", {})),
                              check=False, **options)
    except subprocess.SubprocessError as error:
        raise Skip("this machine does not let a process limit itself") from error


def a_good_machine_is_said_to_be_good():
    done = _doctor()
    lines = _lines(done)
    assert done.returncode == 0 and done.stderr == b"", cases.told(done)
    for name in ("library", "directory", "kernel paths", "sealed memory"):
        assert lines[name][0] == "ok", lines[name]
    assert f"{cases.BUILD}/lib/libibverbs.so.1" in lines["library"][1] and cases.DIRECTORY in lines["directory"][1]


def refused_reading_is_a_warning_with_its_cost():
    done = _doctor(preexec_fn=_refusing("process_vm_readv"))
    verdict, sentence = _lines(done)["single copy"]
    assert verdict == "warning" and "copied twice" in sentence and "seccomp" in sentence and done.returncode == 0, sentence


def refused_memory_is_a_problem():
    done = _doctor(preexec_fn=_refusing("memfd_create"))
    verdict, sentence = _lines(done)["sealed memory"]
    assert verdict == "problem" and "Operation not permitted" in sentence and done.returncode == 1, sentence


def few_descriptors_are_a_warning():
    done = _doctor(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60)))
    verdict, sentence = _lines(done)["descriptors"]
    assert verdict == "warning" and "60 files" in sentence and "ulimit -n" in sentence and done.returncode == 0, sentence


def one_processor_is_a_warning():
    one = {min(os.sched_getaffinity(0))}
    verdict, sentence = _lines(_doctor(preexec_fn=lambda: os.sched_setaffinity(0, one)))["processors"]
    assert verdict == "warning" and "one processor" in sentence, sentence


def an_impossible_directory_is_a_problem():
    done = _doctor(env={"SOFTVERBS_DIR": "/proc/softverbs"})
    assert _lines(done)["directory"][0] == "problem" and done.returncode == 1, cases.told(done)


def a_missing_library_is_a_problem():
    tool = cases.installed(f"{TEMPORARY}/poor")
    for name in os.listdir(f"{TEMPORARY}/poor/{cases.LIBRARY}"):
        if name.startswith("libibverbs"):
            os.unlink(f"{TEMPORARY}/poor/{cases.LIBRARY}/{name}")
    done = softverbs("doctor", tool=tool)
    assert _lines(done)["library"][0] == "problem" and done.returncode == 1, cases.told(done)


def _with_library(directory, edit):
    """A softverbs whose library has other bytes."""
    tool = cases.installed(f"{TEMPORARY}/{directory}")
    path = f"{TEMPORARY}/{directory}/{cases.LIBRARY}/libibverbs.so.1"
    with open(path, "rb") as file:
        data = file.read()
    os.unlink(path)
    with open(path, "wb") as file:
        file.write(edit(data))
    return _lines(softverbs("doctor", tool=tool))["symbols"]


def it_compares_our_symbols_with_those_installed():
    if not glob.glob("/usr/lib/*/libibverbs.so.1"):
        raise Skip("no libibverbs.so.1 is installed")
    verdict, sentence = _lines(_doctor())["symbols"]
    assert verdict == "ok" and "every symbol of /" in sentence and " 0 libraries" not in sentence, sentence


def a_symbol_that_is_missing_is_named_with_those_who_need_it():
    if not glob.glob("/usr/lib/*/libibverbs/libmlx5-rdmav34.so"):
        raise Skip("the provider library of mlx5 for node 34 is not installed")
    verdict, sentence = _with_library("without", lambda data: data.replace(b"\0ibv_cmd_alloc_pd\0", b"\0ibv_cmd_other_pd\0"))
    assert verdict == "warning" and "ibv_cmd_alloc_pd@IBVERBS_PRIVATE_34" in sentence and "-rdmav34.so" in sentence and \
        " more" in sentence, sentence


def a_node_that_is_missing_is_seen_too():
    verdict, sentence = _with_library("node", lambda data: data.replace(b"\0IBVERBS_1.14\0", b"\0IBVERBS_9.99\0"))
    assert verdict == "warning" and "ibv_query_qp_data_in_order@IBVERBS_1.14" in sentence, sentence


def an_ordinary_user_can_ask_it():
    tool = cases.installed(f"{TEMPORARY}/theirs")
    done = softverbs("doctor", tool=tool, user="nobody")
    assert _lines(done)["directory"][0] == "ok" and done.returncode == 0, cases.told(done)


def it_takes_no_argument():
    expect(softverbs("doctor", "now"), 2, b"", [b"no argument"])


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
