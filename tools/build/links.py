#!/usr/bin/env python3
"""Checks that the links of the tree's pages lead somewhere; prints TAP.

Usage: links.py TREE. Of each Markdown file links to files of the tree, and to headings in them (as GitHub names those); others are not
asked for. README.md, SECURITY.md, ARCHITECTURE.md, docs and examples are installed (meson.build) and link to nothing else, so that the installed
copies have no dead link."""
import os
import re
import sys

LINK = re.compile(r"\[[^][]*\]\(([^()\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
INSTALLED = re.compile(r"docs/|examples/|(?:README|CHANGELOG|SECURITY|ARCHITECTURE)\.md$")
PLACES = ("docs", "packaging", "tests", "examples", ".")


def pages(tree):
    for place in PLACES:
        for folder, folders, names in os.walk(os.path.join(tree, place)):
            folders[:] = [name for name in folders if not name.startswith((".", "build"))] if place != "." else []
            yield from (os.path.relpath(os.path.join(folder, name), tree) for name in sorted(names) if name.endswith(".md"))


def text_of(tree, page):
    with open(os.path.join(tree, page), encoding="utf-8") as file:
        return FENCE.sub("", file.read())


def anchors(text):
    """The names of the headings: lower case, without punctuation, blanks as hyphens; a second one of a name gets a number."""
    seen = {}
    for heading in re.findall(r"^#+ +(.*?) *$", text, re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        name = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        seen[name] = seen.get(name, -1) + 1
        yield f"{name}-{seen[name]}" if seen[name] else name


def dead(tree, page):
    """A sentence for each link of the page that leads nowhere."""
    for link in LINK.findall(re.sub(r"`[^`\n]*`", "", text_of(tree, page))):
        path, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if not os.path.exists(os.path.join(tree, target)):
            yield f"{page}: there is no {target} ({link})"
        elif anchor and anchor not in set(anchors(text_of(tree, target))):
            yield f"{page}: {target} has no heading {anchor} ({link})"
        elif INSTALLED.match(page) and not INSTALLED.match(f"{target}/" if target == "docs" else target):
            yield f"{page}: {target} is not installed beside it ({link})"


def main():
    sentences = [sentence for page in dict.fromkeys(pages(sys.argv[1])) for sentence in dead(sys.argv[1], page)]
    print(f"1..1\n{'not ' if sentences else ''}ok 1 - links of the pages lead somewhere")
    for sentence in sentences:
        print(f"# {sentence}")
    return 1 if sentences else 0


if __name__ == "__main__":
    sys.exit(main())
