#!/usr/bin/env python3
"""The promises of docs/how-to/sanitizers.md: a program of users under valgrind and built with sanitizers, with no variable set."""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import SOFTVERBS, Skip, TEMPORARY

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "two_threads.c")
RUNS = {}  # sanitizer: the words that must precede a program that is built with it


def _compile(to, source, *options):
    return subprocess.run(["cc", "-g", "-O1", source, "-o", to, *options, "-pthread"], capture_output=True, check=False).returncode == 0


def _prefix(sanitizer):
    """Some containers refuse what it needs, or run it only without address space randomisation."""
    if sanitizer not in RUNS:
        probe = f"{TEMPORARY}/probe-{sanitizer}"
        with open(f"{probe}.c", "w", encoding="ascii") as file:
            file.write("int main(void) { return 0; }\n")
        RUNS[sanitizer] = None
        if _compile(probe, f"{probe}.c", f"-fsanitize={sanitizer}"):
            for prefix in ([], ["setarch", "--addr-no-randomize"]):
                if RUNS[sanitizer] is None and not subprocess.run([*prefix, probe], capture_output=True, check=False).returncode:
                    RUNS[sanitizer] = prefix
    if RUNS[sanitizer] is None:
        raise Skip(f"programs built with -fsanitize={sanitizer} do not run on this machine")
    return RUNS[sanitizer]


def _program(*options):
    if not shutil.which("cc"):
        raise Skip("there is no compiler")
    path = f"{TEMPORARY}/two_threads{''.join(options)}"
    if not os.path.exists(path):
        assert _compile(path, SOURCE, *options, "-libverbs")
    return path


def _run(prefix, *command, **variables):
    return subprocess.run([*prefix, SOFTVERBS, "run", "--", *command], capture_output=True, text=True, errors="replace", timeout=cases.patience(100),
                          check=False, env=cases.environment(TSAN_OPTIONS=None, **variables))


def _sanitized(sanitizer, *arguments, **variables):
    return _run(_prefix(sanitizer), _program(f"-fsanitize={sanitizer}"), *arguments, **variables)


def _is_silent(done):
    assert done.returncode == 0 and done.stdout == done.stderr == "", cases.told(done)


def a_right_program_is_silent_under_AddressSanitizer():
    _is_silent(_sanitized("address"))


def a_right_program_is_silent_under_ThreadSanitizer():
    _is_silent(_sanitized("thread"))


def a_right_program_is_silent_under_UndefinedBehaviorSanitizer():
    _is_silent(_sanitized("undefined"))


def AddressSanitizer_finds_the_programs_overflow():
    done = _sanitized("address", "overflow")
    assert done.returncode and "heap-buffer-overflow" in done.stderr and "in main" in done.stderr, cases.told(done)


def AddressSanitizer_finds_the_programs_leak():
    """The library took the memory; with the slow unwinder the stack passes through it to the program's line."""
    done = _sanitized("address", "leak")
    assert "LeakSanitizer" in done.stderr, cases.told(done)
    done = _sanitized("address", "leak", ASAN_OPTIONS="fast_unwind_on_malloc=0")
    if "LeakSanitizer has encountered a fatal error" in done.stderr:
        raise Skip("LeakSanitizer does not run on this machine")
    assert done.returncode and "LeakSanitizer" in done.stderr and "two_threads.c" in done.stderr, cases.told(done)


def ThreadSanitizer_finds_the_programs_race_and_no_other():
    done = _sanitized("thread", "race")
    assert done.returncode and "data race" in done.stderr and "two_threads.c" in done.stderr, cases.told(done)
    places = re.findall(r"^SUMMARY: ThreadSanitizer: data race (.*)", done.stderr, re.MULTILINE)
    assert all("two_threads.c" in place for place in places), places


def what_the_user_says_of_ThreadSanitizer_counts():
    done = subprocess.run([SOFTVERBS, "run", "--", "sh", "-c", "echo $TSAN_OPTIONS"], capture_output=True, check=False,
                          env=cases.environment(TSAN_OPTIONS="exitcode=7"))
    assert done.stdout == b"ignore_noninstrumented_modules=1:exitcode=7\n", done


def AddressSanitizer_finds_early_reads_with_the_checker():
    _is_silent(_sanitized("address", SOFTVERBS_CHECK="adapter"))
    _is_silent(_sanitized("address", "early"))
    done = _sanitized("address", "early", SOFTVERBS_CHECK="adapter")
    assert done.returncode and "use-after-poison" in done.stderr and "in main" in done.stderr, cases.told(done)


def ThreadSanitizer_knows_of_completions_with_the_checker():
    for mistake in ("", "handover"):
        _is_silent(_sanitized("thread", mistake, SOFTVERBS_CHECK="adapter"))
    for mistake, check in (("handover", ""), ("hasty", "adapter")):
        done = _sanitized("thread", mistake, SOFTVERBS_CHECK=check)
        assert done.returncode and "data race" in done.stderr and "two_threads.c" in done.stderr, (mistake, cases.told(done))


def valgrind_finds_nothing_in_a_right_program():
    if not shutil.which("valgrind"):
        raise Skip("valgrind is not installed")
    done = _run([], "valgrind", "--quiet", "--leak-check=full", "--error-exitcode=9", _program())
    _is_silent(done)


def valgrind_finds_the_programs_mistakes():
    if not shutil.which("valgrind"):
        raise Skip("valgrind is not installed")
    for mistake, words in (("overflow", "Invalid write of size 1"), ("leak", "definitely lost|still reachable|possibly lost")):
        done = _run([], "valgrind", "--quiet", "--leak-check=full", "--show-leak-kinds=all", "--errors-for-leak-kinds=all",
                    "--error-exitcode=9", _program(), mistake)
        assert done.returncode == 9 and re.search(words, done.stderr) and "two_threads.c" in done.stderr, cases.told(done)


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
