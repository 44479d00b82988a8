#!/usr/bin/env python3
"""Keys and queue pair numbers begin at random, so that they can't be guessed and a program that mixes them up fails as on an
adapter; or with a seed always the same, where no network is."""
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import PYTHON, Skip, TEMPORARY, expect, run, softverbs, told

NUMBERS = """
import pyverbs.enums as e
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPCap, QPInitAttr
context = Context(name="soft0")
domain, queue = PD(context), CQ(context, 16)
regions = [MR(domain, 64, e.IBV_ACCESS_LOCAL_WRITE) for _ in range(16)]
pairs = [QP(domain, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=queue, rcq=queue, cap=QPCap())) for _ in range(4)]
print(*[region.rkey for region in regions], *[pair.qp_num for pair in pairs])
"""
KEYS, LOW = 16, 0xff


def _numbers(directory=None, **env):
    """The keys and queue pair numbers of a fresh process, in a fresh directory."""
    directory = directory or tempfile.mkdtemp(dir=TEMPORARY)
    done = run(PYTHON, "-c", NUMBERS, env={"SOFTVERBS_DIR": directory, **env})
    if b"No module named" in done.stderr:
        raise Skip("python3-pyverbs is not installed")
    numbers = [int(word) for word in expect(done).stdout.split()]
    return numbers[:KEYS], numbers[KEYS:]


def every_run_has_other_keys_and_queue_pair_numbers():
    runs = [_numbers() for _ in range(4)]
    for which in (0, 1):
        seen = [number for numbers in runs for number in numbers[which]]
        assert len(set(seen)) == len(seen), runs
    assert all(1 < number < 0xffffff for _, pairs in runs for number in pairs), runs


def the_low_bits_of_a_key_say_nothing_of_the_next():
    low = [key & LOW for key in _numbers()[0]]
    assert len(set(low)) > 4 and len({(b - a) & LOW for a, b in zip(low, low[1:])}) > 4, low


def processes_of_one_host_have_other_keys():
    directory = tempfile.mkdtemp(dir=TEMPORARY)
    first, second = _numbers(directory)[0], _numbers(directory)[0]
    assert not set(first) & set(second), (first, second)


def a_seed_gives_the_same_numbers_in_every_run():
    first, second, other = _numbers(SOFTVERBS_SEED="1"), _numbers(SOFTVERBS_SEED="1"), _numbers(SOFTVERBS_SEED="2")
    assert first == second, (first, second)
    assert not set(first[0]) & set(other[0]) and not set(first[1]) & set(other[1]), (first, other)


def a_seed_is_refused_on_a_network():
    expect(softverbs("run", "--net", "lo", "true", env={"SOFTVERBS_SEED": "1"}), 2, b"", [b"SOFTVERBS_SEED", b"network"])
    with open(f"{TEMPORARY}/config", "w", encoding="ascii") as config:
        config.write("net = lo\n")
    done = run(PYTHON, "-c", NUMBERS, env={"SOFTVERBS_SEED": "1", "SOFTVERBS_CONFIG": f"{TEMPORARY}/config", "SOFTVERBS_LOG": "error"})
    if b"No module named" not in done.stderr:
        assert done.returncode and b"SOFTVERBS_SEED" in done.stderr, told(done)


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def who_asks_for_somebody_of_another_directory_does_not_reach_itself():
    """As two sandboxes with one network and a /dev/shm each do: same GID. Datagrams, as a connection's PSNs would not fit."""
    if not shutil.which("ibv_ud_pingpong"):
        raise Skip("ibv_ud_pingpong is not installed")
    port, places = _free_port(), [tempfile.mkdtemp(dir=TEMPORARY) for _ in range(2)]
    command = [cases.SOFTVERBS, "run", "--", "ibv_ud_pingpong", "-g", "0", "-n", "10", "-p", str(port)]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    server = subprocess.Popen(command, env=cases.environment(SOFTVERBS_DIR=places[0]), **options)
    cases.await_listener(server, port)
    client = subprocess.Popen([*command, "127.0.0.1"], env=cases.environment(SOFTVERBS_DIR=places[1]), **options)
    with contextlib.suppress(subprocess.TimeoutExpired):
        client.wait(2)
    ended = client.poll()
    for process in (client, server):
        process.kill()
    assert ended is None and b" iters in " not in client.communicate()[0], (ended, server.communicate())


if __name__ == "__main__":
    assert os.path.exists(cases.SOFTVERBS)
    cases.main(sys.modules[__name__])
