#!/usr/bin/env python3
"""Checks that no folder and no type becomes an attic; prints TAP.

Usage: sizes.py DIRECTORY [--bare]

--bare: without the numbers of this tree, for sizes_test.py.

A folder of production code (src/ and tools/) has at most 28 sources and headers; tests beside the code and files in
testing/ are not counted. A struct or union of src/ has at most 30 members itself: members of unnamed parts count, members of named
parts do not. A folder or type that exceeds that today is in FOLDERS and TYPES with the number that it may not exceed;
these numbers may only fall, and a number that is no longer needed is a fault.
"""
import collections
import os
import re
import sys

sys.dont_write_bytecode = True
from tree import SUPPORT, judged, read, strip

FILES_MOST, MEMBERS_MOST = 28, 30
FOLDERS = {}
TYPES = {}


def production(top):
    for place in ("src", "tools"):
        for folder, _, names in os.walk(os.path.join(top, place)):
            for name in names:
                path = os.path.relpath(os.path.join(folder, name), top)
                if name.endswith((".c", ".h")) and not SUPPORT.search(path):
                    yield path


def body_at(text, start):
    """The text between the brace at start and its partner, and the partner's place."""
    depth = 0
    for place in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return text[start + 1:place], place
    return text[start + 1:], len(text)


def members(body):
    """The number of members that the declarations in a body make."""
    count = 0
    while body:
        end = re.search(r"[;{]", body)
        if not end:
            break
        head, inner, after = body[:end.start()], None, end.start()
        if body[after] == "{":
            inner, after = body_at(body, after)
            after += 1
        rest, _, body = body[after:].partition(";") if inner is not None else (head, "", body[after + 1:])
        if inner is not None and re.search(r"\b(struct|union)\b", head) and not re.search(r"\w", rest):
            count += members(inner)
        elif re.search(r"\w", rest):
            count += 1 + re.sub(r"\([^()]*(\([^()]*\)[^()]*)*\)", "", rest).count(",")
    return count


def types(text):
    """Each struct and union that is defined with a name, however deep, with its members."""
    code = re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*$", "", strip(text), flags=re.M)
    for found in re.finditer(r"\b(struct|union)\s+(?:__attribute__\s*\(\(.*?\)\)\s*)?(\w+)\s*\{", code):
        yield f"{found[1]} {found[2]}", members(body_at(code, found.end() - 1)[0])


def judge(sizes, most, ceilings):
    faults = [f"{name}: {size}, at most {ceilings.get(name, most)}" for name, size in sorted(sizes.items()) if size > ceilings.get(name, most)]
    return faults + [f"{name}: {ceiling} is not needed any more, it has {sizes.get(name, 0)}" for name, ceiling in ceilings.items()
                     if sizes.get(name, 0) <= most]


def count(top):
    """The files of each folder, and the members of each type."""
    paths, sizes = list(production(top)), {}
    for path in paths:
        if path.startswith("src/"):
            sizes |= {f"{path}: {name}": size for name, size in types(read(top, path))}
    return collections.Counter(os.path.dirname(path) for path in paths), sizes


def main():
    top, bare = sys.argv[1], "--bare" in sys.argv
    folders, sizes = count(top)
    crowded = judge(folders, FILES_MOST, {} if bare else FOLDERS)
    large = judge(sizes, MEMBERS_MOST, {} if bare else TYPES)
    status = judged((f"no folder has more than {FILES_MOST} files, or than it may have today", crowded),
                    (f"no type has more than {MEMBERS_MOST} members of its own, or than it may have today", large))
    for what, table in (("folder", folders), ("type", sizes)):
        name, size = max(table.items(), key=lambda item: item[1], default=("none", 0))
        print(f"# largest {what}: {name}: {size}")
    return status


if __name__ == "__main__":
    sys.exit(main())
