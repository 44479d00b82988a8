#!/usr/bin/env python3
"""Checks the files of a release: check.py DIRECTORY

Of tarball and wheel: no symbol of a glibc newer than 2.31, nothing needed but the C library, and what hardens a binary: relro, binding at the start, a
protected stack, checked calls of the C library, and a command that is position-independent. Of the wheel also that RECORD is right. Prints a line for each file, and ends with
1 when one of them is not as it must be. Needs readelf."""
import base64
import csv
import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

GLIBC = (2, 31)
OF_THE_C_LIBRARY = re.compile(r"lib(c|m|dl|pthread|rt)\.so\.\d+|ld-linux[\w-]*\.so\.\d+")
OUR_OWN = "libibverbs.so.1"


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], capture_output=True, text=True, check=True).stdout


def faults_of(path):
    """What is wrong with a binary, in words."""
    dynamic, symbols, header = readelf("-d", path), readelf("--dyn-syms", path), readelf("-lh", path)
    for version in sorted({tuple(map(int, found.split("."))) for found in re.findall(r"@GLIBC_([\d.]+)", symbols)}):
        if version > GLIBC:
            yield f"needs glibc {'.'.join(map(str, version))}"
    for library in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
        if not OF_THE_C_LIBRARY.fullmatch(library) and library != OUR_OWN:
            yield f"needs {library}"
    if "GNU_RELRO" not in header:
        yield "has no relro"
    if not re.search(r"BIND_NOW|FLAGS.*NOW", dynamic):
        yield "does not bind at the start"
    if "Type:                              DYN" not in header:
        yield "is not position-independent"
    if re.search(r"GNU_STACK .* RWE", header):
        yield "has a stack that can be executed"
    if "RPATH" in dynamic or "RUNPATH" in dynamic:
        yield "has a path to libraries"


def check_tree(top):
    """The binaries below a directory, and what is wrong with them; the whole must use what protects stacks and calls."""
    count, faults, guarded, checked = 0, [], False, False
    for directory, _, names in os.walk(top):
        for name in names:
            path = os.path.join(directory, name)
            with open(path, "rb") as file:
                if os.path.islink(path) or file.read(4) != b"\x7fELF":
                    continue
            count += 1
            faults += [f"{os.path.relpath(path, top)} {fault}" for fault in faults_of(path)]
            symbols = readelf("--dyn-syms", path)
            guarded |= "__stack_chk_fail" in symbols
            checked |= bool(re.search(r"__\w+_chk@", symbols))
    if not count:
        faults.append("there is no binary")
    elif not guarded or not checked:
        faults.append("no binary has a protected stack" if not guarded else "no binary has checked calls of the C library")
    return count, faults


def check_record(wheel):
    """Each file of the wheel stands in RECORD, with its length and checksum."""
    record = next(name for name in wheel.namelist() if name.endswith(".dist-info/RECORD"))
    rows = {row[0]: row[1:] for row in csv.reader(wheel.read(record).decode().splitlines())}
    for name in wheel.namelist():
        digest = base64.urlsafe_b64encode(hashlib.sha256(wheel.read(name)).digest()).rstrip(b"=").decode()
        if name != record and rows.get(name) != [f"sha256={digest}", str(len(wheel.read(name)))]:
            yield f"RECORD is wrong about {name}"
    if set(rows) != set(wheel.namelist()):
        yield "RECORD lists other files than there are"


def check_archive(path):
    with tempfile.TemporaryDirectory() as top:
        if path.endswith(".whl"):
            with zipfile.ZipFile(path) as wheel:
                wheel.extractall(top)
                record = list(check_record(wheel))
        else:
            with tarfile.open(path) as archive:
                archive.extractall(top)
            record = []
        count, faults = check_tree(top)
    return count, faults + record


def main():
    directory, wrong = sys.argv[1], 0
    for name in sorted(os.listdir(directory)):
        if not name.endswith((".whl", ".tar.gz")):
            continue
        count, faults = check_archive(f"{directory}/{name}")
        wrong += len(faults)
        print(f"{'not ok' if faults else 'ok'} - {name}: {count} binaries", *faults, sep="\n  " if faults else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
