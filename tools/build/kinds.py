#!/usr/bin/env python3
"""Checks that few files know the types of queue pairs, and that the headers of types bring little along; prints TAP.

Usage: kinds.py DIRECTORY

The differences of a type of queue pair stand in its struct qp_kind (src/verbs/qp/kind.h), so that a new type is one file or folder of
src/verbs/kinds/ and one line of a list: at most 8 files of src/, tests among them, name a constant IBV_QPT_. The headers of
objects (type, lookup, locks) bring at most 15 others of src/ along, each counted once.
"""
import os
import re
import sys

sys.dont_write_bytecode = True
from tree import report

NAMING_MOST, BROUGHT_MOST = 8, 15
TYPES = [f"verbs/{name}.h" for name in ("object/object", "memory/mr", "memory/mw", "memory/dm", "queue/cq", "queue/srq", "qp/qp", "qp/wq")]


def sources(top):
    """Path below src/ and text of each file of C; src/newer/ is rdma-core's own header."""
    for folder, _, names in os.walk(os.path.join(top, "src")):
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), os.path.join(top, "src"))
            if name.endswith((".c", ".h")) and not path.startswith("newer/"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    yield path, file.read()


def brought(path, texts):
    """The headers of src/ that it includes, directly or not; lists (.def) are none."""
    seen, work = set(), [path]
    while work:
        for other in re.findall(r'^\s*#\s*include\s+"([^"]+\.h)"', texts.get(work.pop(), ""), re.M):
            if other not in seen:
                seen.add(other)
                work.append(other)
    return seen


def main():
    texts = dict(sources(sys.argv[1]))
    naming = sorted(path for path, text in texts.items() if re.search(r"\bIBV_QPT_\w", text))
    counts = {path: len(brought(path, texts)) for path in TYPES if path in texts}
    too_many = naming if len(naming) > NAMING_MOST else []
    headers = [f"{path}: brings {count} headers, at most {BROUGHT_MOST}" for path, count in counts.items() if count > BROUGHT_MOST]
    print("1..2")
    report(1, f"files that name IBV_QPT_: {len(naming)} of at most {NAMING_MOST}", too_many)
    report(2, f"the headers of objects bring at most {BROUGHT_MOST} others", headers)
    print("# brought along: " + ", ".join(f"{path} {count}" for path, count in counts.items()))
    return 1 if too_many or headers else 0


if __name__ == "__main__":
    sys.exit(main())
