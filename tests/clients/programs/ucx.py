#!/usr/bin/env python3
"""UCX, and MPICH on top of it, unchanged: no variable names the GID or the transport to take. Also with the transports over verbs
alone, as within a host UCX takes shared memory otherwise."""
import functools
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# pylint: disable=wrong-import-position
from clients import Failure, Skip, Suite, need

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mpi.c")
TRANSPORTS = {"by default": {}, "rc_v": {"UCX_TLS": "rc_v,self"}, "ud_v": {"UCX_TLS": "ud_v,self"}}
TESTS = {"tag_lat": ("8", "65536"), "ucp_put_bw": ("65536",), "ucp_get": ("65536",), "ucp_fadd": ("8",), "ucp_am_lat": ("64",)}
RANKS = 4


@functools.lru_cache
def without_mpi():
    """Debian 13's ucx_perftest takes itself for a rank of MPI's when its standard input is not a terminal."""
    usage = subprocess.run([need("ucx_perftest"), "-h"], capture_output=True, text=True, check=False)
    return ["-P", "0"] if "-P <0|1>" in usage.stdout + usage.stderr else []


def measures(suite, test, size, environment):
    """Both sides end well, and the client shows a result."""
    command = ["ucx_perftest", *without_mpi(), "-t", test, "-s", size, "-n", "1000", "-w", "10"]
    suite.pair(command, timeout=60, extra=environment)[1].find(r"^Final:\s+1000 ")


def message_passing(suite, environment):
    """A program of 4 ranks that compares all it receives."""
    program = f"{suite.directory}/mpi"
    compiler, launcher = need("mpicc.mpich"), need("mpiexec.mpich")
    try:
        subprocess.run([compiler, "-O2", "-o", program, SOURCE], check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        raise Skip(f"mpicc.mpich: {error.stderr.strip().splitlines()[-1]}") from error
    done = suite.run_one([launcher, "-n", str(RANKS), program], timeout=120, extra=environment)
    os.remove(program)
    if done.out.count("fine") != RANKS:
        raise Failure(str(done))


def main():
    suite = Suite()
    for name, environment in TRANSPORTS.items():
        for test, sizes in TESTS.items():
            for size in sizes:
                suite.add(f"ucx_perftest {test}, {size} bytes, {name}",
                          lambda test=test, size=size, environment=environment: measures(suite, test, size, environment))
    for name in ("by default", "rc_v", "ud_v"):
        suite.add(f"MPICH with {RANKS} ranks, {name}", lambda name=name: message_passing(suite, TRANSPORTS[name]))
    suite.add_tidiness()
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
