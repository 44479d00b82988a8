#!/usr/bin/env python3
"""Checks the files of a release: check.py DIRECTORY

Of tarball, wheel and image: no symbol of a glibc newer than 2.31, and nothing needed but the C library; of the tarball of musl: nothing but that. Of .deb and .rpm: each library that a binary needs, and the newest
glibc whose symbols it has, is one that the package names. Of all of them what hardens a binary: relro, binding at the start, a protected stack, checked calls of the C
library (musl has none), and a command that is position-independent. Of the wheel also that RECORD is right, of the image that its checksums are. Prints a line for each file, and ends with 1 when one of them is not as it
must be. Needs readelf; for packages dpkg-deb and rpm."""
import base64
import collections
import csv
import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

import layers

Allowed = collections.namedtuple("Allowed", "glibc libraries checks_calls", defaults=[True])
PORTABLE = Allowed((2, 31), ())
OF_MUSL = Allowed((0,), ("libc.so",), checks_calls=False)
OF_GLIBC = re.compile(r"lib(c|m|dl|pthread|rt)\.so\.\d+|ld-linux[\w-]*\.so\.\d+")
OUR_OWN = "libibverbs.so.1"


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], capture_output=True, text=True, check=True).stdout


def numbers(version):
    return tuple(map(int, version.split(".")))


def faults_of(path, allowed):
    """What is wrong with a binary, in words."""
    dynamic, symbols, header = readelf("-d", path), readelf("--dyn-syms", path), readelf("-lh", path)
    for version in sorted(set(map(numbers, re.findall(r"@GLIBC_([\d.]+)", symbols)))):
        if version > allowed.glibc:
            yield f"needs glibc {'.'.join(map(str, version))}"
    for library in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
        if not (OF_GLIBC.fullmatch(library) and allowed.glibc > (0,)) and library != OUR_OWN and library not in allowed.libraries:
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


def check_tree(top, allowed):
    """The binaries below a directory, and what is wrong with them; the whole must use what protects stacks and calls."""
    count, faults, guarded, checked = 0, [], False, False
    for directory, _, names in os.walk(top):
        for name in names:
            path = os.path.join(directory, name)
            with open(path, "rb") as file:
                if os.path.islink(path) or file.read(4) != b"\x7fELF":
                    continue
            count += 1
            faults += [f"{os.path.relpath(path, top)} {fault}" for fault in faults_of(path, allowed)]
            symbols = readelf("--dyn-syms", path)
            guarded |= "__stack_chk_fail" in symbols
            checked |= bool(re.search(r"__\w+_chk@", symbols))
    if not count:
        faults.append("there is no binary")
    elif not guarded or not checked and allowed.checks_calls:
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


def output(*command, **more):
    return subprocess.run(command, capture_output=True, check=True, **more).stdout


def unpack_tarball(path, top):
    with tarfile.open(path) as archive:
        archive.extractall(top)
    return PORTABLE, []


def unpack_tarball_of_musl(path, top):
    unpack_tarball(path, top)
    return OF_MUSL, []


def unpack_wheel(path, top):
    with zipfile.ZipFile(path) as wheel:
        wheel.extractall(top)
        return PORTABLE, list(check_record(wheel))


def unpack_deb(path, top):
    """What the package may need is what it depends on: "libjansson4" has libjansson.so.4, "libdeflate0" libdeflate.so.0."""
    output("dpkg-deb", "-x", path, top)
    depends = output("dpkg-deb", "-f", path, "Depends").decode()
    glibc = re.search(r"libc6 \(>= ([\d.]+)\)", depends)
    libraries = [f"{name}.so.{number}" for name, number in re.findall(r"(lib[a-z]+)(\d+)(?:t64)?\b", depends)]
    return Allowed(numbers(glibc[1]) if glibc else (0,), libraries), []


def unpack_rpm(path, top):
    """What the package may need is what it requires, and it may offer none of its libraries to the system."""
    with tarfile.open(fileobj=io.BytesIO(output("rpm2archive", "-", stdin=open(path, "rb")))) as archive:
        archive.extractall(top)
    requires = output("rpm", "-qp", "--requires", path).decode().splitlines()
    glibc = [numbers(found) for found in re.findall(r"\(GLIBC_([\d.]+)\)", "\n".join(requires))]
    offered = [f"offers {line} to the system" for line in output("rpm", "-qp", "--provides", path).decode().splitlines() if line.startswith("lib")]
    return Allowed(max(glibc, default=(0,)), [line.partition("(")[0] for line in requires]), offered


def unpack_image(path, top):
    """The layer of softverbs, the last one."""
    image = layers.Image(path)
    image.unpack_layer(len(image.layers) - 1, top)
    return PORTABLE, []


KINDS = {".oci.tar": unpack_image, ".whl": unpack_wheel, "-musl.tar.gz": unpack_tarball_of_musl, ".tar.gz": unpack_tarball, ".deb": unpack_deb, ".rpm": unpack_rpm}


def check_archive(path, unpack):
    with tempfile.TemporaryDirectory() as top:
        allowed, faults = unpack(path, top)
        count, more = check_tree(top, allowed)
    return count, faults + more


def unpacker(name):
    """For debug information, whose files only look like programs, and for packages without binaries there is none."""
    if "-dbgsym_" in name or name.endswith(("_all.deb", ".noarch.rpm")):
        return None
    return next((unpack for end, unpack in KINDS.items() if name.endswith(end)), None)


def main():
    directory, wrong = sys.argv[1], 0
    for name in sorted(os.listdir(directory)):
        unpack = unpacker(name)
        if not unpack:
            continue
        count, faults = check_archive(f"{directory}/{name}", unpack)
        wrong += len(faults)
        print(f"{'not ok' if faults else 'ok'} - {name}: {count} binaries", *faults, sep="\n  " if faults else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
