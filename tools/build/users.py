#!/usr/bin/env python3
"""Checks that no code compares users by their numbers; prints TAP.

Usage: users.py DIRECTORY

In a user namespace one number, 65534, means all users without a number there, so src/base/user.h decides to whom a file or a process
belongs. It refuses in src/ and tools/ each comparison with what getuid and its kin return, also by way of a variable, or with an owner in
a struct stat. Whether a user is root (`!geteuid()`, `== 0`) may be asked: root's number means no other user.
"""
import os
import re
import sys

sys.dont_write_bytecode = True
from tree import SUPPORT, judged, strip

HOME = "src/base/user.c"
# Comparisons that a number may decide, and why.
EXCEPTIONS = {
    "src/link/control.c: getuid() != self.uid": "the two users of this process",
    "src/ipc/place/directory.c: file.st_gid != status.st_gid": "a group of ours that is taken for the directory's can't enter it",
    "tools/doctor/program.c: status.st_uid != geteuid()": "a program of a user without a number is not set-uid here (execve(2))",
    "tools/doctor/program.c: status.st_gid != getegid()": "likewise",
    "tools/place.c: status->st_uid == self->maker": "where no other user can put another file",
}
CALL = r"get(?:e|res)?[ug]id\(\)"
SIDE = r"[\w.>\[\]-]*"
NOT_ROOT = r"(?!\s*0\b)"


def names_of(text):
    """Variables and members that are set to what such a call answers."""
    return set(re.findall(rf"\b(\w+)\s*=\s*{CALL}", text))


def comparisons(text):
    names = names_of(text)
    ends = "|".join([CALL, r"\w*\bst_[ug]id\b", *(rf"\b{name}\b" for name in sorted(names))])
    found = re.finditer(rf"(?:{SIDE}(?:{ends})\s*[!=]={NOT_ROOT}(?:\s*{SIDE})(?:\(\))?)|(?:{SIDE}\s*[!=]=\s*(?:\(\w[\w ]*\)\s*)?{SIDE}(?:{ends}))", text)
    for one in found:
        words = re.sub(r"\s+", " ", one.group()).strip()
        if not re.match(r"0 ?[!=]=", words):
            yield words


def sources(top):
    for part in ("src", "tools"):
        for folder, _, names in os.walk(os.path.join(top, part)):
            for name in sorted(names):
                path = os.path.relpath(os.path.join(folder, name), top)
                if name.endswith((".c", ".h")) and not SUPPORT.search(path) and path != HOME:
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        yield path, strip(file.read())


def main():
    found = [f"{path}: {words}" for path, text in sources(sys.argv[1]) for words in comparisons(text)]
    raw = sorted(set(found) - set(EXCEPTIONS))
    missing = sorted(set(EXCEPTIONS) - set(found)) if os.path.exists(os.path.join(sys.argv[1], HOME)) else []
    return judged((f"no file compares users by their numbers ({len(found) - len(raw)} may)", raw),
                  ("each exception is one that the tree has", missing))


if __name__ == "__main__":
    sys.exit(main())
