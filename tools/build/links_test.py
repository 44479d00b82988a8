#!/usr/bin/env python3
"""links.py over made-up trees."""
import sys

import made_up

RULES = 'RULE(EARLY, "early", ERROR, SEES, "what", "why", "bites", "cure")\n'
LISTS = ("adverse", "errors", "reasons", "settings", "unseen", "vendors", "events Traffic", "events Messages", "events Calls")
EMPTY = ("src/adverse/adverse.def", "src/base/settings.def", "src/config/limits.def", "src/diag/diag.def", "src/events/events.def", "src/facts/facts.def",
         "src/profile/vendors.def", "tests/api/errors/error_faults.def", "tests/api/errors/error_matrix.def",
         "tools/explain/calls.def")
FINE = {**{path: "" for path in EMPTY}, "docs/reference/json.md": "".join(f"<!-- list: {name} -->\n" for name in LISTS),
        "docs/user/one.md": "# One: `a` (b_c)\n\n[two](two.md#two) [here](#one-a-b_c) [there](../evidence/x.md) `[no](link.md)` [web](https://x.y/z)\n",
        "src/check/rules.def": RULES, "docs/reference/checker.md": "# Checker\n\n<!-- list: rules --> words\n",
        "docs/user/two.md": "## Two\n\n```\n[no](link.md)\n```\n## Two\n[second](#two-1)\n", "docs/evidence/x.md": "", "README.md": "[x](docs/user/one.md)\n"}
CASES = {
    "links that lead somewhere": (FINE, 0, "ok 1"),
    "a page that is not there": ({**FINE, "README.md": "[x](docs/gone.md)"}, 1, "# README.md: there is no docs/gone.md"),
    "a heading that is not there": ({**FINE, "README.md": "[x](docs/user/two.md#three)"}, 1, "docs/user/two.md has no heading three"),
    "a page that is not installed": ({**FINE, "docs/user/two.md": "# Two\n## Two\n[x](../../meson.build)", "meson.build": ""}, 1, "meson.build is not installed beside it"),
    "a file that the build makes": ({**FINE, "README.md": "[x](build/site/html/docs/reference/reasons.html)", "build/site/html/docs/reference/reasons.html": ""}, 1,
                                    "README.md: build/site/html/docs/reference/reasons.html is made by the build"),
    "a page that is made and not in the tree": ({**FINE, "docs/user/two.md": "## Two\n## Two\n[x](../reference/reasons.md)"}, 1, "docs/user/two.md: there is no docs/reference/reasons.md"),
    "a heading of a list": ({**FINE, "docs/user/two.md": "## Two\n## Two\n[x](../reference/checker.md#early)"}, 1,
                            "docs/reference/checker.md has the heading early only once the build has put its lists in"),
    "a link of a list": ({**FINE, "src/check/rules.def": RULES.replace("bites", "[page](lost.md)")}, 1, "docs/reference/checker.md: there is no docs/reference/lost.md"),
    "a link of a list to another entry": ({**FINE, "src/check/rules.def": RULES.replace("bites", "[rule](#early)")}, 0, "ok 1"),
    "a line of 121 characters": ({**FINE, "docs/evidence/x.md": "\n" + "word " * 24 + "x\n"}, 1, "# docs/evidence/x.md:2: 121 characters"),
    "a line of 120": ({**FINE, "docs/evidence/x.md": "word " * 23 + "words\n"}, 0, "ok 3"),
    "a long item of a list": ({**FINE, "docs/evidence/x.md": "- " + "word " * 24}, 1, "not ok 3"),
    "long rows and code": ({**FINE, "docs/evidence/x.md": f"| {'word ' * 24} |\n\n    {'word ' * 24}\n\n```\n{'word ' * 30}\n```\n"}, 0, "ok 3"),
    "a line after code keeps its number": ({**FINE, "docs/evidence/x.md": f"```\na\n```\n{'word ' * 25}\n"}, 1, "x.md:4: 125 characters"),
    "a long word": ({**FINE, "docs/evidence/x.md": f"`{'x' * 150}`\n"}, 0, "ok 3"),
    "rows as wide as their heading": ({**FINE, "docs/evidence/x.md": "| a | b |\n|---|---|\n| `c \\| d` | e\\| |\n| | f |\n\n| g |\n|---|\n| h |\n"}, 0, "ok 4"),
    "a row with a cell less": ({**FINE, "docs/evidence/x.md": "```\n| a |\n```\n\n| a | b |\n|---|---|\n| c |\n"}, 1, "# docs/evidence/x.md:7: 1 cells where the heading has 2"),
    "a row with a cell more by code": ({**FINE, "docs/evidence/x.md": "| a | b |\n|---|---|\n| `c || d` | e |\n"}, 1, "x.md:3: 4 cells where the heading has 2"),
    "a line below the heading with a cell less": ({**FINE, "docs/evidence/x.md": "- item\n\n  | a | b |\n  |---|\n"}, 1, "x.md:4: 1 cells where the heading has 2"),
    "rows that are code": ({**FINE, "docs/evidence/x.md": "```\n| a | b |\n| c |\n```\n\n    | a | b |\n    | c |\n"}, 0, "ok 4"),
    "a row of a list that the build makes": ({**FINE, "docs/reference/checker.md": "# Checker\n\n| a | b |\n<!-- list: rules --> words\n"}, 1,
                                             "docs/reference/checker.md:4: 3 cells where the heading has 2, with the lists of the build"),
    "a list without a place": ({**FINE, "src/facts/facts.def": "    KIND(cq, Queue, cq)\n"}, 1, "# no page has <!-- list: facts Queue -->"),
    "pages as they are installed": ({"docs/x.md": "# X\n"}, 0, "ok 2"),
    "a place of a list there": ({"docs/x.md": "# X\n\n<!-- list: rules -->\n"}, 1, "docs/x.md: the list \"rules\" was not put in"),
    "a place of no list": ({**FINE, "docs/user/two.md": "## Two\n## Two\n<!-- list: odd -->"}, 1, "not ok 2"),
}

if __name__ == "__main__":
    sys.exit(made_up.run("links.py", CASES))
