#!/usr/bin/env python3
"""A new fact is a line of the list and its source: `make new-fact` adds one in a copy of the tree and of a build, and finds it in the
JSON of objects and stories, by gdb and on the page; prints TAP. No other file of the copy is changed by hand.

Usage: new_fact.py BUILD
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.abspath(f"{HERE}/../../..")
CHANGES = {  # by file: the text before which the line belongs, and the line
    "src/facts/facts.def": ("    FACT(cq, users,", '    FACT(cq, made_up, NUMBER, AT(told.made_up), ALWAYS, "a fact of the test") \\\n'),
    "src/verbs/queue/cq.h": ("        struct last_events *events;\n", "        uint32_t made_up;\n"),
}
ROW = "| `made_up` | integer | a fact of the test |"


def _copy(build, to):
    """The tree without its other builds, and the build, whose links lead into the copy."""
    shutil.copytree(TREE, to, symlinks=True, ignore=lambda folder, names: [name for name in names if name.startswith((".git", "build"))] if folder == TREE else [])
    shutil.copytree(build, f"{to}/build", symlinks=True)
    for folder, folders, files in os.walk(f"{to}/build"):
        for path in (f"{folder}/{name}" for name in folders + files if os.path.islink(f"{folder}/{name}")):
            goal = os.readlink(path)
            if goal.startswith(f"{TREE}/"):
                os.remove(path)
                os.symlink(to + goal[len(TREE):], path)


def _change(top):
    for name, (before, line) in CHANGES.items():
        with open(f"{top}/{name}", encoding="utf-8") as file:
            text = file.read()
        assert text.count(before) == 1, name
        with open(f"{top}/{name}", "w", encoding="utf-8") as file:
            file.write(text.replace(before, line + before))


def _build(top):
    libraries = [f"lib/{name}" for name in os.listdir(f"{top}/build/lib") if name.startswith("libibverbs.so.1.") and not name.endswith((".p", ".symbols"))]
    subprocess.run(["ninja", "-C", f"{top}/build", "softverbs", *libraries], check=True, stdout=subprocess.DEVNULL)


def main():
    with tempfile.TemporaryDirectory(prefix="softverbs-fact-") as place:
        top = f"{place}/tree"
        _copy(os.path.abspath(sys.argv[1]), top)
        _change(top)
        _build(top)
        return subprocess.run([sys.executable, f"{top}/tests/tool/why/new_fact.py"], env=os.environ | {"SOFTVERBS_BUILD": f"{top}/build"}, check=False).returncode


# -- in the copy

def _of(said):
    """All values of the fact in a report."""
    inner = said.values() if isinstance(said, dict) else said if isinstance(said, list) else ()
    return [value for each in inner for value in _of(each)] + [said["made_up"] for _ in (1,) if isinstance(said, dict) and "made_up" in said]


def a_new_fact_is_in_all_that_shows_the_object():
    """The value is 0, as in new memory."""
    program = f"{cases.BUILD}/tests/tool/objects"
    with subprocess.Popen([cases.SOFTVERBS, "run", "--", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=cases.environment()) as process:
        pid = int(process.stdout.readline().split()[0])
        shown = json.loads(cases.expect(cases.softverbs("show", "cqs", "--json")).stdout)[0]["cqs"]
        happened = json.loads(cases.expect(cases.softverbs("why", "--cq", str(shown[0]["handle"]), "--json")).stdout)
        pairs = json.loads(cases.expect(cases.softverbs("show", "qps", "--json")).stdout)[0]["qps"]
        story = json.loads(cases.expect(cases.softverbs("why", "--qp", str(pairs[0]["number"]), "--json")).stdout)
        core, = debugger.dump(pid, program=program)
        process.stdin.close()
    assert len(shown) > 1 and _of(shown) == [0] * len(shown) and _of(happened) == [0] and _of(story), (shown, happened, story)
    path = f"{cases.TEMPORARY}/stories"
    said = debugger.gdb(f"core-file {core}", f"softverbs stories {path}", program=program)
    with open(path, encoding="utf-8") as file:
        assert set(_of([json.loads(line) for line in file])) == {0}, said


def its_row_is_on_the_page():
    sys.path.insert(0, f"{TREE}/tools/build")
    from made_pages import whole  # pylint: disable=import-outside-toplevel
    assert ROW in whole(TREE, "docs/reference/json.md")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(main())
    sys.path.insert(0, f"{HERE}/..")
    import cases
    import debugger
    cases.main(sys.modules[__name__])
