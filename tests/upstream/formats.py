"""How the output of a test suite is counted: a table of formats, which entries name.

A format has patterns for single lines. `answer` is the answer of a test, with the groups `outcome`, `name` and `why`; without `name` the answer belongs to the test that
`started` named last. `aside` is a line within a test by which it skips itself, although the answer says that it passed. `behind` is a line after the answer that says why,
for an answer that does not; the first counts. `reason` is a line after all answers that gives the reason of `number` tests that were skipped without one. `total` is the number of tests that the suite itself gives at its end; where it differs from what was counted, the reading is
wrong and says so.
"""
import collections
import dataclasses
import re

LONGEST = 300  # characters of a message that are kept
UNGIVEN = "no reason given"


@dataclasses.dataclass(frozen=True)
class Format:
    answer: re.Pattern
    outcomes: dict
    started: re.Pattern = None
    aside: re.Pattern = None
    behind: re.Pattern = None
    reason: re.Pattern = None
    total: re.Pattern = None


@dataclasses.dataclass
class Counts:
    """The tests of a part: how many passed, those that failed as (name, message), and how many were skipped by reason."""
    passed: int = 0
    failed: list = dataclasses.field(default_factory=list)
    skipped: collections.Counter = dataclasses.field(default_factory=collections.Counter)

    def count(self, outcome, name, why):
        if outcome == "passed":
            self.passed += 1
        elif outcome == "failed":
            self.failed.append([name, why[:LONGEST]])
        else:
            self.skipped[why[:LONGEST] or UNGIVEN] += 1

    def explain(self, number, why):
        """Gives a reason to tests that were skipped without one."""
        number = min(number, self.skipped[UNGIVEN])
        self.skipped.update({UNGIVEN: -number, why[:LONGEST]: number})
        self.skipped = +self.skipped

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped.update(other.skipped)

    def plain(self):
        """The values as JSON has them."""
        return {"passed": self.passed, "failed": self.failed, "skipped": dict(self.skipped)}

    def all(self):
        return self.passed + len(self.failed) + sum(self.skipped.values())


def line(pattern):
    return re.compile(pattern)


