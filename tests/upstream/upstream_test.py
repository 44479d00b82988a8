#!/usr/bin/env python3
"""upstream.py with made-up projects: suites that pass, fail, hang, crash, say nothing, are missing; and what the tree has of entries. Prints TAP."""
import contextlib
import fcntl
import io
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, f"{HERE}/../clients"]
sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
import entry as entries
import formats
import page
import upstream
from patience import until

HEAD = 'title = "a made-up suite"\norigin = "nowhere"\ncheckout = "made"\n'
ENDS = 30  # seconds in which a made-up suite ends


def part(run, form="lines", seconds=ENDS, more=""):
    return f"[[part]]\nname = 'all'\nformat = '{form}'\nseconds = {seconds}\n{more}\nrun = '''\n{run}\n'''\n"


def running(words):
    """The numbers of processes with these words in their command lines, one a line."""
    return subprocess.run(["pgrep", "-f", words.replace(".", "[.]")], capture_output=True, text=True, check=False).stdout


class Desk:
    """A directory with checkouts, entries and results; `run` is one run of upstream.py in it."""

    def __init__(self, top):
        self.top = top
        os.makedirs(f"{top}/checkouts/made")
        os.makedirs(f"{top}/entries")

    def entry(self, text, name="made"):
        with open(f"{self.top}/entries/{name}.toml", "w", encoding="utf-8") as file:
            file.write(HEAD + text)

    def run(self, *words):
        """The exit status, and what was printed."""
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status = upstream.main([f"{self.top}/checkouts", "--entries", f"{self.top}/entries", "--results", f"{self.top}/results",
                                    "--work", f"{self.top}/work", "--out", f"{self.top}/page.md", *words])
        return status, said.getvalue()

    def page(self):
        with open(f"{self.top}/page.md", encoding="utf-8") as file:
            return file.read()

    def result(self, name="all"):
        with open(f"{self.top}/results/made.json", encoding="utf-8") as file:
            return json.load(file)[name]


def equal(got, wanted):
    if got != wanted:
        raise AssertionError(f"got {got!r}, wanted {wanted!r}")


def has(text, *wanted):
    for one in wanted:
        if one not in text:
            raise AssertionError(f"no {one!r} in:\n{text}")


def a_suite_that_passes_is_counted(desk):
    desk.entry(part("echo ok one; echo ok two; echo skipped three: no card"))
    status, said = desk.run()
    equal((status, desk.result()["passed"], desk.result()["skipped"]), (0, 2, {"no card": 1}))
    has(said, "made: all: 2 passed, 0 failed, 1 skipped", "every failure has its cause")
    has(desk.page(), "| all | 2 | 0 | 1 |", "| 1 | no card |")


def a_failure_without_a_cause_ends_with_1(desk):
    desk.entry(part("echo ok one; echo FAILED two: it broke; false"))
    status, said = desk.run()
    equal(status, 1)
    has(said, "no cause is known: all: two: it broke")
    has(desk.page(), "| 1 | unknown | it broke | `two` |")


def a_failure_with_a_cause_ends_with_0(desk):
    desk.entry(part("echo FAILED two: it broke; false") + "[[cause]]\ntests = '^all: two: it broke$'\nof = 'theirs'\nwhy = 'it divides by zero'\n")
    equal(desk.run()[0], 0)
    has(desk.page(), "| 1 | theirs | it divides by zero | `two` |")


def a_suite_that_hangs_is_ended_and_has_failed(desk):
    desk.entry(part("echo ok one; (sleep 1000; true) & sleep 1000", seconds=1))
    status, said = desk.run()
    equal((status, len(desk.result()["failed"])), (1, 1))
    has(said, "all: it did not end in time")


def a_suite_that_prints_nothing_has_failed(desk):
    desk.entry(part("true"))
    equal(desk.run()[0], 1)
    has(desk.result()["failed"][0][1], "no test gave an answer; status 0")


def a_suite_that_ends_badly_without_a_failed_test_has_failed(desk):
    desk.entry(part("echo ok one; exit 3"))
    equal(desk.run()[0], 1)
    has(desk.result()["failed"][0][1], "status 3, although no test failed")


def a_project_that_is_missing_is_left_out(desk):
    desk.entry(part("echo ok one"))
    shutil.rmtree(f"{desk.top}/checkouts/made")
    status, said = desk.run()
    equal(status, 0)
    has(said, "made: not run: there is no ")
    equal(desk.run("--only", "made")[0], 1)
    has(desk.page(), "## Not run", "| made (nowhere) |")


def a_project_that_does_not_build_is_reported(desk):
    desk.entry("build = 'echo no compiler; false'\n" + part("echo ok one"))
    status, said = desk.run()
    equal(status, 1)
    has(said, "it does not build, status 1: no compiler")


