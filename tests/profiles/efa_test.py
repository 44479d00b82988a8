#!/usr/bin/env python3
"""An EFA: what its device answers to libefa, and its numbers (efa.c), under a profile with `driver = efa`. Prints TAP."""
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
ADDED = """driver = efa
efa_caps = RDMA_READ RNR_RETRY CQ_WITH_SGID RDMA_WRITE UNSOLICITED_WRITE_RECV
max_rdma_size = 0x40000000
"""


def _expect(holds, *told):
    assert holds, told


def _write_profile(folder, name="mine"):
    """A copy of profiles/efa.profile whose device is an EFA for libefa, too."""
    with open(os.path.join(HERE, "../../profiles/efa.profile"), encoding="utf-8") as file:
        text = file.read()
    text = re.sub(r"^(driver|efa_caps|max_rdma_size) .*\n", "", text, flags=re.M)
    path = f"{folder}/{name}.profile"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + ADDED)
    return path


def _passed(done):
    lines = done.stdout.decode().splitlines()
    return done.returncode == 0 and len(lines) > 20 and lines[-1] == f"1..{len(lines) - 1}" and all(line.startswith("ok") for line in lines[:-1])


def the_device_answers_as_an_efa():
    with tempfile.TemporaryDirectory() as folder:
        done = softverbs("run", "--profile", _write_profile(folder), PROGRAM)
    _expect(_passed(done), done.stdout.decode(), done.stderr)


def several_processes_have_numbers_of_16_bits():
    """Each of them says whether its numbers are below 65536; their blocks begin at random in a directory."""
    with tempfile.TemporaryDirectory() as folder:
        command = [cases.SOFTVERBS, "run", "--profile", _write_profile(folder), "--", PROGRAM]
        running = [subprocess.Popen(command, env=cases.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(4)]
        for each in running:
            text = each.communicate(timeout=patience(60))[0].decode()
            _expect(each.returncode == 0 and "ok" in text and "numbers of queue pairs have 16 bits" in text, text)


def datagrams_are_fragmented_on_a_network():
    """The links of a lab have an MTU of 1500."""
    with tempfile.TemporaryDirectory() as folder:
        script = f"softverbs on h2 -- {PROGRAM}_pass {folder} 1 & {PROGRAM}_pass {folder} 0 && wait $!"
        done = softverbs("lab", "--hosts", "2", "--profile", _write_profile(folder), "--", "sh", "-c", script)
    if b"allows no namespaces" in done.stderr or b"can't be mounted" in done.stderr:
        raise cases.Skip(done.stderr.decode())
    _expect(done.returncode == 0 and done.stdout.count(b"passed") == 2, done.stdout, done.stderr)


def a_refusal_names_the_numbers():
    with tempfile.TemporaryDirectory() as folder:
        path, log = _write_profile(folder), f"{folder}/log"
        softverbs("run", "--profile", path, "--log", "info", "--log-file", log, PROGRAM, env={"SOFTVERBS_LOG_LINES": None})
        with open(log, encoding="utf-8") as file:
            text = file.read()
    for wanted in ("efadv_query_device: inlen is 22, of at least 23: ", "efadv_get_max_sq_depth: comp_mask is 0x1: ",
                   "efadv_get_max_sq_depth: profile mine: max_send_sge is 3, of 0 to 2: ", "efadv_get_max_rq_depth: profile mine: max_recv_sge is 0, of 1 to 3: ",
                   "efadv_get_max_sq_depth: profile mine: max_inline_data is 33, of 0 to 32: ", "efadv_query_cq: profile mine: .*reason 850"):
        _expect(re.search(wanted, text), wanted, text)


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
