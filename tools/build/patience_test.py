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
    "a sleep without a reason is found": ({"tests/api/x.c": "    f();\n    usleep(20000);\n"}, 1, "# tests/api/x.c:2: a sleep without a reason"),
    "in a script, too": ({"tests/tool/x.py": "import time\nfor name in names:\n    time.sleep(QUIET)\n    assert name\n"}, 1, "x.py:3: a sleep without"),
    "after a loop of looks, too": ({"tests/tool/x.py": "while not there():\n    time.sleep(1)\ntime.sleep(2)\n"}, 1, "# tests/tool/x.py:3: a sleep"),
    "one of rounds is no look": ({"tests/api/x.c": "    for (int i = 0; i < 5; i++) {\n        nanosleep(&(struct timespec){.tv_nsec = 5}, NULL);\n        f();\n    }\n"}, 1, "x.c:2: a sleep"),
    "one with its reason is fine": ({"tests/api/x.c": "    usleep(20000); /* the time in which it would end */\n"}, 0, "1 of at most"),
    "the pause between two looks is fine": ({"tests/api/x.c": "    while (!there())\n        usleep(100);\n"}, 0, "ok 2 - 0 of"),
    "between two tries, too": ({"tests/tool/x.py": "for _ in range(20):\n    if try_it():\n        break\n    time.sleep(0.1)\n"}, 0, "ok 2 - 0 of"),
    "what chance draws is fine": ({"tests/api/x.c": "    usleep(next_random(&random) % 500);\n"}, 0, "ok 2 - 0 of"),
    "a wait without an end is found": ({"src/ipc/x_test.c": "    while (!atomic_load(&stage->go)) /* soon */\n        ;\n"}, 1, "# src/ipc/x_test.c:1: a wait without"),
    "with pauses, too": ({"src/ipc/x_test.c": "    while (atomic_load(&stage->go) < f(2))\n        usleep(100);\n"}, 1, "# src/ipc/x_test.c:1: a wait without"),
    "one with patience is fine": ({"src/ipc/x_test.c": "    PATIENTLY_WHILE (!atomic_load(&stage->go))\n        usleep(100);\n"}, 0, "ok 3"),
    "a loop that does the work is fine": ({"src/ipc/x_test.c": "    while (!atomic_load(&stage->stop)) {\n        work();\n    }\n"}, 0, "ok 3"),
    "too many are found": ({"tests/api/x.c": "    usleep(5); /* why */\n" * 99}, 1, "99 literal sleeps, at most"),
    "the scale itself stands where it belongs": ({"src/base/testing/patience.h": "enum { PATIENCE_WITH_ONE = 20000 };\n"}, 0, "ok 1"),
}


if __name__ == "__main__":
    sys.exit(made_up.run("patience.py", TREES))
