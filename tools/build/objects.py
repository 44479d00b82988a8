#!/usr/bin/env python3
"""Checks that each kind of object is one class, and that no switch or comparison distinguishes the kinds; prints TAP.

Usage: objects.py DIRECTORY

A kind is a line of the list CALLS_OBJECTS (src/calls/objects.def); its class is the one constant of type struct object_class with that
kind, beside the object's own code. Work on objects of all kinds (destroying what a program left, the child of a fork, imports,
names, counts) is a loop over lists and classes, so that a new kind is a line of the list and a class.
Sentences name an object by OBJECT_NAMED (src/diag/sentence.h), those of diagnoses by the same words before {OBJECT.handle}.
"""
import os
import re
import sys

sys.dont_write_bytecode = True
from tree import SUPPORT, judged, strip

NAMED = ("src/diag/sentence.h", "src/verbs/kinds/srq_tags.c") # the words themselves; a tag's handle, which is no object's
OTHER_NAME = re.compile(r'"[^"\n]*\b(?:handle|queue|domain|region) %u[^"\n]*"|"[^"\n]*(?<!with handle )\{\w+\.handle\}[^"\n]*"|"[^"\n]*\(number 0x%x\)[^"\n]*"')


def sources(top):
    for folder, _, names in os.walk(os.path.join(top, "src")):
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), top)
            if name.endswith((".c", ".h", ".def")) and not SUPPORT.search(path):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    yield path, strip(file.read())


def kinds_of(texts):
    body = next((found[1] for text in texts.values() if (found := re.search(r"#define CALLS_OBJECTS\(.*?\)((?:.*\\\n)*.*)", text))), "")
    return [f"OBJECT_{name}" for name in re.findall(r"\b(?:OBJECT|ALIKE)\((\w+)", body)]


def other_names(top):
    """The sentences of messages that name an object in other words than OBJECT_NAMED."""
    for folder, _, files in (each for place in ("src", "tools") for each in os.walk(os.path.join(top, place))):
        for path in sorted(os.path.join(folder, name) for name in files if name.endswith((".c", ".h", ".def")) and not SUPPORT.search(name)):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            yield from (f"{os.path.relpath(path, top)}: {found.strip()}" for found in OTHER_NAME.findall(text)
                        if os.path.relpath(path, top) not in NAMED)


def main():
    texts = dict(sources(sys.argv[1]))
    kinds = kinds_of(texts)
    classes = [kind for text in texts.values() for kind in re.findall(r"const struct object_class \w+ = \{\s*\.kind = (\w+)", text)]
    wrong = [f"{kind}: {classes.count(kind)} classes" for kind in kinds if classes.count(kind) != 1]
    wrong += [] if kinds else ["there is no list CALLS_OBJECTS"]
    switches = [f"{path}: {found}" for path, text in texts.items() for found in re.findall(r"\bcase OBJECT_\w+|[!=]=\s*OBJECT_\w+|\bOBJECT_\w+\s*[!=]=", text)]
    return judged((f"each of {len(kinds)} kinds of objects has one class", wrong),
                  (f"no switch and no comparison distinguishes kinds of objects: {len(switches)} places", switches),
                  ("sentences name objects by OBJECT_NAMED", list(other_names(sys.argv[1]))))


if __name__ == "__main__":
    sys.exit(main())
