#!/usr/bin/env python3
"""Counters where other tools look: Prometheus' text, an exporter, and a tree of files like /sys."""
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, SOFTVERBS, TEMPORARY, expect, softverbs

PROGRAM = f"{BUILD}/tests/tool/scripted"
PORT = "class/infiniband/soft0/ports/1"


@contextlib.contextmanager
def _running(messages):
    """A process that has sent `messages` messages to itself, and is idle."""
    with subprocess.Popen([SOFTVERBS, "run", "--", PROGRAM, "lines"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env=cases.environment()) as process:
        try:
            process.stdout.readline()
            for _ in range(messages):
                process.stdin.write(b"\n")
                process.stdin.flush()
                process.stdout.readline(), process.stdout.readline()
            yield process
        finally:
            process.kill()


def _counted(pid):
    """The part of stat --json about the device."""
    report = next(report for report in json.loads(expect(softverbs("stat", "--once", "--json")).stdout) if report["pid"] == pid)
    return next(traffic for traffic in report["traffic"] if traffic["device"] == "soft0")


def _four(traffic):
    return [sum(traffic["sent"].values()), sum(traffic["received"].values()), traffic["bytes_sent"], traffic["bytes_received"]]


def _settled(pid):
    """The four counters once they are constant."""
    before = None
    while before != (now := _four(_counted(pid))):
        before = now
        time.sleep(0.1)
    return now


def _read(tree, name):
    with open(f"{tree}/{PORT}/{name}", encoding="ascii") as file:
        return int(file.read())


def _get(address, **headers):
    with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=cases.patience(30)) as answer:
        return answer.read().decode()


def _free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def _samples(text, name):
    return [float(match[1]) for match in re.finditer(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.M)]


def prometheus_text_has_what_json_has():
    with _running(5) as process:
        four = _settled(process.pid)
        text = expect(softverbs("stat", "--prometheus")).stdout.decode()
        sums = [sum(_samples("\n".join(line for line in text.splitlines() if f'pid="{process.pid}"' in line and 'device="soft0"' in line), f"softverbs_{key}_total"))
                for key in ("sent", "received", "bytes_sent", "bytes_received")]
        assert sums == four and four[0] >= 5, (sums, four)
        assert f'softverbs_queue_pairs{{pid="{process.pid}",program="scripted",device="soft0",state="RTS"}} 1\n' in text, text
        if not shutil.which("promtool"):
            raise cases.Skip("promtool (package prometheus) is not installed; the text was not checked by it")
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and not done.stderr, done


def an_exporter_answers_on_this_host_alone():
    with _running(3) as process, subprocess.Popen([SOFTVERBS, "stat", "--listen", "0"], env=cases.environment(), stderr=subprocess.PIPE, text=True) as exporter:
        try:
            address = re.search(r"http://127\.0\.0\.1:\d+/metrics", exporter.stderr.readline())[0]
            four = _settled(process.pid)
            assert sum(_samples(_get(address), "softverbs_bytes_sent_total")) == four[2]
            for wrong, headers, code in ((address + "x", {}, 404), (address, {"Host": "evil.example"}, 403)):
                try:
                    _get(wrong, **headers)
                    raise AssertionError(wrong)
                except urllib.error.HTTPError as error:
                    assert error.code == code, error
            with socket.create_connection(("127.0.0.1", int(address.split(":")[2].split("/")[0]))):
                assert "softverbs_sent_total" in _get(address)  # a client that sends nothing keeps no other client waiting for ever
        finally:
            exporter.kill()


def a_tree_is_laid_out_as_that_of_a_kernel():
    tree = f"{TEMPORARY}/layout"
    expect(softverbs("sysfs", "--once", tree))
    for folder in ("counters", "hw_counters"):
        for name in os.listdir(f"{tree}/{PORT}/{folder}"):
            assert os.path.isfile(f"{tree}/{PORT}/{folder}/{name}") and _read(tree, f"{folder}/{name}") >= 0, name
    assert {"port_xmit_data", "port_rcv_data", "port_xmit_packets", "port_rcv_packets", "symbol_error", "VL15_dropped"} <= set(os.listdir(f"{tree}/{PORT}/counters"))
    assert {"sent_pkts", "rcvd_rnr_err", "lifespan"} <= set(os.listdir(f"{tree}/{PORT}/hw_counters"))
    said = cases.run("sh", "-c", f"cat /sys/{PORT}/counters/port_xmit_data /sys/{PORT}/hw_counters/sent_pkts; ls /sys/{PORT}/counters/")
    assert said.stdout.startswith(b"0\n0\n") and b"port_rcv_packets" in said.stdout, cases.told(said)


