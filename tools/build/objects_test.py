#!/usr/bin/env python3
"""The check of objects finds what it is there for, in small made-up trees; prints TAP."""
import sys

sys.dont_write_bytecode = True
import made_up

LIST = "#define CALLS_OBJECTS(OBJECT, ALIKE) \\\n    OBJECT(A, a, 0) \\\n    /* OBJECT(NO) */ \\\n    ALIKE(B)\n\nOBJECT(C)\n"
CLASS = "static const struct object_class {0}_class = {{\n    .kind = OBJECT_{1},\n}};\n"
A, B = CLASS.format("a", "A"), CLASS.format("b", "B")

TREES = {
    "a class for each kind": ({"src/x.h": LIST, "src/a.c": A, "src/b.c": B}, 0, "ok 1 - each of 2 kinds"),
    "a kind without a class": ({"src/x.h": LIST, "src/a.c": A}, 1, "OBJECT_B: 0 classes"),
    "a kind with two classes": ({"src/x.h": LIST, "src/a.c": A, "src/b.c": B + A}, 1, "OBJECT_A: 2 classes"),
    "a class in a test counts for nothing": ({"src/x.h": LIST, "src/a.c": A, "src/b_test.c": B}, 1, "OBJECT_B: 0 classes"),
    "a switch": ({"src/x.h": LIST, "src/a.c": A + "int f(int kind)\n{\n    switch (kind) {\n    case OBJECT_A:\n        return 1;\n    }\n}\n", "src/b.c": B}, 1, "src/a.c: case OBJECT_A"),
    "a comparison": ({"src/x.h": LIST, "src/a.c": A + "int f(int kind)\n{\n    return kind == OBJECT_A;\n}\n", "src/b.c": B}, 1, "src/a.c: == OBJECT_A"),
    "a chain of them": ({"src/x.h": LIST, "src/a.c": A, "src/b.c": B + "int f(int kind)\n{\n    if (OBJECT_A != kind)\n        return 1;\n}\n"}, 1,
                        "src/b.c: OBJECT_A !="),
    "an object named by its handle": ({"src/x.h": LIST, "src/a.c": A + 'char *f = "the %s with handle %u";\n', "src/b.c": B}, 1,
                                      'src/a.c: "the %s with handle %u"'),
    "an object named by a number": ({"src/x.h": LIST, "src/a.c": A + 'char *f = "A cq (number 0x%x)";\n', "src/b.c": B}, 1, "not ok 3"),
    "an object named in a diagnosis": ({"src/x.h": LIST, "src/a.c": A, "src/b.c": B, "src/d.def": 'D("queue {cq.handle} waits")\n'}, 1, "not ok 3"),
    "an object named well": ({"src/x.h": LIST, "src/a.c": A + 'char *f = "the " OBJECT_NAMED;\n', "src/b.c": B,
                              "src/d.def": 'D("queue with handle {cq.handle}")\n'}, 0, "ok 3"),
    "no kinds at all": ({"src/a.c": A}, 1, "there is no list CALLS_OBJECTS"),
}


if __name__ == "__main__":
    sys.exit(made_up.run("objects.py", TREES))
