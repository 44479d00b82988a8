#!/usr/bin/env python3
"""Tests of build.sh with commands that are made up; prints TAP."""
import contextlib
import json
import os
import pty
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "build.sh")
MESON = """[ "$1 $2" = "setup --reconfigure" ] && shift
mkdir -p "$2" && touch "$2/build.ninja" && echo "$@" >>asked"""
# The steps that ninja would do (-n), and the steps that it does: the second lasts until the file $NINJA_WAITS is there.
NINJA = """[ "$3" = -n ] && { echo "[1/3] one"; echo "[3/3] three"; exit; }
echo "ninja $3" >>asked; echo "[1/3] one"; echo "[2/3] two"; until [ -z "$NINJA_WAITS" ] || [ -e "$NINJA_WAITS" ]; do sleep 0.1; done; echo "wrong"; exit ${NINJA_STATUS:-0}"""
TOOLS = {"meson": MESON, "ninja": NINJA, "cc": "echo Free Software Foundation"}


class Tree:
    """A directory with the script and its made-up commands."""

    def __init__(self, top):
        self.top = top
        os.makedirs(f"{top}/tools/build")
        os.makedirs(f"{top}/bin")
        shutil.copy(SCRIPT, f"{top}/tools/build/build.sh")
        self._write("tools/build/setup.sh", "true")
        for name, text in TOOLS.items():
            self._write(f"bin/{name}", text)

    def _write(self, name, text):
        with open(f"{self.top}/{name}", "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{text}\n")
        os.chmod(file.name, 0o755)

    def start(self, *arguments, out=subprocess.PIPE, **environment):
        open(f"{self.top}/asked", "w", encoding="utf-8").close()  # pylint: disable=consider-using-with
        return subprocess.Popen([f"{self.top}/tools/build/build.sh", *arguments], stdout=out, stderr=subprocess.STDOUT,
                                env={**os.environ, "PATH": f"{self.top}/bin:{os.environ['PATH']}", "CC": "cc", **environment})

    def build(self, *arguments, **environment):
        """Exit status, output, and what was asked of meson and ninja."""
        with self.start(*arguments, **environment) as process:
            out = process.communicate()[0].decode()
        with open(f"{self.top}/asked", encoding="utf-8") as file:
            return process.returncode, out, file.read().splitlines()


def a_quick_build_is_configured_anew_by_the_next_other(tree):
    quick = tree.build("--quick", "--target", "command", "build", "-Dtests=false")[2]
    again = tree.build("--quick", "build", "-Dtests=false")[2]
    whole, after = tree.build("build", "-Dtests=false")[2], tree.build("build", "-Dtests=false")[2]
    assert quick == ["setup build -Dtests=false -Db_lto=false -Doptimization=1 -Ddebug=false", "ninja command"], quick
    assert again == ["ninja all"], again
    assert whole == ["configure build -Db_lto=true", "--reconfigure build -Dtests=false -Db_lto=true -Doptimization=3 -Ddebug=true", "ninja all"], whole
    assert after == ["ninja all"], after


def meson_itself_takes_the_options_of_the_next_other(tree):
    """Of a directory that is configured, "meson setup" leaves the compiler's options (b_lto) as they are."""
    for name in ("bin/meson", "bin/ninja", "bin/cc"):
        os.unlink(f"{tree.top}/{name}")
    for name, text in (("meson.build", "project('made', 'c')\noption = get_option('tests')\nexecutable('made', 'made.c')"), ("made.c", "int main(void) { return 0; }"),
                       ("meson_options.txt", "option('tests', type: 'boolean', value: false)")):
        with open(f"{tree.top}/{name}", "w", encoding="utf-8") as file:
            file.write(f"{text}\n")
    for quick, wanted in (["--quick"], {"b_lto": False, "optimization": "1", "debug": False, "tests": False}), ([], {"b_lto": True, "optimization": "3", "debug": True, "tests": True}):
        status, out, _ = tree.build(*quick, "build", f"-Dtests={str(not quick).lower()}", CC="gcc")
        assert status == 0, out
        with open(f"{tree.top}/build/meson-info/intro-buildoptions.json", encoding="utf-8") as file:
            found = {option["name"]: option["value"] for option in json.load(file) if option["name"] in wanted}
        assert found == wanted, found


def a_whole_build_stays_one(tree):
    tree.build("build", "-Dtests=false")
    assert tree.build("--quick", "build", "-Dtests=false")[2] == ["ninja all"]


def other_options_count_with_again_only(tree):
    tree.build("build", "-Dtests=false")
    assert tree.build("build", "-Dtests=true")[2] == ["ninja all"]
    assert tree.build("--again", "build", "-Dtests=true")[2] == ["configure build -Db_lto=true", "--reconfigure build -Dtests=true -Db_lto=true -Doptimization=3", "ninja all"]
    assert tree.build("--again", "build", "-Dtests=true")[2] == ["ninja all"]


def sanitizers_take_no_quick_way(tree):
    assert tree.build("--quick", "build-asan", "-Db_sanitize=address")[2] == ["setup build-asan -Db_sanitize=address", "ninja meson-test-prereq"]


def a_build_that_fails_shows_what_the_compiler_said(tree):
    status, out, _ = tree.build("build", NINJA_STATUS="1")
    assert status == 1 and out.endswith("steps (ninja -C build all shows them)\nwrong\nThe build in build failed.\n"), out


def a_terminal_sees_the_count(tree):
    ours, theirs = pty.openpty()
    text = ""
    with tree.start("build", out=theirs, NINJA_WAITS=f"{tree.top}/go") as process:
        while "2 of 3" not in text:
            text += os.read(ours, 65536).decode()
        open(f"{tree.top}/go", "w", encoding="utf-8").close()  # pylint: disable=consider-using-with
    os.close(theirs)
    with contextlib.suppress(OSError):  # the last one has closed it
        while part := os.read(ours, 65536):
            text += part.decode()
    os.close(ours)
    assert process.returncode == 0 and "\r  2 of 3" in text and text.endswith("\r\x1b[K"), repr(text)


def main():
    tests = [test for name, test in globals().items() if "_" in name and callable(test) and test.__module__ == __name__]
    failed = 0
    print(f"1..{len(tests)}")
    for number, test in enumerate(tests, 1):
        try:
            with tempfile.TemporaryDirectory() as top:
                test(Tree(top))
            fault = ""
        except AssertionError as wrong:
            fault, failed = f"# {wrong}\n", failed + 1
        print(f"{'not ok' if fault else 'ok'} {number} - {test.__name__.replace('_', ' ')}\n{fault}", end="")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
