#!/usr/bin/env python3
"""The Python package and its pytest plugin: what they say holds for unmodified programs."""
import ast
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, PYTHON, SOFTVERBS, TEMPORARY, TREE, Skip

from patience import until  # noqa: E402

PACKAGE = f"{TREE}/python"
sys.path.insert(0, PACKAGE)
import softverbs as package  # noqa: E402 pylint: disable=wrong-import-position

PROGRAM = f"{BUILD}/tests/tool/scripted"
RETRY_EXC = 12


def _session(**options):
    return package.Session(command=SOFTVERBS, **options)


def _python(*arguments):
    return subprocess.run([PYTHON, *arguments], capture_output=True, text=True, check=False, cwd=TEMPORARY,
                          env=cases.environment(PYTHONPATH=PACKAGE, SOFTVERBS=SOFTVERBS))


def a_program_meets_its_rules_and_tells():
    with _session() as session:
        done = session.run(PROGRAM, "regions", rules=["when ibv_reg_mr, nth 2: error ENOMEM"])
        assert done.status == 0 and done.out.count(" -1 ") == 1 and done.acted("ibv_reg_mr") == 1 and not done.acted("ibv_alloc_pd"), done.story
        assert done.counters[0]["program"] == "scripted", done.counters
        assert not session.run(PROGRAM, "regions").story
        assert session.run(PROGRAM, "work", rules="when work, nth 2: signal KILL").status == -9
    assert not os.path.exists(session.directory)


def a_script_is_for_all_programs_of_a_session():
    with _session(script="when work, nth 1: complete RETRY_EXC_ERR", seed=3) as session:
        for _ in range(2):
            done = session.run(PROGRAM, "work")
            assert f"status {RETRY_EXC} " in done.out and done.acted("work") == 1, done.out


def a_live_program_is_given_rules():
    with _session() as session, _session() as other:
        program = session.start(PROGRAM, "lines")
        program.until_open()
        assert not other.show() and len(session.show()) == 1 and session.counters()
        assert program.rules() == []
        program.inject("when work: complete RETRY_EXC_ERR")
        program.say("\n")
        program.until(lambda: program.acted("work"))
        assert [rule["done"] for rule in program.rules()] == [1]
        program.clear()
        assert program.rules() == []
        program.watch("ibv_poll_cq, from 2")
        assert program.count("ibv_poll_cq, from 2") == 0
        program.say("\n")
        program.wait_for("ibv_poll_cq, from 2")
        assert not program.acted("ibv_poll_cq")
        try:
            program.inject("when work: explode")
            raise AssertionError("taken")
        except package.SoftverbsError as error:
            assert "explode" in str(error)
    assert program.process.poll() is not None


def work_that_failed_is_listed():
    with _session() as session:
        done = session.run(PROGRAM, "work", rules="when work, nth 2: complete RETRY_EXC_ERR")
        failure, = done.failures()
        assert failure[1:] == ("send", 2, "IBV_WC_RETRY_EXC_ERR") and failure.qp > 0, done.story
        assert not session.run(PROGRAM, "work").failures()


def one_that_writes_much_goes_on():
    with _session() as session:
        program = session.start("sh", "-c", "yes | head -c 1000000; echo done >&2; sleep 60")
        program.until(lambda: program.err())
        assert len(program.out()) == 1000000 and program.err() == "done\n"


def what_an_ended_program_has_left_ends_with_the_session():
    with _session() as session:
        pid = int(session.run("sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!").out)
        os.kill(pid, 0)
    end = until(20)
    while os.path.exists(f"/proc/{pid}/stat") and time.monotonic() < end:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            if file.read().rpartition(")")[2].split()[0] == "Z":  # its parent does not wait for it
                break
        time.sleep(0.01)
    assert time.monotonic() < end


def another_process_that_has_the_number_of_an_ended_one_goes_on():
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as other:
        try:
            with _session() as session:
                program = session.start("true")
                program.wait()
                program.pid = other.pid
            assert other.poll() is None
        finally:
            other.kill()


def a_session_ends_although_a_program_did_not_hear():
    with _session() as session:
        ended, other = session.start("true"), session.start("sleep", "60")
        ended.process.wait()
        try:
            ended.say("nobody listens\n")
        except BrokenPipeError:
            pass
    assert other.process.poll() is not None and not os.path.exists(session.directory)


