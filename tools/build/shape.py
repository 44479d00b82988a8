#!/usr/bin/env python3
"""Checks the shape of the sources; prints TAP.

Usage: shape.py DIRECTORY [--bare]

--bare: permissions of src/layers may be unused, for shape_test.py.

No function has over 60 lines (from its opening to its closing brace, both in column 0). No include is against the layers or the floors of a
layer's folders (src/layers), or climbs out with "../"; each permission of src/layers is used. No getenv() is in what is loaded into programs
(src/ and tools/shim/): a set-uid program that is linked with the library must not obey its user's environment, so it is secure_getenv(). Static
functions of the library share a name in at most three files. No mmap() of the library lets the kernel choose the place (src/base/mapping.c
chooses it, never where a memory region is), except for programs that have no regions. Headers say `#pragma once`. Files over 500 lines are
listed; they fail only above 700. No folder of tests has more files of source than FOLDER_LIMIT.
"""
import os
import re
import sys

sys.dont_write_bytecode = True
from tree import SUPPORT, judged, read_floors, read_layers

FUNCTION_LIMIT, FILE_LISTED, FILE_LIMIT, NAMESAKES = 60, 500, 700, 3
FOLDER_LIMIT = 28
# The files that map for a program, and the files that run in processes of ours.
MAPPERS = ("src/base/mapping.c", "src/check/outside/unmaps.c", "src/gsi/cleanup/cleanup_process.c", "src/record/replay.c")
# Headers with a guard: users' compilers read the first, tests/model has copies of the next four, and the last is a list.
GUARDED = ("tools/interface/softverbs.h", "src/ipc/node.h", "src/ipc/table.h", "src/link/direct.h", "src/link/published.h",
           "tests/model/statics_kept.h")
STATIC = re.compile(r"^static (?:inline )?(?:[\w ]+?[ *]+)(\w+)\((?=[^;]*?\)\n\{)", re.M)


def sources(top):
    for place in ("src", "tools", "tests", "bench", "examples"):
        for folder, _, names in os.walk(os.path.join(top, place)):
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(folder, name), top)


def wide_folders(top):
    """Folders of tests with too many files for a reader who looks for one."""
    for folder, _, names in os.walk(os.path.join(top, "tests")):
        name, count = os.path.relpath(folder, top), sum(each.endswith((".c", ".h", ".py", ".sh")) for each in names)
        if count > FOLDER_LIMIT:
            yield f"{name}: {count} files, at most {FOLDER_LIMIT}: split it by subject"


def long_functions(lines):
    start = 0
    for number, line in enumerate(lines, 1):
        if line.startswith("{"):
            start = number
        elif line.startswith("}") and start:
            if number - start + 1 > FUNCTION_LIMIT:
                yield start, number - start + 1
            start = 0


def is_test(name):
    return bool(re.search(r"(^|/)(tests|testing)/|_(test|fuzz|bench)\.c$", name))


def wrong_includes(name, lines, layers):
    layer = re.match(r"src/(\w+)/", name)
    for number, line in enumerate(lines, 1):
        found = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if not found:
            continue
        other = found.group(1).split("/")[0]
        if other == "..":
            yield number, f"climbs out: {found.group(1)}"
        elif layer and not is_test(name) and other in layers and other != layer.group(1) \
                and other not in layers.get(layer.group(1), set()):
            yield number, f"src/{layer.group(1)} may not include {found.group(1)}"


def folder_of(path, floors):
    """The longest listed folder that the file is in; "": the files at the top of the layer, or None: a folder that is not listed."""
    parts = os.path.dirname(path).split("/")
    found = ["/".join(parts[:i]) for i in range(len(parts), 0, -1) if "/".join(parts[:i]) in floors]
    return found[0] if found else None if parts != [""] else ""


def wrong_floors(name, lines, floors):
    """Includes of a file by which a folder of its layer reaches one that is not below it."""
    path = re.match(r"src/(\w+)/(.*)", name)
    if not path or is_test(name) or path.group(1) not in floors:
        return
    layer, own = path.group(1), floors[path.group(1)]
    folder = folder_of(path.group(2), own)
    if folder is None:
        yield 1, f"src/layers gives its folder no floor in {layer}"
        return
    for number, line in enumerate(lines, 1):
        found = re.match(rf'\s*#\s*include\s+"{layer}/([^"]+)"', line)
        other = folder_of(found.group(1), own) if found else folder
        if other not in (folder, "") and other not in own.get(folder or ".", ()):
            yield number, f"{layer}/{folder} may not include {layer}/{found.group(1)}"


