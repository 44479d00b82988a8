#!/usr/bin/env python3
"""The check of the engines' doors finds what it is there for, in small made-up trees; prints TAP."""
import sys

sys.dont_write_bytecode = True
import made_up

ENGINE = """/* Doors: engine_posted and _receive. */
struct engine {
    struct rc rc;
};

void engine_posted(struct engine *);
bool engine_receive(struct engine *, int);
bool engine_has_failed(const struct engine *);
"""
TREE = {
    "src/transport/rc/rc.h": "void rc_posted(struct rc *);\n\nstatic inline bool rc_owes(const struct rc *rc)\n{\n    return rc->owes;\n}\n",
    "src/transport/unreliable/ud.h": "const struct work *ud_next(struct ud *,\n                       int most);\n",
    "src/transport/engine/engine.h": ENGINE,
    "src/transport/engine/inlined.h": "static inline void engine_receive_inlined(const struct engine *engine)\n{\n}\n",
    "src/transport/rc/rc_test.c": "static void a_test(void)\n{\n    rc_posted(&rig->engine.rc);\n}\n",
    "src/transport/testing/rig.c": "void rig_post(struct rig *rig)\n{\n    engine_posted(&rig->engine);\n    look(rig->engine.rc.failed == true);\n}\n",
    "src/verbs/post.c": "/* As rc_posted(); and engine.rc is its own. */\nvoid post(struct qp *qp)\n{\n    engine_posted(&qp->engine);\n}\n",
}


def outside(body, name="src/verbs/more.c"):
    return {name: f"void more(struct qp *qp)\n{{\n    {body}\n}}\n"}


CASES = {
    "who goes through the doors is fine": ({}, 0, "outside: 0 calls, 0 fields, 0 includes"),
    "a call of one service from above is found": (outside("rc_posted(rc);"), 1, "src/verbs/more.c:3: rc_posted"),
    "so is an inline one": (outside("if (rc_owes(rc))"), 1, "src/verbs/more.c:3: rc_owes"),
    "and one whose declaration takes two lines": (outside("ud_next(ud, 1);"), 1, "src/verbs/more.c:3: ud_next"),
    "in tests, too": (outside("rc_posted(rc);", "tests/api/more.c"), 1, "tests/api/more.c:3: rc_posted"),
    "a field is found": (outside("qp->engine.rc.failed = true;"), 1, "src/verbs/more.c:3: engine.rc"),
    "by an accessor, too": (outside("qp_engine(&substitute->qp)->rc.failed = true;"), 1, "src/verbs/more.c:3: qp_engine(&substitute->qp)->rc"),
    "and by a pointer": (outside("look(engine->unreliable.failed);"), 1, "src/verbs/more.c:3: engine->unreliable"),
    "by another name, too": (outside("struct engine *machine = get(qp); machine->rc.failed = true;"), 1, "src/verbs/more.c:3: machine->rc"),
    "another struct may have such a member": (outside("struct wheel *machine = get(qp); machine->rc.failed = true;"), 0, "outside: 0 calls, 0 fields"),
    "and a variable of the inside": (outside("struct rc *rc = get(qp);"), 1, "src/verbs/more.c:3: struct rc"),
    "an include is found": ({"src/verbs/more.c": '#include "transport/rc/rc.h"\n'}, 1, "src/verbs/more.c:1: transport/rc/rc.h"),
    "a function of one's own is nobody's": (
        {"src/verbs/more.c": "static void rc_posted(void)\n{\n}\nvoid more(void)\n{\n    rc_posted();\n}\n"}, 0, "outside: 0 calls"),
    "a driver that calls one service is found": (
        outside("rc_posted(&rig->engine.rc);", "src/transport/testing/more.c"), 1, "src/transport/testing/more.c:3: rc_posted"),
    "and one that writes inside": (
        outside("rig->engine.rc.settings.window = 1;", "src/transport/testing/more.c"), 1, "src/transport/testing/more.c:3: engine.rc.settings.window ="),
    "a door that the table lacks is found": (
        {"src/transport/engine/engine.h": ENGINE + "void engine_leave(struct engine *);\n"}, 1, "engine_leave"),
}


if __name__ == "__main__":
    sys.exit(made_up.run("doors.py", CASES, beside=TREE))
