#!/usr/bin/env python3
"""Checks that the files, functions and macros exist that the manual and comments name; prints TAP.

Usage: paths.py DIRECTORY

A page is any *.md outside of docs/evidence, whose pages describe their time; a path is between ` and `, and begins with a
folder of the tree. tests/README.md, which says which harness is for which question, names each header of tests/api/harness. Pages for
developers (INSIDE) name functions, macros and members that are in the sources.

A comment names a file by its path from src/, its own folder or the top, or by its name alone where it is in the same layer; lists (.def)
have one name in the whole tree. A name with an underscore in a comment must be in the sources, in the interface's headers, or in ELSEWHERE.
"""
import glob
import os
import re
import sys

sys.dont_write_bytecode = True
from tree import judged

FOLDERS = ("src", "tests", "tools", "bench", "docs", "examples", "packaging", "debian", "lib")
PATH = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[\w./*-]+)`")
HARNESSES = "tests/README.md"
INSIDE = ("ARCHITECTURE.md", "CONTRIBUTING.md", "tests/README.md")
CODE = ("src", "tools", "tests", "bench", "lib", "python", "examples", "packaging")
FILE = re.compile(r"(?<![\w<./$-])(?:[\w.-]+/)*[\w-]+\.(?:c|h|py|def|md|sh)\b(?!\w)")
NAME = re.compile(r"(?<![\w/.<-])[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?![\w./*-]|\(\d)")
# Names of the kernel, of other programs and of formats, which comments may mention.
ELSEWHERE = set("""clock_getcpuclockid cma_bind_addr do_poll epb_flags ib_ipv4_flags if_tsresol rs_poll_rs sched_attr sched_setattr
    scope_id unix_dgram_poll""".split())
FILES_ELSEWHERE = set("""infiniband/verbs.h elfutils/libdwfl.h libdw.h net/unix/af_unix.c librdmacm/rsocket.c librdmacm/examples/common.c
    Documentation/tag_matching.md""".split())


def pages(top):
    for folder, folders, names in os.walk(top):
        at_top = folder == top
        folders[:] = [name for name in folders if (name in FOLDERS if at_top else name not in ("evidence",))]
        yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(".md"))


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def missing(top):
    """Each path that a page names and that does not exist."""
    for page in pages(top):
        for path in sorted(set(PATH.findall(read(page)))):
            if not glob.glob(os.path.join(top, path)):
                yield f"{os.path.relpath(page, top)} names {path}, which is not there"


def unexplained(top):
    """Each harness without a place on its page."""
    page = os.path.join(top, HARNESSES)
    named = set(PATH.findall(read(page))) if os.path.exists(page) else set()
    for path in sorted(glob.glob(os.path.join(top, "tests/api/harness/*.h"))):
        if os.path.relpath(path, top) not in named:
            yield f"{HARNESSES} does not name {os.path.relpath(path, top)}"


def walk(top):
    for base in CODE:
        for folder, _, names in os.walk(os.path.join(top, base)):
            yield from (os.path.relpath(os.path.join(folder, name), top) for name in sorted(names))


def sources(top):
    """Path, code and comments of each source; scripts and lists of symbols are all code."""
    for path in walk(top):
        if path.endswith((".c", ".h", ".def")):
            text = read(os.path.join(top, path))
            comments = [] if "/newer/" in path else re.findall(r"/\*.*?\*/|//[^\n]*", text, re.S)
            yield path, re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S), comments
        elif path.endswith((".py", ".build", ".sh", ".rs", ".cc", ".list", ".txt")):
            yield path, read(os.path.join(top, path)), []


def words_of_interface():
    """Names in the installed headers that the build needs."""
    found = set()
    for path in glob.glob("/usr/include/infiniband/*.h") + glob.glob("/usr/include/rdma/**/*.h", recursive=True):
        found |= set(re.findall(r"\w+", read(path)))
    return found


def layer_of(path):
    return "/".join(path.split("/")[:2]) + "/" if path.startswith("src/") else path.split("/")[0] + "/"


def is_there(name, path, files):
    """Whether a comment of the file `path` may call a file by this name."""
    folder = os.path.dirname(path)
    places = (name, f"src/{name}", f"{folder}/{name}", f"{os.path.dirname(folder)}/{name}")
    if any(os.path.normpath(place) in files for place in places):
        return True
    if "/" in name:
        return name in FILES_ELSEWHERE
    home = "" if name.endswith(".def") else layer_of(path)
    return name in FILES_ELSEWHERE or any(file.startswith(home) and os.path.basename(file) == name for file in files)


def misnamed(top):
    """Names in comments and in the pages for developers of things that do not exist: files, then other names."""
    listed = list(sources(top))
    files = set(walk(top)) | set(glob.glob("*.md", root_dir=top)) | set(glob.glob("docs/**/*.md", root_dir=top, recursive=True))
    programs = {os.path.splitext(os.path.basename(file))[0] for file in files} # a test's program has its file's name, perhaps after api_
    programs |= {"api_" + name.removesuffix("_test") for name in programs}
    known = programs.union(*(re.findall(r"\w+", code) for _, code, _ in listed)) | words_of_interface() | ELSEWHERE
    for path, _, comments in listed:
        text = "\n".join(comments)
        yield from (f"{path} names the file {name}, which is not there" for name in sorted(set(FILE.findall(text))) if not is_there(name, path, files))
        yield from (f"{path} names {name}, which is nowhere" for name in sorted(set(NAME.findall(text))) if name not in known)
    structs = set().union(*(re.findall(r"\bstruct (\w+) \{", code) for path, code, _ in listed if path.startswith("src/")))
    for page in INSIDE:
        text = read(os.path.join(top, page)) if os.path.exists(os.path.join(top, page)) else ""
        for name in sorted(set(re.findall(r"`([a-z]\w*_\w+|[a-z]\w*->\w+)(?:\(\))?`", text))):
            struct, _, member = name.rpartition("->")
            if member not in known or struct and struct not in structs:
                yield f"{page} names {name}, which is nowhere"


def main():
    top = sys.argv[1].rstrip("/")
    faults = [sorted(missing(top)), sorted(unexplained(top)), list(misnamed(top))]
    return judged(("each file exists that a page names", faults[0]),
                  ("each harness of tests/api is explained", faults[1]),
                  ("each file, function and macro exists that a comment or a page for developers names", faults[2]))


if __name__ == "__main__":
    sys.exit(main())
