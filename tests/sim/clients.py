"""The clients that run under softverbs sim, for the test of `make check` and for `make sim-seeds`."""
import os
from typing import NamedTuple

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("SOFTVERBS_BUILD", os.path.join(HERE, "../../build")))


class Client(NamedTuple):
    """`seeds`: so many of `make sim-seeds`; `repeats`: so often one seed; `checked`: `make check` runs some seeds of it."""
    name: str
    words: tuple
    seeds: int
    repeats: int
    checked: bool = False
    note: str = ""  # why some seeds fail
    options: tuple = ()  # of sim: UCX and Python compute for longer than 20 ms when they begin
    alone: bool = False  # one seed at a time: its programs name files by their numbers, which are the same in each run
    made: tuple = ()  # what makes its program


def _pair(*words):
    return (*words, "---", "+500ms", *words, "127.0.0.1")


def _roles(server, client):
    return (*server.split(), "---", "+500ms", *client.split())


def _perftest(tool, *more):
    return Client(tool + "".join(f" {each}" for each in more), _pair(tool, "-x", "0", "-F", "-n", "50", *more), 130, 100)


RING = f"{BUILD}/sim-ring"
PING_PONG = ("-g", "0", "-n", "50")

CLIENTS = (
    Client("ibv_rc_pingpong", _pair("ibv_rc_pingpong", *PING_PONG), 2000, 1000, True),
    Client("ibv_rc_pingpong -e", _pair("ibv_rc_pingpong", *PING_PONG, "-e"), 2000, 1000, True),
    Client("ibv_uc_pingpong", _pair("ibv_uc_pingpong", *PING_PONG), 2000, 1000),
    Client("ibv_ud_pingpong", _pair("ibv_ud_pingpong", *PING_PONG), 2000, 1000, True),
    Client("ibv_srq_pingpong -e", _pair("ibv_srq_pingpong", *PING_PONG, "-e"), 2000, 1000, True),
    Client("ibv_xsrq_pingpong", _pair("ibv_xsrq_pingpong", *PING_PONG), 2000, 1000),
    Client("rping", _roles("rping -s -C 20 -v -a 127.0.0.1", "rping -c -C 20 -v -a 127.0.0.1"), 1000, 1000,
           note="a race of rping: its main thread closes the channel while the other is on its way into `rdma_get_cm_event`, which then ends the program "
                "with \"Bad file descriptor\"; so it does natively if that call begins 0.4 s later (`when rdma_get_cm_event, nth 3: delay 400ms`)"),
    _perftest("ib_send_bw"), _perftest("ib_write_bw"), _perftest("ib_read_bw"), _perftest("ib_send_lat"), _perftest("ib_send_lat", "-e"),
    _perftest("ib_read_lat"), _perftest("ib_atomic_bw"), _perftest("ib_atomic_lat"),
    Client("udaddy", _roles("udaddy -c 4 -C 10", "udaddy -c 4 -C 10 -s 127.0.0.1"), 1000, 100, True),
    Client("ucmatose", _roles("ucmatose -c 4 -C 10", "ucmatose -c 4 -C 10 -s 127.0.0.1"), 1000, 100),
    Client("rstream", _roles("rstream -S 1000 -C 20", "rstream -S 1000 -C 20 -s 127.0.0.1"), 1000, 100),
    Client("fi_pingpong", _roles("fi_pingpong -p verbs -e msg -I 20 -S 1024", "fi_pingpong -p verbs -e msg -I 20 -S 1024 127.0.0.1"), 1000, 100),
    Client("ucx_perftest", _roles("env UCX_TLS=rc ucx_perftest -t tag_lat -n 50", "env UCX_TLS=rc ucx_perftest -t tag_lat -n 50 127.0.0.1"), 200, 100,
           options=("--patience", "5000")),
    Client("mpirun (Open MPI, UCX)",
           ("env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "UCX_TLS=rc", "mpirun.openmpi", "--oversubscribe", "-n", "2", "--mca", "pml", "ucx", RING),
           200, 100, options=("--patience", "5000"), alone=True, made=("mpicc.openmpi", os.path.join(HERE, "ring.c"), "-o", RING)),
    Client("pytest with pyverbs", ("/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", os.path.join(HERE, "pair_pytest.py")), 200, 100, options=("--patience", "5000")),
)
