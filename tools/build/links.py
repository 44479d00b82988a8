#!/usr/bin/env python3
"""Checks that the links of the tree's pages lead somewhere, and that their tables are whole; prints TAP.

Usage: links.py TREE. In each Markdown file (PLACES) it checks links to files of the tree, and to headings in them (as GitHub names those), no
others. README.md, SECURITY.md, ARCHITECTURE.md, docs and examples are installed (meson.build) and link to nothing else, so that the installed
copies have no dead link. No page links to a product of the build, which the tree lacks: neither a file below build/, nor a
heading of a list that the build puts into a page (made_pages.py). The same holds for the pages with their lists. A line of a page has
at most 120 characters, except of tables and code, which can't be broken. A row of a table has as many cells as its heading; a | that is text is
written \\|, also in code."""
import os
import re
import sys

sys.dont_write_bytecode = True
import made_pages
from tree import judged

LINK = re.compile(r"\[[^][]*\]\(([^()\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
INSTALLED = re.compile(r"docs/|examples/|(?:README|CHANGELOG|SECURITY|ARCHITECTURE)\.md$")
ROWS = re.compile(r"^ {0,3}\|.*(?:\n {0,3}\|.*)+", re.MULTILINE)
BORDER = re.compile(r"(?<!\\)\|(?!\s*$)")  # the | before each cell of a row
WIDTH = 120
PLACES = ("docs", "packaging", "tests", "examples", ".")


def pages(tree):
    for place in PLACES:
        for folder, folders, names in os.walk(os.path.join(tree, place)):
            folders[:] = [name for name in folders if not name.startswith((".", "build"))] if place != "." else []
            yield from (os.path.relpath(os.path.join(folder, name), tree) for name in sorted(names) if name.endswith(".md"))


def text_of(tree, page, made=False):
    """The page without examples; `made`: with the lists that the build puts into it."""
    return FENCE.sub("", made_pages.whole(tree, page) if made else made_pages.read(tree, page))


def anchors(text):
    """The names of the headings: lower case, without punctuation, blanks as hyphens; a second one of a name gets a number."""
    seen = {}
    for heading in re.findall(r"^#+ +(.*?) *$", text, re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        name = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        seen[name] = seen.get(name, -1) + 1
        yield f"{name}-{seen[name]}" if seen[name] else name


def wrong_heading(tree, page, target, anchor, made):
    """The sentence why the target has no such heading where the page is read, or None."""
    if anchor in set(anchors(text_of(tree, target, made))):
        return None
    if not made and anchor in set(anchors(text_of(tree, target, made=True))):
        return f"{page}: {target} has the heading {anchor} only once the build has put its lists in: link to the page, or name `softverbs explain`"
    return f"{page}: {target} has no heading {anchor}"


def dead(tree, page, made=False):
    """A sentence for each link of the page that leads nowhere."""
    for link in LINK.findall(re.sub(r"`[^`\n]*`", "", text_of(tree, page, made))):
        path, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        wrong = wrong_heading(tree, page, target, anchor, made) if anchor and os.path.exists(os.path.join(tree, target)) else None
        if target.startswith("build"):
            yield f"{page}: {target} is made by the build ({link})"
        elif not os.path.exists(os.path.join(tree, target)):
            yield f"{page}: there is no {target} ({link})"
        elif wrong:
            yield f"{wrong} ({link})"
        elif INSTALLED.match(page) and not INSTALLED.match(f"{target}/" if target == "docs" else target):
            yield f"{page}: {target} is not installed beside it ({link})"


def long_lines(tree, page):
    """A sentence for each line that is too long and could be broken: no row of a table, no code, no single word."""
    text = FENCE.sub(lambda code: "\n" * code[0].count("\n"), made_pages.read(tree, page))
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > WIDTH and " " in line.strip()[:WIDTH] and not line.startswith("    ") and not line.lstrip().startswith("|"):
            yield f"{page}:{number}: {len(line)} characters"


def cells(row):
    return len(BORDER.findall(row))


def uneven_rows(page, text):
    """A sentence for each row of a table that has more or fewer cells than its heading."""
    text = FENCE.sub(lambda code: "\n" * code[0].count("\n"), text)
    for table in ROWS.finditer(text):
        heading, *rows = table[0].split("\n")
        first = text.count("\n", 0, table.start()) + 2
        yield from (f"{page}:{number}: {cells(row)} cells where the heading has {cells(heading)}" for number, row in enumerate(rows, first) if cells(row) != cells(heading))


def main():
    tree = sys.argv[1]
    texts = list(dict.fromkeys(pages(tree)))
    listed = [page for page in made_pages.PAGES if page in texts]
    dead_links = [sentence for page in texts for sentence in dead(tree, page)] + [sentence for page in listed for sentence in dead(tree, page, made=True)]
    lists = list(made_pages.judge(tree, texts))
    wide = [sentence for page in texts if page not in made_pages.installed(tree) for sentence in long_lines(tree, page)]
    uneven = [sentence for page in texts for sentence in uneven_rows(page, made_pages.read(tree, page))]
    uneven += [f"{sentence}, with the lists of the build" for page in listed for sentence in uneven_rows(page, made_pages.whole(tree, page))]
    return judged(("links of the pages lead somewhere", dict.fromkeys(dead_links)),
                  ("each list that the build makes has its place in a page", lists),
                  (f"lines of pages have at most {WIDTH} characters", wide),
                  ("rows of tables have as many cells as the heading", uneven))


if __name__ == "__main__":
    sys.exit(main())
