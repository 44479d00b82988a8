#!/usr/bin/env python3
"""The parts of races.py that need no project: how it brings sources from commit to commit, and how it writes its section. Prints TAP."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/races", HERE]
sys.dont_write_bytecode = True
import section
import sources

GIT = ["git", "-c", "user.name=made", "-c", "user.email=made@nowhere", "-c", "commit.gpgsign=false"]


def _put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def _git(top, *words):
    return subprocess.run([*GIT, *words], cwd=top, check=True, capture_output=True, text=True).stdout.strip()


def _commit(top, files):
    for path, text in files.items():
        _put(f"{top}/{path}", text)
    _git(top, "add", "-A")
    _git(top, "commit", "-q", "-m", "made")
    return _git(top, "rev-parse", "HEAD")


def a_directory_is_brought_to_a_commit_by_the_files_that_differ(top):
    os.makedirs(f"{top}/made")
    _git(f"{top}/made", "init", "-q")
    first = _commit(f"{top}/made", {"a/same": "1", "a/changed": "1", "a/gone": "1", "b/outside": "1"})
    os.remove(f"{top}/made/a/gone")
    second = _commit(f"{top}/made", {"a/changed": "2", "a/new": "2"})
    sources.bring(f"{top}/made", first, ["a"], f"{top}/place")
    _put(f"{top}/place/built", "3")
    os.utime(f"{top}/place/a/same", (1, 1))
    sources.bring(f"{top}/made", second, ["a"], f"{top}/place")
    there = {name: _text(f"{top}/place/a/{name}") for name in os.listdir(f"{top}/place/a")}
    assert there == {"same": "1", "changed": "2", "new": "2"}, there
    assert os.stat(f"{top}/place/a/same").st_mtime == 1 and sorted(os.listdir(f"{top}/place")) == ["a", "built"]


def an_edit_that_fits_nowhere_is_an_error(top):
    os.makedirs(f"{top}/made")
    _git(f"{top}/made", "init", "-q")
    commit = _commit(f"{top}/made", {"a": "one two"})
    sources.bring(f"{top}/made", commit, [], f"{top}/place", [("a", "two", "three")])
    assert _text(f"{top}/place/a") == "one three"
    try:
        sources.bring(f"{top}/made", commit, [], f"{top}/place", [("a", "four", "five")])
    except AssertionError:
        return
    raise AssertionError("it passed")


def the_section_is_added_to_the_end_of_the_page(top):
    _put(f"{top}/page", "# Page\n\ntext\n")
    section.write(f"{top}/page", ["| row |"], ["note"])
    page = _text(f"{top}/page")
    assert page.startswith("# Page\n\ntext\n\n## Known races\n") and page.endswith("| row |\n\nnote\n"), page


def the_section_is_replaced_between_others(top):
    _put(f"{top}/page", "# Page\n\n## Known races\n\nold\n\n## Others\n\nkept\n")
    for _ in range(2):
        section.write(f"{top}/page", ["| row |"], ["note"])
    page = _text(f"{top}/page")
    assert page.startswith("# Page\n\n## Known races\n") and "old" not in page and page.endswith("| row |\n\nnote\n\n## Others\n\nkept\n"), page


CASES = [a_directory_is_brought_to_a_commit_by_the_files_that_differ, an_edit_that_fits_nowhere_is_an_error,
         the_section_is_added_to_the_end_of_the_page, the_section_is_replaced_between_others]


def main():
    print(f"1..{len(CASES)}")
    failed = 0
    for number, case in enumerate(CASES, 1):
        with tempfile.TemporaryDirectory() as top:
            try:
                case(top)
                print(f"ok {number} - {case.__name__.replace('_', ' ')}")
            except Exception as error:  # pylint: disable=broad-except
                failed += 1
                print(f"not ok {number} - {case.__name__.replace('_', ' ')}\n# {error!r}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
