#!/usr/bin/env python3
"""packaging/dist: the wheel of a tarball can be installed and runs, its bytes depend on the tarball alone, and check.py finds what must not be shipped."""
import fnmatch
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
import installation
from cases import BUILD, TEMPORARY, Skip, expect, softverbs, told

DIST = f"{cases.TREE}/packaging/dist"
VERSION, MACHINE = softverbs("version").stdout.split()[1].decode().rstrip(","), os.uname().machine
NAME = f"softverbs-{VERSION}-{MACHINE}"
TIME = {"SOURCE_DATE_EPOCH": "1700000000"}


def _run(script, *arguments, status=0):
    done = subprocess.run([sys.executable, f"{DIST}/{script}", *arguments], capture_output=True, check=False, env={**os.environ, **TIME})
    assert done.returncode == status, told(done)
    return done.stdout.decode()


def _tarball(directory, prepare=None):
    """A tarball of what this build installs, as packages.sh makes it; `prepare` changes the tree before."""
    top = f"{directory}/{NAME}"
    installation.install(BUILD, f"{directory}/root", "--strip")
    with open(f"{BUILD}/meson-info/intro-buildoptions.json", encoding="utf-8") as options:
        prefix = next(option["value"] for option in json.load(options) if option["name"] == "prefix")
    shutil.move(f"{directory}/root{prefix}", top)
    if prepare:
        prepare(top)
    path = f"{directory}/{NAME}.tar.gz"
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
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
    """Programs load as NCCL does: "libibverbs.so" first."""
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


def _system(directory):
    """A tree with what the command needs of this system, and with what a system collects."""
    listed = subprocess.run(["ldd", f"{BUILD}/softverbs", f"{BUILD}/lib/libibverbs.so.1"], capture_output=True, check=True).stdout.decode()
    for path in re.findall(r"(/\S+\.so\S*) \(", listed):
        os.makedirs(f"{directory}{os.path.dirname(path)}", exist_ok=True)
        shutil.copy(path, f"{directory}{path}")
    for path, text in (("etc/shadow", "root:*:20784:0:99999:7:::\n"), ("etc/machine-id", "1\n"), ("var/log/dpkg.log", "today\n"), ("bin/sh", "1"),
                       ("usr/share/doc/p/copyright", "free\n"), ("usr/share/doc/p/README", "long\n"), ("etc/passwd-", "old\n"), ("etc/group", "g\n")):
        os.makedirs(os.path.dirname(f"{directory}/{path}"), exist_ok=True)
        with open(f"{directory}/{path}", "w", encoding="utf-8") as file:
            file.write(text)
    os.link(f"{directory}/bin/sh", f"{directory}/bin/dash")
    os.symlink("dash", f"{directory}/bin/ash")
    os.chmod(f"{directory}/bin/sh", 0o4755)
    return directory


def _image(name):
    directory = f"{TEMPORARY}/{name}"
    os.makedirs(directory)
    tarball = f"{TEMPORARY}/wheel/{NAME}.tar.gz"
    return _run("image.py", tarball, _system(f"{directory}/system"), directory).strip()


def an_image_has_the_system_and_softverbs():
    path, root = _image("image"), f"{TEMPORARY}/image/root"
    os.makedirs(root)
    assert _run("layers.py", path, root).split() == ["softverbs", "run", "--", "ibv_devinfo"]
    for name in ("etc/machine-id", "var/log/dpkg.log", "usr/share/doc/p/README", "etc/passwd-"):
        assert not os.path.lexists(f"{root}/{name}"), name
    with open(f"{root}/etc/shadow", encoding="utf-8") as file:
        assert file.read() == "root:*:19675:0:99999:7:::\n"  # the day of SOURCE_DATE_EPOCH
    assert os.readlink(f"{root}/bin/ash") == "dash" and os.path.samefile(f"{root}/bin/sh", f"{root}/bin/dash")
    assert os.stat(f"{root}/bin/sh").st_mode & 0o7777 == 0o4755 and os.path.exists(f"{root}/usr/share/doc/p/copyright")
    for option in ([], ["--user", "--map-root-user"]):
        done = subprocess.run(["unshare", *option, "--mount", "chroot", root, "/opt/softverbs/bin/softverbs", "version"], capture_output=True, check=False)
        if done.returncode == 0:
            assert VERSION.encode() in done.stdout, told(done)
            return
    assert b"Operation not permitted" in done.stderr, told(done)
    raise Skip("this machine allows no chroot")


def the_same_system_and_tarball_give_the_same_image():
    another = _image("another")
    with open(f"{TEMPORARY}/image/{os.path.basename(another)}", "rb") as one, open(another, "rb") as other:
        assert one.read() == other.read()


