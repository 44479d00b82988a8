#!/usr/bin/env python3
"""A new type of queue pairs is a file of verbs/kinds/, in the list of sources, and a line of kinds.def: `make new-kind` adds one in a
copy of the tree, and builds it. The checks of the tree pass there, and a message reaches its receiver over the new type; prints TAP.

Usage: new_kind.py, and new_kind.py --here in the copy.
"""
import os
import subprocess
import sys

from copied_tree import TREE, build_anew, copied_tree, insert

# The new type is like UC in all but its number and name.
MADE_OF, NEW = "src/verbs/kinds/uc.c", "src/verbs/kinds/made_up.c"
WORDS = {"Unreliable connections": "A type of the test", "IBV_QPT_UC": "(enum ibv_qp_type)11", '"UC"': '"MADE_UP"', "uc_kind": "made_up_kind"}
CHANGES = {  # by file: the words before which the text belongs, and the text
    "src/verbs/kinds/kinds.def": ("QP_KIND(raw)\n", "QP_KIND(made_up)\n"),
    "src/verbs/meson.build": ("'kinds/rc.c'", "'kinds/made_up.c', "),
}
CHECKS = ("shape", "circles", "doors", "sizes", "kinds", "words", "locks", "objects", "reasons", "refusals", "events", "facts", "style", "paths", "users")


def _write_kind(top):
    with open(f"{top}/{MADE_OF}", encoding="utf-8") as file:
        text = file.read()
    for old, new in WORDS.items():
        assert old in text, old
        text = text.replace(old, new)
    with open(f"{top}/{NEW}", "w", encoding="utf-8") as file:
        file.write(text)


def main():
    with copied_tree() as top:
        _write_kind(top)
        for name, (before, text) in CHANGES.items():
            insert(f"{top}/{name}", before, text)
        build_anew(top)
        return subprocess.run([sys.executable, f"{top}/tests/changes/new_kind.py", "--here"], env=os.environ | {"SOFTVERBS_BUILD": f"{top}/build"}, check=False).returncode


# -- in the copy

def the_checks_of_the_tree_pass():
    for name in CHECKS:
        done = subprocess.run([sys.executable, f"{TREE}/tools/build/{name}.py", TREE], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def a_message_arrives_over_the_new_type():
    program = f"{cases.TEMPORARY}/new_kind"
    subprocess.run(["cc", "-D_GNU_SOURCE", "-o", program, f"-I{TREE}/tests/clients", f"{TREE}/tests/changes/new_kind.c", f"{TREE}/tests/clients/endpoint.c", "-libverbs", "-pthread"], check=True)
    done = cases.softverbs("run", "--", program, "11")
    assert (done.returncode, done.stdout) == (0, b"arrived\n"), cases.told(done)


def its_name_is_shown():
    with subprocess.Popen([cases.SOFTVERBS, "run", "--", f"{cases.TEMPORARY}/new_kind", "11", "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env=cases.environment()) as process:
        process.stdout.readline()
        shown = cases.expect(cases.softverbs("show", "qps")).stdout
        process.stdin.close()
    assert b"MADE_UP" in shown, shown


if __name__ == "__main__":
    if "--here" not in sys.argv:
        sys.exit(main())
    sys.path.insert(0, f"{TREE}/tests/tool")
    import cases
    cases.main(sys.modules[__name__])
