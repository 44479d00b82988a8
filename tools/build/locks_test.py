#!/usr/bin/env python3
"""The check of locks finds what it is there for, in small made-up trees; prints TAP."""
import sys

sys.dont_write_bytecode = True
import made_up

OBJECT, GIVEN_BACK = "struct object {\n    struct lock lock;\n};\n", "lock_inherit(&object->lock);"


KNOWN = "src/a/x.h: lock=src/a/fork.c=" + GIVEN_BACK
TREES = {
    "a lock in the list": ({"src/a/x.c": "LOCK_STATIC(one, LOCK_CQ);\nMUTEX_STATIC(other, LOCK_CQ);\n"}, [], 0, "ok 1"),
    "a mutex of the innermost rank": ({"src/a/x.c": "MUTEX_STATIC(one, LOCK_INNERMOST);\n"}, [], 1, "src/a/x.c: one: a fork holds other"),
    "a lock that is not in it": ({"src/a/x.c": "static struct lock one = LOCK_INITIAL(LOCK_CQ);\n"}, [], 1, "src/a/x.c: one: not by"),
    "one that nothing initializes": ({"src/a/x.c": "static struct mutex one;\n"}, [], 1, "src/a/x.c: one: not by"),
    "one that other files see": ({"src/a/x.c": "struct lock one;\n"}, [], 1, "src/a/x.c: one: not by"),
    "one in a function": ({"src/a/x.c": "void f(void)\n{\n    static struct lock one;\n}\n"}, [], 1, "src/a/x.c: one: not by"),
    "a mutex of the C library": ({"src/a/x.c": "static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;\n"}, [], 1, "PTHREAD_MUTEX_INITIALIZER, which only"),
    "one within a static structure": ({"src/a/x.c": "static struct {\n    int value;\n} one = {.lock = LOCK_INITIAL(1)};\n"}, [], 1, "LOCK_INITIAL, which only"),
    "parameters and declarations are none": ({"src/a/x.c": "bool f(struct lock *lock);\nstatic void g(struct lock *lock)\n{\n}\n"}, [], 0, "ok 1"),
    "tests may have what they like": ({"src/a/x_test.c": "static struct lock one;\n"}, [], 0, "ok 1"),
    "a lock of an object that nobody knows": ({"src/a/x.h": OBJECT}, [], 1, "src/a/x.h: lock: MEMBERS does not say"),
    "a lock that the child gives back": ({"src/a/x.h": OBJECT, "src/a/fork.c": GIVEN_BACK}, [KNOWN], 0, "ok 2"),
    "a lock that the child does not give back any more": ({"src/a/x.h": OBJECT, "src/a/fork.c": ""}, [KNOWN], 1, "src/a/fork.c has no lock_inherit"),
    "a second lock of the same name": ({"src/a/x.h": OBJECT + OBJECT.replace("object", "other"), "src/a/fork.c": GIVEN_BACK}, [KNOWN], 1, "2 of that name"),
    "a lock that is gone": ({"src/a/fork.c": GIVEN_BACK}, [KNOWN], 1, "src/a/x.h: lock: there is none"),
}


if __name__ == "__main__":
    sys.exit(made_up.run("locks.py", {name: (files, status, words, known) for name, (files, known, status, words) in TREES.items()}, "--bare"))
