#!/usr/bin/env python3
"""softverbs around in front of Debian's libibverbs over the kernel's rxe, in the virtual machine of guest.py: the rules of the checker, programs of the
distribution, the stories of failures, and rdma-core's own tests with and without the layer. Prints TAP, and writes docs/evidence/around.md of the rows that
have run. The results of this commit stay in build/interop, so a run that was stopped goes on; words choose rows."""
import collections
import json
import os
import re
import shutil
import subprocess
import sys

from guest import HERE, OUR_ADDRESS, STATE, Guest, obstacle, softverbs_here
from report import in_brief, library

sys.path[:0] = [os.path.join(HERE, "../check"), os.path.join(HERE, "../tool")]
sys.argv[1:1] = ["--around"]
import rules_test  # noqa: E402
from cases import installed  # noqa: E402
from clients import BUILD, Failure, Program  # noqa: E402
from stories import plain  # noqa: E402
from wrapped import joined, write_page  # noqa: E402

WORDS = sys.argv[2:]
PAGE = os.path.join(HERE, "../../docs/evidence/around.md")
BEGIN, END = "<!-- the last run -->\n", "<!-- the end of the last run -->\n"
SHARED, THERE = f"{STATE}/share/around", "/share/around"  # here and in the guest
ROOT = "/root/around"  # what was copied in the guest, which executes no file of /share
AROUND = f"{ROOT}/bin/softverbs around"
RDMA_CORE = os.environ.get("SOFTVERBS_RDMA_CORE", "")  # a repository of rdma-core
# Its releases at which the private number or a node changed, and the branch of the one to come; the guest's own is the release of the tests.
RELEASES = {"25": "v25.0", "33": "v33.0", "34": "v34.0", "44": "v44.0", "57": "v57.0", "59": "v59.0", "64": "v64.0", "65": "master"}
OF_GUEST = "44"
EVERY_RULE = [rule for rule, _, _ in rules_test._rules()]  # pylint: disable=protected-access
VARIANTS = ("faulty", "neighbour", "twin")

# Programs of the distribution; {} stands before each of their two ends.
PREPARE = "wait_for() { for i in $(seq 300); do grep -qi \":$(printf %04X $1) .* 0A \" /proc/net/tcp /proc/net/tcp6 && return; sleep 0.1; done; return 1; }; "
PAIR = "{{}} {0} >/dev/null & wait_for {1} && {{}} {2} && wait $!"
PROGRAMS = {
    "ibv_rc_pingpong -c": PAIR.format("ibv_rc_pingpong -g 1 -c -n 50 -p 7001", 7001, "ibv_rc_pingpong -g 1 -c -n 50 -p 7001 192.0.2.11"),
    "ibv_rc_pingpong -e": PAIR.format("ibv_rc_pingpong -g 1 -e -n 50 -p 7002", 7002, "ibv_rc_pingpong -g 1 -e -n 50 -p 7002 192.0.2.11"),
    "ibv_rc_pingpong -N": PAIR.format("ibv_rc_pingpong -g 1 -N -n 50 -p 7003", 7003, "ibv_rc_pingpong -g 1 -N -n 50 -p 7003 192.0.2.11"),
    "ibv_ud_pingpong": PAIR.format("ibv_ud_pingpong -g 1 -n 50 -p 7004", 7004, "ibv_ud_pingpong -g 1 -n 50 -p 7004 192.0.2.11"),
    "ibv_srq_pingpong": PAIR.format("ibv_srq_pingpong -g 1 -n 50 -p 7005", 7005, "ibv_srq_pingpong -g 1 -n 50 -p 7005 192.0.2.11"),
    "ib_write_bw": PAIR.format("ib_write_bw -F -x 1 -n 20 -p 7006", 7006, "ib_write_bw -F -x 1 -n 20 -p 7006 192.0.2.11"),
    "ib_send_lat": PAIR.format("ib_send_lat -F -x 1 -n 20 -p 7007", 7007, "ib_send_lat -F -x 1 -n 20 -p 7007 192.0.2.11"),
    "ib_read_bw": PAIR.format("ib_read_bw -F -x 1 -n 20 -p 7008", 7008, "ib_read_bw -F -x 1 -n 20 -p 7008 192.0.2.11"),
    "rping -V": "{} rping -s -V -C 10 -a 192.0.2.11 & sleep 3; {} rping -c -V -C 10 -a 192.0.2.11 && wait $!",
    "fi_pingpong -p verbs": "{} fi_pingpong -p verbs -e msg -I 10 -B 7009 & wait_for 7009 && {} fi_pingpong -p verbs -e msg -I 10 -P 7009 192.0.2.11 && wait $!",
    # without UCP, which connects by UD: its end points time out in an emulated machine
    "ucx_perftest am_lat": PAIR.format("ucx_perftest -p 7010", 7010, "ucx_perftest -p 7010 -t am_lat -d rxe0:1 -x rc_verbs -n 20 192.0.2.11").replace(
        "{}", "UCX_IB_GID_INDEX=1 {}"),
}
LAYERS = {
    "alone": "",
    "--check": f"{AROUND} --check=notes --log none --",
    "--trace": f"{AROUND} --trace --trace-file /tmp/trace --log none --",
    "--inject": f"{AROUND} --inject 'when ibv_reg_mr, nth 1: delay 10ms' --log none --",
    "--story": f"{AROUND} --story /tmp/story --log none --",
}

