#!/usr/bin/env python3
"""Checks that few files know the types of queue pairs, and that the headers of types bring little along; prints TAP.

Usage: kinds.py DIRECTORY

The differences of a type of queue pair are in its struct qp_kind (src/verbs/qp/kind.h), so that a new type is one file or folder of
src/verbs/kinds/ and one line of a list. Outside of that folder at most 3 files of src/, tests among them, name a constant IBV_QPT_. The headers of
objects (type, lookup, locks) bring at most 14 others of src/ along, each counted once.

Production code asks a type by no other way either: not by the number of the type, nor by its name. Code above wire/ and transport/ compares
the service of a queue pair (SERVICE_) in at most 11 places; that number may only fall.
"""
import os
import re
import sys

sys.dont_write_bytecode = True
from tree import SUPPORT, judged, strip

KINDS, NAMING_MOST, BROUGHT_MOST, SERVICES_MOST = "verbs/kinds/", 3, 14, 11
BY_NUMBER = re.compile(r"\b(?:qp_type|kind->type|attr->type)\b\s*[!=]=\s*(?:0x)?\d|\bswitch \([^()]*\b(?:qp_type|kind->type)\)[^}]*?\bcase \d")
BY_NAME = re.compile(r"\bstr\w*cmp\([^;]*\bkind->name\b")
SERVICE = re.compile(r"[!=]=\s*SERVICE_\w+|\bSERVICE_\w+\s*[!=]=|\bcase SERVICE_\w+")
OF_OPCODE = re.compile(r"\bop_service\([^()]*\)\s*[!=]=\s*SERVICE_\w+")
OWNERS_OF_SERVICES = ("wire/", "transport/", KINDS)
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
    """The headers of src/ that it includes, directly or not, without lists (.def)."""
    seen, work = set(), [path]
    while work:
        for other in re.findall(r'^\s*#\s*include\s+"([^"]+\.h)"', texts.get(work.pop(), ""), re.M):
            if other not in seen:
                seen.add(other)
                work.append(other)
    return seen


def asked_otherwise(texts):
    """Places that ask the type by number or name, and those that compare a service."""
    direct, services = [], []
    for path, text in texts.items():
        if SUPPORT.search("src/" + path) or path.startswith(KINDS):
            continue
        code = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
        direct += [f"{path}: {found[0]}" for pattern in (BY_NUMBER, BY_NAME) for found in pattern.finditer(code)]
        if not path.startswith(OWNERS_OF_SERVICES):
            services += [f"{path}: {found}" for found in SERVICE.findall(OF_OPCODE.sub(" ", strip(code)))]
    return direct, services


def naming(texts):
    """The files outside of the kinds that name a type."""
    return sorted(path for path, text in texts.items() if not path.startswith(KINDS) and re.search(r"\bIBV_QPT_\w", text))


def main():
    texts = dict(sources(sys.argv[1]))
    named = naming(texts)
    counts = {path: len(brought(path, texts)) for path in TYPES if path in texts}
    too_many = named if len(named) > NAMING_MOST else []
    headers = [f"{path}: brings {count} headers, at most {BROUGHT_MOST}" for path, count in counts.items() if count > BROUGHT_MOST]
    direct, services = asked_otherwise(texts)
    status = judged((f"files outside of {KINDS} that name IBV_QPT_: {len(named)} of at most {NAMING_MOST}", too_many),
                    (f"the headers of objects bring at most {BROUGHT_MOST} others", headers),
                    ("no code asks a type by its number or name", direct),
                    (f"places above the transport that compare a service: {len(services)} of at most {SERVICES_MOST}", services if len(services) > SERVICES_MOST else []))
    print("# brought along: " + ", ".join(f"{path} {count}" for path, count in counts.items()))
    return status


if __name__ == "__main__":
    sys.exit(main())
