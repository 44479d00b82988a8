#!/usr/bin/env python3
"""Makes the wheel of a portable tarball: wheel.py TARBALL DIRECTORY

The wheel has the Python package, and what the tarball has below bin, lib and share where `pip install` lays files of the scheme "data": below
sys.prefix, so `softverbs` is on the path of a virtual environment and finds its libraries as in any installation. The file is the same for the same
tarball: entries are sorted, with the time of SOURCE_DATE_EPOCH (PEP 427, PEP 425, PEP 600; the binary distribution format of PyPA)."""
import base64
import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

LEFT_OUT = ("include/", "share/doc/", "share/softverbs/python/", "share/pkgconfig/")  # not needed to run, or elsewhere in the wheel
LOADED_BY_LINK = ("libibverbs.so", "libmlx5.so")  # by NCCL
MANYLINUX = "manylinux_2_31"  # the glibc of Debian 11


def members(path):
    """Path below the tarball's directory, mode and bytes of each file. A wheel has no links: what the link of a SONAME points to stands in its place, and the
    development link of libibverbs or libmlx5 is a library that needs it, since programs that load "libibverbs.so" must get no second instance."""
    with tarfile.open(path) as archive:
        entries = {member.name.partition("/")[2]: member for member in archive.getmembers()}
        links = {name: member for name, member in entries.items() if member.issym()}
        shadowed = {os.path.normpath(f"{os.path.dirname(name)}/{member.linkname}") for name, member in links.items() if re.search(r"\.so\.\d+$", name)}
        for name, member in entries.items():
            if os.path.basename(name) in LOADED_BY_LINK:
                yield name, 0o755, forwarding_library(os.path.basename(name), archive.extractfile(member).read())
            elif member.isfile() and name not in shadowed or name in links and not name.endswith(".so"):
                yield name, 0o755 if name in links or member.mode & 0o100 else 0o644, archive.extractfile(member).read()


def forwarding_library(name, library):
    """A library without code that needs the one with the SONAME `name`.1; dlsym(3) finds in it what that has."""
    with tempfile.TemporaryDirectory() as directory:
        with open(f"{directory}/{name}.1", "wb") as file:
            file.write(library)
        command = [os.environ.get("CC", "cc"), "-shared", "-nostdlib", "-s", "-Wl,-z,now,-z,relro,-z,noexecstack,--no-as-needed,--build-id=none,--allow-shlib-undefined",
                   f"-Wl,-soname,{name}", f"-L{directory}", f"-l:{name}.1", "-o", f"{directory}/{name}"]
        subprocess.run(command, check=True)
        with open(f"{directory}/{name}", "rb") as file:
            return file.read()


def sorted_entries(path, version):
    """What the wheel has, besides RECORD: name, mode, bytes."""
    information, data = f"softverbs-{version}.dist-info", f"softverbs-{version}.data/data"
    entries, python = {}, "share/softverbs/python/"
    for name, mode, content in members(path):
        if name.startswith(python):
            entries[name[len(python):]] = (mode, content)
        elif name == "share/doc/softverbs/LICENSE":
            entries[f"{information}/LICENSE"] = (mode, content)
        elif not name.startswith(LEFT_OUT):
            entries[f"{data}/{name}"] = (mode, content)
    return information, entries


def main():
    tarball, directory = sys.argv[1:]
    version, machine = re.fullmatch(r"softverbs-(.+)-(\w+)\.tar\.gz", os.path.basename(tarball)).groups()
    tag = f"py3-none-{MANYLINUX}_{machine}"
    information, entries = sorted_entries(tarball, version)
    entries[f"{information}/WHEEL"] = (0o644, f"Wheel-Version: 1.0\nGenerator: softverbs\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
    record = ""
    when = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
    path = f"{directory}/softverbs-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name in sorted(entries, key=lambda name: (name.startswith(information), name)):  # the information last, as PEP 427 recommends
            mode, content = entries[name]
            add(wheel, name, mode, content, when)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(content)}\n"
        add(wheel, f"{information}/RECORD", 0o644, (record + f"{information}/RECORD,,\n").encode(), when)
    print(path)


def add(wheel, name, mode, content, when):
    entry = zipfile.ZipInfo(name, when)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = (0o100000 | mode) << 16
    entry.create_system = 3  # Unix, whose modes these are
    wheel.writestr(entry, content)


if __name__ == "__main__":
    main()
