#!/usr/bin/env python3
"""The check of events finds what it is there for, in small made-up trees; prints TAP."""
import sys

sys.dont_write_bytecode = True
import made_up

LIST = """/* COUNTED(not, a, line) */
PACKETS(SENT, "sent", BYTES, "SENT", "", NONE, OPERATION, LENGTH,
    "A packet was sent.")
SUM(BYTES, "bytes", "", "",
    "The bytes of them.")
COUNTED(LOST, "lost", "all", NONE, "", "", NONE, NONE, NONE,
    "A packet was lost.")
FAULT(DROP, "drop", SHARE, "1%", "dropped",
    "A packet was dropped.")
"""
BOTH = "void f(void)\n{\n    traffic_note(flow, EVENT_SENT, 1, 2);\n    traffic_note(flow, EVENT_LOST, 1, 0);\n    fault_has(fault, FAULT_DROP);\n}\n"
FINE = {"src/events/events.def": LIST, "src/a/a.c": BOTH}

TREES = {
    "events that are noted": ({}, 0, "ok 1 - each of 3 events"),
    "one that nothing notes": ({"src/a/a.c": BOTH.replace("EVENT_SENT", "OTHER")}, 1, "SENT: nothing notes it"),
    "one that a comment names": ({"src/a/a.c": BOTH.replace("traffic_note(flow, EVENT_SENT, 1, 2)", "/* EVENT_SENT */")}, 1, "SENT: nothing notes it"),
    "a kind of faults that nothing knows": ({"src/a/a.c": BOTH.replace("FAULT_DROP", "FAULT_OTHER")}, 1, "FAULT_DROP: nothing notes it"),
    "one that only a test notes": ({"src/a/a.c": "", "src/a/a_test.c": BOTH}, 1, "SENT: nothing notes it"),
    "one that is only read": ({"src/a/a.c": BOTH.replace("traffic_note(flow, EVENT_SENT, 1, 2)", "f(counts_number(g(x), EVENT_SENT))")}, 1,
                              "SENT: nothing notes it"),
    "one that is only compared": ({"src/a/a.c": BOTH.replace("traffic_note(flow, EVENT_SENT, 1, 2)", "f(record->event == EVENT_SENT)")}, 1,
                                 "SENT: nothing notes it"),
    "one that two modules note": ({"src/a/b.c": BOTH}, 1, "LOST: at most 1 modules may note it: src/a/a, src/a/b"),
    "a header and its source are one module": ({"src/a/a.h": BOTH}, 0, "ok 1"),
    "a count that is changed elsewhere": ({"src/a/b.c": "    flow->counts.numbers[3] += 2;\n"}, 1, "not ok 2"),
    "a count that is counted elsewhere": ({"src/a/b.c": "    counts->packets[a][b]++;\n"}, 1, "not ok 2"),
    "a count that is read": ({"src/a/b.c": "    int x = flow->counts.numbers[3];\n    if (counts->sums[1] == 2) f();\n"}, 0, "ok 2"),
    "parts of a key that stand apart": ({"src/events/events.def": LIST + 'COUNTED(FOUND, "lost", "found", NONE, "", "", NONE, NONE, NONE,\n    "It was found.")\n'}, 1,
                                        "lost: its lines do not stand together"),
    "events that are not counted": ({"src/events/events.def": LIST + 'EVENT(STATE, QP, DEBUG, NONE, NONE,\n    "It changed.")\n'}, 1,
                                    "STATE: nothing notes it"),
}


if __name__ == "__main__":
    sys.exit(made_up.run("events.py", TREES, beside=FINE))
