#!/usr/bin/env python3
"""Checks src/facts/facts.def, and that no code knows a fact by another list; prints TAP.

Usage: facts.py DIRECTORY

`part` makes the lists of docs/reference/json.md about the objects of a process (made_pages.py).
"""
import os
import re
import sys

sys.dont_write_bytecode = True
from events import events, lines
from settings import arguments, entries
from tree import SUPPORT, judged, read

LIST, PAGE = "src/facts/facts.def", "docs/reference/json.md"
CAUSES, JUDGE, REASONS = "src/diagnose/diagnose.def", "src/diagnose/diagnose.c", "src/diag/diag.def"
TYPES = {"FLAG": "boolean", "WORD": "string", "TEXT": "string", "HEX": "string"}
# Functions of jansson that read JSON by a key. Others pass their own argument to one of these, or compare the keys of an object.
READERS = {"json_object_get", "json_object_del"}
CALLS = re.compile(r'\b(\w+)\(((?:[^()";]|\((?:[^()]|\([^()]*\))*\))*),\s*"(\w+)"')
FUNCTIONS = re.compile(r"^[\w \*]+\b(\w+)\(([^()]*\bchar \*[^()]*)\)\n\{\n(.*?)^\}", re.M | re.S)
NESTED = re.compile(r"(LIST|MAP|ONE)\((\w+)\)")
PLURAL = {"LIST": "list of ", "MAP": "map of ", "ONE": ""}


def calls(top, macro):
    """The arguments of each line of the list that uses this macro."""
    text = read(top, LIST)
    for found in re.finditer(rf"^ +{macro}\(", text, re.M):
        yield arguments(text[found.end():])[0]


def chapters(top):
    """The chapter of the page of each kind that has one."""
    return {kind: chapter for kind, chapter, _ in calls(top, "KIND") if chapter != "none"}


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


def part(top, chapter):
    """The rows of a chapter."""
    return "".join(rows(top, next(kind for kind, its in chapters(top).items() if its == chapter)))


def judge_list(top):
    """Each kind has its chapter with its list, each name is there once, and `when` is ALWAYS or OPTIONAL, as the source allows."""
    page = read(top, PAGE)
    for kind, chapter in chapters(top).items():
        names = [name for of, name, *_ in facts(top) if of == kind]
        if f"<!-- list: facts {chapter} -->" not in page.partition(f"\n## {chapter}\n")[2].partition("\n## ")[0]:
            yield f"{kind}: {PAGE} has no chapter {chapter} with its list"
        for name in {name for name in names if names.count(name) > 1}:
            yield f"{kind}: {name} is there twice"
    for kind, name, _, source, when, _ in facts(top):
        if when not in ("ALWAYS", "OPTIONAL"):
            yield f"{kind} {name}: {when} is neither ALWAYS nor OPTIONAL"
        if source.startswith("SOME(") and when == "ALWAYS":
            yield f"{kind} {name}: SOME is not known for 0, so it is OPTIONAL"


def sources(top):
    """(path, text without comments) of the tools."""
    for folder, _, names in os.walk(os.path.join(top, "tools")):
        place = os.path.relpath(folder, top)
        for name in sorted(names):
            path = os.path.join(place, name)
            if name.endswith((".c", ".h", ".def")) and not SUPPORT.search(path) and not place.startswith("tools/facts"):
                yield path, re.sub(r"/\*.*?\*/", lambda found: "\n" * found[0].count("\n"), read(top, path), flags=re.S)


def readers(texts):
    """Names of the functions that read JSON by a key from their caller."""
    found, more = set(), READERS
    while more:
        found |= more
        more = {name for text in texts for name, parameters, body in FUNCTIONS.findall(text) for parameter in re.findall(r"char \*(\w+)", parameters)
                if re.search(rf"\b({'|'.join(found)})\([^;]*,\s*{parameter}\)", body)} - found
    return found


def judge_keys(top):
    keys, texts = {name for _, name, *_ in facts(top)}, dict(sources(top))
    known = readers(texts.values())
    for path, text in texts.items():
        if "json_unpack(" in text:
            yield f"{path}: json_unpack names keys: tools/facts/read.h has structs"
        for call in CALLS.finditer(text):
            compares = call[1] in ("strcmp", "strncmp") and call[2].strip() == "key"
            if call[3] in keys and (call[1] in known or compares):
                yield f"{path}:{text.count(chr(10), 0, call.end()) + 1}: \"{call[3]}\" is a fact of {LIST}: tools/facts/read.h has structs"


def causes(top):
    """(name, group, conditions, sentence) of each diagnosis."""
    return list(entries(os.path.join(top, CAUSES), "DIAGNOSIS"))


def names_of(conditions, sentence):
    """The facts that a diagnosis names, and (fact, words) of each comparison with words."""
    names, words = [], []
    for condition in conditions.split():
        left, operator, right = re.match(r"!?([\w.@]+)(=|<>|>=|)(.*)", condition).groups()
        compares = operator == "=" and "." not in right
        names += [left, right] if operator and not compares else [left]
        words += [(left, right.split("|"))] if compares else []
    for field in re.findall(r"\{([^}]*)\}", sentence):
        if "|" not in field:
            names += re.split("[-!]", re.sub(r"^(.*>|!)", "", field.partition("?")[0]))
    return names, words


def known_names(top):
    """All names that a diagnosis may use: those in the lists of diagnose.c."""
    text = read(top, JUDGE)
    objects = dict(re.findall(r"\bOBJECT(?:_AT)?\((\w+), (\w+)\b", text))
    inside = {f"{name}.{fact}" for name, kind in objects.items() for of, fact, *_ in facts(top) if of == kind}
    happened = {f"{end}@{event}" for end in ("", "peer") for event in events(top)}
    return inside | happened | set(objects) | set(re.findall(r"\b(?:MEMBER|MEMBER_AT|FLAG)\((\w+), \w+", text)) | set(re.findall(r'\bis\(name, "(\w+)"\)', text))


def judge_causes(top):
    """Each name of a condition or a sentence is one that diagnose.c knows, and each word compared with error.name is a reason."""
    known, reasons = known_names(top), {row[1] for row in entries(os.path.join(top, REASONS), "REASON")}
    for cause, _, conditions, sentence in causes(top):
        names, words = names_of(conditions, sentence)
        for name in names:
            if name not in known:
                yield f"{CAUSES}: {cause} names {name}, which is no fact"
        for word in (word for fact, these in words if fact == "error.name" for word in these):
            if word not in reasons:
                yield f"{CAUSES}: {cause} compares {word}, which is no reason"


def main():
    top = sys.argv[1]
    wrong = list(judge_list(top))
    keys = list(judge_keys(top))
    unknown = list(judge_causes(top))
    return judged((f"each of {len(list(facts(top)))} facts is there once", wrong),
                  ("tools read facts by the list", keys),
                  (f"each of {len(causes(top))} diagnoses names facts that there are", unknown))


if __name__ == "__main__":
    sys.exit(main())
