#!/usr/bin/env python3
"""softverbs around: a program's calls pass the trace in front of a libibverbs, here softverbs' own; options that can't hold are refused."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, SOFTVERBS, expect, softverbs

LIST = "import ctypes; verbs = ctypes.CDLL('libibverbs.so.1'); verbs.ibv_get_device_list.restype = ctypes.c_void_p; " \
       "assert verbs.ibv_get_device_list(None)"

# Threads register memory all the time, and each child of a fork does, too, in a context that is its parent's.
FORKS = """
import ctypes, os, threading, time
verbs = ctypes.CDLL("libibverbs.so.1")
for name in ("ibv_get_device_list", "ibv_open_device", "ibv_alloc_pd", "ibv_reg_mr"):
    getattr(verbs, name).restype = ctypes.c_void_p
devices = ctypes.cast(verbs.ibv_get_device_list(None), ctypes.POINTER(ctypes.c_void_p))
pd = ctypes.c_void_p(verbs.ibv_alloc_pd(ctypes.c_void_p(verbs.ibv_open_device(ctypes.c_void_p(devices[0])))))
memory = ctypes.create_string_buffer(4096)
ended = False
def register():
    mr = verbs.ibv_reg_mr(pd, memory, ctypes.c_size_t(4096), 1)
    return mr and verbs.ibv_dereg_mr(ctypes.c_void_p(mr))
def go_on():
    while not ended:
        register()
