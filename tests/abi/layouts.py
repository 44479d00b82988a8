#!/usr/bin/env python3
"""Writes layouts.def: size of every structure of <infiniband/verbs.h> and offset of every member, in each release from 33 on.

    layouts.py RELEASE=DIRECTORY... >layouts.def

DIRECTORY holds infiniband/verbs.h of that release and what it includes, and each release is named there: where one is left
out, its additions are listed as the next release's. Needs clang, whose record layouts these are, on x86-64.
"""
import collections
import re
import subprocess
import sys

OURS = re.compile(r"(struct|union) ((ibv_|verbs_|_compat_ibv_)\w+)$")
LINE = re.compile(r" +(\d+(?::\S+)?)? \|( +)(.*)$")


def layouts(directory):
    """(structure, member or "") to its offset or size."""
    done = subprocess.run(["clang", f"-I{directory}", "-x", "c", "-Xclang", "-fdump-record-layouts-complete", "-fsyntax-only", "-"], check=True,
                          input=b"#include <infiniband/verbs.h>\n", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    found = {}
    for block in done.stdout.decode().split("*** Dumping AST Record Layout\n")[1:]:
        lines = [LINE.match(line) for line in block.splitlines() if "|" in line]
        record = OURS.match(lines[0][3])
        if not record or not lines[-1]:
            continue
        name = f"{record[1]} {record[2]}"
        found[name, ""] = int(re.search(r"sizeof=(\d+)", lines[-1][3])[1])
        found.update(((name, member), offset) for member, offset in members(lines[1:-1]))
    return found


def members(lines):
    """Members of the structure itself and of unions without a name, not members of structures within; no bit fields."""
    inside = [3]  # the indentations whose members count
    for line in lines:
        depth, text = len(line[2]), line[3]
        while depth < inside[-1]:
            inside.pop()
        if depth > inside[-1]:
            continue
        if re.search(r"\(anonymous at .*\) *$", text):
            inside.append(depth + 2)
        elif ":" not in (line[1] or ":"):
            yield text.split()[-1], int(line[1])


def main():
    releases = dict(word.split("=", 1) for word in sys.argv[1:])
    order = sorted(int(release) for release in releases)
    ranges = collections.defaultdict(list) # (key, value) to the releases that have it
    for release in order:
        for key, value in layouts(releases[str(release)]).items():
            ranges[key, value].append(release)
    blocks = collections.defaultdict(list)
    for (key, value), present in ranges.items():
        until = next((release for release in order if release > present[-1]), None)
        blocks[present[0], until].append((*key, value))
    print(f"/* Releases {order[0]} to {order[-1]} on x86-64, by layouts.py: SIZE(structure, bytes), AT(structure, member, offset). */")
    for (since, until), rows in sorted(blocks.items(), key=lambda item: (item[0][0], item[0][1] or 9999)):
        print(f"#if RELEASE >= {since}" + (f" && RELEASE < {until}" if until else ""))
        line = ""
        for name, member, value in sorted(rows, key=lambda row: (row[0], row[1] != "", row[2])):
            word = f"AT({name}, {member}, {value})" if member else f"SIZE({name}, {value})"
            if line and len(line) + len(word) > 118:
                print(line)
                line = ""
            line += (" " if line else "") + word
        print(line + "\n#endif")


if __name__ == "__main__":
    main()
