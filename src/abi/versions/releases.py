#!/usr/bin/env python3
"""Compares the list of symbols with the map files of rdma-core's releases, and says what is new in them.

Usage: releases.py [--write] REPOSITORY [REVISION...]

REPOSITORY is a clone of rdma-core; only its commits are read. Without revisions the script compares every release from 25 on
and the newest commit. Prints the lines that the list lacks or that get further nodes; --write changes the list, too. A person
has to decide how a new symbol's stub answers.
"""
import os
import re
import subprocess
import sys

from generate import PRIVATE, is_private, node_names, read

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "symbols.list")
OLDEST = 25  # the first private node that a distribution in use has
# Symbols of map files that no function defines, or that have a layout from before 2007 without users.
LEFT_OUT = {"ibv_query_device_ex", "ibv_register_driver"}


def git(repository, *arguments):
    return subprocess.run(["git", "-C", repository, *arguments], check=True, capture_output=True, text=True).stdout


def releases(repository):
    tags = [tag for tag in git(repository, "tag").split() if re.fullmatch(r"v\d+\.0", tag)]
    return sorted((tag for tag in tags if int(tag[1:-2]) >= OLDEST), key=lambda tag: int(tag[1:-2])) + ["HEAD"]


def node_number(node):
    return [int(part) for part in re.findall(r"\d+", node)]


def map_of(repository, revision):
    """Pairs of symbol and node."""
    private = re.search(r'IBVERBS_PABI_VERSION "(\d+)"', git(repository, "show", f"{revision}:CMakeLists.txt")).group(1)
    text = re.sub(r"/\*.*?\*/", "", git(repository, "show", f"{revision}:libibverbs/libibverbs.map.in"), flags=re.DOTALL)
    text = text.replace("@IBVERBS_PABI_VERSION@", private)
    for node, body in re.findall(r"(IBVERBS_\w+(?:\.\d+)?) \{(.*?)\}", text, re.DOTALL):
        for symbol in re.findall(r"(\w+);", body.split("local:")[0]):
            yield symbol, node


def nodes_of_releases(repository, revisions):
    """The nodes of each symbol: all private ones, and the newest public one."""
    found = {}
    for revision in revisions:
        for symbol, node in map_of(repository, revision):
            if symbol not in LEFT_OUT:
                found.setdefault(symbol, set()).add(node)
    return {symbol: newest_public(nodes) for symbol, nodes in found.items()}


def newest_public(nodes):
    private = {node for node in nodes if node.startswith(PRIVATE)}
    public = sorted(nodes - private, key=node_number)
    return private | set(public[-1:])


def comments_of_list():
    with open(LIST, encoding="ascii") as lines:
        return "".join(line for line in lines if line.startswith("#"))


def column(nodes):
    numbers = sorted((node[len(PRIVATE):] for node in nodes if node.startswith(PRIVATE)), key=int)
    public = [node for node in nodes if not node.startswith(PRIVATE)]
    return ",".join(public) if public else PRIVATE + ",".join(numbers)


def order(row):
    return is_private(row), [] if is_private(row) else node_number(row[1]), row[0]


def write(comments, rows):
    rows = sorted(rows, key=order)
    width, last = max(len(row[1]) for row in rows) + 2, None
    with open(LIST, "w", encoding="ascii") as output:
        output.write(comments)
        for symbol, nodes, answer in rows:
            group = PRIVATE if nodes.startswith(PRIVATE) else nodes
            output.write("\n" * (group != last) + f"{symbol:36}{nodes:{width}}{answer}\n")
            last = group


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--write"]
    if not arguments:
        sys.exit(__doc__)
    wanted = nodes_of_releases(arguments[0], arguments[1:] or releases(arguments[0]))
    known = {row[0]: row for row in read(LIST)}
    for symbol, nodes in sorted(wanted.items()):
        row = known.get(symbol)
        listed = set(node_names(row[1])) if row else set()
        if listed >= nodes:
            continue
        changed = [symbol, column(nodes | listed), row[2] if row else "code"]
        print(*changed)
        known[symbol] = changed
    if "--write" in sys.argv:
        write(comments_of_list(), list(known.values()))


if __name__ == "__main__":
    main()
