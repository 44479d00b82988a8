#!/usr/bin/env python3
"""Devices with the calls of mlx5: their answers (mlx5.c), and which libmlx5 programs find. Prints TAP."""
import contextlib
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, folder) for folder in ("../tool", "../clients")]
import cases  # pylint: disable=wrong-import-position
from cases import BUILD, softverbs  # pylint: disable=wrong-import-position
from network import hostile  # pylint: disable=wrong-import-position

PROGRAM, DYNAMIC, QUEUES = (f"{BUILD}/tests/profiles/{name}" for name in ("mlx5", "dynamic", "queues"))
FACE, CALLS = "connectx-7-roce,mlx5", "connectx-7-roce,mlx5=calls"

# Names the file of the library that a program gets by its name, and whether it says that the first device is one of mlx5.
FIND = """
import ctypes, sys
verbs = ctypes.CDLL("libibverbs.so.1")
verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
library = ctypes.CDLL(sys.argv[1])
library.mlx5dv_is_supported.restype = ctypes.c_bool
library.mlx5dv_is_supported.argtypes = [ctypes.c_void_p]
print(library.mlx5dv_is_supported(verbs.ibv_get_device_list(None)[0]))
for name, node in (("mlx5dv_init_obj", "MLX5_1.0"), ("mlx5dv_init_obj", "MLX5_1.2"), ("mlx5dv_reg_dmabuf_mr", "MLX5_1.25")):
    dlvsym = ctypes.CDLL(None).dlvsym
    dlvsym.restype, dlvsym.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
    print(bool(dlvsym(library._handle, name.encode(), node.encode())))
print(*{line.split()[-1] for line in open("/proc/self/maps") if "libmlx5" in line})
"""


def _expect(holds, *told):
    assert holds, told


def _find(profile, name):
    done = softverbs("run", "--profile", profile, "--", "python3", "-c", FIND, name)
    _expect(done.returncode == 0, profile, name, done.stdout, done.stderr)
    return done.stdout.decode().split()


def the_device_answers_as_one_of_mlx5():
    done = softverbs("run", "--profile", CALLS, PROGRAM)
    lines = done.stdout.decode().splitlines()
    _expect(done.returncode == 0 and len(lines) > 60 and lines[-1] == f"1..{len(lines) - 1}" and all(line.startswith("ok") for line in lines[:-1]), done.stdout.decode(), done.stderr)


def programs_find_the_library_by_each_of_its_names():
    for name in ("libmlx5.so", "libmlx5.so.1"):
        supported, *nodes, path = _find(FACE, name)
        _expect(supported == "True" and nodes == ["True"] * 3 and os.path.dirname(path) == os.path.realpath(f"{BUILD}/lib/mlx5"), name, supported, nodes, path)


def without_the_word_they_find_the_distributions():
    if not os.path.exists("/usr/lib/x86_64-linux-gnu/libmlx5.so.1"):
        raise cases.Skip("the distribution's libmlx5 is not installed")
    supported, *_, path = _find("connectx-7-roce", "libmlx5.so.1")
    _expect(supported == "False" and BUILD not in path, supported, path)


def env_names_its_directory():
    for profile, wanted in ((FACE, True), ("connectx-7-roce", False)):
        done = softverbs("env", "--profile", profile)
        _expect((b"/lib/mlx5:" in done.stdout) == wanted, profile, done.stdout)


def other_profiles_have_the_calls_behind_a_comma():
    """The device has NVIDIA's numbers, in its attributes and in /sys."""
    look = "ibv_devinfo -v && cd /sys/class/infiniband/*/device/ && cat vendor device"
    for name, part in (("connectx-6,mlx5", 4123), ("connectx-7,mlx5=calls", 4129), ("minimal,mlx5", 4129), (FACE, 4129)):
        done = softverbs("run", "--profile", name, "--", "sh", "-c", look)
        text = done.stdout.decode()
        _expect(re.search(r"vendor_id:\s+0x02c9\n", text) and re.search(rf"vendor_part_id:\s+{part}\n", text) and text.endswith(f"0x15b3\n{part:#x}\n"), name, text, done.stderr)
    done = softverbs("run", "--profile", "rxe,max_qp=17", "ibv_devinfo", "-v")
    _expect(re.search(rb"max_qp:\s+17\n", done.stdout), done.stdout)


