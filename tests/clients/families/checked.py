"""The rows of `make clients` once under the checker: `main.py --checked`, which writes docs/evidence/clients-checked.md.

The checker writes the findings of a row to a file; each must be in a file of suppressions, where a person has looked at it, or the row has an
open finding. A row that has a result is left out, so that a run continues where it was stopped; rows that are named run
again.
"""
import collections
import datetime
import fnmatch
import functools
import json
import os
import platform
import shutil
import tempfile

import page
from row import FAILED, HERE, OK, OWN, SKIPPED

from clients import BUILD
from wrapped import joined, write_page

PAGE = os.path.join(HERE, "../../../docs/evidence/clients-checked.md")
MEMORY = os.path.join(BUILD, "clients-checked.json")
KNOWN = [os.path.join(HERE, "../../check", f"{name}.suppressions") for name in ("clients", "rdma-core")]
FINDINGS = "../reference/checker-findings.md"
WORDS = "adapter"
SLOWER = 2  # a checked program may take this factor longer
HEADINGS = {FAILED: "What failed", OWN: "What is the client's own fault, as in [clients](clients.md)", SKIPPED: "What was skipped"}
INTRODUCTION = f"""# Clients of Debian 12 under the checker

Written by `main.py --checked` of tests/clients/families, which runs the rows of `make clients` as [clients](clients.md) describes them, with
`SOFTVERBS_CHECK={WORDS}`: errors and what only an adapter shows. "Known" is a finding that was examined: it is true, and
[findings]({FINDINGS}) has what an adapter does; clients.suppressions and rdma-core.suppressions of tests/check leave it out. Each other
finding is open. Rows without a finding that ended well are not listed.
"""


@functools.lru_cache
def known():
    """The lines of the files of suppressions: patterns of a program, a rule and a function."""
    found = []
    for path in KNOWN:
        with open(path, encoding="utf-8") as file:
            found += [line.partition("#")[0].split() for line in file]
    return [line for line in found if line]


def functions(finding):
    return [place["function"] for part in ("posted", "found", "created") for place in finding[part]]


def is_known(finding):
    """The same rule as in src/check/findings/suppression.c."""
    return any(fnmatch.fnmatchcase(finding["program"], program) and fnmatch.fnmatchcase(finding["rule"], rule) and
               any(fnmatch.fnmatchcase(each, function) for each in functions(finding)) for program, rule, function in known())


def read(path):
    """The findings of a report, each once."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [line for line in map(json.loads, file) if "text" in line]


def place(finding):
    for part in ("posted", "found", "created"):
        for each in finding[part]:
            if each["function"]:
                return each["function"]
    return next((each["module"] for part in ("posted", "found", "created") for each in finding[part]), "no place")


def run(row, apart):
    """A row's verdict, what it said, and its findings."""
    directory = tempfile.mkdtemp(prefix="softverbs-checked-")
    os.chmod(directory, 0o777)
    path = os.path.join(directory, "report")
    environment = {"SOFTVERBS_CHECK": WORDS, "SOFTVERBS_CHECK_REPORT": path, "TEST_PATIENCE": str(SLOWER)}
    verdict, said = apart(row._replace(seconds=row.seconds * SLOWER), environment)
    found = read(path)
    shutil.rmtree(directory)
    return verdict, said, found


def recall():
    if not os.path.exists(MEMORY):
        return {}
    with open(MEMORY, encoding="utf-8") as file:
        return json.load(file)


def remember(name, result):
    results = {**recall(), name: result}
    with open(MEMORY + ".new", "w", encoding="utf-8") as file:
        json.dump(results, file)
    os.replace(MEMORY + ".new", MEMORY)


def opened(findings):
    return [finding for finding in findings if not is_known(finding)]


def describe(findings):
    """The cell of the page for a row's findings: each open one, and which known ones."""
    text = [f"**open:** {finding['rule']} ({finding['program']}, {place(finding)})" for finding in opened(findings)]
    known = sorted({finding["rule"] for finding in findings if is_known(finding)})
    return "; ".join([*dict.fromkeys(text), *([f"known: {', '.join(known)}"] if known else [])]) or "-"


def lines(rows, results):
    """The page, of all rows and the results of those that have run."""
    ran = [row for row in rows if row.name in results]
    counts = collections.Counter(results[row.name]["verdict"] for row in ran)
    findings = [results[row.name]["findings"] for row in ran]
    count = sum(bool(opened(found)) for found in findings)
    commits = sorted({results[row.name]["commit"] for row in ran})
    yield INTRODUCTION
    yield f"\nLast run: {datetime.date.today()}, commits {', '.join(commits)}, Linux {platform.release()}. {len(ran)} of {len(rows)} rows ran: "
    yield ", ".join(f"{counts[each]} {each}" for each in (OK, FAILED, OWN, SKIPPED))
    yield f". {count} rows have an open finding, {sum(map(bool, findings)) - count} have known ones only, {findings.count([])} have no finding.\n"
    listed = [row for row in ran if results[row.name]["findings"] or results[row.name]["verdict"] != OK]
    for family in dict.fromkeys(row.family for row in listed):
        yield f"\n## {family}\n\n| client | result | errors and adapter findings |\n|---|---|---|\n"
        yield joined([page.cell(row.name), results[row.name]["verdict"], page.cell(describe(results[row.name]["findings"]))] for row in listed if row.family == family)
    for verdict, heading in HEADINGS.items():
        yield f"\n## {heading}\n\n"
        found = [row for row in ran if results[row.name]["verdict"] == verdict]
        said = {row.name: "" if verdict == OWN else f": {page.cell(results[row.name]['said'])[:400]}" for row in found}
        yield "".join(f"- {name}{words}\n" for name, words in said.items()) or "Nothing.\n"
    yield "\n## Where the rows ran\n\n"
    systems = collections.Counter(results[row.name]["system"] for row in ran if results[row.name]["verdict"] != SKIPPED)
    for number, (each, count) in enumerate(systems.most_common()):
        names = [row.name for row in ran if results[row.name]["system"] == each]
        yield f"- {each}: {count} rows{': ' + page.cell('; '.join(names)) if number else ''}\n"
    yield "\n## What did not run\n\n"
    yield "".join(f"- {row.family}: {row.name}\n" for row in rows if row.name not in results) or "Nothing.\n"


def write(rows):
    with write_page(PAGE) as file:
        file.write("".join(lines(rows, recall())))


def system():
    with open("/etc/debian_version", encoding="utf-8") as file:
        return f"Debian {file.read().strip()}"


def table(rows, words, apart):
    """Runs the rows that hold the words, or without words those that have no result; exit status 1 where one failed or has an open finding."""
    done, bad, commit = recall(), 0, page.commit()
    for row in rows:
        if words not in row.family and words not in row.name or not words and row.name in done:
            continue
        verdict, said, findings = run(row, apart)
        remember(row.name, {"verdict": verdict, "said": said, "findings": findings, "commit": commit, "system": system()})
        bad += verdict == FAILED or bool(opened(findings))
        print(f"{verdict}\t{row.family}: {row.name}\t{describe(findings)}" + (f"\n{said}" if verdict != OK else ""), flush=True)
    write(rows)
    return 1 if bad else 0
