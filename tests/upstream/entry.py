"""Entries: what `make upstream` knows of a project, one file of TOML each.

    title       the heading in the page
    origin      where its sources are
    checkout    the directory below CHECKOUTS: a checkout, a bare repository, or sources without a repository
    only        the paths of the checkout that are copied; all, if there are none
    release     the code name of the release of Debian whose packages it needs; on another system upstream.py runs it in a chroot of that release (release.sh)
    packages    Debian's packages that building and running need beside those of `make check`
    alone       true where its runner ends processes by their names, so that it may run in a namespace of processes only
    build       lines of bash, run once in a copy of the checkout; in $CHECKOUTS are the other checkouts, in $FILES those of tests/upstream/files, $JOBS is for make -j
    part        a list; each has
        name      of the part
        run       lines of bash, run in the copy, with `softverbs` in PATH; its output is counted
        format    how: a name of formats.py
        seconds   after which it has failed
        each      lines of bash that print words, one a line: `run` then runs for each of them, as $TEST, with that time each
    left_out    a list: `tests`, and `why` they do not run
    cause       a list: `tests`, a pattern that is searched in "PART: TEST: MESSAGE"; `of`: theirs, ours or environment; `why` these tests fail
    waits       why it has no result yet, for the page
    not_run     instead of all from `checkout` on: why there is nothing to run
"""
import dataclasses
import glob
import hashlib
import os
import re
import tomllib

from formats import FORMATS

BLAME = ("theirs", "ours", "environment")


class Mistake(Exception):
    """An entry is wrong; the text says where."""


@dataclasses.dataclass
class Part:
    name: str
    run: str
    format: str
    seconds: int
    each: str = ""


@dataclasses.dataclass
class Entry:
    name: str
    title: str
    origin: str
    checkout: str = ""
    only: list = dataclasses.field(default_factory=list)
    release: str = ""
    packages: list = dataclasses.field(default_factory=list)
    alone: bool = False
    build: str = ""
    part: list = dataclasses.field(default_factory=list)
    left_out: list = dataclasses.field(default_factory=list)
    cause: list = dataclasses.field(default_factory=list)
    waits: str = "it has not had its turn"
    not_run: str = ""

    def check(self):
        for part in self.part:
            if part.format not in FORMATS:
                raise Mistake(f"{self.name}: part {part.name}: there is no format {part.format}; there are {', '.join(FORMATS)}")
        if bool(self.part) == bool(self.not_run):
            raise Mistake(f"{self.name}: an entry has parts, or says in `not_run` why it has none")
        for cause in self.cause:
            if cause["of"] not in BLAME:
                raise Mistake(f"{self.name}: a cause is of {', '.join(BLAME)}; not of {cause['of']}")
            re.compile(cause["tests"])

    def cause_of(self, part, test, message):
        return next((cause for cause in self.cause if re.search(cause["tests"], f"{part}: {test}: {message}")), None)

    def lines_of(self, part):
        """A number for what a part does: where it differs, an earlier result is not from these lines."""
        return hashlib.sha256("\0".join([self.build, part.run, part.each, part.format]).encode()).hexdigest()[:12]


def read(path):
    name = os.path.basename(path).removesuffix(".toml")
    try:
        with open(path, "rb") as file:
            fields = tomllib.load(file)
        fields["part"] = [Part(**part) for part in fields.get("part", [])]
        entry = Entry(name=name, **fields)
        entry.check()
    except (tomllib.TOMLDecodeError, TypeError, KeyError, re.error) as error:
        raise Mistake(f"{name}: {error}") from error
    return entry


def read_all(directory):
    return [read(path) for path in sorted(glob.glob(f"{directory}/*.toml"))]
