#!/usr/bin/env python3
"""<softverbs.h>: a program that is compiled as C or as C++ disturbs itself and others, and does nothing without softverbs."""
import errno
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, SOFTVERBS, TEMPORARY, TREE, Skip, expect, run, softverbs, told
from patience import patience

PROGRAM = f"{BUILD}/tests/tool/inside"
OWN = f"""early {errno.ESRCH}
is here 1
watch 0
inject 0
short {errno.ETIMEDOUT}
good good bad bad \n\
wait 0
count 0 3
other {errno.ENOENT}
clear 0
gone {errno.ENOENT}
good good good good \n"""


def a_program_disturbs_itself():
    expect(run(PROGRAM, "own"), 0, OWN.encode(), b"")


def what_is_watched_is_no_fault():
    done = expect(softverbs("run", "--log", "warn", "--", PROGRAM, "own"), 0, OWN.encode(), None)
    assert done.stderr.count(b"(reason 700)") == 2, told(done)


STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{TREE}/tools/interface"]
COMPILERS = {"c": ("gcc", "clang"), "c++": ("g++", "clang++")}


def _compilers(language):
    """The compilers that are installed; a skip at the end names the others."""
    there = [name for name in COMPILERS[language] if shutil.which(name)]
    if not there:
        raise Skip(f"none of {' and '.join(COMPILERS[language])} is installed")
    return there


def _name_missing(language):
    missing = [name for name in COMPILERS[language] if not shutil.which(name)]
    if missing:
        raise Skip(f"{' and '.join(missing)} is not installed")


def _runs_compiled(compiler, language, standard):
    command = [compiler, f"-std={standard}", *STRICT, "-Wno-variadic-macros", "-x", language, f"{TREE}/tests/tool/start/inside.c", "-o", f"{TEMPORARY}/inside", "-libverbs", "-ldl"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert not done.returncode, (command, told(done))
    expect(run(f"{TEMPORARY}/inside", "own"), 0, OWN.encode(), b"")


def so_does_one_in_cxx():
    for compiler in _compilers("c++"):
        for standard in "c++11", "c++20":
            _runs_compiled(compiler, "c++", standard)
    _name_missing("c++")


def so_does_one_in_c_of_each_compiler():
    for compiler in _compilers("c"):
        _runs_compiled(compiler, "c", "gnu11")
    _name_missing("c")


def strict_compilers_take_the_header():
    for language, standards in ("c", ("c99", "c11", "c17")), ("c++", ("c++11", "c++14", "c++17", "c++20")):
        for compiler in _compilers(language):
            for standard in standards:
                expect(subprocess.run([compiler, f"-std={standard}", *STRICT, "-fsyntax-only", "-x", language, "-include", "softverbs.h", "/dev/null"],
                                      capture_output=True, check=False), 0, b"", b"")
        _name_missing(language)


def without_softverbs_nothing_is_done():
    done = subprocess.run([PROGRAM, "none"], capture_output=True, check=False, timeout=patience(20), env=cases.environment())
    expect(done, 0, " ".join(["0", *[str(errno.ENOSYS)] * 5, "7\n"]).encode(), b"")


def rules_that_are_none_are_explained():
    for text, error, why in ("when ibv_reg_mr: explode", errno.EINVAL, "line 1, column 18: "), ("when ibv_reg_mr: error ENOMEM", 0, ""), \
                            ("x" * 2000, errno.E2BIG, ""), ('"', errno.EINVAL, "line 1, column 1: "):
        done = expect(run(PROGRAM, "rules", text), err=None)
        number, _, said = done.stdout.decode().rstrip("\n").partition(" ")
        assert int(number) == error and said.startswith(why) and bool(said) == bool(why), (text, told(done))
        assert ('"explode"' in said) == ("explode" in text) and "u0022" not in said, (text, told(done))
    done = expect(run(PROGRAM, "rules", "\n".join(["when ibv_reg_mr: error EIO"] * 30)), err=None)
    assert done.stdout == b"0 \n", told(done)


def a_test_waits_for_another_program():
    with subprocess.Popen([SOFTVERBS, "run", "--", f"{BUILD}/tests/tool/scripted", "lines"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env=cases.environment()) as other:
        def tell():
            other.stdin.write(b"\n")
            other.stdin.flush()
            return other.stdout.readline(), other.stdout.readline()
        other.stdout.readline()
        tell()
        expect(run(PROGRAM, "late", str(other.pid)), 0, f"watch 0\nwait {errno.ETIMEDOUT}\n".encode(), b"")
        with subprocess.Popen([SOFTVERBS, "run", "--", PROGRAM, "watch", str(other.pid)], stdout=subprocess.PIPE, env=cases.environment()) as test:
            assert test.stdout.readline() == b"watch 0\n"
            tell()
            tell()
            assert test.stdout.readline() == b"wait 0\n"
        other.stdin.close()
        other.wait(timeout=patience(20))
        expect(run(PROGRAM, "late", str(other.pid)), 0, f"watch {errno.ESRCH}\nwait {errno.ESRCH}\n".encode(), b"")


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
