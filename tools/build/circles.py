#!/usr/bin/env python3
"""Checks how the modules of src/ depend on each other; prints TAP.

Usage: circles.py DIRECTORY [--objects BUILD] [--bare]

--objects: asks the object files of this build, too. --bare: without the numbers of this tree, for circles_test.py.

A module is x.c with x.h, whose inline functions and macros count; it depends on the modules whose functions and data it names, and
these never lead back to it. (shape.py checks that includes follow the layers.) The text shows a header's needs for all that include it,
and the object files show each module's needs after the preprocessor, also by tables, variables and pointers that hold a function. Neither
graph may have a circle. A header that is not of the ground floor (marked in src/layers) is included by at most 22 production files. A
header that exceeds that today is in INCLUDED with the number that it may not exceed; these numbers may only fall, and a number that is
no longer needed is a fault. A definition begins in column 0. A call through a table that a higher module hands down is no arrow;
ARCHITECTURE.md names these seams.
"""
import collections
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
from tree import SUPPORT, read_layers, report, strip

INCLUDED_MOST = 22
INCLUDED = {"runtime/clock.h": 25, "events/words.h": 25}  # the time, and the words of numbers


def read_sources(top):
    """Path below src/ and text of each production file."""
    texts = {}
    for folder, _, names in os.walk(os.path.join(top, "src")):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), top)
            if name.endswith((".c", ".h")) and not SUPPORT.search(path):
                with open(os.path.join(top, path), encoding="utf-8") as file:
                    texts[os.path.relpath(path, "src")] = file.read()
    return texts


def module_of(path):
    return re.sub(r"\.[ch]$", "", path)


def included_by(text):
    return set(re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, re.M))


def definitions(text, header):
    """The functions and data that other modules can use."""
    for title in re.findall(r"^(\w[^;{}#]*?)\n\{", text, re.M):
        name = re.search(r"(\w+)\s*\(", title)
        if name and (header or not title.startswith("static")):
            yield name[1]
    if not header:  # tables, variables and function pointers that others can see
        for line in re.findall(r"^(?!static\b|extern\b|return\b|typedef\b|(?:struct|union|enum) \w+;)\w[^\n;{}=]*(?=[=;])", text, re.M):
            name = re.search(r"\(\*(?:_Atomic )?(\w+)\)\(|^[^(]*?\b(\w+)(?: *\[[^\]]*\])* *$", line)
            if name:
                yield name[1] or name[2]


def build_graph(texts):
    defined = {name: module_of(path) for path, text in texts.items() for name in definitions(strip(text), path.endswith(".h"))}
    graph = collections.defaultdict(set)
    for path, text in texts.items():
        module = module_of(path)
        code = strip(text)
        if path.endswith(".h"):
            macros = re.findall(r"^[ \t]*#[ \t]*define[ \t]+\w+(?:\([^)\n]*\))?((?:[^\n]*\\\n)*[^\n]*)", code, re.M)
            code = "".join(re.findall(r"^\{\n(.*?)^\}", code, re.M | re.S) + macros)  # bodies of inline functions and of macros, not declarations
        words = set(re.findall(r"\b[a-z_]\w+\b", code)) - set(re.findall(r"^static [^;{}=()]*?(\w+)\(", code, re.M))
        graph[module] |= {defined[word] for word in words if word in defined}
    return {module: sorted(others - {module}) for module, others in graph.items()}


def objects_of(build, modules):
    """Module and path of each object file of a static library below src/; meson calls x/y.c of the folder a a/*.a.p/x_y.c.o."""
    names = {module.replace("/", "_"): module for module in modules}
    top = os.path.join(build, "src")
    for folder, _, files in os.walk(top):
        if folder.endswith(".a.p"):
            prefix = os.path.relpath(os.path.dirname(folder), top).replace("/", "_")
            for file in files:
                module = names.get(f"{prefix}_{file[:-4]}") if file.endswith(".c.o") else None
                if module:
                    yield module, os.path.join(folder, file)


