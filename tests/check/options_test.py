#!/usr/bin/env python3
"""The options of the checker, and the reports that it leaves for CI. Prints TAP. The programs are in mistakes.c."""
import json
import os
import re
import signal
import sys
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tool"))
import cases
from cases import BUILD, TEMPORARY, TREE, expect, run, softverbs, told
from rules import unseen  # pylint: disable=wrong-import-order

PROGRAM = f"{BUILD}/tests/check/mistakes"
FAULTY = ("send-buffer-changed", "faulty")
TWIN = ("send-buffer-changed", "twin")


def _checked(*options, program=FAULTY, **extra):
    return softverbs("run", *options, "--", PROGRAM, *program, **extra)


def _report(name, *programs):
    """The path of a report of these programs."""
    path = f"{TEMPORARY}/{name}.report"
    for program in programs:
        _checked("--check=notes", f"--check-report={path}", program=program)
    return path


def without_the_option_nothing_is_checked():
    expect(run(PROGRAM, *FAULTY), out=b"", err=b"")


def the_levels_are_errors_adapter_findings_and_notes():
    note, error = ("timeout-zero", "faulty"), FAULTY
    for words, shown in (("--check", (False, True)), ("--check=notes", (True, True)), ("--check=error", (False, True))):
        for program, wanted in zip((note, error), shown):
            done = _checked(words, program=program)
            assert (f"({program[0]})".encode() in done.stderr) == wanted, (words, told(done))
    adapter = _checked("--check=error", program=("cq-overrun", "faulty"))
    assert b"cq-overrun" not in adapter.stderr, told(adapter)


def a_list_of_rules_is_all_that_is_checked():
    done = _checked("--check=cq-overrun,timeout-zero")
    expect(done, err=b"")
    done = _checked("--check=cq-overrun,send-buffer-changed")
    assert b"(send-buffer-changed)" in done.stderr, told(done)


def a_word_that_is_none_is_refused():
    expect(softverbs("run", "--check=send-bufer-changed", "--", PROGRAM, *FAULTY), 2, b"", [b'"send-bufer-changed" is neither a rule'])
    done = run(PROGRAM, *FAULTY, env={"SOFTVERBS_CHECK": "nothing"})
    expect(done, 2, b"", [b'"nothing" is neither a rule'])


def places_are_lines_of_the_program():
    done = _checked("--check")
    for words in (b"posted at    change_send_buffer (mistakes.c:", b"found at     loopback_poll (loopback.c:", b"main (mistakes.c:",
                  b"created at   loopback_make_qp (loopback.c:", b"cure         poll the completion"):
        assert words in done.stderr, (words, told(done))
    assert b"verbs.h" not in done.stderr and b"__libc" not in done.stderr, told(done)


def places_are_lines_without_optimization_too():
    done = softverbs("run", "--check", "--", f"{PROGRAM}_unoptimized", *FAULTY)
    assert b"posted at    change_send_buffer (mistakes.c:" in done.stderr and b"verbs.h" not in done.stderr, told(done)
    done = softverbs("run", "--check", "--", f"{PROGRAM}_unoptimized", "send-buffer-changed", "neighbour")
    assert b"posted at    write_by_builders (mistakes.c:" in done.stderr, told(done)


def posts_have_their_callers():
    chains = [["by_builder", "build", "main"], ["post", "contained", "main"], ["post", "inner", "outer"], ["post", "post_in_thread", "run_thread"], ["post", "recursive", "recursive"],
              ["post_roomy", "roomy", "roomier"]]
    for name in ("unoptimized", "framed", "optimized"):
        path = f"{TEMPORARY}/wrapped.{name}"
        done = softverbs("run", "--check=send-buffer-changed", f"--check-report={path}", "--", f"{BUILD}/tests/check/wrapped_{name}")
        with open(path, encoding="utf-8") as file:
            places = sorted([place["function"] for place in json.loads(line)["posted"]] for line in file)
        assert [place[:len(chain)] for place, chain in zip(places, chains)] == chains and len(places) == len(chains), (name, places)
        assert re.search(rb"posted at    post \(wrapped.c:\d+\)\n.* {16}inner \(wrapped.c:\d+\)\n.* {16}outer .*\n.*found at ", done.stderr), told(done)


