"""docs/evidence/clients.md: the last run of `make clients` that had all rows."""
import collections
import datetime
import os
import platform
import subprocess

from row import FAILED, HERE, OK, OWN, SKIPPED, version_of

PAGE = os.path.join(HERE, "../../../docs/evidence/clients.md")
HEADINGS = {FAILED: "What failed", OWN: "What is the client's own fault", SKIPPED: "What was skipped"}
INTRODUCTION = """# Clients of Debian 12

Written by `make clients`, which installs the clients of verbs and of rdma_cm that Debian 12 has and runs each as two processes or more
behind `softverbs run`, nothing else set. A row is ok only when its data was compared, as its third column says. "memory" means that a
preloaded observer wrote down what each side had registered, at its end: what one side sent lies in the other's memory, byte for byte,
for programs that compare nothing themselves. Rows with "two hosts" ran between two network namespaces, `--net eth0` on each.
"""


def commit():
    shown = subprocess.run(["git", "log", "-1", "--format=%h"], cwd=HERE, capture_output=True, text=True, check=False)
    changed = subprocess.run(["git", "status", "--porcelain", "--", "src", "tools", "lib"], cwd=HERE, capture_output=True, text=True, check=False)
    return (shown.stdout.strip() or "unknown") + (" with changes" if changed.stdout.strip() else "")


def cell(text):
    return " ".join(text.replace("|", "/").split())


def versions(row):
    return ", ".join(f"{package} {version_of(package)}" for package in row.packages if version_of(package)) or "-"


def lines(results):
    """`results`: of each row its verdict and what it said."""
    counts = collections.Counter(verdict for _, verdict, _ in results)
    yield INTRODUCTION
    yield f"\nLast run: {datetime.date.today()}, commit {commit()}, Linux {platform.release()}, libibverbs's headers and librdmacm of rdma-core "
    yield f"{version_of('librdmacm1')}. {len(results)} rows: " + ", ".join(f"{counts[each]} {each}" for each in (OK, FAILED, OWN, SKIPPED)) + ".\n"
    family = None
    for row, verdict, said in results:
        if row.family != family:
            family = row.family
            yield f"\n## {family}\n\n| client | packages | its data | result |\n|---|---|---|---|\n"
        yield f"| {cell(row.name)} | {versions(row)} | {cell(row.verified)} | {verdict}{f' ({cell(said)})' if said and verdict == OK else ''} |\n"
    for verdict, heading in HEADINGS.items():
        yield f"\n## {heading}\n\n"
        found = [(row, said) for row, each, said in results if each == verdict]
        for row, said in found:
            yield f"- {row.name}: {cell(said)[:400]}\n"
        if not found:
            yield "Nothing.\n"


def write(results):
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write("".join(lines(results)))