def linker_graph(build, modules):
    """The modules that each module needs, as the linker sees it."""
    nm = shutil.which("gcc-nm") or "nm"  # gcc-nm reads objects of link-time optimization, too
    paths = {path: module for module, path in objects_of(build, modules)}
    if not paths:
        return {}
    listed = subprocess.run([nm, "-A", "-g", *paths], capture_output=True, text=True, check=True).stdout
    defined, needed = {}, collections.defaultdict(set)
    for path, kind, name in re.findall(r"^(.*?):[0-9a-f ]* (\w) (\S+)$", listed, re.M):
        if kind in "Uwv":
            needed[paths[path]].add(name)
        else:
            defined[name] = paths[path]
    return {module: sorted({defined[name] for name in names if name in defined} - {module}) for module, names in needed.items()}


def judge_objects(build, texts):
    """Names of the circles, and a fault where the build has no objects."""
    graph = linker_graph(build, {module_of(path) for path in texts if path.endswith(".c")})
    print(f"# linker: {len(graph)} modules, {sum(map(len, graph.values()))} arrows")
    return [" ".join(part) for part in find_circles(graph)[0]] if graph else [f"{build} has no objects of src/"]


def find_circles(graph):
    """Strongly connected components of more than one module (Kosaraju), the largest first."""
    def visit(start, edges, seen, out):
        work = [(start, iter(edges.get(start, ())))]
        seen.add(start)
        while work:
            node, rest = work[-1]
            other = next((other for other in rest if other not in seen), None)
            if other is None:
                out.append(node)
                work.pop()
            else:
                seen.add(other)
                work.append((other, iter(edges.get(other, ()))))
    order, seen = [], set()
    for module in sorted(graph):
        if module not in seen:
            visit(module, graph, seen, order)
    back = collections.defaultdict(list)
    for module, others in graph.items():
        for other in others:
            back[other].append(module)
    circles, seen = [], set()
    for module in reversed(order):
        if module not in seen:
            part = []
            visit(module, back, seen, part)
            circles.append(sorted(part))
    return sorted((part for part in circles if len(part) > 1), key=len, reverse=True), circles


def longest_chain(graph, parts):
    """Modules that each depend on the next, a circle counting as one."""
    of = {module: number for number, part in enumerate(parts) for module in part}
    chains = {}
    for number in reversed(range(len(parts))):  # each precedes the parts that it depends on
        below = {of[other] for module in parts[number] for other in graph[module]} - {number}
        chains[number] = [parts[number][0]] + max((chains[other] for other in below), key=len, default=[])
    return max(chains.values(), key=len, default=[])


def users_of_headers(texts):
    return collections.Counter(header for text in texts.values() for header in included_by(text))


def judge_headers(counts, ground, ceilings):
    faults = [f"{header}: included by {count}, at most {ceilings.get(header, INCLUDED_MOST)}" for header, count in counts.items()
              if not header.startswith(ground) and count > ceilings.get(header, INCLUDED_MOST)]
    return faults + [f"{header}: {most} is not needed any more, included by {counts[header]}" for header, most in ceilings.items()
                     if counts[header] <= INCLUDED_MOST]


def main():
    texts, bare = read_sources(sys.argv[1]), "--bare" in sys.argv
    build = sys.argv[sys.argv.index("--objects") + 1] if "--objects" in sys.argv else None
    graph = build_graph(texts)
    circles, parts = find_circles(graph)
    headers = judge_headers(users_of_headers(texts), read_layers(sys.argv[1])[1], {} if bare else INCLUDED)
    print("1..3" if build else "1..2")
    report(1, "modules do not depend on each other in circles", [" ".join(part) for part in circles])
    report(2, f"no header has more than {INCLUDED_MOST} users, or than it may have today", headers)
    linked = judge_objects(build, texts) if build else []
    if build:
        report(3, "the linker's graph of modules has no circle", linked)
    chain = longest_chain(graph, parts)
    print(f"# longest chain: {len(chain)}: {' '.join(chain)}")
    print(f"# largest circle: {len(circles[0]) if circles else 0}: {' '.join(circles[0]) if circles else ''}")
    return 1 if circles or headers or linked else 0


if __name__ == "__main__":
    sys.exit(main())
