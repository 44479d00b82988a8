#!/usr/bin/env python3
"""Checks that a source follows each value of the profiles (profiles/*.profile); prints TAP.

Usage: profiles.py DIRECTORY

A line is `KEY = VALUE  # SOURCE`, or `without CALL = ERRNO  # SOURCE`. A source is
    NAME PATH:LINE[, PATH:LINE]  of a tree that the head of the profile names: `# source NAME: WHERE, commit or tag`
    https://...                  a page or an issue
    least: PROFILE[ of those with RC]  this profile has the value, and no other has a smaller one
    assumed[: why]               no source says so; at most a fifth of a profile's values, and no value of rxe
and more words in brackets may follow it. Each key of src/profile/profile.def is in docs/reference/profiles.md.
"""
import os
import re
import sys

sys.dont_write_bytecode = True
from tree import report

NONE_ASSUMED = ("rxe",)
SHARE = 5  # one of five may be assumed
SOURCE = re.compile(r"(?:(?P<tree>[a-z][\w.-]*) [\w./-]+:\d+(?:, [\w./-]+:\d+)*|https?://\S+|"
                    r"(?P<assumed>assumed)(?:: \S.*)?|least: (?P<least>[\w-]+)(?: of those with (?P<service>[A-Z]+))?)(?: \(.*\))?")
PINNED = re.compile(r"# source (?P<tree>[a-z][\w.-]*): \S.*\b(?:tag v[\d.]+|commit [0-9a-f]{40})$")


def values(text):
    """(number of the line, key, source or None) for each value."""
    for turn, line in enumerate(text.splitlines(), 1):
        said, mark, comment = line.partition("#")
        if said.strip():
            yield turn, said.partition("=")[0].strip(), comment.strip() if mark else None


def number(text, key):
    """The value of this key in a profile, if it is a number there."""
    found = re.search(rf"^{key} = (0x[0-9a-fA-F]+|\d+)\b", text, re.M)
    return int(found[1], 0) if found else None


def is_least(name, key, source, texts):
    """Returns whether the named profile has the value that `name` has, and no other that names the key a smaller one."""
    whose, service = source["least"], source["service"] or ""
    others = [number(text, key) for other, text in texts.items() if other != name and re.search(rf"^qp_types = .*{service}\b", text, re.M)]
    value = number(texts[name], key)
    return whose in texts and value is not None and value == number(texts[whose], key) == min((each for each in others if each is not None), default=None)


def check(name, texts):
    """(faults, values, how many of them are assumed)"""
    text = texts[name]
    trees = {found["tree"] for found in map(PINNED.fullmatch, text.splitlines()) if found}
    faults, count, assumed = [], 0, 0
    for line, key, source in values(text):
        count += 1
        found = SOURCE.fullmatch(source or "")
        if not found:
            faults.append(f"profiles/{name}.profile:{line}: {key} has no source")
        elif found["tree"] and found["tree"] not in trees:
            faults.append(f"profiles/{name}.profile:{line}: the head does not say which commit of \"{found['tree']}\"")
        elif found["least"] and not is_least(name, key, found, texts):
            faults.append(f"profiles/{name}.profile:{line}: {key} is not the least that the profiles have, or not that of {found['least']}")
        assumed += bool(found and found["assumed"])
    if assumed * SHARE > count or assumed and name in NONE_ASSUMED:
        faults.append(f"profiles/{name}.profile: {assumed} of {count} values are assumed")
    return faults, count, assumed


def profiles(top):
    folder = os.path.join(top, "profiles")
    for entry in sorted(os.listdir(folder)):
        if entry.endswith(".profile"):
            with open(os.path.join(folder, entry), encoding="utf-8") as file:
                yield entry.removesuffix(".profile"), file.read()


def keys(top):
    with open(os.path.join(top, "src/profile/profile.def"), encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    return re.findall(r"^(?:DEVICE|EXTENDED|PORT|PORT_WORD|MANNER|WORD|WORDS|TEXT|ERRNO)\((\w+)", text, re.M)


def undescribed(top):
    with open(os.path.join(top, "docs/reference/profiles.md"), encoding="utf-8") as file:
        page = file.read()
    return [f"docs/reference/profiles.md has no key {key}" for key in keys(top) if f"`{key}`" not in page]


def main():
    top, all_faults = sys.argv[1], []
    texts = dict(profiles(top))
    checked = [(name, *check(name, texts)) for name in texts]
    print(f"1..{len(checked) + 1}")
    for turn, (name, faults, count, assumed) in enumerate(checked, 1):
        report(turn, f"{name}: {count} values, {assumed} assumed, the others with a source", faults)
        all_faults += faults
    faults = undescribed(top)
    report(len(checked) + 1, "the page has each key", faults)
    return 1 if all_faults or faults else 0


if __name__ == "__main__":
    sys.exit(main())
