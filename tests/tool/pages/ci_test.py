#!/usr/bin/env python3
"""action.yml and the snippets of docs/how-to/ci.md, as far as they go without their hosts: their commands run here."""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import TEMPORARY, TREE, Skip, told


def _read(name):
    with open(f"{TREE}/{name}", encoding="utf-8") as file:
        return file.read()


def _tarball():
    """The built files, laid out as in the tarball of `make packages`."""
    path = f"{TEMPORARY}/softverbs.tar.gz"
    if not os.path.exists(path):
        cases.installed(f"{TEMPORARY}/softverbs-0-x")
        subprocess.run(["tar", "czf", path, "-C", TEMPORARY, "softverbs-0-x"], check=True)
    return path


def _snippet(heading, kind):
    chapter = _read("docs/how-to/ci.md").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.search(f"```{kind}\n(.*?)```", chapter, re.DOTALL).group(1)


def _lines_of(text, key):
    """The list below a key of YAML."""
    listed = text.split(f"{key}:\n")[1]
    return re.match(r"(?: +- .*\n)+", listed).group(0).replace("    - ", "").splitlines()


def _bash(script, cwd=None, **extra):
    return subprocess.run(["bash", "-e", "-c", script], capture_output=True, check=False, timeout=cases.patience(100), cwd=cwd,
                          env=cases.environment(**extra))


def _act(cwd=None, again=False, host=None, **inputs):
    """Runs the steps of action.yml as a runner does, but for the cache, which is what an earlier run has left if this one is to continue there (`again`); its files, and its
    outputs. `host` has the variables of the runner."""
    place = f"{TEMPORARY}/runner"
    if not again:
        shutil.rmtree(place, ignore_errors=True)
        os.mkdir(place)
    files = {name: f"{place}/{name}" for name in ("GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT")}
    for path in files.values():
        with open(path, "w", encoding="utf-8"):
            pass
    steps = re.findall(r"run: '(.*)'", _read("action.yml"))
    assert len(steps) == 2, steps
    for step in steps:
        done = _bash(step, cwd, GITHUB_ACTION_PATH=TREE, RUNNER_TEMP=place, **files, **(host or {}),
                     **{f"SOFTVERBS_INPUT_{name.upper()}": value for name, value in inputs.items()})
        assert done.returncode == 0, told(done)
    written = {name: open(path, encoding="utf-8").read() for name, path in files.items()}  # pylint: disable=consider-using-with
    return written | {"outputs": dict(line.split("=", 1) for line in written["GITHUB_OUTPUT"].splitlines())}


def _needs_curl():
    if not shutil.which("curl"):
        raise Skip("curl is not installed")


def the_action_declares_the_inputs_that_it_uses():
    text = _read("action.yml")
    declared = set(re.findall(r"^  (\w+):\n    description:", text, re.MULTILINE))
    used = set(re.findall(r"\$\{\{ inputs\.(\w+) \}\}", text))
    variables = {name.lower() for name in re.findall(r"SOFTVERBS_INPUT_(\w+)", _read("tools/ci/action.sh"))}
    assert declared == {"version", "tarball", "cache", "global", "options"} | {"path", "source"}, declared
    assert used == variables == {"version", "tarball", "global", "options"} and "inputs.cache == 'true'" in text, (used, variables)
    assert "branding:\n  icon: " in text and set(re.findall(r"steps\.install\.outputs\.(\w+)", text)) == {"version", "path", "source"}


def the_second_run_of_a_job_takes_what_the_first_installed():
    first = _act(tarball=_tarball(), **{"global": "false"})["outputs"]
    assert first["source"] == "tarball" and first["version"].startswith("softverbs ") and first["path"] == f"{TEMPORARY}/runner/softverbs", first
    second = _act(again=True, tarball="/nowhere", **{"global": "false"})["outputs"]
    assert second["source"] == "cache" and second["key"] != first["key"], second


