#!/usr/bin/env python3
"""Writes what releases.sh has found into docs/evidence/releases.md, but for what people wrote below "## Why they ...": table.py RESULTS PAGE."""
import collections
import datetime
import glob
import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../clients"))
from wrapped import joined, write_page  # pylint: disable=wrong-import-position

DEBIAN = {"bullseye": "Debian 11", "bookworm": "Debian 12", "trixie": "Debian 13", "sid": "sid"}
PACKAGES = (
    "deb: the .deb is built, linted, installed, tried by its autopkgtest and purged there",
    "tarball: built on Debian 11, unpacked by an ordinary user, it runs the ping-pong between two processes",
    "container: each line of packaging/Containerfile, in fresh systems",
    "twice: `make dist` two times in a system that debootstrap has just made, all checksums compared; the files that it leaves are tried as users get them",
    "dist: tarball and wheel in a fresh system, as an ordinary user and without a package of RDMA: `softverbs demo` from the tarball within two seconds, `demo --all`, and the wheel in a virtual environment, installed and removed; then `ibv_rc_pingpong`, `rping` and the example of docs/how-to/testing.md in Python with each",
    "dist_aarch64: the same under qemu-user",
    "image, image_aarch64: the layers of the container image, unpacked and run in a chroot: `ibv_devinfo`, the two programs and the example",
    "install: the .deb files of that release and of the one before, with apt-get, `demo`, the programs and the example; its own are linted",
    "rpm: the .rpm files, with `rpm --root` in an empty tree, what they require compared with what the binaries need, the demonstration, the programs and the example",
    "musl: `demo`, and a program of musl-gcc",
    "readme: the README's two commands, `make demo` and `make check`, in a system that debootstrap has just made",
    "arm64: cross-built there, its suites that need no kernel's help and the ping-pong under qemu-user",
)  # what the rows of packages are
Result = collections.namedtuple("Result", "library clients rows reasons")


def read(path):
    _, library, clients = os.path.basename(path).split(".")
    with open(path, encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t", 2) for line in file]
    rows = [line for line in lines if line[0] in ("ok", "not ok", "skip")]
    return Result(library, clients, rows, [line[1:] for line in lines if line[0] == "why"])


def said(result, name):
    return next((text for _, row, text in result.rows if row == name), "-")


def row(result):
    own = result.library == result.clients
    count = collections.Counter(line[0] for line in result.rows)
    return " | ".join([
        f"| {DEBIAN[result.library]}", DEBIAN[result.clients],
        next((line[0] for line in result.rows if line[1] == "make demo"), "") if own else "",
        said(result, "suites of the tree") if own else "",
        f"{count['ok']} of {count['ok'] + count['not ok']}", said(result, "pyverbs' own suite") + " |"])


def page(results, packages):
    yield "# Other releases\n\n"
    yield "`make releases` builds softverbs on each of these releases of Debian and runs every client that the release has; then the\n"
    yield "library of one under the programs of another. It needs root and debootstrap. Last run: "
    yield f"{datetime.date.today()}.\n\n"
    yield "| built on | clients of | `make demo` | suites | clients that pass | rdma-core's own suite (pyverbs) |\n|---|---|---|---|---|---|\n"
    for result in results:
        yield row(result) + "\n"
    yield "\nThe clients: all of ibverbs-utils, perftest (send, write, read, atomic, UD, through librdmacm), rping and ucmatose,\n"
    yield "`ucx_info`, `fi_info`, and each provider library, which must load.\n"
    yield "\n| on | package | steps |\n|---|---|---|\n"
    yield joined([DEBIAN[suite.partition("-")[2]], suite.partition("-")[0], f"{sum(line[0] == 'ok' for line in lines)} of {len(lines)}"] for suite, lines in packages)
    yield "\n" + "".join(f"- {what}\n" for what in PACKAGES)
    yield "\n## What failed\n\n"
    failed = [(result, line) for result in results for line in result.rows if line[0] == "not ok"]
    for result, (_, name, text) in failed:
        yield f"- {DEBIAN[result.library]} under {DEBIAN[result.clients]}: {name}: {text}\n"
    for suite, lines in packages:
        for _, name, text in (line for line in lines if line[0] == "not ok"):
            failed.append(suite)
            yield f"- {suite}: {name}: {text}\n"
    if not failed:
        yield "Nothing.\n"
    yield "\n## Why pyverbs' tests are skipped\n\n| release, tests | reason that they give |\n|---|---|\n"
    yield joined([f"{DEBIAN[result.clients]}: {count}", why.replace("|", "/")] for result in results if result.library == result.clients
                 for count, why in result.reasons if not why.startswith(("ERROR: ", "FAIL: ")))


def main():
    results = [read(path) for path in glob.glob(f"{sys.argv[1]}/result.*.*")]
    order = list(DEBIAN)
    results.sort(key=lambda result: (result.library != result.clients, order.index(result.library), order.index(result.clients)))
    packages = []
    for path in sorted(glob.glob(f"{sys.argv[1]}/package.*")):
        with open(path, encoding="utf-8") as file:
            packages.append((path.rpartition(".")[2], [line.rstrip("\n").split("\t", 2) for line in file]))
    why = ""
    if os.path.exists(sys.argv[2]):
        with open(sys.argv[2], encoding="utf-8") as file:
            why = file.read().partition("\n## Why they")[2]
    text = "".join(page(results, packages))
    with write_page(sys.argv[2]) as file:
        file.write(text + ("\n## Why they" + why if why else ""))
    print(text)


if __name__ == "__main__":
    main()
