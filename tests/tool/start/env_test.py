#!/usr/bin/env python3
"""softverbs env: what run gives its program, for shells, images, services and workflows."""
import os
import re
import shlex
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import SOFTVERBS, TEMPORARY, expect, softverbs, told

OURS = ("LD_LIBRARY_PATH", "LD_PRELOAD", "ASAN_OPTIONS", "PATH", "NCCL_GIN_TYPE")


def _ours(text):
    variables = dict(line.split("=", 1) for line in text.splitlines())
    return {name: value for name, value in variables.items() if name in OURS or name.startswith("SOFTVERBS_")}


def _in_shell(script, *options, **extra):
    command = f'eval "$({shlex.quote(SOFTVERBS)} env {" ".join(map(shlex.quote, options))})" && {script}'
    return subprocess.run(["sh", "-c", command], capture_output=True, env=cases.environment(**extra), check=False)


def a_shell_gets_the_environment_of_run():
    for options in ((), ("--no-paths",), ("--devices", "3", "--log=info", f"--dir={TEMPORARY}/it's $HOME `x`")):
        given = _ours(expect(softverbs("run", *options, "env")).stdout.decode())
        done = expect(_in_shell("env", *options))
        given["PATH"] = f"{given.get('PATH', os.environ['PATH'])}:{cases.BUILD}"  # so that the shell finds the command again
        assert _ours(done.stdout.decode()) == given and len(given) >= 3, (given, told(done))


def NCCL_is_told_how_not_to_crash():
    """Each form has it, and what the user says of it stays."""
    forms = {(): "export NCCL_GIN_TYPE='2'", ("--docker", "--no-paths"): 'ENV NCCL_GIN_TYPE="2"', ("--systemd",): 'NCCL_GIN_TYPE="2"',
             ("--json",): '"NCCL_GIN_TYPE": "2"'}
    for options, line in forms.items():
        assert line in expect(softverbs("env", *options, env={"NCCL_GIN_TYPE": None})).stdout.decode(), (options, line)
        assert b"NCCL_GIN_TYPE" not in expect(softverbs("env", *options, env={"NCCL_GIN_TYPE": "3"})).stdout, options
    for value, seen in ((None, b"2\n"), ("3", b"3\n")):
        expect(softverbs("run", "sh", "-c", "echo $NCCL_GIN_TYPE", env={"NCCL_GIN_TYPE": value}), out=seen)


def programs_behind_it_see_the_devices():
    done = _in_shell("ls /sys/class/infiniband && rdma dev", "--devices", "2")
    assert done.stdout.startswith(b"soft0\nsoft1\n0: soft0: "), told(done)


def it_can_be_repeated():
    once = _ours(expect(_in_shell("env")).stdout.decode())
    twice = _ours(expect(_in_shell(f'eval "$({shlex.quote(SOFTVERBS)} env)" && env')).stdout.decode())
    assert once == twice


def a_workflow_gets_it_in_its_files():
    files = {"GITHUB_ENV": f"{TEMPORARY}/github-env", "GITHUB_PATH": f"{TEMPORARY}/github-path"}
    with open(files["GITHUB_ENV"], "w", encoding="utf-8") as file:
        file.write("EARLIER=kept\n")
    expect(softverbs("env", "--github", "--devices", "2", env=files), out=b"")
    with open(files["GITHUB_ENV"], encoding="utf-8") as file:
        text = file.read()
    with open(files["GITHUB_PATH"], encoding="utf-8") as file:
        path = file.read()
    # as the runner reads them: NAME=VALUE, and directories that go in front
    variables = dict(line.split("=", 1) for line in text.splitlines())
    assert variables.pop("EARLIER") == "kept" and variables["NCCL_GIN_TYPE"] == "2" and "PATH" not in variables and path.splitlines() == [cases.BUILD, f"{cases.BUILD}/lib/bin"], (text, path)
    later = subprocess.run(["sh", "-c", "rdma dev; ls /sys/class/infiniband"], capture_output=True, check=False,
                           env=cases.environment(**variables, PATH=":".join([*reversed(path.splitlines()), os.environ["PATH"]])))
    assert later.stdout.startswith(b"0: soft0: ") and later.stdout.endswith(b"soft0\nsoft1\n"), told(later)


def the_command_itself_is_found_afterwards():
    path = os.pathsep.join(place for place in os.environ["PATH"].split(os.pathsep) if not os.path.exists(f"{place}/softverbs"))
    script = f'eval "$({cases.SOFTVERBS} env)"; softverbs version; eval "$(softverbs env)"; echo "$PATH"'
    done = subprocess.run(["bash", "-ec", script], capture_output=True, check=False, env=cases.environment(PATH=path))
    assert done.returncode == 0 and done.stdout.startswith(b"softverbs ") and done.stdout.count(f":{cases.BUILD}\n".encode()) == 1, told(done)


def a_workflow_shows_mistakes_as_warnings_and_in_its_summary():
    variables = {name: f"{TEMPORARY}/workflow-{name}" for name in ("GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")}
    for path in variables.values():
        with open(path, "w", encoding="utf-8"):
            pass
    expect(softverbs("env", "--github", "--no-paths", env=variables), out=b"")
    with open(variables["GITHUB_ENV"], encoding="utf-8") as file:
        later = dict(line.split("=", 1) for line in file.read().splitlines())
    assert later["SOFTVERBS_LOG"] == "warn" and later["SOFTVERBS_LOG_FORMAT"] == "github", later
    done = subprocess.run([f"{cases.BUILD}/tests/tool/hangs", "refusals"], capture_output=True, check=True, env=cases.environment(**variables, **later))
    lines = done.stderr.decode().splitlines()
    warnings = [line for line in lines if line.startswith("::warning title=softverbs::softverbs: hangs[")]
    assert len(warnings) == 10 and sum("(reason 318)" in line for line in lines) == 92, lines
    with open(variables["GITHUB_STEP_SUMMARY"], encoding="utf-8") as file:
        summary = file.read().splitlines()
    assert len(summary) == len(lines) and summary[0].startswith("- softverbs: hangs\\[") and "wr\\_id" in summary[0], summary[0]
    os.unlink(variables["GITHUB_STEP_SUMMARY"])
    done = subprocess.run([f"{cases.BUILD}/tests/tool/hangs", "refusals"], capture_output=True, check=True, env=cases.environment(**variables, **later))
    assert not os.path.exists(variables["GITHUB_STEP_SUMMARY"]), "only a runner makes it"