# Causes of tests/tool/stories.c, what the story must say, and whether that names the guilty end.
CAUSES = {
    "remote-key": "S refused it: key K names no memory region", "remote-range": "S refused it: key K belongs to a region of 1024 bytes; 512 bytes at offset 768 do not fit",
    "no-receive": "Queue pair s of S has no receive posted", "nobody": "No file has a story of a queue pair 0xabcdef",
    "short-receive": "S refused it: the message has 512 bytes, and the receive of wr_id 5 has room for 256",
    "remote-permission": "this needs IBV_ACCESS_REMOTE_WRITE", "first-psn": "the peer's rq_psn must be this sq_psn",
    "peer-moved": "S itself moved queue pair s to ERR", "dead": "No file has a story of a queue pair s", "send-key": "key K names no memory region",
    "receive-key": "S refused it: key K names no memory region", "strange": "is connected with another, and not with c", "exited": "destroyed queue pair s before that, or ended",
}


# Rules that are not found over rxe in the faulty program, and why.
NOT_OVER_RXE = {rule: "needs softverbs' own devices" for rule in rules_test.NOT_AROUND} | {
    "thread-domain": "rxe has no thread domains", "gid-families": "rxe refuses the call", "read-sink-access": "of iWARP",
    "memlock-exceeded": "the program does not survive the kernel's refusal", "file-not-pinned": "the kernel refuses to register the file",
    "send-queue-stuck": "the queue takes more than the program has asked for",
}


# Causes that the story does not name: the receiver's queue pair stays in RTS there, and its program gets no completion.
NOT_NAMED = ("short-receive", "receive-key")


def _rule_rows():
    for rule, level, _ in rules_test._rules():  # pylint: disable=protected-access
        words = "notes" if level == "FAILED" else "notes,-failed-work"
        program = os.path.basename(rules_test._program(rule))  # pylint: disable=protected-access
        for variant in VARIANTS:
            report = f"/tmp/{rule}-{variant}"
            yield {"name": f"rule {rule} {variant}", "seconds": 60, "files": [report],
                   "command": f"{AROUND} --check={words} --check-report={report} --log none -- env MISTAKES_ADDRESS=192.0.2.11 {ROOT}/{program} {rule} {variant}"}


def _program_rows():
    for name, command in PROGRAMS.items():
        for layer, before in LAYERS.items():
            yield {"name": f"program {name}, {layer}", "seconds": 120, "files": [], "command": PREPARE + command.replace("{}", before) + "; s=$?; rm -f /tmp/trace /tmp/story; exit $s"}


