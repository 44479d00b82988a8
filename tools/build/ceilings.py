#!/usr/bin/env python3
"""Prints how far the largest header, folder and type are below the limits of their checks, with the numbers of commit 8b27331f beside them.

Usage: ceilings.py [DIRECTORY]
"""
import sys

sys.dont_write_bytecode = True
import circles
import kinds
import sizes
from tree import read_layers

HEADERS = ("process/process.h", "verbs/qp/qp.h", "verbs/queue/cq.h", "verbs/object/object.h", "verbs/object/control.h", "check/hooks.h")


def short(path):
    return "/".join(path.split("/")[-2:])


def main():
    top = sys.argv[1] if len(sys.argv) > 1 else "."
    users = circles.users_of_headers(circles.read_sources(top))
    ground = (*read_layers(top)[1], *circles.INCLUDED)
    most = max((header for header in users if not header.startswith(ground)), key=users.get)
    texts = dict(kinds.sources(top))
    brought = {path: len(kinds.brought(path, texts)) for path in kinds.TYPES}
    folders, types = sizes.count(top)
    folder, largest = max(folders, key=folders.get), max(types, key=types.get)
    print(f"Users of a header: {users[most]} of at most {circles.INCLUDED_MOST} ({most}; 25 of 25 at 8b27331f): "
          + ", ".join(f"{short(header)} {users[header]}" for header in HEADERS) + ".")
    print(f"Headers that a type's header brings: {max(brought.values())} of at most {kinds.BROUGHT_MOST} (15 of 15 at 8b27331f). "
          f"Files outside of {kinds.KINDS} that name types: {len(kinds.naming(texts))} of at most {kinds.NAMING_MOST}.")
    print(f"Files of a folder: {folders[folder]} of at most {sizes.FILES_MOST} ({folder}; 30 of 30 at 8b27331f). Members of a type: {types[largest]} of at most "
          f"{sizes.MEMBERS_MOST} ({largest}); of struct process {types['src/process/process.h: struct process']} (30 of 30 at 8b27331f).")


if __name__ == "__main__":
    main()