def an_entry_that_cannot_run_says_why(desk):
    desk.entry("not_run = 'it wants a card'\n")
    equal(desk.run()[0], 0)
    has(desk.page(), "| made (nowhere) | it wants a card |")


def a_run_goes_on_where_it_was(desk):
    count = f"{desk.top}/count"
    desk.entry(part(f"echo x >>{count}; echo ok one"))
    desk.run()
    desk.run()
    equal(os.path.getsize(count), 2)
    desk.run("--again")
    equal(os.path.getsize(count), 4)
    desk.entry(part(f"echo x >>{count}; echo ok two"))
    desk.run()
    equal(os.path.getsize(count), 6)


def a_list_runs_one_by_one(desk):
    desk.entry(part("echo starts; [ $TEST != b ]", "exit", more="each = 'echo a; echo b; echo c'"))
    equal(desk.run()[0], 1)
    equal((desk.result()["passed"], desk.result()["failed"]), (2, [["b", "starts"]]))


def a_list_goes_on_behind_what_ran(desk):
    count = f"{desk.top}/count"
    desk.entry(part(f"echo $TEST >>{count}", "exit", more="each = 'echo a; echo b; echo c'"))
    desk.run()
    state = f"{desk.top}/work/made/state.json"
    with open(state, encoding="utf-8") as file:
        known = json.load(file)
    del known["all"]["tests"]["b"]
    known["all"]["result"] = None
    with open(state, "w", encoding="utf-8") as file:
        json.dump(known, file)
    desk.run()
    with open(count, encoding="utf-8") as file:
        equal(file.read().split(), ["a", "b", "c", "b"])
    equal(desk.result()["passed"], 3)


def an_empty_list_is_no_success(desk):
    desk.entry(part("true", "exit", more="each = 'true'"))
    status, said = desk.run()
    equal(status, 1)
    has(said, "its list of tests is empty")


def a_suite_has_softverbs_in_its_path(desk):
    desk.entry(part('command -v softverbs; [ -d "$SOFTVERBS_DIR" ] && echo ok one'))
    equal(desk.run()[0], 0)


def a_result_names_the_commit_of_the_softverbs_that_ran(desk):
    desk.entry(part('echo "skipped it: $(softverbs --version | grep ^built)"; echo ok one'))
    desk.run()
    equal(list(desk.result()["skipped"]), [f"built from {desk.result()['softverbs']}"])


def what_a_suite_leaves_behind_is_ended(desk):
    left = f"sleep 1000.{os.getpid()}"
    desk.entry(part(f"{left} & echo ok one"))
    equal(desk.run()[0], 0)
    equal(running(left), "")