def _cause_rows():
    for cause in CAUSES:
        story = f"/tmp/story-{cause}"
        yield {"name": f"cause {cause}", "seconds": 120, "files": [story],
               "command": f"{AROUND} --story {story} --log none -- {ROOT}/stories {cause} 7 && {ROOT}/bin/softverbs why --from {story} >&2"}


# The causes of the self-test, and some words that each story has.
SELFTEST = {"wrong-key": "names no memory region", "wrong-address": "do not fit", "no-right": "IBV_ACCESS_REMOTE_WRITE", "no-receive": "has no receive posted",
            "wrong-psn": "rq_psn must be", "nobody": "No file has a story", "flushed": "itself moved"}


def _selftest_row():
    yield {"name": "self-test", "seconds": 300, "files": [], "command": f"{AROUND} --selftest=rxe0"}


# rxe keeps the completions of a queue pair that is gone, which softverbs' own library drops.
def _turned_row():
    for program, name in ("turned", "turned work"), ("events", "turned events"):
        yield {"name": name, "seconds": 120, "files": [],
               "command": f"SOFTVERBS_DIR=/tmp {ROOT}/around_{program} $(find {ROOT} -name libsoftverbs-around.so) plain > /tmp/tap; left=$?; tail -n 3 /tmp/tap; exit $left"}


# The peer is softverbs on this side of the bridge. The link of the guest goes down in the midst of the exchange.
LINK_DOWN = "link down"
PEER = ["ibv_rc_pingpong", "-g", "1", "-n", "100000000", "-p", "7030"]


def _link_row():
    story = "/tmp/story-link"
    yield {"name": LINK_DOWN, "seconds": 120, "files": [story],
           "command": f"{AROUND} --story {story} --log none -- ibv_rc_pingpong -d rxe0 -g 1 -n 100000000 -p 7030 {OUR_ADDRESS} & sleep 12; ip link set eth0 down; wait $!; "
                      f"ip link set eth0 up; {ROOT}/bin/softverbs why --from {story} >&2"}


def _release_rows():
    for release in RELEASES if RDMA_CORE else ():
        here = f"{BUILD}/interop/rdma-core-{release}"
        of_release = f"export LD_LIBRARY_PATH={here}/build/lib; "
        command = PAIR.format(f"{here}/build/bin/ibv_rc_pingpong -g 1 -c -n 50 -p 7020", 7020, f"{here}/build/bin/ibv_rc_pingpong -g 1 -c -n 50 -p 7020 192.0.2.11")
        for layer, before in LAYERS.items():
            yield {"name": f"release {release}, {layer}", "seconds": 120, "files": [],
                   "command": PREPARE + of_release + command.replace("{}", before) + "; s=$?; rm -f /tmp/trace /tmp/story; exit $s"}


def _suite_rows():
    if not RDMA_CORE:
        return

    for layer, before in SUITE_LAYERS.items():
        yield {"name": f"suite {layer}", "seconds": 3000, "files": [], "command": f"cd {ROOT}/pyverbs && {before} python3 tests/run_tests.py -v --dev rxe0 --gid 1 2>&1"}


SUITE_LAYERS = {"alone": "", "--check and --trace": f"{AROUND} --check=notes --trace --trace-file /dev/null --log none --"}


def rows():
    yield from _rule_rows()
    yield from _program_rows()
    yield from _cause_rows()
    yield from _selftest_row()
    yield from _turned_row()
    yield from _link_row()
    yield from _release_rows()
    yield from _suite_rows()


# -- what each row says

def _findings(row, rule, variant):
    """The rules of the report, but for those that the mistake breaks beside its own; None: there is no report."""
    text = row["files"].get(f"/tmp/{rule}-{variant}")
    if text is None:
        return None
    lines = [json.loads(line) for line in text.splitlines()]
    return [line["rule"] for line in lines if "text" in line and line["rule"] not in rules_test.TOO.get((rule, variant), ())]