def jobs_images_and_services_log_mistakes():
    """Jobs, images and services have no terminal; the user who writes the line wants the reasons of a failure."""
    for form in ("--docker", "--systemd", "--json"):
        assert re.search(rb'SOFTVERBS_LOG\W+"?warn"', expect(softverbs("env", form, "--no-paths")).stdout), form
        assert b"error" in softverbs("env", form, "--no-paths", "--log", "error").stdout, form
        assert b'"none"' in softverbs("env", form, "--no-paths", env={"SOFTVERBS_LOG": "none"}).stdout, form
    assert b"SOFTVERBS_LOG='terminal'" in softverbs("env").stdout


def it_prints_settings_and_nothing_else_of_that_prefix():
    done = expect(softverbs("env", "--json", env={"SOFTVERBS_INPUT_OPTIONS": "--devices 2", "SOFTVERBS_SEED": "x"}))
    assert b"SOFTVERBS_INPUT" not in done.stdout and b'"SOFTVERBS_SEED": "x"' in done.stdout, told(done)


def outside_of_a_workflow_it_says_so():
    none = {"GITHUB_ENV": None, "GITHUB_PATH": None}
    expect(softverbs("env", "--github", env=none), 2, b"", [b"$GITHUB_ENV"])
    done = softverbs("env", "--github", env={"GITHUB_ENV": "/no/such/file", "GITHUB_PATH": "/no/such/file"})
    expect(done, 125, b"", [b"$GITHUB_ENV", b"No such file"])


def a_dockerfile_gets_ENV_lines():
    done = expect(softverbs("env", "--docker", "--no-paths", "--dir", '/tmp/a"$b\\c'))
    assert b'ENV SOFTVERBS_DIR="/tmp/a\\"\\$b\\\\c"\n' in done.stdout and b"\nENV LD_LIBRARY_PATH=\"" in done.stdout, told(done)
    assert b"/dev/shm" not in done.stdout and b"LD_PRELOAD" not in done.stdout


def a_service_gets_an_environment_file():
    done = expect(softverbs("env", "--systemd", "--devices", "2"))
    values = dict(line.split("=", 1) for line in done.stdout.decode().splitlines())
    assert values["SOFTVERBS_DEVICES"] == '"2"' and values["LD_LIBRARY_PATH"] == f'"{cases.BUILD}/lib"', told(done)


def what_goes_wrong_is_a_sentence_and_a_line_that_fails():
    expect(softverbs("env", "true"), 2, b"(exit 2)\n", [b"options only"])
    expect(softverbs("env", "--log", "loud"), 2, b"(exit 2)\n", [b'"loud"'])
    expect(softverbs("env", "--no-such"), 2, b"(exit 2)\n", [b"--no-such"])
    expect(softverbs("env", "--docker", "--log", "loud"), 2, b"", [b'"loud"'])
    expect(softverbs("env", "--dir", "/proc/softverbs"), 125, b"(exit 125)\n", [b"/proc/softverbs"])
    expect(softverbs("env", "--systemd", env={"SOFTVERBS_SEED": "a\nb"}), 125, None, [b"more than one line"])


FAULTY = {"SOFTVERBS_FAULT": "drop=xx", "SOFTVERBS_LIMITS": "max_foo=4", "SOFTVERBS_CONFIG": "/nonexistent", "SOFTVERBS_NET": "nonesuch",
          "SOFTVERBS_COUNTERS": "/nonexistent/x", "SOFTVERBS_LOG": "loud", "SOFTVERBS_DEVICES": "9999",
          "SOFTVERBS_CAPTURE": "/nonexistent/x", "SOFTVERBS_LOG_FILE": "/nonexistent/x"}


def no_faulty_variable_leaves_a_green_job():
    """A script with -e, as jobs are, in each way that docs/how-to/ci.md has."""
    for name, value in FAULTY.items():
        for shell in ("bash", "sh"):
            for script in (f'eval "$({cases.SOFTVERBS} env)"; true', f"{cases.SOFTVERBS} run -- true", f"{cases.SOFTVERBS} doctor >/dev/null",
                           f"{cases.SOFTVERBS} env --systemd >/dev/null", f"{cases.SOFTVERBS} env --docker --no-paths >/dev/null"):
                done = subprocess.run([shell, "-ec", script], capture_output=True, check=False, env=cases.environment(**{name: value}))
                assert done.returncode != 0, (name, script, done)
                assert done.stderr or "doctor" in script, (name, script, done)


def run_and_env_take_the_same_options():
    text = expect(softverbs("help", "run")).stdout.decode()
    names = {line.split()[0].partition("[")[0] for line in text.splitlines() if line.startswith("  --")}
    assert len(names) > 7
    for name in names - {"--trace", "--trace-file"}:  # which need a command that stays beside the program
        done = softverbs("env", name, "x\x1by", cwd=TEMPORARY)
        assert b"no option" not in done.stderr, told(done)


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
