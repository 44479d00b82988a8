#!/usr/bin/env python3
"""The check of paths finds what it is there for, in small made-up trees; prints TAP."""
import sys

sys.dont_write_bytecode = True
import made_up

HARNESS = {"tests/api/harness/pair.h": ""}


def comment(text):
    """A file with this comment, others of its layer and of another."""
    return {"src/a/x.c": f"/* {text} */\nint x_main(void);\n", "src/a/y.c": "", "src/a/sub/z.h": "", "src/b/w.c": "", "src/b/b.def": ""}


TREES = {
    "a path that is there is fine": ({"README.md": "see `src/a/x.c`\n", "src/a/x.c": ""}, 0, "ok 1"),
    "one that is not is found": ({"README.md": "see `src/a/y.c`\n", "src/a/x.c": ""}, 1, "# README.md names src/a/y.c, which is not there"),
    "a folder is a path": ({"docs/user/x.md": "`tests/api/`\n"}, 1, "docs/user/x.md names tests/api/"),
    "a pattern must fit something": ({"README.md": "`src/*_test.c`\n"}, 1, "src/*_test.c"),
    "pages of evidence say what was": ({"docs/evidence/x.md": "`src/a/y.c`\n"}, 0, "ok 1"),
    "what does not begin with a folder is no path": ({"README.md": "`a/b.c` `/proc/self`\n"}, 0, "ok 1"),
    "a harness without a place on its page is found": ({**HARNESS, "tests/README.md": "none\n"}, 1,
                                                        "# tests/README.md does not name tests/api/harness/pair.h"),
    "a comment may name a file of its folder": (comment("y.c"), 0, "ok 3"),
    "of its layer, wherever": (comment("z.h"), 0, "ok 3"),
    "by its path from src/": (comment("a/sub/z.h"), 0, "ok 3"),
    "a list by its name alone": (comment("b.def"), 0, "ok 3"),
    "a file of another layer needs its folder": (comment("w.c"), 1, "src/a/x.c names the file w.c, which is not there"),
    "a file that is gone is found": (comment("a/gone.h"), 1, "names the file a/gone.h"),
    "a function that is gone is found": (comment("see x_gone"), 1, "src/a/x.c names x_gone, which is nowhere"),
    "a manual page is elsewhere": (comment("pivot_root(2)"), 0, "ok 3"),
    "a macro that is there is fine": ({**comment("see x_macro"), "src/a/y.c": "#define x_macro 1\n"}, 0, "ok 3"),
    "a function that only a comment has is nowhere": ({**comment("see y_gone"), "src/a/y.c": "/* y_gone */\n"}, 1, "x.c names y_gone"),
    "a page for developers names functions that are there": ({**comment("y.c"), "ARCHITECTURE.md": "`x_main` and `x_gone()`\n"}, 1,
                                                              "ARCHITECTURE.md names x_gone"),
    "and members of structs that are there": (
        {"src/a/x.c": "struct link {\n    int up;\n};\n", "ARCHITECTURE.md": "`link->up` `host->up` `link->gone`\n"}, 1, "names host->up"),
    "other pages speak of other programs, too": ({**comment("y.c"), "docs/x.md": "`x_gone`\n"}, 0, "ok 3"),
    "one with a place is fine": ({**HARNESS, "tests/README.md": "`tests/api/harness/pair.h`\n"}, 0, "ok 2"),
}


if __name__ == "__main__":
    sys.exit(made_up.run("paths.py", TREES))