def words_that_are_none_are_refused():
    for word, wanted in (("mlx5=devx", b'"devx" is not one of none calls queues.'), ("max_qp", b'"max_qp" is not of the form KEY=VALUE.'), ("beauty=1", b'there is no key "beauty".')):
        done = softverbs("run", "--profile", f"rxe,{word}", "true")
        _expect(done.returncode == 2 and wanted in done.stderr, word, done.stderr)


def _log_of(*options):
    with tempfile.TemporaryDirectory() as folder:
        softverbs("run", *options, "--log", "info", "--log-file", f"{folder}/log", PROGRAM, env={"SOFTVERBS_LOG_LINES": None})
        with open(f"{folder}/log", encoding="utf-8") as file:
            return file.read()


def a_refusal_names_what_is_missing():
    text = _log_of("--profile", CALLS)
    for wanted in (r"mlx5dv_open_device: DevX: .*reason 842", r"mlx5dv_create_cq: .* and not 100: .*reason 843",
                   r"mlx5dv_create_qp: create_flags is 0x100", r"mlx5dv_create_qp: srq is NULL: .*reason 848", r"ibv_wr_complete of wr_id 7: .*reason 845", r"ibv_wr_complete of wr_id 7: .*reason 846",
                   r"mlx5dv_reserved_qpn_dealloc: qpn is 0x\w+: .*reason 847", r"reason 844"):
        _expect(re.search(wanted, text), wanted, text)


def _dynamic(word):
    """The status of the work of dynamic.c, and the log."""
    done = softverbs("run", "--profile", FACE, "--log", "info", "--", DYNAMIC, word, env={"SOFTVERBS_LOG_LINES": None})
    _expect(done.returncode == 0, word, done.stdout, done.stderr)
    return int(done.stdout), done.stderr.decode()


def work_of_an_initiator_fails_for_its_reason():
    """ACCESS_KEY, PACKET_ACCESS_KEY and PACKET_RESPONDER; the log has the target and its address."""
    _expect(_dynamic("fine")[0] == 0)
    for word, wanted, lines in (("key", 10, (r"IBV_WC_REM_ACCESS_ERR.*, for qp 0x\w+ at .*\(reason 129\)", r"HELLO.*\(reason 36\)")),
                                ("nobody", 12, (r"IBV_WC_RETRY_EXC_ERR.*\(reason 105\)",)), ("renewed", 12, (r"\(reason 37\)",)), ("reset", 12, (r"IBV_WC_RETRY_EXC_ERR.*\(reason 105\)",))):
        status, log = _dynamic(word)
        _expect(status == wanted, word, status, log)
        for line in lines:
            _expect(re.search(line, log), word, line, log)


def why_names_the_target_that_an_initiator_waits_for():
    for word, wanted in (("nobody", r"waits for its target, queue pair 0x\w+: no process of this directory has queue pair 0x\w+"),
                         ("reset", r"waits for an answer to 1 packet \(timeout is 20\): queue pair 0x\w+ of process \d+ \(dynamic\) is in RESET"),
                         ("unready", r"sends, and its peer's shared receive queue with handle \d+ is empty \(ibv_post_srq_recv\)")):
        program = subprocess.Popen([cases.SOFTVERBS, "run", "--profile", FACE, "--", DYNAMIC, word, "1000"], env=cases.environment(), stdout=subprocess.DEVNULL)
        try:
            told, deadline = "", cases.until(20)
            while not re.search(wanted, told) and time.monotonic() < deadline:
                told = " ".join(softverbs("why").stdout.decode().split())
            _expect(re.search(wanted, told), word, told)
        finally:
            program.kill()
            program.wait()


