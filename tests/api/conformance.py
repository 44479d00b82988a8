#!/usr/bin/env python3
"""docs/evidence/conformance.md: every function and operation of <infiniband/verbs.h>, and the test that shows it.

    conformance.py BUILD HEADER SYMBOLS PAGE            checks that the page is true; prints TAP
    conformance.py BUILD HEADER SYMBOLS PAGE --write    runs the tests of the API, and writes the page anew

The functions and operations come from the header and from the list of symbols, the refused ones from `softverbs missing`,
and the callers from running the tests, which record them. The check runs only the tests that the page names.
"""
import collections
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "harness"))
import declared  # pylint: disable=wrong-import-position
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../clients"))
from patience import patience  # pylint: disable=wrong-import-position
from wrapped import wrapped  # pylint: disable=wrong-import-position

LINKS = ("none", "self") # where the recorded calls of both ends are of one process
TOO_MANY = ("error_matrix", "fuzz", "dead_peer") # cases, or threads

LATER = ("later_test.c", "comp_cntr_test.c")  # in tests/abi: show those, by their names and version nodes
LATER_INLINE = {"ibv_wr_flush": "`builders` in `tests/api`", "ibv_query_comp_cntr_caps": "`comp_cntr_test.c` in `tests/abi`"}
VERBS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/calls/verbs.def")
LATER_PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../abi")
OLD_NAMES = {"ibv_dofork_range", "ibv_dontfork_range", "ibv_copy_ah_attr_from_kern", "ibv_copy_path_rec_from_kern", "ibv_copy_path_rec_to_kern", "ibv_copy_qp_attr_from_kern",
             "ibv_get_sysfs_path", "ibv_read_sysfs_file"}  # of other headers, or without a header

INTRODUCTION = """# What of the interface is there

Each function that programs can call, of those that `libibverbs.so.1` of rdma-core 44 exports and of those that
`<infiniband/verbs.h>` holds itself, and each operation that an open device has for the latter to call. *Refused* means
EOPNOTSUPP, and a line in the log. The last column names a test of `tests/api` that calls the function; there are usually
more. `build/tests/api/api_PROGRAM LINK WORDS` runs it.

*This page is generated: `tests/api/conformance.py`, whose first lines say how. `make check` runs the tests that it names,
and fails when one does not call what it is said to show, when a function that is supported has none, and when the page does
not say what the header and `softverbs missing` say.*
"""


class Interface:
    def __init__(self, build, header, symbols):
        text = declared.without_comments(header)
        self.public, self.private = declared.exported(symbols)
        self.header = text
        self.inline, self.tables = declared.inline_functions(text), declared.operations(text)
        out = subprocess.run([f"{build}/softverbs", "missing", "--provider"], check=True, capture_output=True, text=True).stdout
        self.missing = {name: "not built yet" if why == "exported functions" else why for name, why in
                        (re.split(r"\s{2,}", line, maxsplit=1) for line in out.splitlines() if line)}

    def through(self, function):
        """The operations that a function of the header calls; others work without any."""
        return [f"{table}.{member}" for table, member in self.inline.get(function, [])]

    def refusal(self, function):
        """Why it is refused; None: it is not."""
        return next((self.missing[name] for name in [function, *self.through(function)] if name in self.missing), None)

    def functions(self):
        """Functions that programs call by name; one with a leading _ is called through the header."""
        later = set(self.later())
        return sorted(name for name in {*self.public, *self.inline}
                      if "ibv_" in name and not name.startswith("_") and name not in later)

    def later(self):
        """Functions of releases after the installed header's."""
        return sorted(name for name in self.public if not re.search(rf"\b{name}\(", self.header) and not name.startswith("_ibv")
                      and name not in OLD_NAMES)

    def is_of_the_page(self):
        """Release 44's; of another one the page says neither all nor only what is there."""
        return "wr_atomic_write" in self.header and "wr_flush" not in self.header

    def operations(self):
        return [f"{table}.{member}" for table, members in self.tables.items() for member in members]

    def callers(self, operation):
        return sorted({name.lstrip("_") for name in self.inline if operation in self.through(name)})


def row(interface, function, tests):
    refusal = interface.refusal(function)
    shown = "`{0}` over {1}: {2}".format(*tests[function]) if function in tests else ""
    return f"| `{function}` | {'refused: ' + refusal if refusal else 'supported'} | {shown} |\n"


def operation_row(interface, operation):
    answer = "refused: " + interface.missing[operation] if operation in interface.missing else "supported"
    callers = interface.callers(operation)
    return f"| `{operation}` | {' '.join(f'`{name}`' for name in callers)} | " \
           f"{answer if callers else 'a place of older releases: nothing in the header calls it'} |\n"


def later_answer(interface, name):
    return f"refused: {interface.missing[name]}" if name in interface.missing else "supported"


def check_later(interface):
    text = ""
    for name in LATER:
        with open(f"{LATER_PATH}/{name}", encoding="utf-8") as file:
            text += file.read()
    yield from (f"{name} does not stand in {' or '.join(LATER)}" for name in interface.later() if name not in interface.missing and f'"{name}"' not in text)


def check_lists(interface):
    """Each operation that the page calls supported is built from calls/verbs.def, and so passes through layers, and the other way
    round."""
    listed = {f"{table}.{member}" for table, member in declared.listed_members(VERBS)}
    supported = {operation for operation in interface.operations() if operation not in interface.missing and interface.callers(operation)}
    yield from (f"{name} is supported, but not in verbs.def" for name in sorted(supported - listed))
    yield from (f"{name} is in verbs.def, but refused" for name in sorted(listed & set(interface.missing)))
    yield from (f"{name} is in verbs.def, but refused" for name in declared.listed_verbs(VERBS) if name in interface.missing)


