#!/usr/bin/env python3
"""The check of patience finds what it is there for, in small made-up trees; prints TAP."""
import sys

sys.dont_write_bytecode = True
import made_up

TREES = {
    "a test that uses the scale is fine": ({"tests/api/x.c": "wait(PATIENCE);\n"}, 0, "ok 1"),
    "one that has its own is found": ({"tests/api/x.c": "enum { PATIENCE = 20, A };\n"}, 1, "# tests/api/x.c: PATIENCE is a scale of its own"),
    "in another unit, too": ({"tests/api/x.c": "enum { A, PATIENCE_MS = 20 };\n"}, 1, "PATIENCE_MS"),
    "in a script": ({"tests/clients/x.py": "PATIENCE = 20  # seconds\n"}, 1, "tests/clients/x.py: PATIENCE"),
    "as a variable": ({"tests/clients/x.c": "static double patience = 1;\n"}, 1, "patience"),
    "as a number of tries": ({"bench/x.c": "enum { TRIES = 3 };\n"}, 1, "bench/x.c: TRIES"),
    "beside the code": ({"src/ipc/x_test.c": "enum { PATIENT = 4000 };\n"}, 1, "src/ipc/x_test.c: PATIENT"),
    "the library's own is its own": ({"src/ipc/x.c": "enum { PATIENCE = 5, TRIES = 3 };\n"}, 0, "ok 1"),
    "words that hold such a word are others": ({"tests/api/x.c": "enum { ENTRIES = 20, RETRIES = 7 };\n"}, 0, "ok 1"),
    "a script that gives up after seconds of its own is found": ({"tests/clients/x.py": "a = 1\nsubprocess.run(command(1),\n  timeout=60)\n"}, 1, "x.py:3: a limit"),
    "at the end of a program, too": ({"tests/tool/x.py": "p.communicate(f(g(1)), timeout=SECONDS)\n"}, 1, "x.py:1: a limit"),
    "one whose seconds are multiplied is fine": ({"tests/tool/x.py": "p.wait(timeout=patience(20))\n"}, 0, "ok 1"),
    "an alarm that nothing multiplies is found": ({"tests/api/x.c": "alarm(SOON);\n"}, 1, "# tests/api/x.c:1: a limit"),
    "one that is taken back is fine": ({"src/ipc/x_test.c": "alarm(0);\nalarm((unsigned)patience(SOON));\n"}, 0, "ok 1"),
    "by hand a person sees what is slow": ({"tests/look/x.py": "subprocess.run(c, timeout=600)\n"}, 0, "ok 1"),
    "the scale itself stands where it belongs": ({"src/base/testing/patience.h": "enum { PATIENCE_WITH_ONE = 20000 };\n"}, 0, "ok 1"),
}


if __name__ == "__main__":
    sys.exit(made_up.run("patience.py", TREES))