def asked(name, lines, floors):
    """The pairs of src/layers that a file needs: of layers, and of a layer's folders."""
    path = re.match(r"src/(\w+)/(.*)", name)
    if not path or is_test(name) or SUPPORT.search(name):
        return
    layer, own = path.group(1), floors.get(path.group(1), {})
    for other, rest in re.findall(r'^\s*#\s*include\s+"(\w+)/([^"]+)"', "\n".join(lines), re.M):
        yield (layer, other) if other != layer else (layer, folder_of(path.group(2), own) or ".", folder_of(rest, own))


def unused(pairs, layers, floors):
    """Permissions of src/layers without an include that needs them."""
    for layer, others in layers.items():
        yield from (f"src/layers: {layer} includes nothing of {other}" for other in sorted(others) if (layer, other) not in pairs)
    for layer, folders in floors.items():
        yield from (f"src/layers: {layer}/{folder} includes nothing of {other}" for folder, others in folders.items() for other in sorted(others)
                    if (layer, folder, other) not in pairs)


def wrong_order(floors):
    """Floors that are not listed from the ground up: the order keeps two folders from including each other."""
    for layer, folders in floors.items():
        seen = set()
        for folder, others in folders.items():
            for other in sorted(others - seen):
                yield f"src/layers: {layer}/{folder} names {other}, which does not stand above its line"
            seen.add(folder)


def plain_getenv(name, lines):
    if name.startswith(("src/", "tools/shim/")) and not is_test(name) and not re.search(r"_(rig|trial)\.[ch]$", name):
        for number, line in enumerate(lines, 1):
            if re.search(r"\bgetenv\s*\(", line):
                yield number, "getenv, where it must be secure_getenv"


def free_maps(name, lines):
    """Maps for which the kernel may choose the hole that a program has left in one of its regions."""
    if name.startswith("src/") and not is_test(name) and name not in MAPPERS:
        for number, line in enumerate(lines, 1):
            if re.search(r"\b(?:mmap(?:64)?\s*\(\s*(?:NULL|0)\b|mremap\s*\(|shmat\s*\()", line):
                yield number, "a map, where it must be mapping_make"


def guarded(name, lines):
    """Headers with a guard of three lines, whose name may be the one that the file had before it was moved."""
    if name.endswith(".h") and name not in GUARDED and "#pragma once" not in lines:
        yield f"{name}: #pragma once, no guard"


def namesakes(statics):
    """Static functions that are in too many files: a backtrace, a profile or grep says nothing by such a name."""
    for title, where in sorted(statics.items()):
        if len(where) > NAMESAKES:
            yield f"{title} in {len(where)} files: {' '.join(sorted(where))}"


def main():
    top = sys.argv[1]
    layers, floors = read_layers(top)[0], read_floors(top)
    functions, includes, stairs, environment, maps, guards, huge, long_files = [], [], list(wrong_order(floors)), [], [], [], [], []
    statics, pairs = {}, set()
    for name in sources(top):
        with open(os.path.join(top, name), encoding="utf-8") as file:
            lines = file.read().split("\n")
        functions += [f"{name}:{line}: {length} lines" for line, length in long_functions(lines)]
        includes += [f"{name}:{line}: {what}" for line, what in wrong_includes(name, lines, layers)]
        stairs += [f"{name}:{line}: {what}" for line, what in wrong_floors(name, lines, floors)]
        pairs |= set(asked(name, lines, floors))
        environment += [f"{name}:{line}: {what}" for line, what in plain_getenv(name, lines)]
        guards += guarded(name, lines)
        maps += [f"{name}:{line}: {what}" for line, what in free_maps(name, lines)]
        if name.startswith("src/") and name.endswith(".c") and not SUPPORT.search(name):
            for title in STATIC.findall("\n".join(lines)):
                statics.setdefault(title, set()).add(name)
        if len(lines) > FILE_LISTED:
            (huge if len(lines) > FILE_LIMIT else long_files).append(f"{name}: {len(lines)} lines")
    alike, wide, idle = list(namesakes(statics)), list(wide_folders(top)), [] if "--bare" in sys.argv else list(unused(pairs, layers, floors))
    status = judged((f"no function has more than {FUNCTION_LIMIT} lines", functions),
                    ("every include follows the layers", includes),
                    (f"no file has more than {FILE_LIMIT} lines", huge),
                    ("the library never obeys the environment of a program with more rights than its user", environment),
                    (f"no name is that of static functions in more than {NAMESAKES} files of the library", alike),
                    (f"every folder of {', '.join(floors) or 'no layer'} includes only what is below it", stairs),
                    ("the library maps memory where no region is", maps),
                    (f"no folder of tests has more than {FOLDER_LIMIT} files", wide),
                    ("every permission of src/layers is used", idle),
                    ("headers have no guards", guards))
    for name in long_files:
        print(f"# over {FILE_LISTED} lines: {name}")
    return status


if __name__ == "__main__":
    sys.exit(main())
