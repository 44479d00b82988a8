#!/usr/bin/env python3
"""The examples of error paths run as they are: in CTest, Rust and Go, where the tools are installed, and scripts of a few lines for clients of verbs."""
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, SOFTVERBS, TEMPORARY, Skip, softverbs, told
from patience import patience, until

EXAMPLES = f"{cases.TREE}/examples/errors"


def _run(name, commands, needed, **more):
    """The commands in a copy of the example, which is changed nowhere; what they print."""
    for tool in (*needed, "ibv_devinfo"):
        if not shutil.which(tool):
            raise Skip(f"{tool} is not installed")
    shutil.copytree(f"{EXAMPLES}/{name}", f"{TEMPORARY}/{name}")
    said = ""
    for command in commands:
        done = subprocess.run(command, cwd=f"{TEMPORARY}/{name}", stdin=subprocess.DEVNULL, capture_output=True, timeout=patience(200), check=False,
                              env=cases.environment(SOFTVERBS_DIR=None, PATH=f"{BUILD}:{os.environ['PATH']}", **more))
        assert done.returncode == 0, told(done)
        said += done.stdout.decode()
    return said


def those_of_ctest_pass():
    said = _run("ctest", [["cmake", "-S", ".", "-B", "build"], ["cmake", "--build", "build"], ["ctest", "--test-dir", "build", "--output-on-failure"]],
                ["cmake", "ctest"])
    assert "100% tests passed, 0 tests failed out of 5" in said, said


def those_of_rust_pass():
    said = _run("rust", [["cargo", "test", "--offline", "--test", "errors"]], ["cargo", "rustc"])
    assert "2 passed; 0 failed" in said, said


def those_of_go_pass():
    said = _run("go", [["go", "test", "-v", "-count=1", "./..."]], ["go"], GOFLAGS="-mod=mod", GOPROXY="off", GOCACHE=f"{TEMPORARY}/go-cache",
                GOPATH=f"{TEMPORARY}/go-path")
    assert said.count("--- PASS") == 2, said


def _scripted(name, *command, options=()):
    """The output of a client of verbs under the script of this name."""
    if not shutil.which(command[0]):
        raise Skip(f"{command[0]} is not installed")
    with open(f"{EXAMPLES}/scripts/{name}.script", encoding="utf-8") as script:
        assert len(script.readlines()) <= 10
    done = softverbs("run", "--log", "warn", *options, "--script", f"{EXAMPLES}/scripts/{name}.script", "--", *command)
    return (done.stdout + done.stderr).decode()


def libfabric_says_that_no_device_is_left():
    said = _scripted("libfabric", "fi_info", "-p", "verbs")
    assert "ibv_open_device of device 0: fails with EIO by line 2 of the script" in said and "fi_getinfo: -61" in said, said


def fio_says_that_nobody_answers():
    began = time.monotonic()
    said = _scripted("fio", "fio", "--ioengine=rdma", "--port=28971", "--bs=64k", "--size=1m", "--hostname=127.0.0.1", "--verb=write", "--name=client", "--rw=write",
                     options=["--time-scale", "0.01"])
    assert "event is RDMA_CM_EVENT_UNREACHABLE" in said and time.monotonic() - began < patience(50), said


def rping_says_that_it_was_refused():
    if not shutil.which("rping"):
        raise Skip("rping is not installed")
    with subprocess.Popen([SOFTVERBS, "run", "--script", f"{EXAMPLES}/scripts/librdmacm.script", "--", "rping", "-s", "-C", "1", "-p", "28972"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=cases.environment()) as server:
        said, end = "", until(20)
        while "error 28" not in said and time.monotonic() < end:  # "error 8": it does not listen yet
            done = softverbs("run", "--", "rping", "-c", "-C", "1", "-a", "127.0.0.1", "-p", "28972")
            said = (done.stdout + done.stderr).decode()
        server.kill()
    assert "cma event RDMA_CM_EVENT_REJECTED, error 28" in said and done.returncode, told(done)


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