def a_second_run_of_an_entry_is_kept_out(desk):
    desk.entry(part("echo ok one"))
    os.makedirs(f"{desk.top}/work/made")
    with open(f"{desk.top}/work/made/lock", "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        status, said = desk.run()
    equal(status, 1)
    has(said, "made: not run: another run of it is at work")


def a_run_that_is_ended_ends_its_suite(desk):
    mark, left = f"{desk.top}/mark", f"sleep 1000.7{os.getpid()}"
    desk.entry(part(f"echo x >{mark}; {left}; echo ok one"))
    words = [f"{desk.top}/checkouts", "--entries", f"{desk.top}/entries", "--results", f"{desk.top}/results", "--work", f"{desk.top}/work", "--out", f"{desk.top}/page.md"]
    with subprocess.Popen([sys.executable, f"{HERE}/upstream.py", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        end = until(ENDS)
        while not os.path.exists(mark) and time.monotonic() < end:
            time.sleep(0.05)
        run.terminate()
    while (found := running(left)) and time.monotonic() < end:  # killed, but not all gone at once
        time.sleep(0.05)
    equal(found, "")


def a_run_that_is_ended_while_it_starts_a_suite_ends_that(desk):
    left, end, begin = f"sleep 1000.8{os.getpid()}", until(ENDS), subprocess.Popen
    desk.entry(part(f"{left}; echo ok one"))
    def begin_and_be_ended(command, *more, **how):
        process = begin(command, *more, **how)
        if left in command[-1]:
            os.kill(os.getpid(), signal.SIGTERM)
        return process
    subprocess.Popen = begin_and_be_ended
    try:
        status = desk.run()[0]
    except SystemExit as ended:
        status = ended.code
    finally:
        subprocess.Popen = begin
    while (found := running(left)) and time.monotonic() < end:
        time.sleep(0.05)
    equal((status, found), (128 + signal.SIGTERM, ""))


@contextlib.contextmanager
def chrooted(desk, lines):
    """A script in the place of release.sh."""
    runner = f"{desk.top}/release.sh"
    with open(runner, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\n{lines}\n")
    os.chmod(runner, 0o755)
    kept, upstream.IN_RELEASE = upstream.IN_RELEASE, runner
    try:
        yield
    finally:
        upstream.IN_RELEASE = kept


def an_entry_of_another_release_runs_in_a_chroot_of_it(desk):
    desk.entry("release = 'potato'\n" + part("echo ok one"))
    with chrooted(desk, f'echo "$@" >{desk.top}/words'):
        equal(desk.run("--part", "a")[0], 0)
    with open(f"{desk.top}/words", encoding="utf-8") as file:
        words = file.read().split()
    equal(words[0], "potato")
    equal({upstream.TREE, upstream.BUILD, f"{desk.top}/checkouts", f"{desk.top}/checkouts/made", f"{desk.top}/work", f"{desk.top}/results"} - set(words[1].split(":")), set())
    equal(words[2:7], [f"{desk.top}/checkouts", "--only", "made", "--part", "a"])
    equal(os.path.exists(f"{desk.top}/work/made"), False)
    with chrooted(desk, "exit 3"):
        status, said = desk.run()
    equal(status, 1)
    has(said, "made: in a chroot of potato it ended with 3")


def an_entry_of_this_release_runs_here(desk):
    desk.entry(f"release = '{platform.freedesktop_os_release().get('VERSION_CODENAME', '')}'\n" + part("echo ok one"))
    with chrooted(desk, "exit 3"):
        equal(desk.run()[0], 0)
    equal(desk.result()["passed"], 1)


def an_entry_of_some_paths_copies_these(desk):
    made = f"{desk.top}/checkouts/made"
    for path in ("wanted/a", "other/b"):
        os.makedirs(os.path.dirname(f"{made}/{path}"))
        with open(f"{made}/{path}", "w", encoding="utf-8") as file:
            file.write(path)
    subprocess.run("git init -q && git add . && git -c user.name=a -c user.email=a@b commit -qm a && rm .git/objects/$(git rev-parse HEAD:other/b | sed 's,..,&/,')", shell=True, cwd=made, check=True)
    desk.entry("only = ['wanted']\n" + part("ls other || { cat wanted/a; echo; echo ok one; }"))
    equal(desk.run()[0], 0)
    desk.entry("only = ['absent']\nbuild = 'true'\n" + part("echo ok one"))
    status, said = desk.run()
    equal(status, 1)
    has(said, "git archive in ", "'absent' did not match")


def an_entry_that_is_wrong_is_refused(desk):
    for text, words in ((part("true", "fortran"), "there is no format fortran"), ("", "an entry has parts"), (part("true") + "[[cause]]\ntests='x'\nof='fate'\nwhy=''\n", "not of fate"),
                        ("colour = 'red'\n" + part("true"), "colour"), ("[", "made: ")):
        desk.entry(text)
        try:
            desk.run()
        except entries.Mistake as mistake:
            has(str(mistake), words)
        else:
            raise AssertionError(f"{text} was accepted")


def an_entry_that_is_not_there_is_named(desk):
    desk.entry(part("true"))
    status, said = desk.run("--only", "maid")
    equal(status, 2)
    has(said, "there is no entry maid; there are made")


OUTPUTS = {  # format: output, passed, failed, skipped
    "unittest": ("test_a (tests.test_x.A.test_a) ... ok\ntest_b (tests.test_x.A.test_b)\nAbout b. ... skipped 'no look'\ntest_c (tests.test_x.A.test_c) ... FAIL\nRan 3 tests in 1.0s\n", 1,
                 ["test_c (tests.test_x.A.test_c)"], {"no look": 1}),
    "gtest": ("[ RUN      ] rc/a.b/0\n[       OK ] rc/a.b/0 (1 ms)\n[ RUN      ] a.c\n[     SKIP ] (no rcache)\n[       OK ] a.c (0 ms)\n[ RUN      ] a.d\n[  FAILED  ] a.d, where GetParam() = 3 (5 ms)\n"
              "[ RUN      ] a.e\nSegmentation fault\n", 1, ["a.d", "a.e"], {"no rcache": 1}),
    "cargo": ("running 3 tests\ntest a::b ... ok\ntest c ... FAILED\ntest d ... ignored, wants a card\n", 1, ["c"], {"wants a card": 1}),
    "pytest": ("test_x.py::test_a[num_qp=1] PASSED    [ 25%]\ntest_x.py::test_b FAILED [ 50%]\ntest_x.py::test_c SKIPPED (no RDMA NICs available) [ 75%]\ntest_x.py::test_d ERROR [100%]\n"
               "test_x.py::test_e SKIPPED [100%]\ntest_x.py::test_f SKIPPED [100%]\ntest_x.py::test_g SKIPPED [100%]\n"
               "FAILED test_x.py::test_b - assert 0\nSKIPPED [2] test_x.py:15: one host\nSKIPPED [1] x.py:9: no RDMA NICs available\n", 1,
               ["test_x.py::test_b", "test_x.py::test_d"], {"no RDMA NICs available": 2, "one host": 2}),
    "fabtests": ('- name:   fi_a -p "verbs"\n  result: Pass\n- name:   fi_x -a 1 -p "verbs"\n  result: Fail\n  server_stdout: |\n    Warn: late\n    fi_x(): x.c:1, ret=-12 (no room)\n'
                 "    fi_y(): x.c:2, ret=-1\n- name:   ubertest\n  result: Fail [2/7]\n- name:   fi_y\n  result: Notrun\n  time:   0\n    fi_getinfo(): x.c:9, ret=-61 (No data)\n"
                 "- name:   fi_z\n  result: Notrun\n  time:   0\n- name:   fi_v\n  result: Excluded\n# Total Pass    1\n", 1, ['fi_x -a 1 -p "verbs"', "ubertest"],
                 {"fi_getinfo(): x.c:9, ret=-61 (No data)": 1, "no reason given": 1, "Excluded": 1}),
    "tap": ("1..4\nok 1 - a\nnot ok 2 - b\nok 3 - c # SKIP no d\nnot ok 4 - e # TODO later\n", 1, ["b"], {"SKIP no d": 1, "TODO later": 1}),
    "tcl": ("[ok]: A client (12 ms)\n[err]: Another in tests/unit/x.tcl\n[ignore]: a third\n", 1, ["Another in tests/unit/x.tcl"], {"no reason given": 1}),
    "ctest": (" 1/4 Test  #1: a_none .........   Passed    0.02 sec\n 2/4 Test #12: b ...***Failed    1.00 sec\n 3/4 Test #13: c ...***Skipped   0.01 sec\n 4/4 Test #14: d ...***Timeout  60.01 sec\n", 1,
              ["b", "d"], {"no reason given": 1}),
    "libvalkey": ("#01 Is able to deliver commands: PASSED\n#02 Times out: FAILED\n#03 Unix: SKIPPED\n", 1, ["Times out"], {"no reason given": 1}),
    "lines": ("ok a\nFAILED b: why\nskipped c: d\n", 1, ["b"], {"d": 1}),
}


def each_format_is_read(_):
    equal({kind for kind, form in formats.FORMATS.items() if form}, set(OUTPUTS))
    for kind, (text, passed, failed, skipped) in OUTPUTS.items():
        counts = formats.read(kind, "all", text, 1)
        equal((kind, counts.passed, [name for name, _ in counts.failed], dict(counts.skipped)), (kind, passed, failed, skipped))


def a_test_without_an_answer_does_not_pass_unseen(_):
    counts = formats.read("unittest", "all", "test_a (tests.test_x.A.test_a) ... ok\nRan 2 tests in 1.0s\n", 0)
    has(counts.failed[0][1], "the suite says that it has 2 tests, but 1 have an answer")
    equal(formats.read("exit", "all", "x\n", 77).skipped, {"x": 1})


def the_entries_of_the_tree_are_right(_):
    known = entries.read_all(f"{HERE}/entries")
    results = {entry.name: upstream.read_json(f"{HERE}/results/{entry.name}.json", {}) for entry in known}
    kept = set(os.listdir(f"{HERE}/results")) if os.path.isdir(f"{HERE}/results") else set()
    equal(kept, {f"{name}.json" for name, parts in results.items() if parts})
    equal([line for entry in known for line in upstream.without_cause(entry, results[entry.name])], [])
    with open(f"{upstream.TREE}/docs/evidence/upstream.md", encoding="utf-8") as file:
        if file.read() != page.text(known, results):
            raise AssertionError("docs/evidence/upstream.md is older than the entries and results: tests/upstream/upstream.py --page")


CASES = [case for name, case in list(globals().items()) if callable(case) and getattr(case, "__module__", "") == __name__ and "_" in name]


def attempt(case):
    with tempfile.TemporaryDirectory() as top:
        try:
            case(Desk(top))
        except (AssertionError, OSError, KeyError) as why:
            return str(why)
    return None


def main():
    failed = 0
    print(f"1..{len(CASES)}")
    for number, case in enumerate(CASES, 1):
        why = attempt(case)
        failed += why is not None
        print(f"{'ok' if why is None else 'not ok'} {number} - {case.__name__.replace('_', ' ')}", flush=True)
        if why is not None:
            print("".join(f"# {line}\n" for line in why.splitlines()), end="")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