def inlined_callers_are_one_frame_as_the_page_has_it():
    with open(f"{TREE}/docs/reference/checker.md", encoding="utf-8") as page:
        assert "have one frame and one name: with `-g` the innermost" in " ".join(page.read().split())
    assert [row for row in unseen(TREE).splitlines() if "(inlined): they have one frame and one name" in row], unseen(TREE)
    done = softverbs("run", "--check=send-buffer-changed", "--", f"{BUILD}/tests/check/wrapped_optimized")
    assert b" contained (wrapped.c:" in done.stderr and b"container" not in done.stderr, told(done)


def a_caller_of_the_post_is_a_function_to_suppress():
    path = f"{TEMPORARY}/callers"
    with open(path, "w", encoding="ascii") as file:
        file.write("wrapped_* send-buffer-changed outer\n")
    done = softverbs("run", "--check=send-buffer-changed", f"--check-suppressions={path}", "--", f"{BUILD}/tests/check/wrapped_optimized")
    assert done.stderr.count(b"(send-buffer-changed)") == 5 and b" outer " not in done.stderr, told(done)


def one_place_is_one_finding_with_a_count():
    path = _report("count", ("cq-overrun", "faulty"))
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    assert [(line["rule"], line["count"]) for line in lines] == [("cq-overrun", 1), ("never-polled", 1)], lines
    path = _report("counts", ("many", "faulty"))
    with open(path, encoding="utf-8") as file:
        first, last = [json.loads(line) for line in file]
    assert first["count"] == 1 and last["count"] == 5 and "text" not in last, (first, last)
    checked, = json.loads(softverbs("checks", "--json", path).stdout)
    assert checked["count"] == 5 and checked["text"] == first["text"], checked


def the_exit_status_is_the_one_that_was_asked_for():
    assert _checked("--check", "--error-exitcode=77").returncode == 77
    assert _checked("--check", "--error-exitcode=77", program=TWIN).returncode == 0
    assert _checked("--check").returncode == 0
    assert _checked("--check=notes", "--error-exitcode=77", program=("timeout-zero", "faulty")).returncode == 0


def failed_work_is_counted_apart():
    failing = ("failed-work", "faulty")
    done = _checked("--check", "--error-exitcode=77", program=failing)
    assert done.returncode == 0 and b"check: 0 errors, 0 adapter findings, 1 failed, 0 notes" in done.stderr, told(done)
    for words, wanted in (("adapter,failed-work", 77), ("failed-work", 77), ("notes", 0), ("failed-work,-failed-work", 0)):
        assert _checked(f"--check={words}", "--error-exitcode=77", program=failing).returncode == wanted, words
    for words in ("error", "adapter,-failed-work"):
        expect(_checked(f"--check={words}", program=failing), err=b"")
    assert _checked("--check=fatal", program=failing).returncode == 0
    assert _checked("--check=fatal,adapter,failed-work", program=failing).returncode == -signal.SIGTRAP


def failed_work_has_the_words_of_the_log():
    for program, shown in ((("failed-work", "faulty"), [rb"IBV_WC_REM_ACCESS_ERR: process .* refused it: .* with rkey 0x"]),
                           (("failed-work", "neighbour"), [rb"IBV_WC_LOC_PROT_ERR, element 0: .* with lkey 0x"]),
                           (("failed-receive", "faulty"), [rb"IBV_WC_LOC_LEN_ERR: .* has room for 8$", rb"IBV_WC_REM_INV_REQ_ERR: "])):
        done = _checked("--check", "--log=warn", program=program)
        logged = sorted(re.findall(rb"\] qp 0x\w+: \w+ of wr_id 9 ends in (.*?)\.?(?: \(reason \d+\))?\n", done.stderr))
        found = sorted(re.findall(rb"\(wr_id 9\) ended with (.*) \(failed-work\)\n", done.stderr))
        assert found == logged and len(found) == len(shown) and all(re.match(*pair) for pair in zip(shown, found)), (logged, found, told(done))


