#!/usr/bin/env python3
"""The check of circles finds what it is there for, in small made-up trees; prints TAP."""
import sys

sys.dont_write_bytecode = True
import made_up


def ring(*modules):
    """Modules that each call the next, the last the first."""
    return {f"src/{module}.c": f"void {module.replace('/', '_')}(void)\n{{\n    {modules[(i + 1) % len(modules)].replace('/', '_')}();\n}}\n"
            for i, module in enumerate(modules)}


def users(count):
    return {f"src/a/u{i}.c": '#include "a/hub.h"\n' for i in range(count)}


CASES = {
    "a tree without circles is fine": (ring("a/one"), 0, "largest circle: 0"),
    "two modules may not call each other": (ring("a/one", "a/two"), 1, "a/one a/two"),
    "four may not in a ring": (ring("a/one", "a/two", "a/three", "a/four"), 1, "largest circle: 4"),
    "nor over folders": (ring("a/one", "b/two"), 1, "a/one b/two"),
    "a static function of the same name is no call": (
        {**ring("a/one", "a/two", "a/three", "a/four"), "src/a/two.c": "static void a_three(void)\n{\n}\nvoid a_two(void)\n{\n    a_three();\n}\n"},
        0, "largest circle: 0"),
    "an inline function of a header can be called": (
        {"src/a/low.h": "static inline void a_low(void)\n{\n}\n", "src/a/low.c": "void a_start(void)\n{\n    a_high();\n}\n",
         "src/a/high.c": "void a_high(void)\n{\n    a_low();\n}\n"}, 1, "a/high a/low"),
    "an inline function of a header calls": (
        {"src/a/low.h": "static inline void a_low(void)\n{\n    a_high();\n}\n", "src/a/low.c": "void a_start(void)\n{\n}\n",
         "src/a/high.c": "void a_high(void)\n{\n    a_start();\n}\n"}, 1, "a/high a/low"),
    "a declaration in a header is no call": (
        {**ring("a/one", "a/two"), "src/a/two.c": "void a_two(void)\n{\n}\n", "src/a/two.h": "void a_one(void);\n"}, 0, "largest circle: 0"),
    "an attribute is no function": (
        {f"src/{module}.c": "__attribute__((noinline)) static void part(void)\n{\n}\n" for module in ("a/one", "b/two")},
        0, "longest chain: 1:"),
    "a header may have 25 users": (users(25), 0, "ok 2"),
    "a header may not have 26": (users(26), 1, "a/hub.h: included by 26"),
}


if __name__ == "__main__":
    sys.exit(made_up.run("circles.py", CASES, "--bare"))
