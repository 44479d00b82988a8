#!/usr/bin/env python3
"""Counts test results over several builds.

Usage: summary.py STEPS BUILD...
       summary.py --so-far STEPS BUILD...

STEPS is a file of TAP lines about the steps themselves (a build that failed, a build left out), and of lines "# SECONDS s WHAT" that say
how long they took. Each BUILD is a meson build directory in which `meson test` has run. Programs that print TAP count with each of their
tests, other programs as one test. Prints where the time went, which tests needed several tries (src/base/testing/patience.h), what
failed, and what was skipped and why; the last line is `N passed, N failed, N skipped`. Exit status 1 when something failed or nothing passed. --so-far prints only a count.
"""
import collections
import glob
import json
import os
import re
import sys

LINE = re.compile(r"^(?P<bad>not )?ok\b *(?P<number>\d+)? *(?:- *)?(?P<name>.*?) *(?:# *SKIP\b[: ]*(?P<reason>.*))?$",
                  re.IGNORECASE)
PLAN = re.compile(r"^1\.\.(\d+)( *# *SKIP\b[: ]*(?P<reason>.*))?", re.IGNORECASE)
TRIES = re.compile(r"^# tries: (.*)$", re.MULTILINE)
STEP = re.compile(r"^# (\d+) s (.*)$", re.MULTILINE)
SUITES_SHOWN, PROGRAMS_SHOWN = 10, 5


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


def entries(directory):
    """The results of `meson test` for each program, whichever --logbase it had."""
    for path in sorted(glob.glob(os.path.join(directory, "meson-logs", "*.json"))):
        with open(path, encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def read_build(directory):
    results = []
    for entry in entries(directory):
        program = f"{directory}: {entry['name'].split(' / ')[-1]}"
        results += [(kind, f"{program}: {name}" if name else program, reason) for kind, name, reason in read_program(entry)]
    return results or [("failed", directory, "no tests ran")]


def suite_of(name):
    """The suite of a test: "clients" of "softverbs:clients+waits / ping"."""
    return name.split(" / ")[0].split(":")[-1].split("+")[0] if " / " in name else ""


def slowest(parts, most):
    """The names of the parts that took longest, with their seconds."""
    return ", ".join(f"{name} {seconds:.0f}" for name, seconds in parts.most_common(most) if seconds >= 1)


def where_time_went(steps, directories):
    """A line for each step that reported its time, then one for each suite, with its longest programs."""
    yield from (f"{match.group(1):>6} s  {match.group(2)}" for match in STEP.finditer(steps))
    suites, programs = collections.Counter(), collections.defaultdict(collections.Counter)
    for directory in directories:
        for entry in entries(directory):
            suite = f"{directory} {suite_of(entry['name'])}".strip()
            suites[suite] += entry["duration"]
            programs[suite][entry["name"].split(" / ")[-1]] += entry["duration"]
    for suite, seconds in suites.most_common(SUITES_SHOWN):
        yield f"{seconds:6.0f} s  suite {suite}: {slowest(programs[suite], PROGRAMS_SHOWN)}"


def several_tries(directories):
    """A line for each time that a test needed more than one try."""
    for directory in directories:
        for entry in entries(directory):
            for said in TRIES.findall(entry.get("stdout") or ""):
                yield f"{directory}: {entry['name'].split(' / ')[-1]}: {said}"


def main():
    so_far = sys.argv[1] == "--so-far"
    path, *directories = sys.argv[2:] if so_far else sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        steps = file.read()
    results = read_tap(steps)[0]
    for directory in directories:
        results += read_build(directory)
    count = collections.Counter(kind for kind, _, _ in results)
    line = f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped"
    if so_far:
        print(f"== So far {line}")
        return 0
    print("== Where the time went; of the suites the sum of their programs, of which several run at a time")
    print("\n".join(where_time_went(steps, directories)))
    tried = collections.Counter(several_tries(directories))
    if tried:
        print("== Tests that needed several tries")
    for said, times in tried.items():
        print(said + (f" ({times} times)" if times > 1 else ""))
    for kind in ("skipped", "failed"):
        for outcome, name, reason in results:
            if outcome == kind and name:
                print(f"{kind}: {name}" + (f" ({reason})" if reason else ""))
    print(line)
    return 1 if count["failed"] or not count["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
