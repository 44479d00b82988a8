"""A copy of the tree, and of a build, in which a test changes what a change of one kind needs: new_fact.py, new_kind.py."""
import contextlib
import os
import shutil
import subprocess
import tempfile

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def _copy(build, to):
    """The tree without its other builds, and the build, unless it is None, whose links lead into the copy."""
    shutil.copytree(TREE, to, symlinks=True, ignore=lambda folder, names: [name for name in names if name.startswith((".git", "build"))] if folder == TREE else [])
    if not build:
        return
    shutil.copytree(os.path.abspath(build), f"{to}/build", symlinks=True)
    for folder, folders, files in os.walk(f"{to}/build"):
        for path in (f"{folder}/{name}" for name in folders + files if os.path.islink(f"{folder}/{name}")):
            goal = os.readlink(path)
            if goal.startswith(f"{TREE}/"):
                os.remove(path)
                os.symlink(to + goal[len(TREE):], path)


@contextlib.contextmanager
def copied_tree(build=None):
    """The directory of the copy, whose build is its folder build. A build whose list of sources changes can't be copied: meson knows it by
    its place."""
    with tempfile.TemporaryDirectory(prefix="softverbs-changed-") as place:
        _copy(build, f"{place}/tree")
        yield f"{place}/tree"


def insert(path, before, text):
    """Puts the text before these words, which the file has once."""
    with open(path, encoding="utf-8") as file:
        old = file.read()
    assert old.count(before) == 1, path
    with open(path, "w", encoding="utf-8") as file:
        file.write(old.replace(before, text + before))


def build_library(top):
    """Builds the command and the library."""
    libraries = [f"lib/{name}" for name in os.listdir(f"{top}/build/lib") if name.startswith("libibverbs.so.1.") and not name.endswith((".p", ".symbols"))]
    subprocess.run(["ninja", "-C", f"{top}/build", "softverbs", *libraries], check=True, stdout=subprocess.DEVNULL)


def build_anew(top):
    """Builds the command and the library of a copy without a build."""
    subprocess.run(["meson", "setup", f"{top}/build", top, "-Doptimization=1", "-Db_lto=false", "-Dtests=false"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", f"{top}/build"], check=True, stdout=subprocess.DEVNULL)