def _how_it_ended(row):
    """"" for a program that ended well."""
    said = [line for line in (row["out"] + row["err"]).splitlines() if line.strip()]
    return "" if row["status"] == 0 else "did not end" if row["status"] == "late" else f"status {row['status']}" + (f": {said[-1]}" if said else "")


def _of_variant(row, rule, variant):
    """The table's word for a case: found, silent, or why the program does not get there."""
    found = _findings(row, rule, variant)
    if found and rule in found:
        return "found"
    if found and variant == "twin" and row["status"] == 0:
        return "found " + " ".join(sorted(set(found)))
    return _how_it_ended(row) or "silent"


def _judge_program(row):
    return _how_it_ended(row) or "ok"


def _judge_selftest(row):
    """Whether each story names its cause, and the self-test has come to its end."""
    parts = dict(re.findall(r"^([a-z-]+): (.*?)(?=^[a-z-]+: |^With|\Z)", row["out"], re.M | re.S))
    unnamed = [cause for cause, word in SELFTEST.items() if word not in parts.get(cause, "")]
    ended = "has come to its end" in row["out"] and "right: transport retry counter exceeded, vendor_err 129" in row["out"]
    return "ok" if not unnamed and ended else f"not named: {' '.join(unnamed)}{'' if ended else '; ' + _how_it_ended(row)}"


def _judge_cause(cause, row):
    """Whether the story names the cause."""
    numbers = [int(word) for word in row["out"].split()[:4]]
    if len(numbers) != 4:
        return _how_it_ended(row) or "no story"
    said = " ".join(plain(row["err"], numbers))
    if cause in NOT_NAMED and CAUSES[cause] not in said:
        return "not named: the receiver's program gets no completion"
    return "named" if CAUSES[cause] in said else f"not named: {said}"


def _judge_link(row):
    said = " ".join(row["err"].split())
    return "named" if "ended the work request with an error" in said and " was down when the story was written: its cable, the switch" in said else f"not named: {said}"


def _counts(row):
    """(results of unittest and the number of tests with each, names of those that did not pass)"""
    results = re.findall(r"^(test_\w+) \((\S+)\).*? \.\.\. (ok|FAIL|ERROR|skipped)", row["out"], re.M | re.S)
    return collections.Counter(result for _, _, result in results), {(name, of): result for name, of, result in results}


def judge(row, results):
    """None for a row that says what it must, or what it says instead. A program that fails alone fails with each layer, too."""
    kind, _, name = row["name"].partition(" ")
    if kind == "rule":
        rule, variant = name.split()
        said = _of_variant(row, rule, variant)
        good = rule in NOT_OVER_RXE or variant == "neighbour" or said == {"faulty": "found", "twin": "silent"}[variant]
        return None if good else said
    if kind == "self-test":
        return None if _judge_selftest(row) == "ok" else _judge_selftest(row)
    alone = results.get(row["name"].rpartition(", ")[0] + ", alone", row)
    if kind == "turned":
        return _how_it_ended(row) or None
    if row["name"] == LINK_DOWN:
        return None if _judge_link(row) == "named" else _judge_link(row)
    if kind in ("program", "release") and _judge_program(alone) != "ok":
        return None if _judge_program(row) != "ok" else "it ends well, and not so alone"
    if kind in ("program", "release"):
        return None if _judge_program(row) == "ok" else _judge_program(row)
    if kind == "cause":
        return None if _judge_cause(name, row) == "named" or name in NOT_NAMED else _judge_cause(name, row)
    return None


# -- the page

def _rule_table(results):
    yield "| rule | faulty | neighbour | twin | why it is not found |\n|---|---|---|---|---|\n"
    cells = []
    for rule in EVERY_RULE:
        said = [_of_variant(results[f"rule {rule} {variant}"], rule, variant) if f"rule {rule} {variant}" in results else "not run" for variant in VARIANTS]
        cells.append([rule, *map(in_brief, said)])
    found = [row for row in cells if "found" in row[1:3]]
    for row in cells:
        row.append(NOT_OVER_RXE.get(row[0], ""))
    yield joined(cells) + "\n"
    yield f"\n{len(found)} of {len(cells)} rules are found; {sum(row[3] == 'silent' for row in cells)} twins end without a finding.\n\n"