def the_tarball_of_the_release_is_taken():
    _needs_curl()
    release = f"{TEMPORARY}/OWNER/softverbs/releases/download/v9.8.7"
    os.makedirs(release)
    shutil.copy(_tarball(), f"{release}/softverbs-9.8.7-{os.uname().machine}.tar.gz")
    host = {"GITHUB_SERVER_URL": f"file://{TEMPORARY}", "SOFTVERBS_ACTION_REPOSITORY": "OWNER/softverbs", "SOFTVERBS_ACTION_REF": "main"}
    outputs = _act(host=host, version="v9.8.7", **{"global": "false"})["outputs"]
    assert outputs["source"] == "release" and "v9.8.7" in outputs["key"], outputs
    outputs = _act(host={**host, "SOFTVERBS_ACTION_REF": "v9.8.7"}, **{"global": "false"})["outputs"]
    assert outputs["source"] == "release", outputs


def where_no_release_is_there_it_is_built():
    """The command that builds is replaced: what it does, `make install` of another test shows."""
    _needs_curl()
    tools = f"{TEMPORARY}/tools"
    os.makedirs(tools)
    with open(f"{tools}/make", "w", encoding="utf-8") as make:
        make.write('#!/bin/sh\n[ "$3" = install ] && mkdir -p "${4#PREFIX=}" && tar xz -C "${4#PREFIX=}" --strip-components=1 <' + _tarball() + "\n")
    os.chmod(f"{tools}/make", 0o755)
    host = {"PATH": f"{tools}:{os.environ['PATH']}", "GITHUB_SERVER_URL": f"file://{TEMPORARY}/none", "SOFTVERBS_ACTION_REPOSITORY": "OWNER/softverbs"}
    for version in ("v0.0.1", "main", ""):
        outputs = _act(host=host, version=version, **{"global": "false"})["outputs"]
        assert outputs["source"] == "build", (version, outputs)


def later_steps_run_on_it():
    files = _act(tarball=_tarball(), options="--devices 2", **{"global": "true"})
    variables = dict(line.split("=", 1) for line in files["GITHUB_ENV"].splitlines())
    path = ":".join(reversed(files["GITHUB_PATH"].splitlines()))
    later = _bash("softverbs version && rdma dev", **variables, PATH=f"{path}:{os.environ['PATH']}")
    assert later.returncode == 0 and b"soft1: node_type" in later.stdout, told(later)


def not_global_only_the_command_is_there():
    _needs_curl()
    files = _act(tarball="file://" + _tarball(), **{"global": "false"})
    assert files["GITHUB_ENV"] == "" and files["GITHUB_PATH"].count("\n") == 1, files
    later = _bash("softverbs run -- rdma dev", PATH=f"{files['GITHUB_PATH'].strip()}:{os.environ['PATH']}")
    assert b"soft0" in later.stdout, told(later)


def _declared(part):
    """The names that action.yml has below "inputs" or "outputs", each with its default."""
    declared = re.search(rf"^{part}:\n((?:  .*\n)+)", _read("action.yml"), re.MULTILINE)[1]
    return {name: (re.search(r"default: '(.*)'", text) or [None, None])[1] for name, text in re.findall(r"^  (\w+):\n((?:    .*\n)+)", declared, re.MULTILINE)}


def the_page_has_each_input_and_output():
    page = _read("docs/how-to/action.md")
    for part in ("inputs", "outputs"):
        chapter = page.split(f"\n## {part.capitalize()}\n")[1].split("\n## ")[0]
        rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) ?\|", chapter, re.MULTILINE))
        declared = _declared(part)
        assert list(rows) == list(declared) and rows, (rows, declared)
        for name, default in declared.items():
            assert not default or rows[name] == f"`{default}`", (name, default, rows[name])


def the_examples_use_inputs_that_exist():
    for text in (_snippet("GitHub", "yaml"), re.search(r"```yaml\n(.*?)```", _read("docs/how-to/action.md"), re.DOTALL)[1]):
        given = set(re.findall(r"^          (\w+):", text, re.MULTILINE))
        assert given and given <= set(_declared("inputs")), given


def the_snippet_for_GitLab_runs():
    _needs_curl()
    lines = _lines_of(_snippet("GitLab", "yaml"), "before_script")
    assert len(lines) == 3 and lines[0].startswith("apt-get"), lines
    done = _bash("\n".join(lines[1:]) + "\nrdma dev", SOFTVERBS_TARBALL="file://" + _tarball(), SOFTVERBS_TARGET=f"{TEMPORARY}/gitlab")
    assert done.returncode == 0 and b"soft0" in done.stdout, told(done)


def the_snippet_for_shells_runs():
    script = _snippet("Shells and pytest", "sh").replace("ibv_devinfo", "rdma dev")
    done = _bash(script, PATH=f"{cases.BUILD}:{os.environ['PATH']}")
    assert b"soft0" in done.stdout, told(done)


