#!/usr/bin/env python3
"""The check of circles finds what it is there for, in small made-up trees; prints TAP."""
import os
import subprocess
import sys

sys.dont_write_bytecode = True
import made_up


def ring(*modules):
    """Modules that each call the next, the last the first."""
    return {f"src/{module}.c": f"void {module.replace('/', '_')}(void)\n{{\n    {modules[(i + 1) % len(modules)].replace('/', '_')}();\n}}\n"
            for i, module in enumerate(modules)}


def users(count):
    return {f"src/a/u{i}.c": '#include "a/hub.h"\n' for i in range(count)}


def compile_objects(top):
    """Each source as meson's static library of its folder has it."""
    for folder, _, names in os.walk(os.path.join(top, "src")):
        for name in names:
            if name.endswith(".c"):
                out = os.path.join(top, "objects", os.path.relpath(folder, top), "lib.a.p")
                os.makedirs(out, exist_ok=True)
                subprocess.run(["cc", "-c", "-w", name, "-o", os.path.join(out, name + ".o")], cwd=folder, check=True)


def linked(**texts):
    return {f"src/a/{name}.c": text for name, text in texts.items()}


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
    "a table of a higher module is an arrow": (
        {"src/a/low.c": "extern const int a_list[];\nint a_low(void)\n{\n    return a_list[0];\n}\n",
         "src/a/high.c": "const int a_list[] = {1};\nint a_high(void)\n{\n    return a_low();\n}\n"}, 1, "a/high a/low"),
    "so is a variable without a value": (
        {"src/a/low.c": "extern const struct kind *const *a_list;\nint a_low(void)\n{\n    return !a_list;\n}\n",
         "src/a/high.c": "struct kind;\nconst struct kind *const *a_list;\nint a_high(void)\n{\n    return a_low();\n}\n"}, 1, "a/high a/low"),
    "so is a pointer that holds a function": (
        {"src/a/low.c": "extern void (*a_hook)(int);\nint a_low(void)\n{\n    a_hook(1);\n}\n",
         "src/a/high.c": "void (*a_hook)(int);\nint a_high(void)\n{\n    return a_low();\n}\n"}, 1, "a/high a/low"),
    "a struct that is only named is none": (
        {"src/a/low.c": "struct a_high;\nint a_low(struct a_high *a_high)\n{\n    return 0;\n}\n",
         "src/a/high.c": "int a_other(void)\n{\n    return a_low(0);\n}\n"}, 0, "largest circle: 0"),
    "a macro of a header calls": (
        {"src/a/low.h": "#define A_LOW(x) \\\n    a_high(x)\n", "src/a/low.c": "void a_start(void)\n{\n}\n",
         "src/a/high.c": "void a_high(int x)\n{\n    a_start();\n}\n"}, 1, "a/high a/low"),
    "a header may have 22 users": (users(22), 0, "ok 2"),
    "a header may not have 23": (users(23), 1, "a/hub.h: included by 23"),
}


LINKED = {
    "objects without circles are fine": (linked(low="int low;", high="extern int low; int *high(void) { return &low; }"), 0, "ok 3"),
    "objects that a list makes one of are seen": (
        linked(low="#define ASK(x) extern int hi##x; int *low(void) { return &hi##x; }\nASK(gh)", high="int high; void also(void) { low(); }"), 1, "a/high a/low"),
    "a build without objects is a fault": ({}, 1, "has no objects"),
}


def main():
    failed = made_up.run("circles.py", CASES, "--bare", more=len(LINKED))
    return made_up.run("circles.py", LINKED, "--bare", "--objects", "TOP/objects", first=len(CASES) + 1, prepare=compile_objects) or failed


if __name__ == "__main__":
    sys.exit(main())
