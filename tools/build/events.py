#!/usr/bin/env python3
"""Checks that each line of src/events/events.def is used as it must be; prints TAP.

Usage: events.py DIRECTORY

Each event is noted by the code of one module (MODULES has the exceptions), and nothing else changes what is counted.
`part` makes lists of docs/reference/json.md (made_pages.py).
"""
import os
import re
import sys

sys.dont_write_bytecode = True
from settings import entries
from tree import judged, read, strip

LIST = "src/events/events.def"
KEYS = {"PACKETS": ("map of integer", 1, None), "COUNTED": (None, 1, 2), "FAULT": ("map of integer", None, 1),
        "REASONS": ("map of integer", 1, None), "MESSAGES": ("map of integer", 1, None),
        "REFUSALS": ("map of integer", 1, None), "SCRIPTED": ("map of integer", None, 1), "SUM": ("integer", 1, None), "BY_PEERS": (None, 1, 2)}
KEY_OF = {"FAULT": "fault_kinds", "SCRIPTED": "scripted"}  # the key of lines without one
# The number of modules that note an event whose fact has several causes.
MODULES = {"PACKET_DROPPED": 2, "QP_STATE": 2, "ACK_TIMEOUT": 2, "RETRANSMITTED": 2, "RNR_RECEIVED": 2, "RNR_SENT": 2}  # the last four: RC, and SRD
READS = re.compile(r"\bcounts_number\((?:[^()]|\([^()]*\))*\)|\bevent == EVENT_\w+")
COUNTS = re.compile(r"\bcounts(?:\.|->)(?:packets|numbers|sums|reasons)\b[^;=]*?(?:\+\+|\+=|-=|[^=!<>]=[^=])")
# Chapters of docs/reference/json.md, and the lines that they have.
OF_CALLS = {"REFUSALS", "SCRIPTED"}
TABLES = {"Traffic": set(KEYS) - {"MESSAGES"} - OF_CALLS, "Messages": {"MESSAGES", "FAULT"}, "Calls": OF_CALLS}


def lines(top):
    """(kind, arguments) of each line, in their order."""
    with open(os.path.join(top, LIST), encoding="utf-8") as file:
        order = re.findall(rf"^({'|'.join(KEYS)})\(", re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S), re.M)
    rest = {kind: entries(os.path.join(top, LIST), kind) for kind in KEYS}
    return [(kind, next(rest[kind])) for kind in order]


def events(top):
    """The names of the lines that are events."""
    counted = [("FAULT_" if kind == "FAULT" else "") + row[0] for kind, row in lines(top) if kind not in ("SUM", "BY_PEERS")]
    return counted + [row[0] for row in entries(os.path.join(top, LIST), "EVENT")]


def rows(top, kinds):
    """The type and the meanings of each key."""
    keys = {}
    for kind, row in lines(top):
        if kind in kinds:
            said, key, part = KEYS[kind]
            name, word = row[key] if key else KEY_OF[kind], row[part] if part else ""
            said = (said or ("map of integer" if word else "integer")) + (", optional" if kind == "BY_PEERS" else "")
            keys.setdefault(name, (said, []))[1].append((f"`{word}`: " if word else "") + row[-1])
    return keys


def part(top, chapter):
    """The rows of a chapter."""
    return "".join(f"| `{key}` | {said} | {' '.join(meanings)} |\n" for key, (said, meanings) in rows(top, TABLES[chapter]).items())


def code(top):
    """Path and text, without comments and reads of counts and records, of files that are no tests and neither make nor report counts."""
    for folder, _, names in os.walk(os.path.join(top, "src")):
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), top)
            if name.endswith((".c", ".h")) and not re.search(r"_test\.|_fuzz\.|/testing/|^src/events/(?!refusal)|_report\.c$", path):
                yield path, READS.sub("", strip(read(top, path)))


def uses(top, names):
    """The modules that note each event: a call has it as an argument. Faults are noted by their kinds (event_of_fault)."""
    found = {name: set() for name in names}
    for path, text in code(top):
        for name in re.findall(r"\b(?:EVENT_|(?=FAULT_))(\w+)", text):
            if name in found:
                found[name].add(path[:-2])
    return found


def judge_uses(found):
    for name, modules in found.items():
        most = MODULES.get(name, 1)
        if not modules:
            yield f"{name}: nothing notes it"
        elif len(modules) > most and not name.startswith("FAULT_"):  # a fault is drawn in one place and done in others
            yield f"{name}: at most {most} modules may note it: {', '.join(sorted(modules))}"
    for name in MODULES:
        if name in found and len(found[name]) < MODULES[name]:
            yield f"{name}: fewer modules than MODULES says note it"


def judge_order(top):
    """The parts of a key are together, as the JSON is written in the order of the list."""
    seen = []
    for kind, row in lines(top):
        key = "messages " * (kind == "MESSAGES") + (row[KEYS[kind][1]] if KEYS[kind][1] else KEY_OF[kind])
        if key in seen[:-1]:
            yield f"{key}: its lines do not stand together"
        if not seen or seen[-1] != key:
            seen.append(key)


def judge_counts(top):
    for path, text in code(top):
        for changed in COUNTS.findall(text):
            yield f"{path}: {changed}"


def main():
    top = sys.argv[1]
    names = events(top)
    wrong = list(judge_uses(uses(top, names)))
    changed = list(judge_counts(top))
    apart = list(judge_order(top))
    return judged((f"each of {len(names)} events is noted where it happens", wrong),
                  ("nothing else changes what is counted", changed),
                  ("the parts of a key stand together", apart))


if __name__ == "__main__":
    sys.exit(main())
