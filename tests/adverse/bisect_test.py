#!/usr/bin/env python3
"""softverbs adverse: finds by itself which behaviour a program does not bear, the seeds, and when no behaviour is to blame. Prints TAP."""
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../tool")]
import cases
import made_pages
from cases import BUILD, expect, softverbs

PROGRAM = f"{BUILD}/tests/adverse/planted"
ALL = ("--seeds", "1-5", "--adverse", "without=slow-calls")
QUICK = ("--seeds", "1-5", "--adverse", "only=late-read,only=late-write,only=overtake,only=unsaid,only=numbers,only=no-inline")


def _bisect(*program, options=QUICK, status=1):
    done = expect(softverbs("adverse", "--bisect", "--json", *options, "--", *program), status, None, b"")
    return json.loads(done.stdout)


def _found(mistake, *, trials="40", options=QUICK):
    told = _bisect(PROGRAM, trials, *mistake, options=options)
    assert told["end"] == "found" and told["without_failed"] == 0 and told["seeds"] and len(told["found"]) == 1, told
    found = told["found"][0]
    assert found["seeds"] and found["outcome"] == "ends with an error" and found["value"] == 1, told
    assert not told["rest"], told
    again = softverbs("run", f"--adverse={found['list']}", "--", PROGRAM, trials, *mistake)
    return found["behaviours"], again.returncode


def _fields(form):
    """The fields of a form in docs/reference/json.md."""
    page = made_pages.whole(os.path.join(HERE, "../.."), "docs/reference/json.md")
    chapter = next(each for each in page.split("\n## ") if each.startswith(form + "\n"))
    return set(re.findall(r"^\| `(\w+)` \|", chapter, re.MULTILINE))


def the_json_has_the_fields_of_its_page():
    told = _bisect(PROGRAM, "1", "P7", options=("--seeds", "1", "--adverse", "only=numbers"))
    assert set(told) == _fields("Bisected") and set(told["found"][0]) == _fields("Unborne"), told


def one_behaviour_is_found_by_itself():
    for mistake, behaviour, options in (("L3", "late-write", ALL), ("L1", "late-read", QUICK), ("P6", "unsaid", QUICK), ("P7", "numbers", QUICK),
                                        ("P15", "no-inline", QUICK)):
        behaviours, again = _found([mistake], options=options)
        assert behaviours == [behaviour] and again == 1, (mistake, behaviours, again)


def two_that_are_needed_together_are_found():
    assert _found(["P6", "P7"], trials="3") == (["unsaid", "numbers"], 1)
    assert _found(["L1", "L3"]) == (["late-read", "late-write"], 1)


def each_of_two_mistakes_is_found():
    told = _bisect("sh", "-c", f"{PROGRAM} 3 P6 && {PROGRAM} 3 P7")
    assert [each["behaviours"] for each in told["found"]] == [["unsaid"], ["numbers"]] and not told["rest"], told


def a_mistake_that_shows_in_some_runs_alone_is_found():
    told = _bisect(PROGRAM, "40", "2:L3", options=("--seeds", "1-12", *QUICK[2:]))
    assert told["end"] == "found" and [each["behaviours"] for each in told["found"]] == [["late-write"]], told
    assert len(told["seeds"]) < 12, told


def a_program_that_always_fails_is_told_so():
    for program in (["false"], ["sh", "-c", "kill -SEGV $$"]):
        told = _bisect(*program)
        assert told["end"] == "always" and told["runs"] == told["without"] == told["without_failed"] == 3 and not told["found"], told
    done = expect(softverbs("adverse", "--bisect", "--", "false"), 1, None, b"")
    assert done.stdout == b"The program fails without the adverse adapter, too: in 3 of 3 runs. First find out why: it ends with an error (status 1).\n3 runs.\n", done.stdout


