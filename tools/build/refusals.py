#!/usr/bin/env python3
"""Checks that a call is refused by way of src/events/refusal.h, which logs why; prints TAP.

Usage: refusals.py TREE

In src/verbs, src/abi and src/cm no statement returns an errno, or keeps one in a variable named error or errno, except by a function with
"refuse" in its name: refuse() and its kin log the reason, refused() says that another function has logged it, not_refused() that
the errno is an answer. ENOMEM needs no such function: without memory, the wrapper of the call writes the line (abi/around.h). PLAIN
has the number of exceptions in each file, and why; it may only shrink. The text is read, not compiled.
"""
import os
import re
import sys

sys.dont_write_bytecode = True
from tree import judged

ERRNO = r"\b(?!ENOMEM\b|EOF\b|EXPORT\b)E(?:[2A-Z][A-Z0-9]{2,})\b"
ANSWERS = re.compile(r"(?:\breturn\b|\berror = |\berrno = ).*" + ERRNO, re.S)
REFUSED = re.compile(r"refuse\w*\(")
COMPARED = re.compile(r"[=!]= (?:-)?" + ERRNO)
PLAIN = {
    "src/cm/connection.c": 5,  # service.c refuses, with the state
    "src/cm/ports.c": 2,  # gsi/cm/cm_refusal.c refuses, with the port
    "src/cm/resolution.c": 1,  # service.c refuses, with the state
    "src/verbs/context/import.c": 2,  # a disk that is full: the wrapper has the kernel's words
    "src/verbs/kinds/ethernet/flow.c": 1,  # chooses the errno for refuse
    "src/verbs/kinds/srq_tags.c": 1,  # chooses the errno for refuse_in
    "src/verbs/queue/cq_ex.c": 2,  # ENOENT of ibv_start_poll and ibv_next_poll: nothing is there
    "src/verbs/send/post.c": 1,  # chooses the errno for refuse_in
}


def sources(top):
    for place in ("src/verbs", "src/abi", "src/cm"):
        for folder, _, names in os.walk(os.path.join(top, place)):
            for name in sorted(names):
                path = os.path.relpath(os.path.join(folder, name), top)
                if name.endswith((".c", ".h")) and not name.endswith("_test.c") and "/testing/" not in path:
                    with open(os.path.join(top, path), encoding="utf-8") as file:
                        yield path, file.read()


def statements(text):
    """Each statement with its line, without comments and strings."""
    code = re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"", lambda found: "\n" * found[0].count("\n"), text, flags=re.S)
    line = 1
    for part in re.split(r"([;{}])", code):
        yield line + part[:len(part) - len(part.lstrip())].count("\n"), part
        line += part.count("\n")


def plain(text):
    for line, statement in statements(text):
        judged = COMPARED.sub("", statement)
        if ANSWERS.search(judged) and not REFUSED.search(judged):
            yield line, " ".join(statement.split())


def main():
    new, done = [], []
    for path, text in sources(sys.argv[1]):
        found = list(plain(text))
        if len(found) > PLAIN.get(path, 0):
            new += [f"{path}:{line}: {statement}" for line, statement in found]
        elif len(found) < PLAIN.get(path, 0):
            done.append(f"{path}: {len(found)} are left; say so in PLAIN of tools/build/refusals.py")
    return judged(("errnos are answered by functions that log why (events/refusal.h)", new),
                  ("files that answer fewer by themselves than before have a smaller number in the list", done))


if __name__ == "__main__":
    sys.exit(main())