def _program_table(results):
    yield "| program | " + " | ".join(LAYERS) + " |\n" + "|---" * (len(LAYERS) + 1) + "|\n"
    yield joined([name, *(in_brief(_judge_program(results[f"program {name}, {layer}"])) if f"program {name}, {layer}" in results else "not run" for layer in LAYERS)]
                 for name in PROGRAMS) + "\n\n"


def _release_table(results):
    yield "| rdma-core | " + " | ".join(LAYERS) + " |\n" + "|---" * (len(LAYERS) + 1) + "|\n"
    yield joined([release, *(in_brief(_judge_program(results[f"release {release}, {layer}"])) if f"release {release}, {layer}" in results else "not run" for layer in LAYERS)]
                 for release in RELEASES) + "\n\n"


def _suite_line(results):
    """The results of rdma-core's tests alone and with the layers in front."""
    both = [results.get(f"suite {layer}") for layer in SUITE_LAYERS]
    if None in both:
        yield "rdma-core's own tests: not run.\n"
        return
    (counts, each), (counts_around, each_around) = map(_counts, both)
    said = ", ".join(f"{counts[word]} {word}" for word in sorted(counts))
    around = ", ".join(f"{counts_around[word]} {word}" for word in sorted(counts_around))
    others = sorted(name for name in each.keys() | each_around.keys() if each.get(name) != each_around.get(name))
    yield f"rdma-core's own tests (v{OF_GUEST}.0) alone: {said}; with the checker and the trace in front: {around}. "
    yield "Each test has the same result.\n" if not others else f"{len(others)} differ: " + ", ".join(name for name, _ in others) + ".\n"


def _cause_table(results):
    yield "| cause | the story |\n|---|---|\n"
    yield f"| the self-test | {in_brief(_judge_selftest(results['self-test']))} |\n"
    yield f"| {LINK_DOWN} | {in_brief(_judge_link(results[LINK_DOWN]))} |\n"
    yield joined([cause, in_brief(_judge_cause(cause, results[f"cause {cause}"])) if f"cause {cause}" in results else "not run"] for cause in CAUSES) + "\n\n"


def write(results, kernel):
    """Of a run that had all rows."""
    with open(PAGE, encoding="utf-8") as page:
        text = page.read()
    if BEGIN not in text or END not in text:
        raise Failure(f"{PAGE} has no place for the tables")
    with write_page(PAGE) as page:
        page.write(text[:text.index(BEGIN) + len(BEGIN)])
        page.write(f"softverbs as of commit {library()}, in front of Debian 12's libibverbs over rxe of Linux {kernel}:\n\n")
        page.writelines([*_rule_table(results), *_program_table(results), *_cause_table(results), *_release_table(results), *_suite_line(results)])
        page.write(text[text.index(END):])


# -- the run

def _built(release):
    """A directory with this release; its library, rxe's driver and a program are built to run there."""
    path = f"{BUILD}/interop/rdma-core-{release}"
    if os.path.exists(f"{path}/build/bin/ibv_rc_pingpong"):
        return path
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(f"{path}/build")
    subprocess.run(f"git -C {RDMA_CORE} archive {RELEASES[release]} | tar x -C {path}", shell=True, check=True)
    configure = ["cmake", "-DIN_PLACE=1", "-DNO_MAN_PAGES=1", "-DNO_PYVERBS=1", "-DCMAKE_BUILD_TYPE=Release", "-GNinja", ".."]
    with open(f"{path}/log", "w", encoding="utf-8") as log:
        subprocess.run(configure, cwd=f"{path}/build", check=True, stdout=log, stderr=log)
        with open(f"{path}/build/build.ninja", encoding="utf-8") as rules:
            driver = re.search(r"^build (lib/librxe-rdmav\d+\.so)", rules.read(), re.M)[1]
        subprocess.run(["ninja", "ibverbs", driver, "ibv_rc_pingpong"], cwd=f"{path}/build", check=True, stdout=log, stderr=log)
    return path