def one_that_does_not_end_is_killed():
    with _session() as session:
        began = time.monotonic()
        try:
            session.run("sleep", "60", seconds=1)
            raise AssertionError("it ended")
        except subprocess.TimeoutExpired:
            pass
        assert time.monotonic() - began < 30


def the_tutorial_runs():
    if not shutil.which("ibv_devinfo") or not shutil.which("ibv_asyncwatch"):
        raise Skip("ibverbs-utils is not installed")
    with open(f"{TREE}/docs/how-to/testing.md", encoding="utf-8") as page:
        example, *_ = re.findall(r"^```python\n(.*?)^```$", page.read(), re.MULTILINE | re.DOTALL)
    done = _python("-c", example)
    assert done.returncode == 0 and not done.stderr, done.stderr


def the_example_for_pytest_runs():
    if _python("-c", "import pytest").returncode or not shutil.which("ibv_devinfo"):
        raise Skip("python3-pytest or ibverbs-utils is not installed")
    with open(f"{TREE}/docs/how-to/testing.md", encoding="utf-8") as page:
        _, example, *_ = re.findall(r"^```python\n(.*?)^```$", page.read(), re.MULTILINE | re.DOTALL)
    path = f"{TEMPORARY}/test_example.py"
    with open(path, "w", encoding="utf-8") as file:
        file.write(example)
    done = _python("-m", "pytest", "-p", "softverbs.pytest_plugin", "--strict-markers", "-q", path)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout


def the_plugin_shows_stories_of_failed_tests():
    if _python("-c", "import pytest").returncode:
        raise Skip("python3-pytest is not installed")
    path = f"{TEMPORARY}/test_plugin.py"
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"import pytest\nPROGRAM = {PROGRAM!r}\n\n\n@pytest.mark.softverbs(devices=2, script='when ibv_reg_mr, nth 1: error ENOMEM')\n"
                   "def test_fails(softverbs):\n    assert '-1' not in softverbs.run(PROGRAM, 'regions').out\n\n\n"
                   "def test_passes(softverbs):\n    assert '-1' not in softverbs.run(PROGRAM, 'regions').out\n")
    done = _python("-m", "pytest", "-p", "softverbs.pytest_plugin", "--strict-markers", "-q", path)
    assert "1 failed, 1 passed" in done.stdout and "story of" in done.stdout and "fails with ENOMEM by line 1" in done.stdout, done.stdout


def the_plugin_says_what_a_program_that_hangs_waits_for():
    """Of one that is killed as its time is over, and one that still runs when the test fails."""
    if _python("-c", "import pytest").returncode:
        raise Skip("python3-pytest is not installed")
    path = f"{TEMPORARY}/test_hangs.py"
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"HANGS = {BUILD!r} + '/tests/tool/hangs'\n\n\n"
                   "def test_late(softverbs):\n    program = softverbs.start(HANGS, 'message')\n    program.until_open()\n    program.wait(seconds=2)\n\n\n"
                   "def test_wrong(softverbs):\n    program = softverbs.start(HANGS, 'message')\n    program.until_open()\n    program.until(lambda: False, seconds=2)\n")
    done = _python("-m", "pytest", "-p", "softverbs.pytest_plugin", "-q", path)
    assert "2 failed" in done.stdout and done.stdout.count(f"softverbs why of {BUILD}/tests/tool/hangs message") == 2, done.stdout
    assert len(re.findall(r"^\d+ hangs$\n    Queue pair 0x", done.stdout, re.MULTILINE)) == 2, done.stdout


def what_the_package_has_is_on_the_page():
    with open(f"{TREE}/docs/how-to/testing.md", encoding="utf-8") as page:
        chapter = page.read().split("\n## In Python\n")[1].split("\n## ")[0]
    for owner in (package.Session, package.Program, package.Result):
        for name in (name for name in vars(owner) if not name.startswith("_") and name not in ("close", "environment", "softverbs")):
            assert re.search(rf"\b{name}\b", chapter), f"{owner.__name__}.{name}"
    assert "seconds=" in chapter


