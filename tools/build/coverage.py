#!/usr/bin/env python3
"""Prints which lines of src/ and tools/ the tests of a build with -Db_coverage=true reach.

Usage: coverage.py BUILD. Counts by folder, then the files with the most lines that nothing reached; the lines themselves:
BUILD/coverage.txt. Needs gcov, a part of the compiler. A line counts as reached if any program of the build reached it."""
import collections
import gzip
import json
import os
import subprocess
import sys

WORST = 10


def notes(build):
    """The files that programs wrote when they ran, from which gcov starts."""
    for folder, _, names in os.walk(build):
        for name in names:
            if name.endswith(".gcda"):
                yield os.path.join(folder, name)


def read(build, tree):
    """{file: {line: reached}} of the files in src/ and tools/ that are no tests."""
    lines = collections.defaultdict(dict)
    for note in notes(build):
        done = subprocess.run(["gcov", "--json-format", "--stdout", note], capture_output=True, check=False, cwd=build)
        text = gzip.decompress(done.stdout) if done.stdout[:2] == b"\x1f\x8b" else done.stdout
        for row in text.splitlines():
            for file in json.loads(row)["files"]:
                path = os.path.relpath(os.path.join(build, file["file"]), tree)
                if path.startswith(("src/", "tools/")) and "/testing/" not in path and \
                        not path.endswith(("_test.c", "_fuzz.c")):
                    for line in file["lines"]:
                        known = lines[path]
                        known[line["line_number"]] = known.get(line["line_number"], False) or line["count"] > 0
    return lines


def report(lines, out):
    folders = collections.defaultdict(lambda: [0, 0])
    for path, known in sorted(lines.items()):
        total = folders[os.path.dirname(path)]
        total[0] += sum(known.values())
        total[1] += len(known)
        missed = [str(number) for number, reached in sorted(known.items()) if not reached]
        if missed:
            out.write(f"{path}: {' '.join(missed)}\n")
    for folder, (reached, total) in sorted(folders.items()):
        print(f"{100 * reached / total:5.1f} %  {reached:6} of {total:6} lines  {folder}")
    worst = sorted(lines.items(), key=lambda item: sum(item[1].values()) - len(item[1]))[:WORST]
    print("most lines that nothing reached:")
    for path, known in worst:
        print(f"{len(known) - sum(known.values()):6} of {len(known):6}  {path}")


def main():
    build = os.path.abspath(sys.argv[1])
    lines = read(build, os.path.abspath(os.path.join(os.path.dirname(__file__), "../..")))
    if not lines:
        print("coverage.py: no test of a build with -Db_coverage=true has run there.", file=sys.stderr)
        return 1
    with open(os.path.join(build, "coverage.txt"), "w", encoding="utf-8") as out:
        report(lines, out)
    print(f"each line that nothing reached: {os.path.relpath(build)}/coverage.txt")
    return 0


if __name__ == "__main__":
    sys.exit(main())
