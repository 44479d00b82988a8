#!/usr/bin/env python3
"""Checks that the page of JSON agrees with src/facts/facts.def, and that no code knows a fact by another list; prints TAP.

Usage: facts.py DIRECTORY [--write | --bare]

The tables of docs/reference/json.md about the objects of a process are made of the list: --write makes them anew.
--bare: without the numbers of this tree, for facts_test.py.
"""
import os
import re
import sys

sys.dont_write_bytecode = True
from events import lines
from settings import arguments
from tree import SUPPORT, made, read, report

LIST, PAGE = "src/facts/facts.def", "docs/reference/json.md"
TYPES = {"FLAG": "boolean", "WORD": "string", "TEXT": "string", "HEX": "string"}
# Reads of JSON by a key that the list has, which must go: tools/facts reads by the list. A file's number may only fall.
KEYS = {
    "tools/counters/port.c": 1,
    "tools/counters/sysfs_command.c": 8,
    "tools/demo/demo.c": 1,
    "tools/event.c": 2,
    "tools/explain/explain.c": 1,
    "tools/rdma/answers.c": 4,
    "tools/report/checks.c": 7,
    "tools/report/inject.c": 1,
    "tools/report/last.c": 5,
    "tools/report/live_process.c": 1,
    "tools/report/redact.c": 2,
    "tools/report/stat.c": 4,
    "tools/top/page.c": 2,
    "tools/why/connection_story.c": 1,
    "tools/why/happened.c": 9,
    "tools/why/story.c": 28,
    "tools/why/story_ci.c": 13,
    "tools/why/story_words.c": 1,
    "tools/why/why.c": 4,
}
CALLS = re.compile(r'\b\w+\((?:[^()";]|\((?:[^()]|\([^()]*\))*\))*,\s*"(\w+)"')
WRITES = re.compile(r'json_object_set(?:_new)?\(|json_pack\(')
NESTED = re.compile(r"(LIST|MAP|ONE)\((\w+)\)")
PLURAL = {"LIST": "list of ", "MAP": "map of ", "ONE": ""}


def calls(top, macro):
    """The arguments of each line of the list that uses this macro."""
    text = read(top, LIST)
    for found in re.finditer(rf"^ +{macro}\(", text, re.M):
        yield arguments(text[found.end():])[0]


def chapters(top):
    """By kind its chapter of the page."""
    return {kind: chapter for kind, chapter, _ in calls(top, "KIND")}


def facts(top):
    """(kind, name, form, source, when, meaning) of each line."""
    return calls(top, "FACT")


def type_of(form):
    found = NESTED.fullmatch(form)
    return PLURAL[found[1]] + found[2] if found else TYPES.get(form, "integer")


def rows(top, kind):
    for _, name, form, _, when, meaning in (fact for fact in facts(top) if fact[0] == kind):
        names = [name] if form != "MEMBERS" else [row[1] for macro, row in lines(top) if macro == "COUNTED" and not row[2]]
        said = type_of(form) + (", optional" if when == "OPTIONAL" else "")
        for each in names:
            yield f"| `{each}` | {said} | {meaning} |\n".replace("|  |", "| |")


def rewritten(top):
    page = read(top, PAGE)
    for kind, chapter in chapters(top).items():
        head, found, rest = page.partition(f"\n## {chapter}\n")
        here, behind, others = rest.partition("\n## ")
        kept = [line for line in here.splitlines(True) if not line.startswith("| `")]
        end = len(kept) - next((i for i, line in enumerate(reversed(kept)) if line.startswith("|")), 0)
        page = head + found + "".join(kept[:end]) + "".join(rows(top, kind)) + "".join(kept[end:]) + behind + others if found else page
    return page


def judge_list(top):
    """Each kind has its chapter, each name is there once, and each form and word is one that is known."""
    page = read(top, PAGE)
    for kind, chapter in chapters(top).items():
        names = [name for of, name, *_ in facts(top) if of == kind]
        if f"\n## {chapter}\n" not in page:
            yield f"{kind}: {PAGE} has no chapter {chapter}"
        for name in {name for name in names if names.count(name) > 1}:
            yield f"{kind}: {name} is there twice"
    for kind, name, _, source, when, _ in facts(top):
        if when not in ("ALWAYS", "OPTIONAL"):
            yield f"{kind} {name}: {when} is neither ALWAYS nor OPTIONAL"
        if source.startswith("SOME(") and when == "ALWAYS":
            yield f"{kind} {name}: SOME is not known for 0, so it is OPTIONAL"


def reads(top):
    """By file of the tools that knows of JSON, how often it reads by a key of the list."""
    keys, found = {name for _, name, *_ in facts(top)}, {}
    for folder, _, names in os.walk(os.path.join(top, "tools")):
        place = os.path.relpath(folder, top)
        for name in sorted(names):
            path = os.path.join(place, name)
            if not name.endswith((".c", ".h", ".def")) or SUPPORT.search(path) or place.startswith("tools/facts"):
                continue
            text = re.sub(r"/\*.*?\*/", "", read(top, path), flags=re.S)
            count = sum(call[1] in keys and not WRITES.match(call[0]) for call in CALLS.finditer(text)) if "json" in text else 0
            if count:
                found[path] = count
    return found


def judge_keys(top, bare):
    found = reads(top)
    allowed = {} if bare else KEYS
    for path in sorted(found.keys() | allowed.keys()):
        if found.get(path, 0) > allowed.get(path, 0):
            yield f"{path}: {found[path]} reads by a key of {LIST}, {allowed.get(path, 0)} allowed: tools/facts/read.h has structs"
        elif found.get(path, 0) < allowed.get(path, 0):
            yield f"{path}: {found.get(path, 0)} reads by a key; KEYS of tools/build/facts.py may say so"


def main():
    top = sys.argv[1]
    wrong = list(judge_list(top))
    stale = made(top, PAGE, rewritten(top))
    keys = list(judge_keys(top, "--bare" in sys.argv))
    print("1..3")
    report(1, f"each of {len(list(facts(top)))} facts is there once", wrong)
    report(2, f"{PAGE} says what the list says", stale)
    report(3, "tools read facts by the list", keys)
    return 1 if wrong or stale or keys else 0


if __name__ == "__main__":
    sys.exit(main())
