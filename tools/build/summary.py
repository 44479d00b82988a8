#!/usr/bin/env python3
"""Counts test results over several builds.

Usage: summary.py STEPS BUILD...

STEPS is a file of TAP lines about the steps themselves (a build that failed, a build left out). Each BUILD is a meson build
directory in which `meson test` has run. Programs that print TAP count with each of their tests, other programs as one test.
Prints what failed and what was skipped and why; the last line is `N passed, N failed, N skipped`. Exit status 1 when
something failed or nothing ran.
"""
import json
import os
import re
import sys

LINE = re.compile(r"^(?P<bad>not )?ok\b *(?P<number>\d+)? *(?:- *)?(?P<name>.*?) *(?:# *SKIP\b[: ]*(?P<reason>.*))?$",
                  re.IGNORECASE)
PLAN = re.compile(r"^1\.\.(\d+)( *# *SKIP\b[: ]*(?P<reason>.*))?", re.IGNORECASE)


def read_tap(text):
    """The results in TAP text as (outcome, name, reason), and how many tests were planned."""
    results, planned = [], 0
    for line in text.splitlines():
        plan, result = PLAN.match(line), LINE.match(line)
        if plan:
            planned += int(plan.group(1))
            if plan.group("reason") is not None and plan.group(1) == "0":
                results.append(("skipped", "everything", plan.group("reason")))
        elif result and result.group("reason") is not None:
            results.append(("skipped", result.group("name"), result.group("reason")))
        elif result:
            results.append(("failed" if result.group("bad") else "passed", result.group("name"), ""))
    return results, planned


def read_program(entry):
    """The results of one program, from its line of testlog.json."""
    results, planned = read_tap(entry.get("stdout") or "")
    outcome = entry["result"]
    if not results and not planned:
        if outcome == "SKIP":
            said = (entry.get("stdout") or entry.get("stderr") or "it exited with status 77").strip()
            return [("skipped", "", said.splitlines()[-1])]
        return [("passed" if outcome in ("OK", "EXPECTEDFAIL") else "failed", "", outcome)]
    ran = len(results)
    if planned > ran:
        results.append(("failed", f"{planned - ran} of {planned} tests never finished", outcome))
        results += [("failed", "", outcome)] * (planned - ran - 1)
    elif outcome not in ("OK", "SKIP") and not any(kind == "failed" for kind, _, _ in results):
        results.append(("failed", "the program's end", f"{outcome}, exit status {entry.get('returncode')}"))
    return results


def read_build(directory):
    log = os.path.join(directory, "meson-logs", "testlog.json")
    if not os.path.exists(log):
        return [("failed", directory, "no tests ran")]
    results = []
    with open(log, encoding="utf-8") as lines:
        for line in lines:
            entry = json.loads(line)
            program = f"{directory}: {entry['name'].split(' / ')[-1]}"
            results += [(kind, f"{program}: {name}" if name else program, reason)
                        for kind, name, reason in read_program(entry)]
    return results


def main():
    with open(sys.argv[1], encoding="utf-8") as steps:
        results = read_tap(steps.read())[0]
    for directory in sys.argv[2:]:
        results += read_build(directory)
    count = {kind: sum(1 for result in results if result[0] == kind) for kind in ("passed", "failed", "skipped")}
    for kind in ("skipped", "failed"):
        for outcome, name, reason in results:
            if outcome == kind and name:
                print(f"{kind}: {name}" + (f" ({reason})" if reason else ""))
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] or not count["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
