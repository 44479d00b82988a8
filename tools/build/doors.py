#!/usr/bin/env python3
"""Checks that no code goes around the doors of the transport's engines; prints TAP.

Usage: doors.py DIRECTORY

src/transport/engine/engine.h is the way to an engine. Outside of src/transport no file includes a header of one service
(FOLDERS), names a function that such a header declares, or touches a part of struct engine. Code that drives engines in the transport's own
tests (src/transport/testing: simulator, fuzzers, scripts) may look at their inside to judge it, but calls no function of one service and
writes nothing there, so that nothing enters by another way. The tests beside an engine may call and write: they belong to its inside.

In engine.h and inlined.h a function that gets an engine it may change is a door, and has its place in the table at the top of engine.h;
all others get a const engine. The text is read, not compiled: what a macro hides is not seen.
"""
import os
import re
import sys

sys.dont_write_bytecode = True
from tree import judged, strip

FOLDERS = ("rc", "unreliable")
INSIDE = r"(?:\.|->)(?:rc|uc|ud|raw|unreliable|operations)\b"
PARTS = rf"\b(?:qp_)?engine(?:\(.*\))?{INSIDE}|\bstruct (?:rc|uc|ud|raw|unreliable|requester|responder)\b"
WRITES = r"\bengine(?:\.|->)(?:rc|uc|ud|raw|unreliable)[\w.]* (?:[-+|&]?=)(?!=)"
DOORS = ("engine/engine.h", "engine/inlined.h")
JUDGES = {"rnr_wait", "responses_find"}  # they only look: how long an RNR NAK asks to wait, and whether a request was executed


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def sources(top, place):
    for folder, _, names in os.walk(os.path.join(top, place)):
        for name in sorted(names):
            if name.endswith((".c", ".h")):
                path = os.path.join(folder, name)
                yield os.path.relpath(path, top), read(path)


def inner_functions(top):
    """The names that the headers of the services declare or define."""
    found = set()
    for folder in FOLDERS:
        for name, text in sources(top, os.path.join("src/transport", folder)):
            if name.endswith(".h"):
                found |= set(re.findall(r"^[a-z][\w \n]*?[ *](\w+)\([^;{}]*\)(?:;|\n\{)", strip(text), re.M))
    return found


def lines_with(pattern, text):
    for number, line in enumerate(text.split("\n"), 1):
        for found in re.findall(pattern, line):
            yield number, found


def code_lines(text):
    """The text without comments and strings, but with all lines."""
    return re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"", lambda found: "\n" * found[0].count("\n"), text, flags=re.S)


def calls(name, code, inner):
    return [f"{name}:{number}: {word}" for number, word in lines_with(r"\b[a-z]\w+(?= ?\()", code) if word in inner]


def parts_touched(code):
    """A pattern of the parts of engines in this file, whose variables of engines may have other names."""
    names = set(re.findall(r"\bstruct engine \*?(?:const )?(\w+)\b(?!\()", code)) - {"engine"}
    return "|".join([PARTS, *(rf"\b{name}{INSIDE}" for name in sorted(names))])


def judge_outside(top, inner):
    called, touched, included = [], [], []
    for place in ("src", "tests", "tools", "bench"):
        for name, text in sources(top, place):
            if name.startswith("src/transport/"):
                continue
            code = code_lines(text)
            own = set(re.findall(r"^static [^;{}=()]*?(\w+)\(", code, re.M))
            called += calls(name, code, inner - own)
            touched += [f"{name}:{number}: {what}" for number, what in lines_with(parts_touched(code), code)]
            included += [f"{name}:{number}: {what}" for number, what in
                         lines_with(r'^\s*#\s*include\s+"(transport/(?:%s)/[^"]+)"' % "|".join(FOLDERS), text)]
    return called, touched, included


def judge_drivers(top, inner):
    faults = []
    for name, text in sources(top, "src/transport/testing"):
        code = code_lines(text)
        faults += calls(name, code, inner - JUDGES)
        faults += [f"{name}:{number}: {what}" for number, what in lines_with(WRITES, code)]
    return faults


def read_doors(top):
    """The names of the doors, the names of the functions that only read, and the doors that the table lacks."""
    doors, readers, table = [], [], ""
    for name in DOORS:
        text = read(os.path.join(top, "src/transport", name))
        table = table or re.match(r"/\*.*?\*/", text, re.S)[0]
        for function, const in re.findall(r"\bengine_(\w+)\((const )?struct engine \*\w*[,)]", strip(text)):
            places = readers if const else doors
            if function not in places:
                places.append(function)
    return doors, readers, [f"engine_{door}" for door in doors if not re.search(r"\b(?:engine)?_%s\b" % door, table)]


def main():
    top = sys.argv[1]
    inner = inner_functions(top)
    called, touched, included = judge_outside(top, inner)
    drivers = judge_drivers(top, inner)
    doors, readers, missing = read_doors(top)
    status = judged(("no file outside of src/transport calls a function of one service", called),
                    ("no file outside of src/transport touches a part of an engine", touched),
                    ("no file outside of src/transport includes a header of one service", included),
                    ("simulator, fuzzers and scripts of the transport go through the doors", drivers),
                    ("each function that may change an engine has its place in the table of doors", missing))
    print(f"# {len(inner)} functions of one service; outside: {len(called)} calls, {len(touched)} fields, {len(included)} includes;"
          f" calls in the transport's drivers: {len(drivers)}")
    print(f"# engine.h: {len(doors)} functions of five doors, {len(readers)} that only read")
    return status


if __name__ == "__main__":
    sys.exit(main())
