#!/usr/bin/env python3
"""Tests of summary.py; prints TAP."""
import json
import os
import sys
import tempfile

from summary import read_program, read_tap, several_tries, where_time_went

CMOCKA = "1..3\nok 1 - sends\nnot ok 2 - receives\n# 1 != 2\nnot ok 3 # SKIP waits\n# not ok - group\n"


def kinds(results):
    return [kind for kind, _, _ in results]


def counts_what_cmocka_prints():
    return read_tap(CMOCKA)[0] == [("passed", "sends", ""), ("failed", "receives", ""), ("skipped", "", "waits")]


def adds_plans_of_several_groups():
    return read_tap("1..1\nok 1 - a\n1..2\nok 1 - b\nok 2 - c\n")[1] == 3


def keeps_the_reason_of_a_skip():
    return read_tap("1..1\nok 1 - a b # SKIP no root\n")[0] == [("skipped", "a b", "no root")]


def keeps_the_reason_of_a_skipped_program():
    return read_tap("1..0 # SKIP only root can\n")[0] == [("skipped", "everything", "only root can")]


def counts_tests_that_never_finished_as_failed():
    crashed = {"stdout": "1..3\nok 1 - a\n", "result": "FAIL", "returncode": -11}
    return kinds(read_program(crashed)) == ["passed", "failed", "failed"]


def counts_a_bad_end_after_good_tests_as_failed():
    leaking = {"stdout": "1..1\nok 1 - a\n", "result": "FAIL", "returncode": 23}
    return kinds(read_program(leaking)) == ["passed", "failed"]


def counts_a_timeout_without_output_as_failed():
    return kinds(read_program({"stdout": "", "result": "TIMEOUT"})) == ["failed"]


def counts_a_program_without_tap_as_one_test():
    return kinds(read_program({"stdout": "hello\n", "result": "OK"})) == ["passed"]


def takes_the_last_line_of_a_skipping_program_as_the_reason():
    return read_program({"stdout": "no clang\n", "result": "SKIP"}) == [("skipped", "", "no clang")]


def shows_where_the_time_went():
    with tempfile.TemporaryDirectory() as build:
        os.mkdir(f"{build}/meson-logs")
        for log, suite, name, seconds in (("testlog", "api", "data over shm", 3.2), ("waits", "clients+waits", "ping", 20), ("more", "clients", "wire", 9)):
            with open(f"{build}/meson-logs/{log}.json", "w", encoding="utf-8") as file:
                file.write(json.dumps({"name": f"softverbs:{suite} / {name}", "duration": seconds}) + "\n")
        shown = list(where_time_went("ok - a\n# 12 s build\n", [build]))
        return shown == ["    12 s  build", f"    29 s  suite {build} clients: ping 20, wire 9", f"     3 s  suite {build} api: data over shm 3"]


def shows_which_tests_needed_several_tries():
    with tempfile.TemporaryDirectory() as build:
        os.mkdir(f"{build}/meson-logs")
        with open(f"{build}/meson-logs/testlog.json", "w", encoding="utf-8") as file:
            for name, text in (("softverbs:api / x", "1..1\n# tries: 3 of 20: an event: chance\nok 1 - a\n"), ("softverbs:api / y", "ok 1\n")):
                file.write(json.dumps({"name": name, "duration": 1, "stdout": text}) + "\n")
        return list(several_tries([build])) == [f"{build}: x: 3 of 20: an event: chance"]


def main():
    tests = [value for value in globals().values() if callable(value) and value.__doc__ is None
             and value.__module__ == "__main__" and value not in (kinds, main)]
    print(f"1..{len(tests)}")
    passed = [test() for test in tests]
    for number, (test, good) in enumerate(zip(tests, passed), 1):
        print(f"{'ok' if good else 'not ok'} {number} - {test.__name__}")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
