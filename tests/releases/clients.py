#!/usr/bin/env python3
"""Every client of this machine's release of rdma-core on one softverbs: clients.py SOFTVERBS [WORDS].

Prints a line for each: ok, not ok or skip, its name, and what it said. Then the counts, as summary.py reads them. Runs in the
chroots of releases.sh, with the Python of Debian 11 and nothing but its standard library. WORDS choose rows.
"""
import collections
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../clients"))
from programs import rdma_core  # pylint: disable=wrong-import-position
PORT = iter(range(24000, 30000))
SOFTVERBS = os.path.abspath(sys.argv[1])


# docs/evidence/releases.md says why.
FAULTS_OF_THE_SUITE = ("test_multi_process_alloc_dm", "test_rdmacm_async_multicast_traffic", "test_rdmacm_async_ex_multicast_traffic")


def command(*words):
    return [SOFTVERBS, "run", "--", *words]


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip(" -#\n")]
    return lines[-1].strip()[:200] if lines else "nothing was printed"


def one(*words, must=""):
    done = subprocess.run(command(*words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False)
    text = done.stdout.decode(errors="replace")
    return done.returncode == 0 and re.search(must, text), last_line(text)


def pair(*words):
    """Server and client of a program on a separate port."""
    port = str(next(PORT))
    words = [word.replace("PORT", port) for word in words]
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(command(*words), stdout=log, stderr=subprocess.STDOUT)  # pylint: disable=consider-using-with
        try:
            for _ in range(20):
                time.sleep(0.3)
                done = subprocess.run(command(*words, "127.0.0.1"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
                text = done.stdout.decode(errors="replace")
                if not re.search("Couldn't connect|refused", text):
                    break
            status = server.wait(30)
        except subprocess.TimeoutExpired:
            return False, "it did not end"
        finally:
            server.kill()
            server.wait()
        log.seek(0)
        said = log.read().decode(errors="replace")
    failed = text if done.returncode else said
    return done.returncode == 0 and status == 0, last_line(text if done.returncode == status == 0 else failed)


def cm_pair(*words):
    """Programs of librdmacm: -s and -c, or nothing and an address."""
    port = str(next(PORT))
    server_words, client_words = ([word.replace("PORT", port) for word in part] for part in words)
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(command(*server_words), stdout=log, stderr=subprocess.STDOUT)  # pylint: disable=consider-using-with
        try:
            for _ in range(20):
                time.sleep(0.5)
                done = subprocess.run(command(*client_words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
                if b"REJECTED" not in done.stdout: # it is, until the server listens
                    break
            status = server.wait(30)
        except subprocess.TimeoutExpired:
            return False, "it did not end"
        finally:
            server.kill()
            server.wait()
    return done.returncode == 0 and status == 0, last_line(done.stdout.decode(errors="replace"))


def loads(path):
    source = f"import ctypes, os; ctypes.CDLL({path!r}, os.RTLD_NOW); print('loads')"
    return one("python3", "-c", source, must="^loads")


def newest():
    """newest.c, compiled here; None where the headers are older than what it uses."""
    with open("/usr/include/infiniband/verbs.h", encoding="utf-8") as header:
        if "ibv_create_comp_cntr" not in header.read():
            return None
    program = "/tmp/newest"
    subprocess.run(["cc", "-o", program, os.path.join(os.path.dirname(os.path.abspath(__file__)), "newest.c"), "-libverbs"], check=True)
    return program


def pyverbs(reasons):
    """The release's own suite. Fills `reasons` with why tests are skipped or fail."""
    with tempfile.TemporaryDirectory() as directory:
        rdma_core.unpack(directory)
        suite = ["python3", f"{directory}/run_tests.py"]
        known = subprocess.run([*suite, "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False).stdout.decode()
        choice = [word for option in ("--dev soft0", "--port 1", "--gid 1") if option.split()[0] in known for word in option.split()]
        done = subprocess.run(command(*suite, "-v", *choice),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1800, check=False)
    text = done.stdout.decode(errors="replace")
    with open("/tmp/pyverbs.log", "w", encoding="utf-8") as log:
        log.write(text)
    try:
        answers = rdma_core.read(text)
    except rdma_core.Failure:
        return False, "it ended early: " + last_line(text)
    counts = collections.Counter(answer.outcome for answer in answers)
    for answer in answers:
        if answer.outcome != "ok":
            reasons[answer.reason or f"{answer.outcome}: {answer.name}"] += 1
    failed = [answer.name for answer in answers if answer.outcome in ("FAIL", "ERROR")]
    own = [name for name in failed if name in FAULTS_OF_THE_SUITE]
    sentence = f"{counts['ok']} of {len(answers)} pass, {len(failed) - len(own)} fail, {counts['skipped']} skipped"
    return counts["ok"] and failed == own, sentence + (f", {len(own)} fail by the suite's own fault" if own else "")


def rows(reasons):
    """Name, the program that it needs, the test."""
    yield "ibv_devices", "ibv_devices", lambda: one("ibv_devices", must="soft0")
    yield "ibv_devinfo -v", "ibv_devinfo", lambda: one("ibv_devinfo", "-v", must="PORT_ACTIVE")
    for kind in ("rc", "uc", "ud", "srq", "xsrq"):
        program = f"ibv_{kind}_pingpong"
        check = [] if kind == "xsrq" else ["-c"]
        yield program, program, lambda program=program, check=check: pair(program, *check, "-g", "0", "-p", "PORT", "-n", "200")
    for options in ("-N", "-t", "-o", "-j"):
        yield f"ibv_rc_pingpong {options}", "ibv_rc_pingpong", lambda options=options: pair(
            "ibv_rc_pingpong", "-g", "0", "-p", "PORT", "-n", "200", options)
    for option in ("--check=notes", "--trace", "--story=/tmp/story"):
        yield f"around {option.partition('=')[0]}, ibv_rc_pingpong", "ibv_rc_pingpong", lambda option=option: pair(
            SOFTVERBS, "around", option, "--log", "none", "--", "ibv_rc_pingpong", "-c", "-g", "0", "-p", "PORT", "-n", "200")
    for kind in ("send", "write", "read", "atomic"):
        for measure in ("bw", "lat"):
            program = f"ib_{kind}_{measure}"
            yield program, program, lambda program=program: pair(program, "-p", "PORT", "-n", "500")
    yield "ib_send_bw -c UD", "ib_send_bw", lambda: pair("ib_send_bw", "-c", "UD", "-p", "PORT", "-n", "500")
    yield "ib_write_bw --old_post_send", "ib_write_bw", lambda: pair("ib_write_bw", "--use_old_post_send", "-p", "PORT", "-n", "500")
    yield "ib_write_lat -R", "ib_write_lat", lambda: pair("ib_write_lat", "-R", "-p", "PORT", "-n", "200")
    for library in sorted(glob.glob("/usr/lib/*/libibverbs/*-rdmav*.so") + glob.glob("/usr/lib/*/lib[a-z0-9]*.so.1")):
        name = os.path.basename(library)
        if "/libibverbs/" in library or re.match(r"lib(mlx[45]|efa|hns|mana|ionic|bnxt_re|rdmacm)\.so", name):
            yield f"loads {name}", None, lambda library=library: loads(library)
    yield "libibumad loads", None, lambda: loads("libibumad.so.3")
    yield "rping", "rping", lambda: cm_pair(["rping", "-s", "-C", "20", "-p", "PORT"], ["rping", "-c", "-a", "127.0.0.1", "-C", "20", "-p", "PORT"])
    yield "ucmatose", "ucmatose", lambda: cm_pair(["ucmatose", "-p", "PORT"], ["ucmatose", "-s", "127.0.0.1", "-p", "PORT"])
    yield "rdma link show -j", None, lambda: one("rdma", "link", "show", "-j", must="soft0")
    if glob.glob("/usr/lib/*/ucx/libuct_ib.so*"): # Debian's newest UCX has no verbs
        yield "ucx_info -d", "ucx_info", lambda: one("ucx_info", "-d", must="soft0")
    yield "fi_info -p verbs", "fi_info", lambda: one("fi_info", "-p", "verbs", must="soft0")
    if shutil.which("cc") and newest():
        yield "a program of release 65's headers", None, lambda: one("/tmp/newest", must="answers")
    yield "pyverbs' own suite", rdma_core.SHIPPED, lambda: pyverbs(reasons)


def main():
    words = sys.argv[2] if len(sys.argv) > 2 else ""
    reasons, counts = collections.Counter(), collections.Counter()
    for name, needs, test in rows(reasons):
        if words not in name:
            continue
        if needs and not shutil.which(needs) and not os.path.exists(needs):
            print(f"skip\t{name}\tnot in this release", flush=True)
            counts["skipped"] += 1
            continue
        try:
            passed, said = test()
        except (OSError, subprocess.TimeoutExpired) as error:
            passed, said = False, str(error)[:200]
        counts["ok" if passed else "not ok"] += 1
        print(f"{'ok' if passed else 'not ok'}\t{name}\t{said}", flush=True)
    for why, count in sorted(reasons.items()):
        if count:
            print(f"why\t{count}\t{why}")
    print(f"count\t{counts['ok']}\t{counts['not ok']}\t{counts['skipped']}")
    return counts["not ok"] != 0


if __name__ == "__main__":
    sys.exit(main())
