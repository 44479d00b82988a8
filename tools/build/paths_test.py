#!/usr/bin/env python3
"""The check of paths finds what it is there for, in small made-up trees; prints TAP."""
import sys

sys.dont_write_bytecode = True
import made_up

HARNESS = {"tests/api/harness/pair.h": ""}
TREES = {
    "a path that is there is fine": ({"README.md": "see `src/a/x.c`\n", "src/a/x.c": ""}, 0, "ok 1"),
    "one that is not is found": ({"README.md": "see `src/a/y.c`\n", "src/a/x.c": ""}, 1, "# README.md names src/a/y.c, which is not there"),
    "a folder is a path": ({"docs/user/x.md": "`tests/api/`\n"}, 1, "docs/user/x.md names tests/api/"),
    "a pattern must fit something": ({"README.md": "`src/*_test.c`\n"}, 1, "src/*_test.c"),
    "pages of evidence say what was": ({"docs/evidence/x.md": "`src/a/y.c`\n"}, 0, "ok 1"),
    "what does not begin with a folder is no path": ({"README.md": "`a/b.c` `/proc/self`\n"}, 0, "ok 1"),
    "a harness without a place on its page is found": ({**HARNESS, "tests/README.md": "none\n"}, 1,
                                                        "# tests/README.md does not name tests/api/harness/pair.h"),
    "one with a place is fine": ({**HARNESS, "tests/README.md": "`tests/api/harness/pair.h`\n"}, 0, "ok 2"),
}


if __name__ == "__main__":
    sys.exit(made_up.run("paths.py", TREES))