def work_that_a_script_fails_is_no_finding():
    for rule in ("when work: complete REM_ACCESS_ERR", "when work: complete REM_ACCESS_ERR, vendor 205"):
        expect(_checked("--check", f"--inject={rule}", "--log=error", program=("failed-work", "faulty")), err=b"")


def fatal_stops_at_the_first_finding():
    done = _checked("--check=fatal")
    assert done.returncode == -signal.SIGTRAP and b"posted at" in done.stderr, told(done)
    assert _checked("--check=fatal", program=TWIN).returncode == 0


def fill_fills_the_buffers_of_receives_and_nothing_else():
    early = ("early", "twin")
    for words, shown in (("adapter", b"01 01 01\n"), ("fill", b"01 a5 a5\n"), ("fill,error", b"01 a5 a5\n")):
        expect(_checked(f"--check={words}", program=early), out=shown, err=b"")


def pages_leave_a_handler_its_own_faults():
    done = _checked("--check=pages", program=("handler", "twin"))
    expect(done, out=b"", err=b"")


def pages_with_a_buffer_are_registered_again():
    expect(_checked("--check=pages", program=("registered-again", "twin")), out=b"", err=b"")


def pages_that_the_program_maps_anew_stay_as_they_are():
    for variant in ("faulty", "twin", "neighbour"):
        done = _checked("--check=pages", program=("mapped-over", variant))
        assert done.returncode == 0, (variant, told(done))


def a_suppression_leaves_out_what_fits_it():
    path = f"{TEMPORARY}/suppressions"
    for line, silent in (("mistakes send-buffer-changed loopback_poll", True), ("m* send-* change_*", True), ("* * *  # all", True),
                         ("mistakes send-buffer-changed nothing", False), ("other * *", False), ("mistakes cq-overrun *", False)):
        with open(path, "w", encoding="ascii") as file:
            file.write(f"# a comment\n\n{line}\n")
        done = _checked("--check", f"--check-suppressions={path}", "--error-exitcode=77")
        assert (b"(send-buffer-changed)" in done.stderr, done.returncode) == ((False, 0) if silent else (True, 77)), (line, told(done))
    done = _checked("--check", f"--check-suppressions={path}.none")
    expect(done, 2, b"", [b"can't be read"])


def a_bad_line_of_suppressions_is_named():
    path = f"{TEMPORARY}/bad"
    with open(path, "w", encoding="ascii") as file:
        file.write("\nmistakes send-buffer-changed\n")
    done = _checked("--check", f"--check-suppressions={path}")
    assert b"line 2 ignored: it is not PROGRAM RULE FUNCTION" in done.stderr, told(done)


def a_report_is_shown_as_a_table_and_judged():
    path = _report("table", FAULTY, TWIN)
    done = softverbs("checks", path)
    assert done.returncode == 1 and b"send-buffer-changed" in done.stdout and b"mistakes.c:" in done.stdout, told(done)
    expect(softverbs("checks", _report("clean", TWIN)), out=None)
    expect(softverbs("checks", _report("note", ("timeout-zero", "faulty"), ("failed-work", "faulty"))), out=None)
    expect(softverbs("checks", f"{TEMPORARY}/none"), 2, b"", [b"can't be read"])
    expect(softverbs("checks", PROGRAM), 2, b"", [b"is not a report of the checker: line 1"])


