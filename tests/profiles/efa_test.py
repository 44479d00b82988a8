#!/usr/bin/env python3
"""EFAs: what their devices answer to libefa, and their numbers (efa.c). Prints TAP."""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, folder) for folder in ("../tool", "../clients")]
import cases  # pylint: disable=wrong-import-position
from cases import BUILD, softverbs  # pylint: disable=wrong-import-position
from patience import patience  # pylint: disable=wrong-import-position

PROGRAM = f"{BUILD}/tests/profiles/efa"
EFAS = ("efa", "efa2", "efa3")


def _expect(holds, *told):
    assert holds, told


def _passed(done):
    lines = done.stdout.decode().splitlines()
    return done.returncode == 0 and len(lines) > 20 and lines[-1] == f"1..{len(lines) - 1}" and all(line.startswith("ok") for line in lines[:-1])


def the_device_of_each_profile_answers_as_an_efa():
    for name, caps in (("efa", 15), ("efa2", 15), ("efa3", 31)):
        done = softverbs("run", "--profile", name, PROGRAM, str(caps))
        _expect(_passed(done), name, done.stdout.decode(), done.stderr)


def each_profile_has_its_part_and_function():
    """Programs read the part from the attributes (perftest) and from /sys (libfabric, UCX)."""
    look = "ibv_devinfo -v && cd /sys/class/infiniband/*/device/ && cat vendor device && readlink driver"
    for name, part in (("efa", "0xefa1"), ("efa2", "0xefa2"), ("efa3", "0xefa3")):
        done = softverbs("run", "--profile", name, "--", "sh", "-c", look)
        text = done.stdout.decode()
        _expect(re.search(rf"vendor_part_id:\s+{int(part, 16)}\n", text) and f"\n0x1d0f\n{part}\n" in text and text.endswith("/drivers/efa\n"), name, text, done.stderr)


def the_name_of_each_device_is_that_of_its_function():
    """As udev of rdma-core names it, by bus and slot."""
    for name in EFAS:
        done = softverbs("run", "--profile", name, "--", "sh", "-c", "ls /sys/class/infiniband && readlink /sys/class/infiniband/*/device")
        found = re.fullmatch(r"rdmap(\d+)s(\d+)\n.*/0000:(\w\w):(\w\w)\.0\n", done.stdout.decode())
        _expect(found and (int(found[1]), int(found[2])) == (int(found[3], 16), int(found[4], 16)), name, done.stdout, done.stderr)


def no_efa_has_a_network_interface():
    """The network adapter beside it, ENA, is another PCI function. Linux has as many files of GIDs as the table has places."""
    look = "cd /sys/class/infiniband/*/ && ls -d device/net; cd ports/1 && ls gids && cat gids/0 && cat gid_attrs/ndevs/0; rdma link show 2>&1 | grep netdev"
    for name in EFAS:
        done = softverbs("run", "--profile", name, "--", "sh", "-c", look)
        _expect(re.fullmatch(r"0\nfe80(:[0-9a-f]{4}){7}\n", done.stdout.decode()) and b"Invalid argument" in done.stderr, name, done.stdout, done.stderr)


def librdmacm_finds_no_efa():
    """Linux's connection manager knows devices of InfiniBand, RoCE and iWARP (cma_supported in drivers/infiniband/core/cma.c)."""
    for name in EFAS:
        done = softverbs("run", "--profile", name, "--log", "warn", "--", "ucmatose", "-s", "127.0.0.1", env={"SOFTVERBS_LOG_LINES": None})
        _expect(b"(reason 607)" in done.stderr and b"error: -19" in done.stdout + done.stderr, name, done.stdout, done.stderr)


def several_processes_have_numbers_of_16_bits():
    """Each of them says whether its numbers are below 65536; their blocks begin at random in a directory."""
    command = [cases.SOFTVERBS, "run", "--profile", "efa", "--", PROGRAM]
    running = [subprocess.Popen(command, env=cases.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(4)]
    for each in running:
        text = each.communicate(timeout=patience(60))[0].decode()
        _expect(each.returncode == 0 and "ok" in text and "numbers of queue pairs have 16 bits" in text, text)


def datagrams_are_fragmented_on_a_network():
    """The links of a lab have an MTU of 1500."""
    with tempfile.TemporaryDirectory() as folder:
        script = f"softverbs on h2 -- {PROGRAM}_pass {folder} 1 & {PROGRAM}_pass {folder} 0 && wait $!"
        done = softverbs("lab", "--hosts", "2", "--profile", "efa", "--", "sh", "-c", script)
    if b"allows no namespaces" in done.stderr or b"can't be mounted" in done.stderr:
        raise cases.Skip(done.stderr.decode())
    _expect(done.returncode == 0 and done.stdout.count(b"passed") == 2, done.stdout, done.stderr)


def a_refusal_names_the_numbers():
    with tempfile.TemporaryDirectory() as folder:
        log = f"{folder}/log"
        softverbs("run", "--profile", "efa", "--log", "info", "--log-file", log, PROGRAM, env={"SOFTVERBS_LOG_LINES": None})
        with open(log, encoding="utf-8") as file:
            text = file.read()
    for wanted in ("efadv_query_device: inlen is 22, of at least 23: ", "efadv_get_max_sq_depth: comp_mask is 0x1: ",
                   "efadv_get_max_sq_depth: profile efa: max_send_sge is 3, of 0 to 2: ", "efadv_get_max_rq_depth: profile efa: max_recv_sge is 0, of 1 to 3: ",
                   "efadv_get_max_sq_depth: profile efa: max_inline_data is 33, of 0 to 32: ", "efadv_query_cq: profile efa: .*reason 850"):
        _expect(re.search(wanted, text), wanted, text)


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
