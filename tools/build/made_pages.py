#!/usr/bin/env python3
"""Puts the lists that are made of the source into the pages.

Usage: made_pages.py DIRECTORY --pages | made_pages.py DIRECTORY OUT

A line of a page with <!-- list: NAME --> is the place of a list; in the tree it has words for the readers there. OUT gets the pages with
such lines, each with its lists instead, and a file of dependencies for ninja. --pages prints the paths of these pages.
"""
import functools
import glob
import os
import re
import sys

sys.dont_write_bytecode = True
import adverse
import errors_page
import events
import facts
import reasons_page
import rules
import settings
import vendors_page
from tree import read

PAGES = tuple(f"docs/reference/{name}.md" for name in ("adverse", "checker", "errors", "json", "reasons", "settings", "vendor-errors"))
MARK = re.compile(r"^.*<!-- list: ([\w ]+) -->.*$", re.M)
SOURCES = ("src/**/*.def", "tools/explain/*.def", "tests/api/errors/*.def")


def lists(top):
    """The function that makes each list, by the list's name."""
    found = {"adverse": adverse.part, "errors": errors_page.part, "reasons": reasons_page.part, "rules": rules.part, "settings": settings.table,
             "unseen": rules.unseen, "vendors": vendors_page.part}
    found |= {f"events {chapter}": functools.partial(events.part, chapter=chapter) for chapter in events.TABLES}
    return found | {f"facts {chapter}": functools.partial(facts.part, chapter=chapter) for chapter in facts.chapters(top).values()}


def installed(top):
    """The pages that have their lists already, in a tree without sources."""
    return () if os.path.isdir(os.path.join(top, "src")) else PAGES


def whole(top, page):
    """The page with its lists. KeyError: it names one that nothing makes."""
    text = read(top, page)
    if installed(top) or not MARK.search(text):
        return text
    known = lists(top)
    return MARK.sub(lambda found: known[found[1]](top).strip("\n"), text)


def judge(top, pages):
    """A sentence for each mark of another page or of no list, and for each list without a mark. Without sources: for each mark, as these
    pages are installed."""
    if installed(top):
        yield from (f"{page}: the list \"{name}\" was not put in" for page in pages for name in MARK.findall(read(top, page)))
        return
    known, marked = lists(top), []
    for page in pages:
        names = MARK.findall(read(top, page))
        marked += names
        if names and page not in PAGES:
            yield f"{page}: PAGES of tools/build/made_pages.py lacks it"
        yield from (f"{page}: nothing makes a list \"{name}\"" for name in names if name not in known)
    yield from (f"no page has <!-- list: {name} -->" for name in known if marked.count(name) == 0)


def main():
    top, out = sys.argv[1:]
    if out == "--pages":
        print(*PAGES, sep="\n")
        return
    for page in PAGES:
        with open(os.path.join(out, os.path.basename(page)), "w", encoding="utf-8") as file:
            file.write(whole(top, page))
    inputs = [os.path.join(top, page) for page in PAGES] + [path for each in SOURCES for path in sorted(glob.glob(os.path.join(top, each), recursive=True))]
    with open(os.path.join(out, "made_pages.d"), "w", encoding="utf-8") as file:
        file.write(f"{os.path.join(out, os.path.basename(PAGES[0]))}: {' '.join(inputs)}\n")


if __name__ == "__main__":
    main()
