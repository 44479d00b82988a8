#!/usr/bin/env python3
"""Pages that scripts write have lines of at most 120 characters, and tables that say each result once; prints TAP."""
import os
import tempfile

from wrapped import joined, wrapped, write_page

LONG = "word " * 30
CASES = {
    "a long paragraph": (LONG + "end\n", "\n".join([("word " * 24).strip(), "word " * 6 + "end", ""])),
    "a short one keeps its lines": ("one\ntwo\n", "one\ntwo\n"),
    "an item is indented": (f"- {LONG}\n- b\n", "\n".join(["- " + ("word " * 23).strip(), "  " + ("word " * 7).strip(), "- b", ""])),
    "an item in an item": (f"  1. {LONG}\n", "\n".join(["  1. " + ("word " * 23).strip(), "     " + ("word " * 7).strip(), ""])),
    "code, tables and headings": (f"```\n{LONG}\n```\n\n    {LONG}\n\n| {LONG} |\n# {LONG}\n", f"```\n{LONG}\n```\n\n    {LONG}\n\n| {LONG} |\n# {LONG}\n"),
    "a link and code are not broken": ("word " * 21 + "[a page of words](x.md) more\n", ("word " * 21).strip() + "\n[a page of words](x.md) more\n"),
    "no line begins a list by chance": ("word " * 23 + "last - more\n", ("word " * 23).strip() + "\nlast - more\n"),
    "a list after a paragraph": (f"{LONG}\n- one\n- two\n", "\n".join([("word " * 24).strip(), ("word " * 6).strip(), "- one", "- two", ""])),
}


def written():
    with tempfile.TemporaryDirectory() as place:
        with write_page(os.path.join(place, "page.md")) as page:
            page.write(LONG)
            page.write("end\n")
        with open(os.path.join(place, "page.md"), encoding="utf-8") as file:
            return file.read() == wrapped(LONG + "end\n")


def one_line_each():
    return joined([["a", "x", "ok"], ["b", "y", "ok"], ["c", "x", "ok"], ["d", "x", "failed"]]) == "| a; c | x | ok |\n| b | y | ok |\n| d | x | failed |\n"


def main():
    results = {name: wrapped(text) == made for name, (text, made) in CASES.items()} | {"a page is written whole": written(), "rows with one result are one line": one_line_each()}
    print(f"1..{len(results)}")
    for number, (name, holds) in enumerate(results.items(), 1):
        print(f"{'' if holds else 'not '}ok {number} - {name}")
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
