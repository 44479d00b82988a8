"""Runs one mutant's tests: first those that its file's name points to, then the rest of its layer's, until one fails.

A mutant that hangs ends by the limit of its test, and is killed by it. A test with threads and processes must fail or hang twice.
"""
import os
import re
import signal
import subprocess
import tempfile
import time

TWICE = {"api", "refusals"}
LIMIT_LEAST, LIMIT_TIMES = 20, 10 # s, and times what the test took without a mutant: a machine that others use


def words_of(path):
    return [word for word in re.split(r"[^a-z0-9]+", path.lower().replace("_", " ")) if word]


def nearness(test, path):
    """How well a test fits a file: the test of that very name first, then the number of words that both have."""
    stem = os.path.basename(path)[:-len(".c")]
    program = os.path.basename(test["cmd"][0])
    if program in (stem + "_test", "%s_%s_test" % (os.path.basename(os.path.dirname(path)), stem)):
        return 100
    return len(set(words_of(path)) & set(words_of(program + " " + test["name"])))


def in_order(tests, path, took):
    return sorted(tests, key=lambda test: (-nearness(test, path), took.get(test["name"], 0)))


def run_test(test, limit):
    """None where it passes, or what happened."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as place, tempfile.TemporaryFile() as output:
        environment = dict(os.environ, **test["env"], SOFTVERBS_DIR=place)
        process = subprocess.Popen(test["cmd"], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment,
                                   cwd=test["workdir"] or None, start_new_session=True)
        try:
            process.wait(limit)
            happened = None if process.returncode in (0, 77) else "fails"
            if process.returncode < 0:
                happened = "ends by " + signal.Signals(-process.returncode).name
        except subprocess.TimeoutExpired:
            happened = "hangs"
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        output.seek(0)
        if happened is None and test["protocol"] == "tap" and re.search(rb"^not ok\b(?!.*# TODO)", output.read(), re.M):
            happened = "fails"
        return happened


def measure(tests, known):
    """Adds the tests that are not known yet: their seconds without a mutant, or None where they fail without one."""
    for test in tests:
        if test["name"] not in known:
            begin = time.monotonic()
            fails = run_test(test, test["timeout"])
            known[test["name"]] = None if fails else time.monotonic() - begin


def judge(copy, tests, path, took):
    """The name of the test that kills what the copy now has, and how; (None, None) where all pass."""
    first = True
    ordered = in_order(tests, path, took)
    for index, test in enumerate(ordered):
        # The test of its name is linked alone; when that does not kill, all the others at once.
        targets = test["targets"] if first else [target for other in ordered[index:] for target in other["targets"]]
        if index < 2:
            wrong = copy.ninja(sorted(set(targets)))
            if wrong:
                return "the build", "fails"
        first = False
        limit = max(LIMIT_LEAST, LIMIT_TIMES * took[test["name"]])
        happened = run_test(test, limit)
        if happened and TWICE & set(test["suites"]):
            happened = run_test(test, limit)
        if happened:
            return test["name"], happened
    return None, None