def a_program_under_run_reads_the_counters():
    directory = f"/sys/{PORT}"
    with _running(6) as process:
        four = _settled(process.pid)
        wanted = [four[0], four[1], four[2] // 4, four[3] // 4]
        files = [f"{directory}/counters/port_{name}" for name in ("xmit_packets", "rcv_packets", "xmit_data", "rcv_data")]
        expect(cases.run("cat", *files, f"{directory}/hw_counters/sent_bytes", f"{directory}/hw_counters/lifespan"),
               out="".join(f"{number}\n" for number in wanted + [four[2], 1000]).encode())
        expect(cases.run("cat", "/sys/devices/softverbs/soft0/infiniband/soft0/ports/1/counters/port_xmit_packets"), out=f"{four[0]}\n".encode())
        said = cases.python("import os, stat, sys\nfd = os.open(sys.argv[1], os.O_RDONLY | os.O_NOFOLLOW)\n"
                            "print(int(os.pread(fd, 64, 0)), int(os.pread(fd, 64, 0)), os.pread(fd, 64, 64), stat.S_ISREG(os.fstat(fd).st_mode),"
                            " os.get_inheritable(fd), len(os.listdir('/proc/self/fd')))\n"
                            "try: os.pwrite(fd, b'7', 0)\nexcept OSError as error: print(error.errno)\n"
                            "try: os.waitpid(-1, 0)\nexcept ChildProcessError: print('childless')", files[0])
        assert said == f"{four[0]} {four[0]} b'' True False 5\n9\nchildless\n", said
        said = cases.python("import ctypes, sys\nlibc = ctypes.CDLL(None)\nlibc.fopen.restype = ctypes.c_void_p\n"
                            "libc.fclose.argtypes = [ctypes.c_void_p]\nlibc.fgets.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]\n"
                            "text = ctypes.create_string_buffer(64)\nfile = libc.fopen(sys.argv[1].encode(), b'r')\nlibc.fgets(text, 64, file)\n"
                            "print(int(text.value), libc.fclose(file))", files[2])
        assert said == f"{four[2] // 4} 0\n", said


def relative_paths_lead_to_the_counters():
    """cd, cat, grep -r, openat from each directory above, an open that is checked, fopen and what a child inherits."""
    directory = f"/sys/{PORT}"
    with _running(4) as process:
        packets = _settled(process.pid)[0]
        one = f"{packets}\n".encode()
        expect(cases.run("sh", "-c", f"cd {directory}/counters && cat port_xmit_packets ../counters/port_xmit_packets ../hw_counters/lifespan"), out=one * 2 + b"1000\n")
        expect(cases.run("sh", "-c", "cd /sys/class/infiniband && read x <soft0/ports/1/counters/port_xmit_packets && echo $x"), out=one)
        found = expect(cases.run("grep", "-r", ".", f"{directory}/counters")).stdout.decode().splitlines()
        assert f"{directory}/counters/port_xmit_packets:{packets}" in found and len(found) == 17, found
        said = cases.python("""
import ctypes, os, sys
for path in ("/sys/class/infiniband", "/sys/class/infiniband/soft0/ports", sys.argv[1]):
    fd, name = os.open(path, os.O_RDONLY | os.O_DIRECTORY), os.path.relpath(sys.argv[1] + "/counters/port_xmit_packets", path)
    print(int(os.read(os.open(name, os.O_RDONLY, dir_fd=fd), 64)), os.get_inheritable(os.open(name, os.O_RDONLY, dir_fd=fd)))
os.chdir(sys.argv[1] + "/counters")
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
libc.fgets.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]
text = ctypes.create_string_buffer(64)
libc.fgets(text, 64, libc.fopen(b"port_xmit_packets", b"r"))
print(int(text.value), int(os.read(libc.__openat_2(os.open(".", os.O_RDONLY), b"port_xmit_packets", os.O_NOFOLLOW), 64)))
with open("port_xmit_packets") as file:
    print(int(file.read()), sorted(name for name in os.listdir() if "packets" in name))
before = len(os.listdir("/proc/self/fd"))
os.close(os.open("port_xmit_packets", os.O_RDONLY))
print(len(os.listdir("/proc/self/fd")) - before)
""", directory)
        assert said == f"{packets} False\n" * 3 + f"{packets} {packets}\n{packets} ['port_rcv_packets', 'port_xmit_packets']\n0\n", said
        expect(cases.run("sh", "-c", f"cd {directory} && cat state counters/port_nothing"), 1, out=b"4: ACTIVE\n", err=[b"No such file"])


def a_tree_of_another_place_is_read_as_it_is():
    tree = f"{TEMPORARY}/other"
    expect(softverbs("sysfs", "--once", tree))
    with open(f"{tree}/{PORT}/counters/symbol_error", "w", encoding="ascii") as file:
        file.write("77\n")
    expect(cases.run("sh", "-c", f"cd {tree}/{PORT}/counters && cat symbol_error"), out=b"77\n")


def a_counter_that_no_answer_comes_for_cannot_be_read():
    where = f"/sys/{PORT}/counters"
    said = cases.run("sh", "-c", f"SOFTVERBS_DIR={'x' * 200} cat {where}/port_xmit_data")
    expect(said, 1, err=[b"port_xmit_data"])
    expect(cases.run("cat", f"{where}/port_nothing"), 1, err=[b"No such file"])
    expect(cases.run("sh", "-c", f"cat {where}/*"), err=b"")


def a_tree_is_refreshed_and_keeps_what_ended():
    tree = f"{TEMPORARY}/live"
    with subprocess.Popen([SOFTVERBS, "sysfs", tree], env=cases.environment()) as keeper:
        try:
            deadline = cases.until(60)
            with _running(7) as process:
                four = _settled(process.pid)
                while time.monotonic() < deadline and (not os.path.exists(f"{tree}/{PORT}/counters/port_xmit_packets") or _read(tree, "counters/port_xmit_packets") < four[0]):
                    time.sleep(0.1)
            time.sleep(2.5)  # two rounds of refreshing, which keep what ended
            assert [_read(tree, f"counters/port_{name}") for name in ("xmit_packets", "rcv_packets", "xmit_data", "rcv_data")] == [four[0], four[1], four[2] // 4, four[3] // 4]
            assert _read(tree, "hw_counters/sent_bytes") == four[2]
            keeper.terminate()
            assert keeper.wait(timeout=cases.patience(30)) == 0
        finally:
            keeper.kill()


def node_exporter_sees_the_counters():
    if not shutil.which("prometheus-node-exporter"):
        raise cases.Skip("prometheus-node-exporter is not installed")
    tree, port = f"{TEMPORARY}/exported", _free_port()
    with _running(9) as process:
        four = _settled(process.pid)
        expect(softverbs("sysfs", "--once", tree))
        with subprocess.Popen(["prometheus-node-exporter", f"--path.sysfs={tree}", "--collector.disable-defaults", "--collector.infiniband",
                               f"--web.listen-address=127.0.0.1:{port}"], stderr=subprocess.DEVNULL) as exporter:
            try:
                text, deadline = "", cases.until(30)
                while not text:
                    try:
                        text = _get(f"http://127.0.0.1:{port}/metrics")
                    except OSError:
                        assert time.monotonic() < deadline and exporter.poll() is None
                        time.sleep(0.1)
            finally:
                exporter.kill()
        names = ("packets_transmitted", "packets_received", "data_transmitted_bytes", "data_received_bytes")
        seen = [_samples(text, f"node_infiniband_port_{name}_total") for name in names]
        assert seen == [[four[0]], [four[1]], [four[2] // 4 * 4], [four[3] // 4 * 4]], (seen, four)


def what_is_wrong_is_said():
    expect(softverbs("sysfs"), 2, err=None)
    expect(softverbs("sysfs", "/proc/nowhere/tree"), 1, err=[b"The tree can't be made in \"/proc/nowhere/tree\""])
    expect(softverbs("stat", "--listen", "x"), 2, err=[b'"x" is no port'])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        expect(softverbs("stat", "--listen", str(taken.getsockname()[1])), 1, err=[b"can't be listened on"])


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
