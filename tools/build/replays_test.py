#!/usr/bin/env python3
"""Tests of replays.sh with commands that are made up; prints TAP."""
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "replays.sh")
END = "QP 0x11 ended with RETRY_EXC_ERR: no answer came (104)"


def compare(**differing):
    """Exit status and lines of a comparison of one recording, where the builds that are named run something else than the others."""
    with tempfile.TemporaryDirectory() as directory:
        for name in ("gcc", "clang", "asan"):
            os.mkdir(f"{directory}/{name}")
            with open(f"{directory}/{name}/softverbs", "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\n" + differing.get(name, f"echo '{END}'") + "\n")
            os.chmod(file.name, 0o755)
        done = subprocess.run(["sh", SCRIPT, "--compare", directory, "one.rec"], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


def the_same_words_are_alike():
    return compare() == (0, ["one: gcc, clang, asan alike: RETRY_EXC_ERR (104)"])


def other_words_are_a_difference():
    return compare(clang="echo other") == (1, ["one.rec: clang does not say what gcc says"])


def words_of_a_sanitizer_are_a_difference():
    return compare(asan=f"echo '{END}'; echo leak >&2") == (1, ["one.rec: asan writes to standard error", "leak"])


def a_replay_that_differs_from_its_recording_is_a_difference():
    differs = f"echo '{END}'; echo differs >&2; exit 1"
    return compare(gcc=differs, clang=differs, asan=differs) == (
        1, [line for name in ("gcc", "clang", "asan") for line in (f"one.rec: {name} does not replay it", "differs")])


def a_command_that_crashes_is_a_difference():
    status, lines = compare(asan="kill -SEGV $$")
    return status == 1 and lines[0] == "one.rec: asan does not replay it" and not any("alike" in line for line in lines)


def main():
    tests = [test for name, test in globals().items() if callable(test) and test.__module__ == __name__ and name not in ("main", "compare")]
    results = [bool(test()) for test in tests]
    print(f"1..{len(tests)}")
    for number, (test, good) in enumerate(zip(tests, results), 1):
        print(f"{'ok' if good else 'not ok'} {number} - {test.__name__.replace('_', ' ')}")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
