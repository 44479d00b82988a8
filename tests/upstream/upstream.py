#!/usr/bin/env python3
"""The test suites of other projects, run over softverbs: `make upstream CHECKOUTS=DIRECTORY [ONLY=NAME]`.

    upstream.py CHECKOUTS [--only NAME[,NAME]] [--part WORDS] [--again] [--list] [--page]

CHECKOUTS holds a checkout of each project, in a directory that the entry names (tests/upstream/entries, described in entry.py); a project that is not there is left
out, and nothing is fetched. Each entry is built in a copy of its checkout, in build/upstream, and its suite runs there with `softverbs` in PATH and a separate
directory of softverbs. Every part that ends is noted, so that a run continues where it was stopped, as long as the checkout and the lines of the entry stay the same;
--again forgets that. The results are in tests/upstream/results, and docs/evidence/upstream.md is made from these and the entries; --page makes it and does no more.

Ends with 0 if every failed test has a cause in its entry.
"""
import argparse
import collections
import contextlib
import datetime
import fcntl
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.abspath(f"{HERE}/../..")
sys.path.append(f"{HERE}/../clients")
# pylint: disable=wrong-import-position
import entry as entries
import formats
import page
from clients import BUILD
from matrix import commit
from patience import patience

SETUP = f"{TREE}/tools/build/setup.sh"
IN_RELEASE = f"{HERE}/release.sh"
NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]


class NotRun(Exception):
    """An entry cannot run here; the text says why."""


def parsed(words):
    reader = argparse.ArgumentParser(description="The test suites of other projects, run over softverbs.")
    reader.add_argument("checkouts", nargs="?", default="")
    reader.add_argument("--only", default="", help="names of entries, with commas")
    reader.add_argument("--part", default="", help="parts whose name holds this")
    reader.add_argument("--again", action="store_true", help="run what has a result, too")
    reader.add_argument("--list", action="store_true", help="list the entries and their parts")
    reader.add_argument("--page", action="store_true", help="make the page, and do no more")
    reader.add_argument("--entries", default=f"{HERE}/entries", help="where the entries are")
    reader.add_argument("--results", default=f"{HERE}/results", help="where the results are kept")
    reader.add_argument("--work", default=f"{BUILD}/upstream", help="where entries are built")
    reader.add_argument("--out", default=f"{TREE}/docs/evidence/upstream.md", help="the page")
    return reader.parse_args(words)


def asked(command, cwd=None):
    """The output of a command that may fail."""
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False).stdout.strip()


def built_from():
    """The commit of the softverbs that runs, which may be older than the tree's."""
    said = re.search("^built from (.+)$", asked([f"{BUILD}/softverbs", "--version"]), re.MULTILINE)
    return said[1] if said else commit()


def in_namespace():
    """Whether programs can run in a namespace of processes, which ends all that they leave."""
    return shutil.which("unshare") and subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode == 0


def read_json(path, otherwise):
    with contextlib.suppress(FileNotFoundError):
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    return otherwise


