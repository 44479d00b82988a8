#!/usr/bin/env python3
"""rdma-core's own suite, all of it in one run, as the distribution ships it with pyverbs.

Its tests count here by module. A test that it skips counts as skipped once for each reason, or once for each vendor;
those lines name the tests.
"""
import collections
import gzip
import os
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# pylint: disable=wrong-import-position
from clients import Failure, Skip, Suite
from patience import until

SHIPPED = "/usr/share/doc/rdma-core/tests"
TEST = re.compile(r"^(?P<name>test_\w+) \(tests\.(?P<module>\w+)\.(?P<group>\w+)[.\w]*\)") # the method stands there since Python 3.11
ANSWER = re.compile(r"(?P<outcome>ok|FAIL|ERROR|skipped (?P<quote>['\"])(?P<reason>.*)(?P=quote))$")
VENDORS = ("mlx5", "efa", "cuda")

# Of each kind: by how many tests the suite has (releases 44, 56 and 65), how many pass at least. The second number may only go up.
FLOORS = {"of verbs": {146: 143, 157: 154, 206: 196}, "of rdma_cm": {10: 10, 11: 11}, "of tag matching": {4: 4}, "of wall clocks": {2: 2}}
FOR_ROOT = "be run by root", "be done by root" # so many less pass for others

Test = collections.namedtuple("Test", "module group name outcome reason")


def unpack(directory):
    """The suite where Python can read it; the distribution compresses most of it."""
    if not os.path.exists(SHIPPED):
        raise Skip("rdma-core's tests are not installed (package python3-pyverbs)")
    for name in os.listdir(SHIPPED):
        source, target = os.path.join(SHIPPED, name), os.path.join(directory, name.removesuffix(".gz"))
        with (gzip.open if name.endswith(".gz") else open)(source, "rb") as packed, open(target, "wb") as plain:
            shutil.copyfileobj(packed, plain)


def read(text):
    """The suite's answers. A test's answer is at the end of the line that names it, or of a later one."""
    tests, named = [], None
    for line in text.splitlines():
        named = TEST.match(line) or named
        answer = ANSWER.search(line)
        if named and answer:
            tests.append(Test(named["module"], named["group"], named["name"], answer["outcome"].split()[0], answer["reason"]))
            named = None
    count = re.search(r"^Ran (\d+) tests? in ", text, re.MULTILINE)
    if not count or int(count.group(1)) != len(tests):
        raise Failure(f"{len(tests)} answers, but the suite says: {count and count.group(0)}\n{text[-2000:]}")
    return tests


def run_those_of(place, name):
    """Runs the tests of a vendor on the first device: their outcomes, and how the suite ended."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        unpack(directory)
        device = place.run_one(["ibv_devices"]).find(r"^\s+(\w+)\s+[0-9a-f]{16}").group(1)
        done = place.start(["/usr/bin/python3", f"{directory}/run_tests.py", "-v", "--dev", device, "-k", f"test_{name}"]).finish(until(60))
    return read(done.err), done


def vendor(test):
    return next((vendor for vendor in VENDORS if test.module.startswith(f"test_{vendor}")), None)


def kind(test):
    if test.module == "test_mlx5_timestamp" and "real_time" in test.name:
        return "of wall clocks"
    if vendor(test):
        return f"for {vendor(test)} only"
    if test.group.startswith("DmaBuf"):
        return "of DMA-BUF on a graphics card"
    return {"test_rdmacm": "of rdma_cm", "test_tag_matching": "of tag matching"}.get(test.module, "of verbs")


def run(suite):
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        unpack(directory)
        device = suite.run_one(["ibv_devices"]).find(r"^\s+(\w+)\s+[0-9a-f]{16}").group(1)
        command = ["/usr/bin/python3", f"{directory}/run_tests.py", "-v", "--dev", device, "--port", "1", "--gid", "1"]
        done = suite.start(command).finish(until(240))
    return done, read(done.err)


def ends_well(done, tests):
    counts = collections.Counter(test.outcome for test in tests)
    done.check()
    return f"{len(tests)} run, {counts['ok']} passed, {counts['FAIL']} failed, {counts['ERROR']} errors, " \
           f"{counts['skipped']} skipped"


def keeps_the_floor(tests, floors):
    passed = sum(test.outcome == "ok" for test in tests)
    least = floors.get(len(tests), len(tests) + 1) - sum(any(words in (test.reason or "") for words in FOR_ROOT) for test in tests)
    if passed < least:
        expected = " or ".join(f"{floor} of {present}" for present, floor in floors.items())
        raise Failure(f"{passed} of {len(tests)} pass, but expected {expected}:\n" +
                      "\n".join(f"{test.name}: {test.reason or test.outcome}" for test in tests if test.outcome != "ok"))
    return f"{passed} of {len(tests)}, at least {least}"


def passes(tests):
    failed = [test.name for test in tests if test.outcome in ("FAIL", "ERROR")]
    if failed:
        raise Failure(" ".join(failed))
    counts = collections.Counter(test.outcome for test in tests)
    return f"{counts['ok']} passed" + (f", {counts['skipped']} skipped" if counts["skipped"] else "")


def are_skipped(tests):
    """Says why, and names the tests, or the modules where there are many."""
    why = "; ".join(sorted({test.reason for test in tests}))
    if len(tests) > 10:
        modules = collections.Counter(test.module for test in tests)
        raise Skip(f"{why}: " + ", ".join(f"{count} of {module}" for module, count in modules.items()))
    raise Skip(f"{why}: " + ", ".join(test.name for test in tests))


def grouped(tests, key):
    groups = collections.defaultdict(list)
    for test in tests:
        groups[key(test)].append(test)
    return groups


def add_all(suite, done, tests):
    suite.add("rdma-core's suite ends well", lambda: ends_well(done, tests))
    for what, floors in FLOORS.items():
        suite.add(f"rdma-core: as many tests {what} pass as ever",
                  lambda what=what, floors=floors: keeps_the_floor([test for test in tests if kind(test) == what], floors))
    for module, group in grouped(tests, lambda test: test.module).items():
        if any(test.outcome != "skipped" for test in group):
            suite.add(f"rdma-core: {module}", lambda group=group: passes(group))
    skipped = [test for test in tests if test.outcome == "skipped"]
    for (what, _), group in grouped(skipped, lambda test: (kind(test), vendor(test) or test.reason)).items():
        suite.add(f"rdma-core: tests {what}: {len(group)}", lambda group=group: are_skipped(group))


def main():
    suite = Suite()
    try:
        add_all(suite, *run(suite))
    except (Failure, Skip) as why:
        suite.add("rdma-core's suite runs", lambda why=why: throw(why))
    return suite.run()


def throw(why):
    raise why


if __name__ == "__main__":
    sys.exit(main())
