"""docs/evidence/clients.md: of each row the last result."""
import collections
import datetime
import json
import os
import platform
import subprocess

from row import FAILED, HERE, OK, OWN, SKIPPED, version_of

from clients import BUILD
from wrapped import joined, write_page

PAGE = os.path.join(HERE, "../../../docs/evidence/clients.md")
MEMORY = os.path.join(BUILD, "clients.json")
HEADINGS = {FAILED: "What failed", OWN: "What is the client's own fault", SKIPPED: "What was skipped"}
INTRODUCTION = """# Clients of Debian 12

Written by `make clients`, which installs the clients of verbs and of rdma_cm that Debian 12 has and runs each as two
processes or more under `softverbs run`. No variable is set but UCX_TLS (and over rdma_cm UCX_SOCKADDR_TLS_PRIORITY) in
rows that name a transport. The column "its data" says how the data was compared, and where it was not. "memory" means
that a preloaded observer wrote down what each side had registered, at its end: what one side sent is in the other's
memory, byte for byte. Rows with "two hosts" ran between two network namespaces, `--net eth0` on each. Rows with the same
data and result share a line. """


def commit():
    shown = subprocess.run(["git", "log", "-1", "--format=%h"], cwd=HERE, capture_output=True, text=True, check=False)
    changed = subprocess.run(["git", "status", "--porcelain", "--", "src", "tools", "lib"], cwd=HERE, capture_output=True, text=True, check=False)
    return (shown.stdout.strip() or "unknown") + (" with changes" if changed.stdout.strip() else "")


def cell(text):
    return " ".join(text.replace("|", "/").split())


def installed(row):
    """The packages of the row that are installed, each with its version."""
    return {package: version_of(package) for package in row.packages if version_of(package)}


def remember(results, fresh):
    """The verdict of each row by its name, what it said and the commit; `fresh`: nothing of earlier runs."""
    known = {} if fresh else recall()
    known.update(results)
    with open(MEMORY, "w", encoding="utf-8") as file:
        json.dump(known, file)


def recall():
    if not os.path.exists(MEMORY):
        return {}
    with open(MEMORY, encoding="utf-8") as file:
        return json.load(file)


def table(family, results):
    """The rows of a family. A line before the table has the packages with their versions; where rows differ, each names its own."""
    versions = {package: version for row, _, _ in results for package, version in installed(row).items()}
    alone = all(installed(row) == versions for row, _, _ in results)
    yield f"\n## {family}\n\nPackages: {', '.join(f'{package} {version}' for package, version in versions.items()) or 'not installed'}.\n\n"
    yield "| client | its data | result |\n|---|---|---|\n" if alone else "| client | packages | its data | result |\n|---|---|---|---|\n"
    yield joined([cell(row.name), *([] if alone else [", ".join(installed(row)) or "-"]), cell(row.verified), verdict + (f" ({cell(said)})" if said and verdict == OK else "")]
                 for row, verdict, said in results)


def lines(results, commits):
    """`results`: of each row its verdict and what it said."""
    counts = collections.Counter(verdict for _, verdict, _ in results)
    yield INTRODUCTION
    yield f"\nLast run: {datetime.date.today()}, commit {' and '.join(commits)}, Linux {platform.release()}, libibverbs's headers and librdmacm of rdma-core "
    yield f"{version_of('librdmacm1')}. {len(results)} rows: " + ", ".join(f"{counts[each]} {each}" for each in (OK, FAILED, OWN, SKIPPED)) + ".\n"
    for family in dict.fromkeys(row.family for row, _, _ in results):
        yield from table(family, [result for result in results if result[0].family == family])
    for verdict, heading in HEADINGS.items():
        yield f"\n## {heading}\n\n"
        found = [(row, said) for row, each, said in results if each == verdict]
        for row, said in found:
            yield f"- {row.name}: {cell(said)[:400]}\n"
        if not found:
            yield "Nothing.\n"


def write(rows):
    """Once there is a result of every row."""
    known = recall()
    if any(row.name not in known for row in rows):
        return
    commits = sorted({known[row.name][2] for row in rows})
    with write_page(PAGE) as file:
        file.write("".join(lines([(row, *known[row.name][:2]) for row in rows], commits)))