FORMATS = {
    # Python's unittest with -v; a docstring may be between the name of a test and its answer.
    "unittest": Format(line(r"\b(?P<outcome>ok|FAIL|ERROR|skipped(?= ['\"]))(?: (?P<quote>['\"])(?P<why>.*)(?P=quote))?$"),
                       {"ok": "passed", "FAIL": "failed", "ERROR": "failed", "skipped": "skipped"},
                       started=line(r"^(?P<name>\w+ \(tests?[\w.]+\))"), total=line(r"^Ran (\d+) tests? in ")),
    "gtest": Format(line(r"^\[ {2,}(?P<outcome>OK|FAILED|SKIPPED) +\] (?P<name>.*?)(?P<why>)(?:, where .*)? \(\d+ ms\)$"),
                    {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"},
                    started=line(r"^\[ RUN +\] (?P<name>.*)$"), aside=line(r"^\[ +SKIP +\] ?\(?(?P<why>.*?)\)?$"),
                    total=line(r"^\[=+\] (\d+) tests? from \d+ test \w+ ran\.")),
    # pytest with -v. A test that passed and fails in its teardown has two lines. Of several processes (-n) each answer lacks its reason; -rs gives them at the end.
    "pytest": Format(line(r"^(?P<name>\S+::.*?) (?P<outcome>PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)(?: \((?P<why>.*)\))? +\[ *\d+%\]$"),
                     {"PASSED": "passed", "FAILED": "failed", "ERROR": "failed", "SKIPPED": "skipped", "XFAIL": "skipped", "XPASS": "failed"},
                     reason=line(r"^SKIPPED \[(?P<number>\d+)\] \S+: (?P<why>.*)$")),
    "cargo": Format(line(r"^test (?P<name>\S+)(?: - should panic)? \.\.\. (?P<outcome>ok|FAILED|ignored)(?:, (?P<why>.*))?$"),
                    {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}),
    # runfabtests.sh with -vv: what a test prints follows its answer. "Excluded" are the tests that libfabric's own list for the layer names.
    "fabtests": Format(line(r"^  result: (?P<outcome>Pass|Fail|Notrun|(?=Excluded))(?P<why>Excluded| \[[\d/]+\])?$"),
                       {"Pass": "passed", "Fail": "failed", "Notrun": "skipped", "": "skipped"},
                       started=line(r"^- name:   (?P<name>.*\S)$"), behind=line(r"^    (?P<why>.*\bret=-\d+.*)$")),
    # TAP. A test that its author marks as "todo" counts as skipped, however it ends.
    "tap": Format(line(r"^(?P<outcome>ok|not ok)\b\s*(?:\d+)?\s*(?:- )?(?P<name>[^#]*?)\s*(?:#\s*(?P<why>.*))?$"), {"ok": "passed", "not ok": "failed"}),
    "tcl": Format(line(r"^\[(?P<outcome>ok|err|exception|timeout|ignore|skip)\]: (?P<name>.*?)(?P<why>)(?: \(\d+ ms\))?$"),
                  {"ok": "passed", "err": "failed", "exception": "failed", "timeout": "failed", "ignore": "skipped", "skip": "skipped"}),
    "ctest": Format(line(r"^ *\d+/\d+ Test +#\d+: (?P<name>\S+) \.*[ *]*(?P<outcome>Passed|Failed|Timeout|Exception|Not Run|Skipped)(?P<why>.*?) +[\d.]+ sec$"),
                    {"Passed": "passed", "Failed": "failed", "Timeout": "failed", "Exception": "failed", "Not Run": "failed", "Skipped": "skipped"}),
    # The "framework" of libvalkey's client test.
    "libvalkey": Format(line(r"^#\d+ (?P<name>.*?):?\s*(?P<outcome>PASSED|FAILED|SKIPPED)(?P<why>)$"), {"PASSED": "passed", "FAILED": "failed", "SKIPPED": "skipped"}),
    # A suite that prints "ok NAME", "FAILED NAME: WHY" or "skipped NAME: WHY".
    "lines": Format(line(r"^(?P<outcome>ok|FAILED|skipped) (?P<name>[^:]+)(?:: (?P<why>.*))?$"),
                    {"ok": "passed", "FAILED": "failed", "skipped": "skipped"}),
    # The exit status of the command alone: 77 is a test that was skipped.
    "exit": None,
}


class Reader:
    """Counts the lines of one output."""

    def __init__(self, form):
        self.form, self.counts, self.open, self.skips, self.given, self.total = form, Counts(), None, None, None, None

    def answer(self, found):
        outcome = self.form.outcomes[found["outcome"]]
        words = found.groupdict()
        name, why = words.get("name") or self.open or "", words.get("why") or ""
        if (outcome == "passed" and self.skips is not None) or re.match(r"(?i)(skip|todo)\b", why):
            outcome, why = "skipped", self.skips or why
        self.given = (outcome, name, why.strip())
        self.open = self.skips = None
        if not self.form.behind:
            self.settle()

    def settle(self):
        """Counts an answer that no reason follows any more."""
        if self.given:
            self.counts.count(*self.given)
        self.given = None

    def read(self, text):
        form = self.form
        behind = form.behind and self.given and form.behind.match(text)
        if behind:
            self.given = (*self.given[:2], self.given[2] or behind["why"])
        begun = form.started and form.started.match(text)
        if begun:
            self.abandon("it has no answer")
            self.open = begun["name"]
        aside = form.aside and form.aside.match(text)
        if aside:
            self.skips = aside["why"]
        found = form.answer.search(text)
        if found and (self.open or not form.started or "name" in found.groupdict()):
            self.answer(found)
        given = form.reason and form.reason.match(text)
        if given:
            self.counts.explain(int(given["number"]), given["why"])
        sum_up = form.total and form.total.match(text)
        self.total = int(sum_up[1]) if sum_up else self.total

    def abandon(self, why):
        """Ends what is open: a test that began and gave no answer has failed."""
        self.settle()
        if self.open:
            self.counts.count("failed", self.open, why)
        self.open = self.skips = None


def last_line(text):
    lines = [one.strip() for one in text.splitlines() if one.strip()]
    return lines[-1][:LONGEST] if lines else "it printed nothing"


def by_status(name, text, status):
    counts = Counts()
    outcome = {0: "passed", 77: "skipped"}.get(status, "failed")
    counts.count(outcome, name, "" if outcome == "passed" else last_line(text))
    return counts


def by_lines(form, name, text, status):
    """A suite that ends badly without a failed test, counts nothing, or counts other than it says, has failed as a whole."""
    reader = Reader(form)
    for one in text.splitlines():
        reader.read(one.rstrip())
    reader.abandon(f"the suite ended with status {status} within it")
    counts = reader.counts
    if reader.total is not None and reader.total != counts.all():
        counts.count("failed", name, f"the suite says that it has {reader.total} tests, but {counts.all()} have an answer")
    elif not counts.all():
        counts.count("failed", name, f"no test gave an answer; status {status}: {last_line(text)}")
    elif status and not counts.failed:
        counts.count("failed", name, f"status {status}, although no test failed: {last_line(text)}")
    return counts


def read(kind, name, text, status):
    """The counts of an output. `name` names the part, or its test, `status` the exit status, or None where the time was over."""
    if status is None:
        counts = by_lines(FORMATS[kind], name, text, "none") if FORMATS[kind] and text else Counts()
        counts.failed = [failure for failure in counts.failed if failure[0] != name]
        counts.count("failed", name, f"it did not end in time: {last_line(text)}")
        return counts
    return by_lines(FORMATS[kind], name, text, status) if FORMATS[kind] else by_status(name, text, status)