def the_fixture_for_pytest_runs():
    """pytest itself is left out: the function that its decorator would call is called."""
    with open(f"{TEMPORARY}/pytest.py", "w", encoding="ascii") as stub:
        stub.write("def fixture(**options):\n    assert options == {'scope': 'session', 'autouse': True}\n    return lambda function: function\n")
    source = _snippet("Shells and pytest", "python") + "\nsoftverbs()\nprint(subprocess.check_output(['rdma', 'dev']).decode())\n"
    done = subprocess.run([cases.PYTHON, "-c", source], capture_output=True, check=False,
                          env=cases.environment(PYTHONPATH=TEMPORARY, PATH=f"{cases.BUILD}:{os.environ['PATH']}"))
    assert done.returncode == 0 and b"soft0" in done.stdout, told(done)


def a_failed_job_leaves_log_counters_and_capture():
    text = _snippet("What a failed job leaves", "yaml")
    options = re.search(r"options: (.*)", text).group(1)
    path = re.search(r"path: (.*)", text).group(1)
    place = f"{TEMPORARY}/job"
    os.makedirs(f"{place}/{path}")
    files = _act(tarball=_tarball(), options=options, cwd=place, **{"global": "true"})
    variables = dict(line.split("=", 1) for line in files["GITHUB_ENV"].splitlines())
    done = subprocess.run([f"{cases.BUILD}/tests/clients/mistakes", "wrong-rkey"], cwd=place, check=False, capture_output=True,
                          env=cases.environment(**variables))
    assert done.returncode == 0, told(done)
    left = f"{place}/{path}"
    with open(f"{left}/log", encoding="utf-8") as log:
        assert "(reason 205)" in log.read()
    with open(f"{left}/counters", encoding="utf-8") as counters:
        assert "REMOTE_KEY_UNKNOWN" in counters.read()
    decoded = cases.softverbs("decode", f"{left}/packets.pcapng")
    assert decoded.returncode == 0 and b"WRITE_ONLY" in decoded.stdout, told(decoded)
    assert "when: on_failure" in _read("docs/how-to/ci.md") and f"paths: [{path}]" in _read("docs/how-to/ci.md")


def _projects():
    sys.path.append(f"{TREE}/tests/projects")
    import project  # pylint: disable=import-outside-toplevel
    return project.blocks()


def the_lines_for_projects_are_those_of_a_shell():
    blocks = _projects()
    assert set(blocks) == {"valkey", "spdk", "perftest", "brpc"}, blocks
    for name, lines in blocks.items():
        done = subprocess.run(["bash", "-n"], input=lines.encode(), capture_output=True, check=False)
        assert done.returncode == 0 and "softverbs " in lines, (name, told(done))


def the_lines_for_perftest_run_its_programs():
    if not shutil.which("ib_send_bw"):
        raise Skip("perftest is not installed")
    place = f"{TEMPORARY}/perftest"
    os.makedirs(place)
    command = [sys.executable, f"{TREE}/tests/projects/project.py", "perftest", place, f"{cases.BUILD}/softverbs"]
    done = subprocess.run(command, capture_output=True, check=False, env=cases.environment(), timeout=cases.patience(120))
    for title in (b"Send BW Test", b"RDMA_Write BW Test", b"RDMA_Read Latency Test", b"Atomic FETCH_AND_ADD BW Test"):
        assert done.returncode == 0 and done.stdout.count(title) == 2, told(done)
    with open(f"{place}/ib_write_bw", "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nexit 3\n")
    os.chmod(f"{place}/ib_write_bw", 0o755)
    done = subprocess.run(command, capture_output=True, check=False, env=cases.environment(), timeout=cases.patience(120))
    assert done.returncode != 0, told(done)


def the_image_names_the_directory_of_the_tarball():
    _tarball()
    directory = re.search(r'ENV LD_LIBRARY_PATH="/opt/softverbs/(.*)"', _snippet("Images", "dockerfile")).group(1)
    if cases.LIBRARY != "lib/softverbs":
        raise Skip("this build was configured with another libdir than tarballs have")
    assert os.path.exists(f"{TEMPORARY}/softverbs-0-x/{directory}/libibverbs.so.1"), directory


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
