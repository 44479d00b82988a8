#!/usr/bin/env python3
"""Compares src/calls/verbs.def with the public header and with the list of symbols, and src/calls/ucma.def with the kernel's
header and with the distribution's librdmacm; prints TAP.

Usage: verbs_test.py VERBS SYMBOLS COMMANDS
"""
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api", "harness"))
import declared

# Members of the header's structures that no program calls: layouts from before 2007, and places that are kept free.
NEVER_CALLED = re.compile(r"_compat_|ABI_placeholder")
NEWER_PAGES = {"rdma_resolve_addrinfo", "rdma_write_cm_event"}  # that an installed librdmacm may lack
NEWER = {("ibv_qp_ex", "wr_flush"), ("ibv_qp_ex", "wr_atomic_write")}  # that an installed header may lack


def header():
    where = subprocess.run(["pkg-config", "--variable=includedir", "libibverbs"], capture_output=True, text=True, check=True)
    return declared.without_comments(where.stdout.strip() + "/infiniband/verbs.h")


def members_of(text):
    return {(table, member) for table, members in declared.operations(text).items() for member in members
            if not NEVER_CALLED.match(member)}


def refused(verbs):
    with open(verbs, encoding="ascii") as file:
        return set(re.findall(r"^REFUSED\((\w+), \w+, (\w+),", file.read(), re.M))


def misnamed(called, inline):
    """Members that the function of the header with their name does not call; nothing in the header calls newer ones."""
    return {(*member, name) for member, name in called.items()
            if member not in NEWER and member not in inline.get(name, []) + inline.get(f"___{name}", []) + inline.get(f"__{name}", [])}


def compare(verbs, symbols):
    """Each comparison's name, and what only one side has."""
    text, called = header(), declared.listed_members(verbs)
    names, members, there = set(declared.listed_verbs(verbs)), set(called), members_of(text)
    yield "each exported verb is in the list of symbols", names - set(declared.exported(symbols)[0])
    yield "each member of the header is in the list, or refused there", there - members - refused(verbs)
    yield "each member in the list is in the header", members - there - NEWER
    yield "each member has the name that programs write", misnamed(called, declared.inline_functions(text))
    yield "what is refused is a member of the header, and not built", refused(verbs) - (there - members)


def commands_of_kernel():
    """The commands' names in the order of their numbers."""
    text = declared.without_comments("/usr/include/rdma/rdma_user_cm.h")
    return re.findall(r"\bRDMA_USER_CM_CMD_(\w+)", re.search(r"enum \{\s*RDMA_USER_CM_CMD_.*?\}", text, re.S)[0])


def functions_of_librdmacm():
    where = subprocess.run(["pkg-config", "--variable=libdir", "librdmacm"], capture_output=True, text=True, check=True).stdout.strip()
    found = subprocess.run(["nm", "-D", "--defined-only", f"{where}/librdmacm.so.1"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r" T (rdma_\w+)", found))


def compare_commands(commands):
    with open(commands, encoding="ascii") as file:
        text = file.read()
    listed, pages = re.findall(r"^(?:NO_)?COMMAND\((\w+)", text, re.M), set(re.findall(r"^COMMAND\(\w+, (\w+),", text, re.M))
    if os.path.exists("/usr/include/rdma/rdma_user_cm.h"):
        known = commands_of_kernel()
        yield "the commands have the kernel's numbers", {f"{number}: {name}" for number, name in enumerate(known) if listed[number:number + 1] != [name]}
    if subprocess.run(["pkg-config", "--exists", "librdmacm"], check=False).returncode == 0:
        yield "librdmacm has the functions that write them", pages - functions_of_librdmacm() - NEWER_PAGES


def main():
    results = [*compare(*sys.argv[1:3]), *compare_commands(sys.argv[3])]
    print(f"1..{len(results)}")
    for number, (name, left) in enumerate(results, 1):
        print(f"{'not ok' if left else 'ok'} {number} - {name}")
        for word in sorted(map(str, left)):
            print(f"# {word}")
    return any(left for _, left in results)


if __name__ == "__main__":
    sys.exit(main())