def a_program_that_never_fails_is_told_so():
    for program in ([PROGRAM, "3"], ["true"]):
        told = _bisect(*program, status=0)
        assert told["end"] == "never" and told["runs"] == 3 + 5 and not told["seeds"], told
    done = expect(softverbs("adverse", "--seeds", "4-6", "--", "true"), 0, None, b"")
    assert done.stdout == b"The program never failed under the seeds 4 to 6.\n6 runs.\n", done.stdout


def one_that_fails_once_is_told_so():
    path = f"{cases.TEMPORARY}/runs"
    once = f'echo >>{path}; [ $(wc -l <{path}) != 4 ]'  # the first under a seed
    told = _bisect("sh", "-c", once, options=(*QUICK, "--tries", "3"))
    assert told["end"] == "lost" and told["seeds"] == [1], told
    os.unlink(path)
    done = expect(softverbs("adverse", "--bisect", *QUICK, "--tries", "3", "--", "sh", "-c", once), 1, None, None)
    assert b"The program failed under 1 of 5 seeds, first 1, but not again in 3 runs" in done.stdout, done.stdout


def one_that_fails_with_no_behaviour_on_is_told_so():
    program = ["sh", "-c", '[ -z "$SOFTVERBS_ADVERSE" ]']
    told = _bisect(*program)
    assert told["end"] == "bare" and told["without_failed"] == 0 and told["seeds"] == [1, 2, 3, 4, 5] and not told["found"], told
    done = expect(softverbs("adverse", "--bisect", *QUICK, "--", *program), 1, None, b"bears the runs without the adverse adapter; trying seeds\n")
    assert b"The program fails with no behaviour on, too: it ends with an error (status 1)." in done.stdout, done.stdout
    assert b"\n  softverbs run --adverse=seed=1,only=1,without=1 -- sh -c" in done.stdout, done.stdout


def a_run_that_hangs_fails():
    told = _bisect("sh", "-c", 'case $SOFTVERBS_ADVERSE in *only=1,only=*) sleep 60; esac', options=("--seeds", "3", "--tries", "1", "--timeout", "1"))
    assert told["end"] == "found" and told["found"][0]["outcome"] == "hangs", told


def people_read_what_to_do_next():
    done = expect(softverbs("adverse", "--bisect", *QUICK, "--", PROGRAM, "3", "P6"), 1, None, None)
    for words in (b"The program does not bear unsaid: it ends with an error (status 1).", b"What it shows: reading it.",
                  b"It fails under 5 of the seeds 1 to 5: 1, 2, 3, 4, 5.", f"  softverbs run --adverse=seed=1,only=unsaid -- {PROGRAM} 3 P6\n".encode(),
                  b"Without this it bears all others under the seeds 1 to 5."):
        assert words in done.stdout, (words, done.stdout)
    assert b"fails with unsaid\n" in done.stderr, done.stderr
    done = expect(softverbs("adverse", *QUICK, "--", PROGRAM, "3", "P6"), 1, None, b"")
    assert done.stdout == b"The program fails under 5 of the seeds 1 to 5: 1, 2, 3, 4, 5.\n8 runs.\n", done.stdout


def mistakes_are_explained():
    for options, words in ((["--seeds", "5-1"], b'"5-1" are not seeds'), (["--seeds", "1-9999"], b"not seeds"), (["--seeds", "x"], b"not seeds"),
                           (["--tries", "0"], b"--tries needs a number from 1"), (["--timeout", "1s"], b"--timeout needs a number"),
                           (["--adverse", "only=late"], b'"only=late" of the adverse list names no behaviour'), (["--list"], b"no option --list")):
        expect(softverbs("adverse", *options, "--", "true"), 2, b"", [words])
    expect(softverbs("adverse", "--bisect"), 2, b"", [b"needs a program"])
    for name in ("/no/such/program", "no-such-program", "/"):
        expect(softverbs("adverse", "--bisect", "--", name), 125, b"", [f'There is no program "{name}" that can be executed.'.encode()])


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