threads = [threading.Thread(target=go_on) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(100):
    child = os.fork()
    if not child:
        register()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
ended = True
for thread in threads:
    thread.join()
print("good")
"""


# Opens the device, asks for it, and allocates domains until one fails; prints the errno, and what it saw.
CALLS = """
import ctypes, os, sys
verbs = ctypes.CDLL("libibverbs.so.1", use_errno=True)
verbs.ibv_get_device_list.restype = verbs.ibv_open_device.restype = verbs.ibv_alloc_pd.restype = ctypes.c_void_p
count = ctypes.c_int()
devices = ctypes.cast(verbs.ibv_get_device_list(ctypes.byref(count)), ctypes.POINTER(ctypes.c_void_p))
if not count.value:
    sys.exit("no device")
context = ctypes.c_void_p(verbs.ibv_open_device(ctypes.c_void_p(devices[0])))
attr = (ctypes.c_uint32 * 256)()
assert verbs.ibv_query_device(context, attr) == 0
ctypes.set_errno(33)
for _ in range(3):
    if not verbs.ibv_alloc_pd(context):
        sys.exit(f"errno {ctypes.get_errno()}")
print("good, errno", ctypes.get_errno())
"""


def _around(*words, **more):
    return softverbs("run", "--", SOFTVERBS, "around", *words, **more)


def calls_that_a_program_finds_by_dlsym_are_seen():
    done = expect(_around("--trace=ibv_get_device_list", "--", cases.PYTHON, "-c", LIST), 0, b"", None)
    assert done.stderr.count(b"ibv_get_device_list(") == 1, done


def children_of_a_program_with_threads_find_no_lock_held():
    expect(_around("--check=notes", "--log", "none", "--", cases.PYTHON, "-c", FORKS), 0, b"good\n", None)


def preloads_of_the_user_are_joined():
    own = f"{BUILD}/lib/libsoftverbs-paths.so"
    done = subprocess.run([SOFTVERBS, "around", "--", "printenv", "LD_PRELOAD"], capture_output=True, check=False, env=cases.environment(LD_PRELOAD=own))
    assert done.stdout.decode().strip() == f"{BUILD}/lib/libsoftverbs-around.so:{own}", done


def the_exit_status_is_the_programs():
    for words, status in ((["true"], 0), (["sh", "-c", "exit 7"], 7), (["/nowhere/program"], 127)):
        assert softverbs("around", "--", *words).returncode == status, words


def settings_reach_the_library_in_front_alone():
    shown = expect(softverbs("around", "--check", "--log", "warn", "--", "printenv")).stdout.decode()
    assert "SOFTVERBS_AROUND_CHECK=" in shown and "SOFTVERBS_AROUND_LOG=warn" in shown and "\nSOFTVERBS_CHECK=" not in shown, shown


def env_prints_it_for_shells():
    done = subprocess.run(["bash", "-ec", f'eval "$({SOFTVERBS} env --around --check=notes --log warn)"; printenv'], capture_output=True, check=False,
                          env=cases.environment())
    shown = done.stdout.decode()
    assert "SOFTVERBS_AROUND_CHECK=notes\n" in shown and "SOFTVERBS_AROUND_LOG=warn\n" in shown, done
    assert f"LD_PRELOAD={BUILD}/lib/libsoftverbs-around.so\n" in shown and "LD_LIBRARY_PATH" not in shown and "SOFTVERBS_PATHS" not in shown, done
    expect(softverbs("env", "--fault", "drop=1", "--around"), 2, None, [b"--fault is for the devices of"])


def _calls(*options, status=0, out=b"", err=None):
    return expect(_around(*options, "--", cases.PYTHON, "-c", CALLS), status, out, err)


def layers_leave_errno_as_the_library_does():
    _calls("--check=notes", "--log", "none", out=b"good, errno 33\n")
    _calls("--check=notes", "--log", "none", "--trace", "--trace-file", f"{cases.TEMPORARY}/trace", out=b"good, errno 33\n")


def rules_of_calls_disturb_them():
    _calls("-q", "--inject", "when ibv_alloc_pd, nth 2: error ENOMEM", status=1, err=[b"errno 12"])
    _calls("-q", "--inject", "when ibv_alloc_pd, from 3, device soft*: error EAGAIN", status=1, err=[b"errno 11"])
    _calls("-q", "--inject", "when ibv_alloc_pd, device mlx5*: error EAGAIN", out=b"good, errno 33\n")
    _calls("-q", "--inject", "when ibv_get_device_list: hide *", status=1, err=[b"no device"])
    _calls("-q", "--inject", "ibv_alloc_pd:error=EPERM:when=1", status=1, err=[b"errno 1"])
    with open(f"{cases.TEMPORARY}/rules", "w", encoding="utf-8") as file:
        file.write("when ibv_alloc_pd, nth 1: signal KILL\n")
    assert _around("-q", "--script", f"{cases.TEMPORARY}/rules", "--", cases.PYTHON, "-c", CALLS).returncode == -9


def rules_of_own_devices_are_refused():
    for rule, word in (("when packet: drop", b"packet"), ("when completion: overrun", b"overrun"), ("when work: complete SUCCESS", b"complete SUCCESS"),
                       ("when message: drop", b"message"), ("when efadv_query_ah: error EIO", b"a vendor's library"), ("when ibv_alloc_pd: freeze 1ms", b"freeze"),
                       ("when ibv_alloc_pd: release", b"release"), ("when rdma_connect: error ENOMEM", b"rdma_connect")):
        done = softverbs("around", "--inject", rule, "--", "true")
        assert done.returncode == 2 and b"for softverbs' own devices" in done.stderr and word in done.stderr, (rule, done)
    rule = {"SOFTVERBS_AROUND_INJECT": "when packet: drop", "SOFTVERBS_AROUND_LOG": "warn"}
    done = softverbs("run", "--", SOFTVERBS, "around", "--", cases.PYTHON, "-c", CALLS, env=rule)
    assert done.returncode == 0 and b"The script is ignored. The rule in line 1" in done.stderr, done


def queues_that_a_drivers_library_gives_away_are_told_once():
    for program in ("around_driven", "around_driven_late"):
        directory = f"{BUILD}/tests/tool"
        done = _around("--check=notes", "--log", "warn", "--error-exitcode=9", "--trace=ibv_open_device,ibv_create_cq_ex,ibv_create_qp,ibv_create_qp_ex", "--trace-file",
                       f"{cases.TEMPORARY}/{program}", "--", f"{directory}/{program}", env={"LD_LIBRARY_PATH": directory})
        given, driver, devx, cq = done.stdout.decode().split()
        assert done.returncode == 0, done
        said = [line.split("] ", 1)[1] for line in done.stderr.decode().splitlines() if "softverbs" in line]
        assert said == [f"queue pair {driver} of efadv_create_driver_qp has a type of its driver: the checker does not follow it",
                        f"mlx5dv_init_obj has given the program the memory of queue pair {given}: what it does there is not seen",
                        f"queue pair {devx} of mlx5dv_devx_obj_create is DevX's: nothing of it is seen",
                        f"mlx5dv_init_obj has given the program the memory of completion queue with handle {cq}: what it does there is not seen"], said
        with open(f"{cases.TEMPORARY}/{program}", encoding="utf-8") as trace:
            seen = re.findall(r" (ibv_\w+)\(", trace.read())
        assert seen == ["ibv_open_device", "ibv_create_cq_ex", "ibv_create_qp_ex", "ibv_create_qp_ex", "ibv_create_qp"], (program, seen)


def the_self_test_reports_how_each_cause_ends():
    done = expect(_around("--selftest"), 0, None, b"")
    said = done.stdout.decode()
    for cause, status, word in (("right", "success", ""), ("wrong-key", "remote access error", "names no memory region"), ("wrong-address", "remote access error", "do not fit"),
                                ("no-right", "remote access error", "IBV_ACCESS_REMOTE_WRITE"), ("no-receive", "RNR retry counter exceeded", "has no receive posted"),
                                ("short-receive", "remote invalid request error", "has room for 256"), ("wrong-psn", "transport retry counter exceeded", "rq_psn must be"),
                                ("nobody", "transport retry counter exceeded", "No file has a story"), ("flushed", "Work Request Flushed Error", "itself moved")):
        part = re.search(rf"^{cause}: {status}, vendor_err .*?(?=^[a-z-]+: |^With)", said, re.M | re.S)
        assert part and word in part[0] and part[0].count("Counters of the port") < 2, (cause, said)
    assert re.search(r"^With the checker, which should be silent:\nright: success, .*\n\nWith a rule that turns the completion:\nright: transport retry counter exceeded, vendor_err 129 ", said, re.M), said
    assert "has come to its end" in said, said
    done = _around("--selftest=nowhere0")
    assert done.returncode == 1 and b"nowhere0: No such device" in done.stdout, done
    expect(_around("--selftest", "true"), 2, b"", [b"a program of its own"])


def programs_end_in_any_way():
    """Cancelled in a wait, by _exit, with the last thread, with the library loaded twice, and with 10,000 queue pairs: no finding, and the status is theirs."""
    for mode, status in (("cancel", 0), ("exit", 7), ("fork", 0), ("last", 0), ("twice", 0), ("many", 0)):
        report, story = f"{cases.TEMPORARY}/findings-{mode}", f"{cases.TEMPORARY}/story-{mode}"
        stories = [] if mode == "many" else ["--story", story]  # softverbs counts for each file of the port, over all queue pairs
        expect(_around("--check=notes,-never-destroyed", "--check-report", report, *stories, "--", f"{BUILD}/tests/tool/around_ends", mode), status, b"", None)
        with open(report, encoding="utf-8") as findings:
            assert not findings.read(), mode
    with open(f"{cases.TEMPORARY}/story-fork", encoding="utf-8") as told:
        assert told.read().count("\n") == 1, "the child told its parent's story"


def options_of_own_devices_are_refused():
    for option in (["--fault", "drop=1"], ["--capture", "file"], ["--net", "lo"], ["--adverse"], ["--no-paths"], ["--profile", "rxe"]):
        expect(softverbs("around", *option, "--", "true"), 2, b"", [f"{option[0]} is for the devices of".encode()])


def pages_are_refused():
    for words in ("pages", "error,full"):
        expect(softverbs("around", f"--check={words}", "--", "true"), 2, b"", [b"protects pages"])


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