def _copy_libraries(program):
    """The guest gets the libraries that it lacks."""
    for path in re.findall(r" => (/\S+)", subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout):
        shutil.copy(path, SHARED)


def _copy():
    """Copies all that the guest needs to where it sees that."""
    shutil.rmtree(SHARED, ignore_errors=True)
    os.makedirs(SHARED)
    installed(SHARED)
    for program in ("api/around_turned", "api/around_events", "check/mistakes", "check/mistakes_connections", "tool/stories"):
        shutil.copy(f"{BUILD}/tests/{program}", SHARED)
    shutil.copy(f"{HERE}/around_list.py", SHARED)
    for program in (f"{SHARED}/bin/softverbs", "/usr/bin/fi_pingpong"):
        _copy_libraries(program)
    shutil.copy("/usr/bin/fi_pingpong", f"{SHARED}/bin")
    for release in RELEASES if RDMA_CORE else ():
        built = _built(release)
        shutil.copytree(f"{built}/build/lib", f"{SHARED}/{release}/build/lib", symlinks=True)
        shutil.copytree(f"{built}/build/etc", f"{SHARED}/{release}/build/etc")
        os.makedirs(f"{SHARED}/{release}/build/bin")
        shutil.copy(f"{built}/build/bin/ibv_rc_pingpong", f"{SHARED}/{release}/build/bin")
    if RDMA_CORE:
        shutil.copytree(f"{_built(OF_GUEST)}/tests", f"{SHARED}/pyverbs/tests")


def _run(guest, wanted, kept):
    """Runs the rows that have not run yet; all results stay in the file `kept`."""
    _copy()
    with open(f"{SHARED}/list", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in wanted)
    if os.path.exists(kept):
        shutil.copy(kept, f"{SHARED}/results")
    links = "".join(f" && ln -sfn {ROOT}/{release} {BUILD}/interop/rdma-core-{release}" for release in RELEASES if RDMA_CORE)
    guest.ask(f"rm -rf {ROOT} && cp -a {THERE} {ROOT} && cp -n {ROOT}/*.so* /usr/lib/x86_64-linux-gnu/ && cp -n {ROOT}/bin/fi_pingpong /usr/bin && ldconfig && mkdir -p {BUILD}/interop" + links, 300)
    command = guest.command(f"python3 {ROOT}/around_list.py {THERE}/list {THERE}/results", sum(row["seconds"] for row in wanted))
    peer = Program(softverbs_here(BUILD, PEER), dict(os.environ)) if any(row["name"] == LINK_DOWN for row in wanted) else None
    status = os.spawnvp(os.P_WAIT, command[0], command)
    if peer:
        peer.kill()
    if os.path.exists(f"{SHARED}/results"):
        shutil.copy(f"{SHARED}/results", kept)
    if status:
        raise Failure(f"the list of the guest ended with status {status}")


def _read(kept):
    with open(kept, encoding="utf-8") as file:
        return {row["name"]: row for row in map(json.loads, file)}


def main():
    why = obstacle()
    if why:
        print(f"1..0 # SKIP {why}")
        return 0
    os.makedirs(f"{BUILD}/interop", exist_ok=True)
    kept = f"{BUILD}/interop/around-{library()}"
    wanted = [row for row in rows() if all(word in row["name"] for word in WORDS)]
    guest = Guest()
    guest.start()
    try:
        kernel = guest.ask("uname -r").strip()
        _run(guest, wanted, kept)
    finally:
        guest.stop()
    results = _read(kept)
    print(f"1..{len(wanted)}")
    wrong = {row["name"]: judge(results[row["name"]], results) for row in wanted}
    for number, (name, why) in enumerate(wrong.items(), 1):
        print(f"{'not ok' if why else 'ok'} {number} - {name}" + (f"\n# {why}" if why else ""))
    if not WORDS:
        write(results, kernel)
    return 1 if any(wrong.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
