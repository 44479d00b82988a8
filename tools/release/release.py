#!/usr/bin/env python3
"""Makes a release of the tree: release.py make VERSION [--no-dist]
   release.py check TAG, release.py notes TAG

`make` numbers the tree, commits, tags the commit vVERSION, and builds dist/ from it (make dist); it pushes nothing. `check` ends with 1 unless TAG is of the tree's
version. `notes` prints what CHANGELOG.md says of a version. docs/how-to/release.md has the steps before and after."""
import argparse
import datetime
import email.utils
import os
import re
import subprocess
import sys

VERSION = r"\d+\.\d+\.\d+"
NEXT = "Unreleased"  # the section of changes that have no version yet
PLACES = {"meson.build": rf"(?m)^(  version: ')({VERSION})(')", "python/pyproject.toml": rf'(?m)^(version = ")({VERSION})(")',
          "debian/changelog": rf"\A(softverbs \()({VERSION})(\))"}
MAINTAINER = r"(?m)^Maintainer: (.*)$"


class Refused(Exception):
    """The text says why, and what to do."""


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def git(*words):
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout.strip()


def number_of(path):
    found = re.search(PLACES[path], read(path))
    if not found:
        raise Refused(f"{path} has no version where it is looked for")
    return found[2]


def as_numbers(version):
    return tuple(map(int, version.split(".")))


def sections():
    """The sections of CHANGELOG.md, newest first: title and text."""
    parts = re.split(r"(?m)^## (.*)\n", read("CHANGELOG.md"))
    return list(zip(parts[1::2], (part.strip() for part in parts[2::2])))


def section_of(version):
    for title, text in sections():
        if title == version and text:
            return text
    raise Refused(f'CHANGELOG.md has no section "## {version}" with a text')


def renumber(version):
    """Writes the version into every file that has it; Debian's changelog gets an entry, and the newest section of CHANGELOG.md its title."""
    for path in ("meson.build", "python/pyproject.toml"):
        write(path, re.sub(PLACES[path], rf"\g<1>{version}\g<3>", read(path)))
    if number_of("debian/changelog") != version:
        when = email.utils.format_datetime(datetime.datetime.now(datetime.timezone.utc))
        maintainer = re.search(MAINTAINER, read("debian/control"))[1]
        write("debian/changelog", f"softverbs ({version}) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- {maintainer}  {when}\n\n{read('debian/changelog')}")
    write("CHANGELOG.md", re.sub(rf"(?m)^## {NEXT}$", f"## {version}", read("CHANGELOG.md"), count=1))


def refuse_what_cannot_be_released(version):
    if not re.fullmatch(VERSION, version):
        raise Refused(f'"{version}" is no version; one is 0.3.0')
    changed = git("status", "--porcelain")
    if changed:
        raise Refused(f"{len(changed.splitlines())} files have changes that are not committed")
    if as_numbers(version) < as_numbers(number_of("meson.build")):
        raise Refused(f"{version} is older than the tree, which is {number_of('meson.build')}")
    if git("tag", "--list", f"v{version}"):
        raise Refused(f"the tag v{version} is there already")
    title, text = sections()[0]
    if title not in (NEXT, version) or not text:
        raise Refused(f'the newest section of CHANGELOG.md is "## {title}"; it must be "## {NEXT}" or "## {version}", with the changes')


def make(version, with_dist):
    refuse_what_cannot_be_released(version)
    renumber(version)
    if git("status", "--porcelain"):
        git("commit", "--all", "--message", f"release: number the tree {version}")
    git("tag", "--annotate", f"v{version}", "--message", f"softverbs {version}\n\n{section_of(version)}")
    if with_dist:
        subprocess.run(["make", "dist"], check=True)
    print(f"v{version} is tagged{' and dist/ has its files' if with_dist else ''}. Next: git push origin HEAD v{version}")


def check(tag):
    version = tag.removeprefix("v")
    for path in PLACES:
        if number_of(path) != version or not tag.startswith("v"):
            raise Refused(f"the tag is {tag}, and {path} has the version {number_of(path)}, whose tag is v{number_of(path)}")
    section_of(version)


def main():
    parser = argparse.ArgumentParser()
    words = parser.add_subparsers(dest="word", required=True)
    making = words.add_parser("make")
    making.add_argument("version")
    making.add_argument("--no-dist", action="store_true")
    for word in ("check", "notes"):
        words.add_parser(word).add_argument("tag")
    asked = parser.parse_args()
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    try:
        if asked.word == "make":
            make(asked.version, not asked.no_dist)
        elif asked.word == "check":
            check(asked.tag)
        else:
            print(section_of(asked.tag.removeprefix("v")))
    except Refused as why:
        sys.exit(f"release.py: {why}.")


if __name__ == "__main__":
    main()