def sarif_names_file_and_line():
    done = softverbs("checks", "--sarif", _report("sarif", FAULTY, ("timeout-zero", "faulty"), ("cq-overrun", "faulty"), ("failed-work", "faulty")))
    run_of, = json.loads(done.stdout)["runs"]
    rules = {rule["id"] for rule in run_of["tool"]["driver"]["rules"]}
    found = {result["ruleId"]: result for result in run_of["results"]}
    assert set(found) == {"send-buffer-changed", "timeout-zero", "cq-overrun", "never-polled", "failed-work"} <= rules, found
    levels = [found[rule]["level"] for rule in ("send-buffer-changed", "timeout-zero", "cq-overrun", "failed-work")]
    assert levels == ["error", "note", "warning", "warning"], levels
    where = found["send-buffer-changed"]["locations"][0]["physicalLocation"]
    assert where["artifactLocation"]["uri"].endswith("mistakes.c") and where["region"]["startLine"] > 1, where


def github_shows_a_finding_beside_its_line():
    lines = softverbs("checks", "--github", _report("github", FAULTY, ("timeout-zero", "faulty"))).stdout.splitlines()
    assert len(lines) == 2 and lines[0].startswith(b"::error title=softverbs send-buffer-changed,file="), lines
    assert b"mistakes.c,line=" in lines[0] and lines[1].startswith(b"::notice title=softverbs timeout-zero"), lines


def junit_fails_for_errors_and_not_for_notes_or_failed_work():
    tree = xml.etree.ElementTree.fromstring(softverbs("checks", "--junit", _report("junit", FAULTY, ("timeout-zero", "faulty"))).stdout)
    assert (tree.get("tests"), tree.get("failures")) == ("2", "1"), tree.attrib
    assert [len(case.findall("failure")) for case in tree.findall("testcase")] == [1, 0]
    tree = xml.etree.ElementTree.fromstring(softverbs("checks", "--junit", _report("failed", ("failed-work", "faulty"))).stdout)
    assert (tree.get("tests"), tree.get("failures")) == ("1", "0"), tree.attrib
    tree = xml.etree.ElementTree.fromstring(softverbs("checks", "--junit", _report("passed", TWIN)).stdout)
    assert (tree.get("tests"), tree.get("failures"), len(tree.findall("testcase"))) == ("1", "0", 1), tree.attrib


def a_rule_is_explained():
    done = expect(softverbs("explain", "send-buffer-changed"), out=None)
    assert b"IBV_SEND_INLINE" in done.stdout and b"why" in done.stdout, told(done)
    rule, = json.loads(softverbs("explain", "--json", "cq-overrun").stdout)
    assert rule["level"] == "adapter" and rule["devices"] and rule["cure"], rule


def a_forked_child_reports_its_own():
    path = _report("fork", ("fork", "faulty"))
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    assert len({line["pid"] for line in lines}) == 2 and {line["rule"] for line in lines} == {"never-destroyed"}, lines
    assert len(lines) == 2, lines


def what_libraries_free_while_lines_are_looked_up_is_no_finding():
    path = f"{TEMPORARY}/lookup.report"
    done = softverbs("run", "--check", f"--check-report={path}", "--", f"{BUILD}/tests/check/frees_in_lookup")
    assert done.returncode == 0, told(done)
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    found = {line["found"][0]["function"] for line in lines if "text" in line}
    assert {line["rule"] for line in lines} == {"buffer-freed"} and found == {"main"}, lines


def memory_of_a_program_s_own_allocator_has_no_size():
    done = softverbs("run", "--check", "--", f"{BUILD}/tests/check/own_allocator")
    assert done.returncode == 0 and done.stderr.count(b"(buffer-freed)") == 1, told(done)
    assert b"found at     library_free (frees_library.c:" in done.stderr, told(done)


def a_program_that_takes_the_address_of_free_does_not_hang():
    done = softverbs("run", "--check", "--", f"{BUILD}/tests/check/free_by_address")
    assert done.returncode == 0 and done.stderr.count(b"(buffer-freed)") == 1, told(done)
    assert b"found at     library_free (frees_library.c:" in done.stderr, told(done)


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
