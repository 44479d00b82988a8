#!/usr/bin/env python3
"""Compares what our libibverbs.so.1 exports with the distribution's; prints TAP.

Usage: symbols_test.py OURS THEIRS
"""
import os
import re
import subprocess
import sys

NEEDED = {"libc.so.6", "libdeflate.so.0"}  # and nothing else: no netlink, no provider


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout


def symbols(library):
    """The default symbols: name@@node to whether it is data."""
    found = {}
    for line in output("nm", "-D", "--defined-only", "--with-symbol-versions", library).splitlines():
        kind, name = line.split()[-2:]
        if "@@" in name:
            found[name] = kind in "BbDdRrVv"
    return found


def bare(library):
    """Symbols without a version, or of an older one."""
    lines = output("nm", "-D", "--defined-only", "--with-symbol-versions", library).splitlines()
    return [line for line in lines if "@@" not in line and line.split()[-2] != "A"]


def nodes(library):
    """The version nodes and what each inherits from."""
    found, current = {}, None
    text = output("readelf", "-VW", library)
    for line in text[text.index("Version definition section"):text.index("Version needs section")].splitlines():
        name = re.search(r"Name: (\S+)", line)
        parent = re.search(r"Parent \d+: (\S+)", line)
        if name:
            current = name.group(1)
            found[current] = []
        elif parent:
            found[current].append(parent.group(1))
    return {name: parents for name, parents in found.items() if name.startswith("IBVERBS")}


def dynamic(library):
    return output("readelf", "-dW", library)


def checks(ours, theirs):
    mine, stock = symbols(ours), symbols(theirs)
    yield "every default symbol is there, under its version", sorted(set(stock) - set(mine))
    yield "nothing else is exported", sorted(set(mine) - set(stock)) + bare(ours)
    yield "data is data", [name for name in mine if name in stock and mine[name] != stock[name]]
    yield "the numbers are those of release 44", [] if len(mine) == 146 else [f"{len(mine)} symbols instead of 146"]
    inherits, expected = nodes(ours), nodes(theirs)
    yield "version nodes inherit alike", [f"{name}: {inherits.get(name)} instead of {expected[name]}" for name in expected
                                          if inherits.get(name) != expected[name]]
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic(ours)))
    yield "no library is needed that has no use", sorted(needed - NEEDED)
    yield "it is called libibverbs.so.1", [] if "soname: [libibverbs.so.1]" in dynamic(ours) else ["another SONAME"]
    yield "it binds at once", [] if "BIND_NOW" in dynamic(ours) else ["no BIND_NOW"]


def main():
    ours, theirs = sys.argv[1:]
    if not os.path.exists(theirs):
        print(f"1..0 # SKIP {theirs} is not installed")
        return
    results = list(checks(ours, theirs))
    print(f"1..{len(results)}")
    for number, (name, wrong) in enumerate(results, 1):
        print(f"{'not ok' if wrong else 'ok'} {number} - {name}")
        for line in wrong:
            print(f"# {line}")
    sys.exit(any(wrong for _, wrong in results))


if __name__ == "__main__":
    main()
