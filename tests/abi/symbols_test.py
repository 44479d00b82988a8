#!/usr/bin/env python3
"""Compares what our libibverbs.so.1 exports with the list of all releases, and with the distribution's; prints TAP.

Usage: symbols_test.py OURS THEIRS LIST
"""
import os
import re
import subprocess
import sys

# And nothing else: no netlink, no provider. Before glibc 2.34 the C library had three parts.
NEEDED = {"libc.so.6", "libdl.so.2", "libpthread.so.0", "libdeflate.so.0"}


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout


PRIVATE = "IBVERBS_PRIVATE_"


def symbols(library):
    """Each symbol with its node, name@node, to whether it is data; names without a version stay bare."""
    found = {}
    for line in output("nm", "-D", "--defined-only", "--with-symbol-versions", library).splitlines():
        kind, name = line.split()[-2:]
        if kind != "A":
            found[name.replace("@@", "@")] = kind in "BbDdRrVv"
    return found


def defaults(library):
    lines = output("nm", "-D", "--defined-only", "--with-symbol-versions", library).splitlines()
    return {line.split()[-1].replace("@@", "@") for line in lines if "@@" in line}


def needed_of(library):
    """The symbols for programs in use: not the second, older node that a public function has besides its own."""
    newest = defaults(library)
    return {name: data for name, data in symbols(library).items() if name in newest or "@" + PRIVATE in name}


def listed(path):
    """The symbols that the list promises, as name@node, and which of them are the default."""
    every, newest = set(), set()
    with open(path, encoding="ascii") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                symbol, column = line.split()[:2]
                first, *others = column.split(",")
                nodes_of_symbol = [first] + [f"{first.rpartition('_')[0]}_{number}" for number in others]
                every |= {f"{symbol}@{node}" for node in nodes_of_symbol}
                newest.add(f"{symbol}@{nodes_of_symbol[-1]}")
    return every, newest


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


FAILING = {"code", "minus", "negative", "pointer"}
ERRNO_IS_NOT_TOUCHED = {"ibv_get_device_name", "ibv_get_device_index", "ibv_qp_to_qp_ex"} # they only look something up


def without_errno(promised):
    """Exported functions that report failure, and are not wrapped as base/result.h has it."""
    with open(promised, encoding="ascii") as lines:
        rows = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    failing = {row[0] for row in rows if row[2] in FAILING} - ERRNO_IS_NOT_TOUCHED
    sources = os.path.join(os.path.dirname(promised), "..")
    for path in sorted(name for name in os.listdir(sources) if name.endswith(".c")):
        with open(os.path.join(sources, path), encoding="utf-8") as file:
            text = file.read()
        for name, body in re.findall(r"^EXPORT [^;{=]*?\b(\w+)\([^{;]*\)\n\{\n(.*?)\n\}", text, re.DOTALL | re.MULTILINE):
            if name in failing and "RESULT_" not in body and "result_failure" not in body:
                yield f"{path}: {name}"


def checks(ours, theirs, promised):
    mine, (every, newest) = symbols(ours), listed(promised)
    yield "every symbol of the list is exported, in each of its nodes", sorted(every - set(mine))
    yield "nothing else is exported", sorted(set(mine) - every)
    yield "a program that is linked against it gets the newest node", sorted(newest ^ defaults(ours))
    upstream = [name for name in mine if "@SOFTVERBS_" not in name]  # for lib/efa and lib/mlx5 there are others
    yield "the list has the 634 symbols of the releases 25 to 65", [] if len(upstream) == 634 else [f"{len(upstream)} symbols"]
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic(ours)))
    yield "no library is needed that has no use", sorted(needed - NEEDED)
    yield "it is called libibverbs.so.1", [] if "soname: [libibverbs.so.1]" in dynamic(ours) else ["another SONAME"]
    yield "it binds at once", [] if "BIND_NOW" in dynamic(ours) else ["no BIND_NOW"]
    yield "every function that can fail keeps errno in step", list(without_errno(promised))
    if os.path.exists(theirs):
        yield from comparisons(ours, theirs)


def comparisons(ours, theirs):
    mine, stock = symbols(ours), needed_of(theirs)
    yield "the installed release has no symbol that is not here", sorted(set(stock) - set(mine))
    yield "data is data", [name for name in mine if name in stock and mine[name] != stock[name]]
    inherits, expected = nodes(ours), nodes(theirs)
    yield "version nodes inherit alike", [f"{name}: {inherits.get(name)} instead of {expected[name]}" for name in expected
                                          if inherits.get(name) != expected[name]]


def main():
    results = list(checks(*sys.argv[1:]))
    print(f"1..{len(results)}")
    for number, (name, wrong) in enumerate(results, 1):
        print(f"{'not ok' if wrong else 'ok'} {number} - {name}")
        for line in wrong:
            print(f"# {line}")
    sys.exit(any(wrong for _, wrong in results))


if __name__ == "__main__":
    main()
