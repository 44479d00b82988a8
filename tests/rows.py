#!/usr/bin/env python3
"""Checks that the tests exist that a page names row by row. Prints TAP.

Usage: rows.py DIRECTORY PAGE

Every row of the page's tables of tests names one at least, and each that is named runs in some test program (or is a test of
meson's, or a script that is one); after the name of a file, in that file: a test of a program's main function, a function or the name of a
case in a script, a fault of the error matrix. Where rows have a clause of the specification, every test that is named after one
(`c9_7_1_...`, `a17_9_3_...`) is in a row of that clause. Where rows have a promise, they are the sentences of SECURITY.md's table, each of
them.
"""
import ast
import collections
import os
import re
import sys

LISTED = re.compile(r"\w+\(\s*(\w+)")
OF_MESON = re.compile(r"^\s*test\('([^']+)'", re.MULTILINE)
LISTS_OF_MESON = re.compile(r"^ *foreach \w+ : \[(.*?)\]", re.MULTILINE | re.DOTALL)
MATRIX = re.compile(r"^ROW\(\w+, \w+, (\w+)", re.MULTILINE)
LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
FILES = ("_test.c", ".py", ".def")
CLAUSE = re.compile(r"(?:c|a)\d+(?:_\d+)*(?=_[a-z])")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def listed(text):
    """The tests that a program's main function passes to cmocka."""
    group = re.search(r"^TESTS(?:_OF)?\((.*?)\)$", text, re.MULTILINE | re.DOTALL)
    if group:
        return re.findall(r"\w+", group[1])
    array = re.search(r"^int main\(void\)\n\{.*?CMUnitTest tests\[\] = \{(.*?)\};", text, re.MULTILINE | re.DOTALL)
    return LISTED.findall(array[1]) if array else []


def cases(text):
    """The tests that a script may run: its functions that are not private, and the names that it gives to its cases."""
    tree = ast.parse(text)
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return functions + [text for text in texts if " " in text]


def is_built(folder, program):
    """Returns true if meson knows it, by its file or, in a list, by its name."""
    path = os.path.join(folder, "meson.build")
    while not os.path.exists(path) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
        path = os.path.join(folder, "meson.build")
    stem = program.removesuffix("_test.c").removesuffix("_test.py").removesuffix(".py")
    return os.path.exists(path) and re.search(rf"'(\w+/)*({stem}|{program})'", read(path))


def running(top):
    """Each test that runs, to the names of the files that run it."""
    found = collections.defaultdict(set)
    for place in ("src", "tests"):
        for folder, _, files in os.walk(os.path.join(top, place)):
            for name in files:
                path = os.path.join(folder, name)
                if name == "meson.build":
                    text = read(path)
                    for test in OF_MESON.findall(text) + re.findall(r"'(\w+)'", " ".join(LISTS_OF_MESON.findall(text))):
                        found[test].add(name)
                elif name.endswith("_test.c") and is_built(folder, name):
                    for test in listed(read(path)):
                        found[test].add(name)
                elif name.endswith(".py") and is_built(folder, name):
                    for test in (name.removesuffix(".py"), *cases(read(path))):
                        found[test].add(name)
                elif name.endswith("_matrix.def"):
                    for test in MATRIX.findall(read(path)):
                        found[test].add(name)
    return found


def rows(page, *titles):
    """The cells of the tables whose first columns have these titles, once for each such table."""
    header = r" \| ".join(titles)
    for table in re.findall(rf"^\| {header} \|.*\n\|[-|]+\n((?:\|.*\n)+)", page, re.MULTILINE):
        yield [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table.splitlines()]


def named(cell):
    """The tests that a cell names, each with the file that it names before, if any."""
    program = None
    for name in re.findall(r"`([^`]+)`", cell):
        if name.endswith(FILES):
            program = name
        else:
            yield name, program


def wrong_names(table, known):
    for row in table:
        tests = list(named(row[-1]))
        if not tests and not row[0].startswith("**"):
            yield f"no test is named for: {row[-2]}"
        for name, program in tests:
            if name not in known:
                yield f"no test runs that is called {name}"
            elif program and program not in known[name]:
                yield f"{name} is not in {program}"


def clause_of(test):
    """The clause of the specification, as a row writes it; None: the test's name has no clause."""
    found = CLAUSE.match(test)
    return found[0].replace("_", ".").replace("c", "", 1).replace("a", "A") if found else None


def missing_clauses(table, known):
    shown = {(name, clause) for clause, _, cell in table for name, _ in named(cell)}
    for name in sorted(known):
        clause = clause_of(name)
        if clause and (name, clause) not in shown:
            yield f"{name} stands in no row of {clause}"


def sentences(cell):
    """Of a cell, without the addresses of links."""
    return re.split(r"(?<=\.) ", LINK.sub(r"\1", cell))


def wrong_promises(page, security):
    shown = [row[0] for table in rows(page, "promise") for row in table]
    given = [sentence for table in rows(security, "against", "promise") for row in table for sentence in sentences(row[1])]
    if shown:
        yield from (f"no row of tests for the promise: {promise}" for promise in given if promise not in shown)
        yield from (f"no such promise in SECURITY.md: {promise}" for promise in shown if promise not in given)


def wrong(page, security, known):
    yield from wrong_promises(page, security)
    for table in [*rows(page, "rule"), *rows(page, "promise"), *rows(page, "question"), *rows(page, "clause", "rule", "tests")]:
        yield from wrong_names(table, known)
    clauses = [row for table in rows(page, "clause", "rule", "tests") for row in table]
    if clauses:
        yield from missing_clauses(clauses, known)


def main():
    top, path = sys.argv[1:]
    faults = list(wrong(read(os.path.join(top, path)), read(os.path.join(top, "SECURITY.md")), running(top)))
    for fault in faults:
        print(f"# {path}: {fault}")
    print("1..1\nok 1" if not faults else "1..1\nnot ok 1", f"- every row of {path} names tests that run")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
