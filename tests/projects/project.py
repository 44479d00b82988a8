#!/usr/bin/env python3
"""Runs the lines that docs/how-to/projects.md gives for a project's CI: project.py NAME CHECKOUT [SOFTVERBS]

NAME is a heading of the page, in any case; the lines run at the top of CHECKOUT, which is not copied. SOFTVERBS is the command, by default build/softverbs.
Ends as the lines do; the first one that fails ends them."""
import os
import re
import subprocess
import sys

TREE = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))


def blocks():
    """The lines of each project, by its name in small letters."""
    with open(f"{TREE}/docs/how-to/projects.md", encoding="utf-8") as file:
        chapters = re.split(r"(?m)^## (.*)\n", file.read())[1:]
    found = {name.lower(): re.search(r"```sh\n(.*?)```", text, re.DOTALL) for name, text in zip(chapters[::2], chapters[1::2])}
    return {name: block[1] for name, block in found.items() if block}


def main():
    if len(sys.argv) not in (3, 4) or sys.argv[1].lower() not in blocks():
        sys.exit(f"project.py: NAME CHECKOUT [SOFTVERBS]; the page has {', '.join(blocks())}.")
    tool = os.path.abspath(sys.argv[3] if len(sys.argv) == 4 else f"{TREE}/build/softverbs")
    path = f"{os.path.dirname(tool)}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", blocks()[sys.argv[1].lower()]], cwd=sys.argv[2], env={**os.environ, "PATH": path}, check=False)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