def write_json(path, value):
    """Writes in one step, so that a run that is stopped leaves the whole old file."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1, sort_keys=True)
        file.write("\n")
    os.replace(f"{path}.new", path)


class Checkout:
    """The sources of a project, and their version."""

    def __init__(self, top, name):
        places = [f"{top}/{name}", f"{top}/{name}.git"]
        self.path = next((os.path.abspath(place) for place in places if os.path.isdir(place)), None)
        if not self.path:
            raise NotRun(f"there is no {top}/{name}")
        self.is_repository = os.path.exists(f"{self.path}/.git") or os.path.exists(f"{self.path}/HEAD")

    def version(self):
        """The name that git gives the commit, the newest change of a Debian package, or the words of a file VERSION."""
        if self.is_repository:
            return asked(["git", "describe", "--tags", "--always"], self.path) + ", " + asked(["git", "log", "-1", "--format=%cs"], self.path)
        with contextlib.suppress(FileNotFoundError):
            with open(f"{self.path}/debian/changelog", encoding="utf-8") as file:
                return "Debian " + file.readline().split(";")[0].strip()
        with contextlib.suppress(FileNotFoundError):
            with open(f"{self.path}/VERSION", encoding="utf-8") as file:
                return file.readline().strip()
        return "unknown"

    def copy(self, target, only):
        """Copies all, or the paths `only` of a repository: a snapshot may lack files of the others."""
        shutil.rmtree(target, ignore_errors=True)
        if only:
            os.makedirs(target)
            archive = subprocess.run(["git", "archive", "HEAD", *only], cwd=self.path, capture_output=True, check=False)
            if archive.returncode:
                raise NotRun(f"git archive in {self.path}: {archive.stderr.decode(errors='replace').strip()}")
            subprocess.run(["tar", "-x", "-C", target], input=archive.stdout, check=True)
        elif self.is_repository:
            subprocess.run(["git", "clone", "-q", "--shared", self.path, target], check=True)
        else:
            shutil.copytree(self.path, target, symlinks=True)


@contextlib.contextmanager
def session(command, **how):
    """A process in a session, all of which is killed at the end. A SIGTERM that arrives before the process is known is handled afterwards, as its
    exit would leave the process running."""
    early, process = [], None
    before = signal.signal(signal.SIGTERM, lambda *_: early.append(True))
    try:
        process = subprocess.Popen(command, start_new_session=True, **how)
        signal.signal(signal.SIGTERM, before)
        if early:
            os.kill(os.getpid(), signal.SIGTERM)
        yield process
    finally:
        signal.signal(signal.SIGTERM, before)
        if process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class Room:
    """Where an entry is built and runs: a copy of its checkout, and a directory of softverbs that is new for each command."""

    def __init__(self, entry, arguments, namespace):
        self.entry, self.namespace, self.checkouts = entry, namespace, os.path.abspath(arguments.checkouts)
        self.checkout = Checkout(arguments.checkouts, entry.checkout)
        self.place = os.path.abspath(f"{arguments.work}/{entry.name}")
        self.source = f"{self.place}/source"

    def version(self):
        return self.checkout.version()

    def environment(self, directory, extra):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SOFTVERBS_", "LD_"))}
        files = os.path.abspath(f"{HERE}/files")
        return {**kept, "SOFTVERBS_DIR": directory, "PATH": f"{BUILD}:{kept['PATH']}", "CHECKOUTS": self.checkouts, "FILES": files,
                "JOBS": os.environ.get("JOBS", str(os.cpu_count())), **extra}

    def shell(self, lines, log, seconds, extra=None):
        """The exit status of lines of bash, or None if their time was over; what they print is in the file `log`."""
        os.makedirs(os.path.dirname(log), exist_ok=True)
        command = [*(NAMESPACE if self.namespace else []), "bash", "-euo", "pipefail", "-c", lines]
        with tempfile.TemporaryDirectory(prefix="softverbs-upstream-", dir="/dev/shm") as directory, open(log, "wb") as out:
            environment = self.environment(directory, extra or {})
            with session(command, cwd=self.source, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT) as process:
                try:
                    return process.wait(seconds)
                except subprocess.TimeoutExpired:
                    return None

    @contextlib.contextmanager
    def alone(self):
        """Keeps other runs of this entry out, whose programs would meet these at the ports of the suite."""
        os.makedirs(self.place, exist_ok=True)
        with open(f"{self.place}/lock", "w", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise NotRun(f"another run of it is at work in {self.place}") from None
            yield

    def prepare(self):
        """Installs what the entry needs, and builds it, unless this commit has been built with the same lines."""
        if self.entry.alone and not self.namespace:
            raise NotRun("its runner ends processes by their names, so it needs a namespace of processes (unshare, as root)")
        wanted = subprocess.run([SETUP, *(f"+{package}" for package in self.entry.packages)], capture_output=True, text=True, check=False)
        if wanted.returncode:
            raise NotRun((wanted.stdout + wanted.stderr).strip().splitlines()[-1])
        stamp = {"version": self.version(), "build": self.entry.build}
        if read_json(f"{self.place}/built.json", None) == stamp:
            return
        self.checkout.copy(self.source, self.entry.only)
        status = self.shell(self.entry.build, f"{self.place}/build.log", patience(4 * 3600))
        if status != 0:
            raise NotRun(f"it does not build, status {status}: {formats.last_line(text_of(f'{self.place}/build.log'))} ({self.place}/build.log)")
        write_json(f"{self.place}/built.json", stamp)


def text_of(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return re.sub(r"\x1b\[[\d;]*m", "", file.read())


class Run:
    """The parts of an entry, one after the other, and what is known of them."""

    def __init__(self, room, arguments):
        self.room, self.entry, self.arguments = room, room.entry, arguments
        self.path = f"{room.place}/state.json"
        self.state = read_json(self.path, {})

    def known(self, part):
        """The state of a part of this version with these lines: counts by test, and the result if it has ended."""
        key = [self.room.version(), self.entry.lines_of(part)]
        seen = self.state.get(part.name)
        if not seen or seen["key"] != key or self.arguments.again:
            seen = self.state[part.name] = {"key": key, "tests": {}, "result": None}
        return seen

    def one(self, part, test, log):
        """Runs a part, or one test of it."""
        begin = time.monotonic()
        status = self.room.shell(part.run, log, patience(part.seconds), {"TEST": test} if test else {})
        counts = formats.read(part.format, test or part.name, text_of(log), status)
        print(f"{self.entry.name}: {part.name}: {test + ': ' if test else ''}{counts.passed} passed, {len(counts.failed)} failed, "
              f"{sum(counts.skipped.values())} skipped", *(f"\n    {name}: {why}" for name, why in counts.failed), flush=True)
        return {**counts.plain(), "seconds": round(time.monotonic() - begin)}

    def tests(self, part):
        """The words for which a part runs; one that is empty without such a list."""
        if not part.each:
            return [""]
        log = f"{self.room.place}/logs/{part.name}.list"
        status = self.room.shell(part.each, log, patience(part.seconds))
        words = text_of(log).split("\n") if status == 0 else []
        words = [word.strip() for word in words if word.strip()]
        if not words:
            raise NotRun(f"part {part.name}: its list of tests is empty, status {status} ({log})")
        return words

    def part(self, part):
        seen = self.known(part)
        if seen["result"]:
            return
        tests = self.tests(part)
        for number, test in enumerate(tests):
            if test in seen["tests"]:
                continue
            seen["tests"][test] = self.one(part, test, f"{self.room.place}/logs/{part.name}{f'.{number}' if test else ''}.log")
            write_json(self.path, self.state)
        seen["result"] = self.result([seen["tests"][test] for test in tests])
        write_json(self.path, self.state)

    def result(self, found):
        total = formats.Counts()
        for one in found:
            total.add(formats.Counts(one["passed"], one["failed"], collections.Counter(one["skipped"])))
        return {**total.plain(), "seconds": sum(one["seconds"] for one in found), "version": self.room.version(),
                "softverbs": built_from(), "date": datetime.date.today().isoformat()}

    def all(self):
        """Runs the parts, and keeps the result of each that ends."""
        path = f"{self.arguments.results}/{self.entry.name}.json"
        for part in self.entry.part:
            if self.arguments.part in part.name:
                self.part(part)
                write_json(path, {**read_json(path, {}), part.name: self.state[part.name]["result"]})


def without_cause(entry, results):
    return [f"{part}: {name}: {why}" for part, found in results.items() for name, why in found["failed"] if not entry.cause_of(part, name, why)]


def elsewhere(entry, arguments):
    """Runs an entry in a chroot of its release; the lines that are to be mended."""
    for made in (arguments.work, arguments.results):
        os.makedirs(made, exist_ok=True)
    places = {name: os.path.abspath(getattr(arguments, name)) for name in ("entries", "results", "work", "out")}
    words = [os.path.abspath(arguments.checkouts), "--only", entry.name, "--part", arguments.part, *(["--again"] if arguments.again else [])]
    words += [word for name, place in places.items() for word in (f"--{name}", place)]
    beside = {os.path.realpath(one.path) for one in os.scandir(arguments.checkouts)}
    seen = sorted({TREE, BUILD, words[0], os.path.dirname(places["out"]), *(places[name] for name in ("entries", "results", "work")), *beside})
    status = subprocess.run([IN_RELEASE, entry.release, ":".join(seen), *words], check=False).returncode
    return [f"{entry.name}: in a chroot of {entry.release} it ended with {status}"] if status else []


def run(entry, arguments, namespace):
    """Runs an entry; the lines that are to be mended."""
    if entry.not_run:
        print(f"{entry.name}: not run: {entry.not_run}")
        return []
    if entry.release not in ("", platform.freedesktop_os_release().get("VERSION_CODENAME", "")):
        return elsewhere(entry, arguments)
    try:
        room = Room(entry, arguments, namespace)
        with room.alone():
            room.prepare()
            Run(room, arguments).all()
    except NotRun as why:
        print(f"{entry.name}: not run: {why}", flush=True)
        return [] if str(why).startswith("there is no ") and not arguments.only else [f"{entry.name}: not run: {why}"]
    results = read_json(f"{arguments.results}/{entry.name}.json", {})
    return [f"{entry.name}: no cause is known: {line}" for line in without_cause(entry, {name: part for name, part in results.items() if arguments.part in name})]


def write_page(known, arguments):
    results = {entry.name: read_json(f"{arguments.results}/{entry.name}.json", {}) for entry in known}
    with open(arguments.out, "w", encoding="utf-8") as file:
        file.write(page.text(known, results))


def main(words):
    arguments = parsed(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that what runs is ended
    known = entries.read_all(arguments.entries)
    names = [name for name in arguments.only.split(",") if name] or [entry.name for entry in known]
    wrong = set(names) - {entry.name for entry in known}
    if not os.path.exists(f"{BUILD}/softverbs"):
        print(f"there is no {BUILD}/softverbs: make", file=sys.stderr)
        return 2
    if wrong or not (arguments.list or arguments.page or os.path.isdir(arguments.checkouts)):
        print(f"there is no entry {', '.join(sorted(wrong))}; there are {', '.join(entry.name for entry in known)}" if wrong else
              f"the directory of checkouts, '{arguments.checkouts}', is not there: make upstream CHECKOUTS=DIRECTORY", file=sys.stderr)
        return 2
    chosen = [entry for entry in known if entry.name in names]
    if arguments.list:
        print("\n".join(f"{entry.name}: {entry.title}: {', '.join(part.name for part in entry.part) or 'not run: ' + entry.not_run}" for entry in chosen))
        return 0
    mend = []
    if not arguments.page:
        namespace = in_namespace()
        for entry in chosen:
            mend += run(entry, arguments, namespace)
            write_page(known, arguments)
        print("\n".join(mend) or "every failure has its cause")
    write_page(known, arguments)
    return 1 if mend else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
