#!/usr/bin/env python3
"""The library and the command have what distributions ask of packages: a protected stack, checked calls, tables that are read-only. Prints TAP.

Usage: hardening_test.py LIBRARY COMMAND
"""
import re
import subprocess
import sys

WANTED = {
    "a protected stack": r"__stack_chk_fail@",
    "checked calls of the C library": r"\b__\w+_chk@",
    "tables that become read-only (RELRO)": r"GNU_RELRO",
    "symbols that are bound at the start (BIND_NOW)": r"\(FLAGS(?:_1)?\).*NOW",
    "addresses that the kernel chooses (PIE)": r"Type:\s+DYN",
}


def main():
    print(f"1..{len(WANTED) * 2}")
    failed = 0
    for number, path in enumerate(sys.argv[1:3]):
        shown = subprocess.run(["readelf", "-hldW", "--dyn-syms", path], capture_output=True, text=True, check=True).stdout
        for at, (name, pattern) in enumerate(WANTED.items(), 1 + number * len(WANTED)):
            found = re.search(pattern, shown)
            failed += not found
            print(f"{'' if found else 'not '}ok {at} - {path.rsplit('/', 1)[1]} has {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