def the_plugin_has_hosts_of_a_lab():
    if _python("-c", "import pytest").returncode:
        raise Skip("python3-pytest is not installed")
    path = f"{TEMPORARY}/test_hosts.py"
    with open(path, "w", encoding="utf-8") as file:
        file.write("def test_hosts(softverbs_hosts):\n    here, there = softverbs_hosts(2, '--link', 'delay=1ms')\n"
                   "    assert there.run('hostname').stdout == 'h2\\n' and here.run('getent', 'hosts', there.name).returncode == 0\n"
                   "    here.lab.link('h1>h2', 'loss=1%')\n    assert 'h1>h2: loss=1%' in here.lab.links()\n"
                   "    begun = there.start('sleep', '1000')\n    here.lab.close()\n    assert begun.wait() != 0\n")
    done = _python("-m", "pytest", "-p", "softverbs.pytest_plugin", "--strict-markers", "-q", "-rs", path)
    if "allows no namespaces" in done.stdout:
        raise Skip("there can be no lab here")
    assert "1 passed" in done.stdout, done.stdout


def a_marked_test_runs_with_each_seed():
    cases.needs_simulated_runs()
    if _python("-c", "import pytest").returncode:
        raise Skip("python3-pytest is not installed")
    path = f"{TEMPORARY}/test_sim.py"
    with open(path, "w", encoding="utf-8") as file:
        file.write("import random, threading, time\nimport pytest\n\n\ndef both(meet):\n    threads = [threading.Thread(target=meet, args=(i,)) for i in range(2)]\n"
                   "    for each in threads:\n        each.start()\n    for each in threads:\n        each.join()\n\n\n"
                   "@pytest.mark.softverbs_sim(seeds=range(20))\ndef test_race():\n    value = [0]\n"
                   "    def count(i):\n        time.sleep(0.15 * i)\n        seen = value[0]\n        time.sleep(random.SystemRandom().choice((0.1, 0.1, 0.1, 0.2)))\n        value[0] = seen + 1\n"
                   "    both(count)\n    assert value[0] == 2\n\n\n"
                   "@pytest.mark.softverbs_sim(seeds=range(3))\ndef test_sleeps():\n    time.sleep(1000)\n")
    done = _python("-m", "pytest", "-p", "softverbs.pytest_plugin", "--strict-markers", "-q", "-rs", path)
    found = re.search(r"The test fails with seed (\d+)\. Repeat it with:\n(.*)\n", done.stdout)
    assert found and "1 failed, 1 passed" in done.stdout, done.stdout
    for _ in range(2):
        again = _python("-c", "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)", *found.group(2).split())
        assert again.returncode == 1, again.stdout


def its_version_is_that_of_the_command():
    with open(f"{PACKAGE}/pyproject.toml", encoding="utf-8") as file:
        version, = re.findall(r'^version = "(.*)"$', file.read(), re.MULTILINE)
    assert cases.softverbs("version").stdout.decode().split()[1].rstrip(",") == version


def tools_find_nothing_in_the_package():
    sources = [f"{PACKAGE}/softverbs/{name}" for name in sorted(os.listdir(f"{PACKAGE}/softverbs")) if name.endswith(".py")]
    missing = []
    for tool in (["pyflakes3"], ["mypy", "--strict", "--ignore-missing-imports", "--allow-untyped-decorators", "--cache-dir", f"{TEMPORARY}/mypy"]):
        if not shutil.which(tool[0]):
            missing.append(tool[0])
            continue
        done = subprocess.run([*tool, *sources], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    if missing:
        raise Skip(f"not installed: {', '.join(missing)}")


def all_that_is_public_has_a_docstring_and_types():
    for name in sorted(os.listdir(f"{PACKAGE}/softverbs")):
        if not name.endswith(".py"):
            continue
        with open(f"{PACKAGE}/softverbs/{name}", encoding="utf-8") as file:
            tree = ast.parse(file.read())
        assert ast.get_docstring(tree), name
        within = [member for node in tree.body if isinstance(node, ast.ClassDef) for member in node.body]
        for node in [*tree.body, *within]:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith(("_", "pytest_")):
                assert ast.get_docstring(node), (name, node.name)
            if isinstance(node, ast.FunctionDef):
                assert node.returns and all(argument.annotation for argument in node.args.args if argument.arg not in ("self", "cls")), (name, node.name)


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
