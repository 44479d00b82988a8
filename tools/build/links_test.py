#!/usr/bin/env python3
"""links.py over made-up trees."""
import sys

import made_up

FINE = {"docs/user/one.md": "# One: `a` (b_c)\n\n[two](two.md#two) [here](#one-a-b_c) [there](../evidence/x.md) `[no](link.md)` [web](https://x.y/z)\n",
        "docs/user/two.md": "## Two\n\n```\n[no](link.md)\n```\n## Two\n[second](#two-1)\n", "docs/evidence/x.md": "", "README.md": "[x](docs/user/one.md)\n"}
CASES = {
    "links that lead somewhere": (FINE, 0, "ok 1"),
    "a page that is not there": ({**FINE, "README.md": "[x](docs/gone.md)"}, 1, "# README.md: there is no docs/gone.md"),
    "a heading that is not there": ({**FINE, "README.md": "[x](docs/user/two.md#three)"}, 1, "docs/user/two.md has no heading three"),
    "a page that is not installed": ({**FINE, "docs/user/two.md": "# Two\n## Two\n[x](../../meson.build)", "meson.build": ""}, 1, "meson.build is not installed beside it"),
}

if __name__ == "__main__":
    sys.exit(made_up.run("links.py", CASES))