def _perftest(stack, log, *words):
    command = [cases.SOFTVERBS, "run", "--profile", FACE, "--log", "info", "--log-file", log, "--", "ib_send_bw", "-c", "DC", "-F", "-x", "0", *words]
    program = stack.enter_context(subprocess.Popen(command, env=cases.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    stack.callback(program.kill)
    return program


def work_for_a_target_whose_process_is_killed_ends():
    if not shutil.which("ib_send_bw"):
        raise cases.Skip("perftest is not installed")
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        endless = ("-p", "18517", "-D", "1000")
        server = _perftest(stack, f"{folder}/server", *endless)
        client, deadline = None, cases.until(30)
        while not re.search(rb"DCI +RTS .* 0x\w+ +\d+ +[1-9]\d* of ", softverbs("show", "qps").stdout) and time.monotonic() < deadline:
            if not client or client.poll() is not None:  # until the server listens
                client = _perftest(stack, f"{folder}/client", *endless, "127.0.0.1")
        server.kill()
        client.wait(cases.patience(60))
        with open(f"{folder}/client", encoding="utf-8") as file:
            told = file.read()
        _expect(re.search(r"IBV_WC_RETRY_EXC_ERR, for qp 0x\w+ at ", told), told)


def a_script_decides_the_end_of_an_initiators_work():
    """No target is asked for it, so that it ends so for a number that nobody has, too."""
    for word in ("fine", "nobody"):
        done = softverbs("run", "--profile", FACE, "--inject", "when work, nth 1: complete REM_OP_ERR", "--", DYNAMIC, word)
        _expect(done.stdout == b"11\n", word, done.stdout, done.stderr)


class _Stranger(hostile.Attacker):
    """A socket of this host that sends packets to its device on the loopback interface."""

    def __init__(self):  # pylint: disable=super-init-not-called
        self.version, self.family, self.source, self.target = 4, socket.AF_INET, "127.0.0.1", "127.0.0.1"
        self.socket = socket.socket(self.family, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER, IP_PMTUDISC_DO: identification 0
        self.socket.bind((self.source, 0))
        self.socket.connect((self.target, hostile.ROCE))
        self.port = self.socket.getsockname()[1]

    def ask(self, target, segment, operation=24):
        header = struct.pack(">IIQIHH", 0, 0x123456, 0x1ee7, 0, segment or 1, segment)
        self.send(self.seal(hostile.transport(hostile.DC | operation, target, headers=header)))


def _dropped():
    reports = json.loads(softverbs("stat", "--once", "--json").stdout)
    return hostile.dropped([report for report in reports if "traffic" in report])


def lengths_that_no_path_mtu_is_are_refused():
    """PACKET_SEGMENT (reason 38): a target computes with what an initiator says. Of those that may be the target makes a responder, and its
    answers are for no queue pair."""
    wrong = (0, 1, 255, 300, 8192, 16384, 65535)
    program = subprocess.Popen([cases.SOFTVERBS, "run", "--profile", FACE, "--net", "lo", "--", DYNAMIC, "unready", "1000"], env=cases.environment(), stdout=subprocess.DEVNULL)
    try:
        found, deadline = None, cases.until(20)
        while not found and time.monotonic() < deadline:
            found = re.search(rb" (0x[0-9a-f]+) +DCT +RTR", softverbs("show", "qps").stdout)
        _expect(found, softverbs("show", "qps").stdout)
        target, stranger = int(found[1], 16), _Stranger()
        for segment in (*wrong, 256, 4096):
            stranger.ask(target, segment)
        stranger.ask(target, 1024, operation=25)
        while sum(_dropped().get(reason, 0) for reason in (38, 9, 7)) < len(wrong) + 3 and time.monotonic() < deadline:
            pass
        _expect(_dropped() == {38: len(wrong), 9: 1, 7: 2} and program.poll() is None, _dropped(), program.poll())
    finally:
        program.kill()
        program.wait()


def a_device_of_another_kind_says_so():
    text = _log_of("--profile", "rxe")
    _expect(re.search(r"mlx5dv_query_device: profile rxe: .*reason 841", text), text)


def _run_queues(word, *words, **more):
    return softverbs("run", "--profile", FACE, "--log", "warn", *words, "--", QUEUES, word, **more)


def work_in_memory_is_captured():
    with tempfile.TemporaryDirectory() as folder:
        capture = os.path.join(folder, "packets.pcap")
        done = _run_queues("send", "--capture", capture)
        _expect(done.returncode == 0, done.stdout, done.stderr)
        lines = softverbs("decode", capture).stdout.decode().splitlines()
    _expect(sum("SEND_ONLY" in line and "| sent" in line for line in lines) == 3, lines)


def a_refusal_of_work_in_memory_has_its_reason():
    done = _run_queues("key")
    _expect(b"work 0: opcode 13, syndrome 0x13" in done.stdout, done.stdout)
    _expect(re.search(rb"send of wr_id 0 ends in IBV_WC_REM_ACCESS_ERR: .*\(its reason 205\)", done.stderr), done.stderr)


def a_rule_decides_the_end_of_work_in_memory():
    for rule in ("when work, nth 2: complete REM_OP_ERR", "when receive, nth 2: complete LOC_PROT_ERR"):
        done = _run_queues("send", "--inject", rule)
        _expect(b"work 0: opcode 0" in done.stdout and b"work 1: opcode 13, syndrome 0x14" in done.stdout, rule, done.stdout, done.stderr)


def why_names_what_work_in_memory_waits_for():
    wanted = r"sends, and its peer has no receive posted \(ibv_post_recv\): it answered \d+ times"
    command = [cases.SOFTVERBS, "run", "--profile", FACE, "--", QUEUES, "stuck"]
    program = subprocess.Popen(command, env=cases.environment(), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        told, deadline = "", cases.until(20)
        while not re.search(wanted, told) and time.monotonic() < deadline:
            told = " ".join(softverbs("why").stdout.decode().split())
        _expect(re.search(wanted, told), told)
    finally:
        program.communicate()


def tags_of_ucx_are_matched_by_the_device():
    """UCX falls back to its own matching without a word, so the device's count is asked."""
    if not shutil.which("ucx_perftest"):
        raise cases.Skip("ucx_perftest is not here")
    tags = {"UCX_TLS": "rc_x", "UCX_NET_DEVICES": "soft0:1", "UCX_IB_MLX5_DEVX": "n", "UCX_RC_MLX5_TM_ENABLE": "y", "UCX_TM_THRESH": "0"}
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = str(one.getsockname()[1])
    command = [cases.SOFTVERBS, "run", "--profile", FACE, "--", "ucx_perftest", "-p", port, "-t", "tag_lat", "-s", "4096", "-n", "1000000"]
    programs = [subprocess.Popen(command, env={**cases.environment(), **tags}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)]
    try:
        matched, deadline = 0, cases.until(60)
        while not matched and time.monotonic() < deadline:
            if len(programs) == 1 or programs[-1].poll() is not None:
                programs[1:] = [subprocess.Popen([*command, "127.0.0.1"], env={**cases.environment(), **tags}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)]
            told = json.loads(softverbs("show", "--json").stdout or b"[]")
            matched = sum(srq.get("matched", 0) for process in told for srq in process.get("srqs", ()))
        _expect(matched, told)
    finally:
        for program in programs:
            program.kill()
            program.wait()


def a_helper_that_nothing_wakes_is_told():
    done = _run_queues("send", env={"SOFTVERBS_DOORBELLS": "poll"})
    _expect(done.returncode == 0 and b"(reason 849)" in done.stderr, done.stdout, done.stderr)


def layers_see_the_calls():
    done = softverbs("run", "--profile", CALLS, "--trace=mlx5dv_create_qp,mlx5dv_query_device", "--", PROGRAM)
    _expect(b"mlx5dv_query_device(" in done.stderr and re.search(rb"mlx5dv_create_qp\(.*\) = NULL EOPNOTSUPP", done.stderr), done.stderr)
    done = softverbs("run", "--profile", CALLS, "--inject", "mlx5dv_create_mkey:error=ENOMEM", "--", PROGRAM)
    _expect(b"not ok" in done.stdout and b"two ends with builders and indirect keys" in done.stdout, done.stdout)


def missing_lists_what_is_not_built():
    done = softverbs("missing")
    _expect(re.search(rb"mlx5dv_devx_general_cmd\s+commands of the adapter's firmware", done.stdout) and b"mlx5dv_query_device" not in done.stdout, done.stdout)


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
