#!/usr/bin/env python3
"""packaging/dist: the wheel of a tarball can be installed and runs, its bytes depend on the tarball alone, and check.py finds what must not be shipped."""
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile

import cases
from cases import BUILD, TEMPORARY, Skip, expect, softverbs, told

DIST = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../packaging/dist"))
VERSION, MACHINE = softverbs("version").stdout.split()[1].decode().rstrip(","), os.uname().machine
NAME = f"softverbs-{VERSION}-{MACHINE}"
TIME = {"SOURCE_DATE_EPOCH": "1700000000"}


def _run(script, *arguments, status=0):
    done = subprocess.run([sys.executable, f"{DIST}/{script}", *arguments], capture_output=True, check=False, env={**os.environ, **TIME})
    assert done.returncode == status, told(done)
    return done.stdout.decode()


def _tarball(directory, prepare=None):
    """Of what this build installs, as packages.sh makes it; `prepare` changes the tree before."""
    top = f"{directory}/{NAME}"
    subprocess.run(["meson", "install", "--no-rebuild", "--quiet", "-C", BUILD, "--destdir", f"{directory}/root"], check=True, capture_output=True)
    with open(f"{BUILD}/meson-info/intro-buildoptions.json", encoding="utf-8") as options:
        prefix = next(option["value"] for option in json.load(options) if option["name"] == "prefix")
    shutil.move(f"{directory}/root{prefix}", top)
    if prepare:
        prepare(top)
    path = f"{directory}/{NAME}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(top, NAME)
    return path


def _wheel(directory, prepare=None):
    os.makedirs(directory)
    return _run("wheel.py", _tarball(directory, prepare), directory).strip()


def the_wheel_installs_the_command_its_libraries_and_the_python_package():
    path = _wheel(f"{TEMPORARY}/wheel")
    assert os.path.basename(path) == f"softverbs-{VERSION}-py3-none-manylinux_2_31_{MACHINE}.whl", path
    place = f"{TEMPORARY}/installed"
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        for entry in wheel.infolist():  # as pip lays them: the scheme "data" below the prefix, with the modes that run programs
            name = entry.filename.removeprefix(f"softverbs-{VERSION}.data/data/")
            wheel.extract(entry, f"{TEMPORARY}/unpacked")
            target = f"{place}/{name}" if name != entry.filename else f"{place}/lib/python/{name}"
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.move(f"{TEMPORARY}/unpacked/{entry.filename}", target)
            os.chmod(target, entry.external_attr >> 16 & 0o777)
        information = f"softverbs-{VERSION}.dist-info"
        assert {f"{information}/{part}" for part in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "LICENSE")} <= set(names), names
        assert f"Tag: py3-none-manylinux_2_31_{MACHINE}".encode() in wheel.read(f"{information}/WHEEL")
    expect(softverbs("demo", tool=f"{place}/bin/softverbs"))
    done = subprocess.run([sys.executable, "-c", "import softverbs; print(softverbs.__file__)"], env={**os.environ, "PYTHONPATH": f"{place}/lib/python"},
                          capture_output=True, check=False)
    assert done.stdout.decode().startswith(place), told(done)


def programs_that_load_the_library_by_either_name_get_one_instance():
    """As NCCL does: "libibverbs.so" first."""
    place = f"{TEMPORARY}/installed"
    source = "import ctypes; one, two = ctypes.CDLL('libibverbs.so'), ctypes.CDLL('libibverbs.so.1'); " \
             "address = lambda library: ctypes.cast(library.ibv_get_device_list, ctypes.c_void_p).value; " \
             "print(address(one) == address(two), len({line.split()[-1] for line in open('/proc/self/maps') if 'libibverbs.so.1' in line}))"
    done = expect(softverbs("run", "--", cases.PYTHON, "-c", source, tool=f"{place}/bin/softverbs"))
    assert done.stdout.split() == [b"True", b"1"], told(done)


def the_same_tarball_gives_the_same_wheel():
    first = _wheel(f"{TEMPORARY}/first")
    again = f"{TEMPORARY}/again"
    os.makedirs(again)
    second = _run("wheel.py", f"{TEMPORARY}/first/{NAME}.tar.gz", again).strip()
    with open(first, "rb") as one, open(second, "rb") as other:
        assert one.read() == other.read()


def a_binary_that_is_not_hardened_is_found():
    compiler = shutil.which("gcc") or shutil.which("clang")
    if not compiler or not shutil.which("readelf"):
        raise Skip("there is no compiler, or no readelf")

    def put_weak_program(top):
        source = f"{TEMPORARY}/weak.c"
        with open(source, "w", encoding="utf-8") as file:
            file.write("int main(void) { return 0; }\n")
        subprocess.run([compiler, "-no-pie", "-Wl,-z,norelro,-z,lazy,-rpath,/nowhere,--no-as-needed", source, "-o", f"{top}/bin/weak", "-libverbs", "-lz" if os.path.exists("/usr/include/zlib.h") else "-lm"],
                       check=True, capture_output=True)

    directory = f"{TEMPORARY}/weak"
    os.makedirs(directory)
    _tarball(directory, put_weak_program)
    said = _run("check.py", directory, status=1)
    for fault in ("has no relro", "does not bind at the start", "is not position-independent", "has a path to libraries"):
        assert f"bin/weak {fault}" in said, said


def a_record_that_is_wrong_is_found():
    directory = f"{TEMPORARY}/record"
    path = _wheel(directory)
    os.remove(f"{directory}/{NAME}.tar.gz")
    with zipfile.ZipFile(path, "a") as wheel:
        wheel.writestr("softverbs/strange.py", "")
    said = _run("check.py", directory, status=1)
    assert "RECORD is wrong about softverbs/strange.py" in said and "RECORD lists other files" in said, said


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