def page(interface, tests):
    """`tests`: function to (program, link, case)."""
    text = INTRODUCTION + "\n## Functions\n\n| function | answer | shown by |\n|---|---|---|\n"
    text += "".join(row(interface, function, tests) for function in interface.functions())
    text += f"\n## Functions of releases after 44\n\nThose that are supported are shown by {' and '.join(f'`{name}`' for name in LATER)} in `tests/abi`.\n\n| function | answer |\n|---|---|\n"
    text += "".join(f"| `{name}` | {later_answer(interface, name)} |\n" for name in interface.later())
    text += "".join(f"| `{name}`, which the header holds itself | supported: {where} |\n" for name, where in LATER_INLINE.items())
    text += "\n## Operations\n\nA test shows an operation by calling the function.\n\n"
    text += "| operation | function | answer |\n|---|---|---|\n"
    text += "".join(operation_row(interface, operation) for operation in interface.operations())
    there = [name for name in interface.private if name not in interface.missing]
    text += f"\n## For providers\n\nOf the {len(interface.private)} symbols for providers, {len(there)} do something: "
    text += ", ".join(f"`{name}`" for name in sorted(there)) + ".\nThe others are there so that what is linked with them loads, "
    return wrapped(text + "and are refused; `softverbs missing --provider` lists them.\n")


def named(text):
    """The tests that a page names."""
    rows = [re.match(r"^\| `(\w+)` \| [^|]* \| `(\w+)` over (\w+): (.*) \|$", line) for line in text.splitlines()]
    return {found[1]: (found[2], found[3], found[4]) for found in rows if found}


def calls(build, program, link, words=None):
    """case to the functions that it calls, of those cases whose name holds the words."""
    with tempfile.NamedTemporaryFile(mode="r", encoding="utf-8") as log:
        subprocess.run([f"{build}/tests/api/api_{program}", link, *([words] if words else [])], check=True,
                       env={**os.environ, "SOFTVERBS_TEST_RECORD": log.name}, stdout=subprocess.DEVNULL, timeout=patience(300))
        lines = [line.rstrip("\n").split("\t") for line in log]
    return {line[0]: set(line[1:]) for line in lines}


def programs(build):
    names = [name.removeprefix("api_") for name in os.listdir(f"{build}/tests/api") if re.fullmatch(r"api_\w+", name)]
    return sorted(name for name in names if name not in TOO_MANY)


def links(build, program):
    """The links that meson knows for the program."""
    known = subprocess.run(["meson", "test", "-C", build, "--no-rebuild", "--list"], check=True, capture_output=True, text=True)
    return [link for link in LINKS if re.search(rf"/ {program} over {link}$", known.stdout, re.MULTILINE)]


def choose(interface, build, before):
    """For each function the case that is called after it, else the one that the page had, else the one that calls least."""
    candidates = collections.defaultdict(list)
    for program in programs(build):
        for link in links(build, program):
            for case, functions in calls(build, program, link).items():
                for function in functions:
                    after_it = f"{function} ".replace("_", " ") in f"{case} "
                    keep = before.get(function) == (program, link, case)
                    candidates[function].append((not after_it, not keep, len(functions), program, link, case))
    return {function: min(candidates[function])[3:] for function in interface.functions() if function in candidates}


def check_page(interface, text):
    tests = named(text)
    if page(interface, tests) != text:
        yield "it is not what conformance.py --write makes of this header and of softverbs missing"


def check_coverage(interface, text):
    tests = named(text)
    yield from (f"{function} has no test" for function in interface.functions()
                if function not in tests and not interface.refusal(function))


def check_tests(interface, build, text):
    wanted, functions = collections.defaultdict(set), interface.functions()
    for function, test in named(text).items():
        if function in functions:
            wanted[test].add(function)
    for (program, link, case), functions in sorted(wanted.items()):
        found = calls(build, program, link, case).get(case)
        if found is None:
            yield f"{program} over {link} has no case \"{case}\" that passes"
        else:
            yield from (f"{program} over {link}: {case}: does not call {name}" for name in sorted(functions - found))


def check(interface, build, path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    results = (("the page of conformance is up to date", list(check_page(interface, text))),
               ("what is supported is what calls/verbs.def lists", list(check_lists(interface))),
               ("every function that is supported has a test", list(check_coverage(interface, text))),
               ("every later function that is supported has a test", list(check_later(interface))),
               ("the tests that the page names call what they show", list(check_tests(interface, build, text))))
    print(f"1..{len(results)}")
    if not interface.is_of_the_page():
        skip = " # SKIP the installed header is of another release than the page's, 44"
        results = tuple((name + skip if "tests that" not in name else name, wrong if "tests that" in name else []) for name, wrong in results)
    for number, (name, wrong) in enumerate(results, 1):
        print(f"{'not ok' if wrong else 'ok'} {number} - {name}")
        print("".join(f"# {line}\n" for line in wrong), end="")
    if any(wrong for _, wrong in results):
        print(f"# to write it anew: {' '.join(sys.argv)} --write")
        return 1
    return 0


def write(interface, build, path):
    before = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            before = named(file.read())
    tests = choose(interface, build, before)
    with open(path, "w", encoding="utf-8") as file:
        file.write(page(interface, tests))
    for line in check_coverage(interface, page(interface, tests)):
        print(line)
    return 0


def main():
    build, header, symbols, path = sys.argv[1:5]
    interface = Interface(build, header, symbols)
    return write(interface, build, path) if sys.argv[5:] == ["--write"] else check(interface, build, path)


if __name__ == "__main__":
    sys.exit(main())
