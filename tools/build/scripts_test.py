#!/usr/bin/env python3
"""The check of scripts finds what it is there for, in small made-up trees; prints TAP."""
import shutil
import sys

sys.dont_write_bytecode = True
import made_up

TREES = {
    "a script that defines its names is fine": ({"bench/x.py": "import os\nprint(os.getpid())\n"}, 0, "ok 1 - pyflakes finds nothing in 1 scripts"),
    "a name that nothing defines is found": ({"bench/x.py": "def f():\n    return mean\n"}, 1, "# bench/x.py:2"),
    "so is an import that nothing uses": ({"tests/a/x.py": "import os\n"}, 1, "# tests/a/x.py:1"),
    "what can't be read as Python is found": ({"tools/x.py": "def f(:\n"}, 1, "# tools/x.py:1"),
    "a script without an ending counts": ({"python/x": "#!/usr/bin/env python3\nprint(y)\n"}, 1, "# python/x:2"),
    "a shell's script is none": ({"tools/x": "#!/bin/sh\necho $y\n", "tools/y.py": "print(1)\n"}, 0, "in 1 scripts"),
}


if __name__ == "__main__":
    if not shutil.which("pyflakes3") and not shutil.which("pyflakes"):
        print("1..0 # SKIP pyflakes is not installed")
        sys.exit(0)
    sys.exit(made_up.run("scripts.py", TREES))
