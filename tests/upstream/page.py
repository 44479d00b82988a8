"""The page docs/evidence/upstream.md, from the entries and their results."""
import collections
import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../clients"))
from wrapped import wrapped  # pylint: disable=wrong-import-position

INTRODUCTION = """# The test suites of other projects

Written by `make upstream CHECKOUTS=DIRECTORY`: the suites that others have written for their RDMA programs and libraries, run over softverbs. DIRECTORY holds a
checkout of each project; nothing is fetched. `ONLY=NAME` runs one of the entries of `tests/upstream/entries`, each of which says how its project is built with Debian's
packages, how its suite runs and how it is counted. A run that was stopped continues where it was.

A failed test has its cause below: *theirs*, where the test fails on every device or the project's code shows why; *ours*, then with the test of softverbs that shows it;
*environment*, where this machine lacks something. A test that skips itself counts as skipped, with the reason that it gives.
"""
OF = {"theirs": "theirs", "ours": "ours", "environment": "the environment's"}


def cell(text):
    return str(text).replace("|", "/").replace("\n", " ")


def sums(parts):
    return tuple(sum(part_count) for part_count in zip(*((part["passed"], len(part["failed"]), sum(part["skipped"].values())) for part in parts)))


def dates(parts):
    found = sorted({part["date"] for part in parts})
    return found[0] if len(found) == 1 else f"{found[0]} to {found[-1]}"


def row(entry, results):
    if not results:
        return f"| {entry.name} | {cell(entry.title)} | not run | | | | |\n"
    parts = list(results.values())
    passed, failed, skipped = sums(parts)
    return f"| [{entry.name}](#{entry.name}) | {cell(entry.title)} | {cell(', '.join(sorted({part['version'] for part in parts})))} | {passed} | {failed} | {skipped} | {dates(parts)} |\n"


def failures(entry, results):
    """A line for each cause, with the tests that it explains; tests without one are last."""
    by_cause = collections.defaultdict(list)
    for part, found in results.items():
        for name, why in found["failed"]:
            cause = entry.cause_of(part, name, why)
            by_cause[(OF[cause["of"]], cause["why"]) if cause else ("unknown", why)].append(name)
    for (of, why), names in sorted(by_cause.items(), key=lambda item: item[0][0] == "unknown"):
        shown = ", ".join(f"`{name}`" for name in sorted(set(names))[:12]) + (f" and {len(set(names)) - 12} more" if len(set(names)) > 12 else "")
        yield f"| {len(names)} | {of} | {cell(why)} | {cell(shown)} |\n"


def reasons(parts):
    skipped = collections.Counter()
    for part in parts:
        skipped.update(part["skipped"])
    for why, count in sorted(skipped.items(), key=lambda item: (-item[1], item[0])):
        yield f"| {count} | {cell(why)} |\n"


def part_row(part, results):
    found = results.get(part.name)
    if not found:
        return f"| {part.name} | not run | | | | |\n"
    passed, failed, skipped = sums([found])
    return f"| {part.name} | {passed} | {failed} | {skipped} | {found['seconds']} | {found['date']}, {found['softverbs']} |\n"


def section(entry, results):
    known = [part for part in entry.part if part.name in results]
    parts = [results[part.name] for part in known]
    where = f" Built and run in a chroot of Debian's {entry.release}, with its packages." if entry.release else ""
    yield f"\n## {entry.name}\n\nFrom {entry.origin}.{where}\n"
    yield "\n| part | passed | failed | skipped | seconds | date, commit of softverbs |\n|---|---|---|---|---|---|\n"
    yield from (part_row(part, results) for part in entry.part)
    for heading, lines in (("\n| failed | whose | cause | tests |\n|---|---|---|---|\n", list(failures(entry, results))),
                           ("\n| skipped | reason that the test gives |\n|---|---|\n", list(reasons(parts)))):
        if lines:
            yield heading + "".join(lines)
    for left in entry.left_out:
        yield f"\nLeft out: {left['tests']}: {left['why']}.\n"


def text(entries, results):
    have = {entry.name: {part.name: results[entry.name][part.name] for part in entry.part if part.name in results[entry.name]} for entry in entries}
    lines = [INTRODUCTION, "\n| entry | suite | version | passed | failed | skipped | date |\n|---|---|---|---|---|---|---|\n"]
    lines += [row(entry, have[entry.name]) for entry in entries]
    for entry in entries:
        if have[entry.name]:
            lines += section(entry, have[entry.name])
    missing = [entry for entry in entries if not have[entry.name]]
    if missing:
        lines.append("\n## Not run\n\n| entry | why |\n|---|---|\n")
        lines += [f"| {entry.name} ({entry.origin}) | {cell(entry.not_run or entry.waits)} |\n" for entry in missing]
    return wrapped("".join(lines))
