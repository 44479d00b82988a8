#!/usr/bin/env python3
"""A new fact is a line of the list and its source: `make new-fact` adds one in a copy of the tree and of a build, and finds it in the
JSON of objects and stories, by gdb and on the page; prints TAP. No other file of the copy is changed by hand.

Usage: new_fact.py BUILD
"""
import json
import os
import subprocess
import sys

from copied_tree import TREE, build_library, copied_tree, insert

CHANGES = {  # by file: the text before which the line belongs, and the line
    "src/facts/facts.def": ("    FACT(cq, users,", '    FACT(cq, made_up, NUMBER, AT(told.made_up), ALWAYS, "a fact of the test") \\\n'),
    "src/verbs/queue/cq.h": ("        struct last_events *events;\n", "        uint32_t made_up;\n"),
}
ROW = "| `made_up` | integer | a fact of the test |"


def main():
    with copied_tree(sys.argv[1]) as top:
        for name, (before, line) in CHANGES.items():
            insert(f"{top}/{name}", before, line)
        build_library(top)
        return subprocess.run([sys.executable, f"{top}/tests/changes/new_fact.py"], env=os.environ | {"SOFTVERBS_BUILD": f"{top}/build"}, check=False).returncode


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
    sys.path.insert(0, f"{TREE}/tests/tool")
    import cases
    import debugger
    cases.main(sys.modules[__name__])
