#!/usr/bin/env python3
"""Checks that names have no words that were replaced by the field's own; prints TAP.

Usage: words.py DIRECTORY

The words are in tools/build/retired-words of that directory. The names of files of src/ are checked, and of the functions,
types, members and variables in what is installed: a test's name is a sentence. Members and variables are all identifiers of small
letters, also macros' parameters, without the keys of the public JSON (`facts->`). In tests/, a folder like src/'s folders, the names of files,
of types, and of functions that a header declares are checked: such functions support tests.
"""
import os
import re
import sys

sys.dont_write_bytecode = True
from tree import SUPPORT, judged, strip

TYPE = re.compile(r"\b(?:struct|union|enum)\s+(\w+)\s*\{|\btypedef\b[^;{}]*?\b(\w+)\s*(?:\([^;]*\))?;")
FUNCTION = re.compile(r"^(?:static |extern |inline |const |_Noreturn |unsigned |struct |enum |union )*\w+[ *]+(\w+)\((?![^()]*\)\s*\()", re.M)


OTHER = re.compile(r"(?<!facts->)(?<!\w)[a-z_][a-z0-9_]*\b")


def read_words(top):
    with open(os.path.join(top, "tools/build/retired-words"), encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                word, folders, kinds, instead = line.split(None, 3)
                yield word, folders.split(","), kinds.split(","), instead.strip()


def sources(top):
    """The paths of all files whose names count."""
    for place, endings in (("src", (".c", ".h")), ("tests", (".c", ".h", ".py"))):
        for folder, _, files in os.walk(os.path.join(top, place)):
            yield from (os.path.relpath(os.path.join(folder, file), top) for file in sorted(files) if file.endswith(endings))


def names(top):
    """The place, the kind and the text of all names."""
    for path in sources(top):
        yield path, "files", re.sub(r"\.\w+$", "", os.path.basename(path))
        of_tests = path.startswith("tests/")
        if path.endswith(".py") or SUPPORT.search(path) and not of_tests:
            continue
        with open(os.path.join(top, path), encoding="utf-8") as opened:
            text = strip(opened.read())
        for found in set(FUNCTION.findall(text)) if path.endswith(".h") or not of_tests else ():
            yield path, "functions", found
        for found in {one or other for one, other in TYPE.findall(text)}:
            yield path, "types", found
        for found in set() if of_tests else set(OTHER.findall(text)):
            yield path, "others", found


def main():
    top = sys.argv[1]
    words, faults, count = list(read_words(top)), [], 0
    for path, kind, name in names(top):
        count += 1
        layer = "tests" if path.startswith("tests/") else path.split("/")[1]
        for word, folders, kinds, instead in words:
            if ("*" in folders or layer in folders) and ("*" in kinds or kind in kinds) and f"_{word}_" in f"_{name}_":
                faults.append(f"{path}: {name}: not {word} but {instead}")
    return judged((f"none of {len(words)} retired words is in one of {count} names", sorted(faults)))


if __name__ == "__main__":
    sys.exit(main())