def an_image_with_other_bytes_is_found():
    path = f"{TEMPORARY}/image/{NAME}.oci.tar"
    with open(path, "rb") as file:
        content = bytearray(file.read())
    with tarfile.open(path) as archive:
        largest = max(archive.getmembers(), key=lambda member: member.size)
    content[largest.offset_data + largest.size // 2] ^= 1
    broken = f"{TEMPORARY}/broken.oci.tar"
    with open(broken, "wb") as file:
        file.write(content)
    os.makedirs(f"{TEMPORARY}/nothing")
    done = subprocess.run([sys.executable, f"{DIST}/layers.py", broken, f"{TEMPORARY}/nothing"], capture_output=True, check=False)
    assert done.returncode == 1 and b"and the checksum sha256:" in done.stderr, told(done)


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


def binaries_of_glibc_are_not_for_musl():
    directory = f"{TEMPORARY}/musl"
    os.makedirs(directory)
    os.rename(_tarball(directory), f"{directory}/{NAME}-musl.tar.gz")
    said = _run("check.py", directory, status=1)
    assert "bin/softverbs needs libc.so.6" in said and "bin/softverbs needs glibc 2." in said, said


def _packaged():
    """The patterns of the files in each kind of package, as paths below the prefix, with * for the machine's part."""
    def read(path):
        with open(f"{DIST}/../../{path}", encoding="utf-8") as file:
            return file.read().splitlines()
    debian = [line.split()[0] for name in sorted(os.listdir(f"{DIST}/../../debian")) if name.endswith(".install") or name == "not-installed"
              for line in read(f"debian/{name}") if line and not line.startswith("#")]
    rpm = [line.split()[-1] for line in read("packaging/softverbs.spec") if re.match(r"(%license |%doc )?%\{_(?!global)\w+dir\}/", line)]
    places = {"bindir": "usr/bin", "libdir": "usr/lib/*", "mandir": "usr/share/man", "datadir": "usr/share", "includedir": "usr/include",
              "docdir": "usr/share/doc"}
    return {"deb": debian, "rpm": [re.sub(r"%\{_(\w+)\}", lambda found: places[found[1]], line) for line in rpm]}


def every_installed_file_is_in_the_packages():
    top = f"{TEMPORARY}/packaged"
    _tarball(top, lambda tree: shutil.move(tree, f"{top}/usr") and shutil.copytree(f"{top}/usr", tree, symlinks=True))
    os.makedirs(f"{top}/machine")
    os.rename(f"{top}/usr/lib/softverbs", f"{top}/machine/softverbs")
    os.rename(f"{top}/machine", f"{top}/usr/lib/machine")
    files = [os.path.relpath(f"{place}/{name}", top) for place, _, names in os.walk(f"{top}/usr") for name in names]
    assert len(files) > 100, files
    for kind, patterns in _packaged().items():
        assert len(patterns) > 8, patterns
        unused = [pattern for pattern in patterns if not glob.glob(f"{top}/{pattern}")]
        assert not unused, f"{kind}: nothing is installed there: {unused}"
        left = [path for path in files if not any(fnmatch.fnmatch(path, end) for pattern in patterns for end in (pattern, f"{pattern}/*"))]
        assert not left, f"{kind}: no package has these: {left}"


def pages_have_the_lists_that_the_build_makes():
    pages = {os.path.relpath(page, DIST + "/../..") for page in glob.glob(f"{DIST}/../../docs/**/*.md", recursive=True)}
    place = f"{TEMPORARY}/packaged/usr/share/doc/softverbs"
    assert pages == {os.path.relpath(page, place) for page in glob.glob(f"{place}/docs/**/*.md", recursive=True)}
    for page in pages:
        with open(f"{place}/{page}", encoding="utf-8") as file:
            assert not re.search(r"<!-- list: [\w ]+ -->", file.read()), page


def a_source_of_a_release_has_what_makes_the_lists():
    """make dist archives what git has, and build_deb and build_rpm copy that."""
    listed = subprocess.run(["git", "-C", DIST, "ls-files", "--full-name", ":/tools/build"], capture_output=True, check=False)
    if listed.returncode:
        raise Skip("this tree is no clone of git")
    kept = set(listed.stdout.decode().split())
    with open(f"{DIST}/../../tools/build/made_pages.py", encoding="utf-8") as file:
        modules = re.findall(r"^(?:import|from) (\w+)", file.read(), re.M)
    missing = {f"tools/build/{name}.py" for name in modules if os.path.exists(f"{DIST}/../../tools/build/{name}.py")} - kept
    assert "adverse" in modules and not missing, missing


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
