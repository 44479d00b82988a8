#!/usr/bin/env python3
"""Makes the site of the pages and manual pages: site_pages.py BUILD OUT

A page has the same path in the site as in the tree, so that links between them lead to the same places, and the lists of the source in it; files that
pages link to are copied. BUILD is a build folder with the manual pages. OUT/sources gets the input of mkdocs and OUT/html its output. Ends with 1
where mkdocs warns of something, or where a link of a page leads nowhere: to no file, or to no heading of a page."""
import html.parser
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.parse

TREE = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
sys.path.append(f"{TREE}/tools/build")
import made_pages  # pylint: disable=wrong-import-position

LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s]+)(\))")
ITEM = re.compile(r"^( *)(?:[-*]|\d+\.) ")
MANUAL = "manual"
# The navigation: title, and the pages below it, or the folder of the pages below it in the order of docs/README.md.
PARTS = (("Tutorials", "docs/tutorial"), ("How-to", "docs/how-to"), ("Reference", "docs/reference"), ("Explanation", "docs/explanation"),
         ("Evidence", "docs/evidence"), ("Project", ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs/glossary.md", "tests/README.md")))
ALSO = {"Explanation": ("ARCHITECTURE.md",), "Reference": ("manual/softverbs.1.md", "manual/softverbs.conf.5.md", "manual/softverbs.h.3.md")}

CONFIGURATION = """site_name: softverbs
site_url: ""
docs_dir: sources
site_dir: html
use_directory_urls: false
theme:
  name: material
  font: false
  features: [navigation.tabs, navigation.top]
  icon: {{logo: material/swap-horizontal}}
plugins: [search]
markdown_extensions:
  - tables
  - sane_lists
  - pymdownx.superfences
  - pymdownx.tabbed: {{alternate_style: true}}
  - toc: {{slugify: !!python/object/apply:pymdownx.slugs.slugify {{kwds: {{case: lower}}}}}}
nav:
{nav}
"""


def tracked(suffix):
    listed = subprocess.run(["git", "-C", TREE, "ls-files", "-co", "--exclude-standard", f"*{suffix}"], capture_output=True, text=True, check=True)
    return listed.stdout.split()


def for_mkdocs(text):
    """GitHub begins a list after a line of text, and indents what belongs to an item by two columns; Python's Markdown wants an empty line, and four."""
    lines, code, depth = [], False, []
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            code = not code
        item = ITEM.match(line)
        if code or not (item or line.startswith(" ")):
            depth = depth if code or not line else []
        if not code and item:
            while depth and depth[-1] >= len(item[1]):
                depth.pop()
            depth.append(len(item[1]))
            if lines and lines[-1] and not ITEM.match(lines[-1]) and len(depth) == 1 and not lines[-1].startswith(" "):
                lines.append("")
            line = " " * 4 * (len(depth) - 1) + line.lstrip()
        elif depth and line.startswith(" ") and not code:
            line = " " * 4 * len(depth) + line.lstrip()
        lines.append(line)
    return "\n".join(lines)


def with_tabs(text):
    """Headings of the third level between the comments "tabs" and "end of tabs" become tabs; the text below each is indented, as the extension wants it."""
    def tabs(found):
        lines = [f'=== "{line[4:]}"' if line.startswith("### ") else "    " + line if line else line for line in found[1].split("\n")]
        return "\n".join(lines)
    return re.sub(r"<!-- tabs -->\n(.*?)<!-- end of tabs -->\n", tabs, text, flags=re.DOTALL)


def linked_files(page, text):
    """The files besides pages that a page links to, relative to the tree."""
    for _, target, _ in LINK.findall(text):
        path = target.partition("#")[0]
        if path and not re.match(r"\w+:", path) and not path.endswith(".md"):
            yield os.path.normpath(os.path.join(os.path.dirname(page), path))


def stage_pages(sources):
    for page in tracked(".md"):
        text = made_pages.whole(TREE, page)
        write(f"{sources}/{page}", with_tabs(for_mkdocs(text)))
        for name in linked_files(page, text):
            if os.path.isfile(f"{TREE}/{name}"):
                os.makedirs(os.path.dirname(f"{sources}/{name}"), exist_ok=True)
                shutil.copyfile(f"{TREE}/{name}", f"{sources}/{name}")


def for_page(fragment):
    """mandoc's HTML below a heading of the page: without the line of titles, headings one step lower, and no empty line, which would end the HTML for Markdown."""
    fragment = re.sub(r"<table class=\"(head|foot)\">.*?</table>", "", fragment, flags=re.DOTALL)
    fragment = re.sub(r"(</?h)([1-5])", lambda found: found[1] + str(int(found[2]) + 1), fragment)
    fragment = re.sub(r"<pre.*?</pre>", lambda found: re.sub(r"\n(?=\n)", "\n&#8203;", found[0].replace("\n<br/>\n", "\n")), fragment, flags=re.DOTALL)
    return re.sub(r"\n\s*\n", "\n", fragment)


def stage_manual(build, sources):
    for name in ("softverbs.1", "softverbs.conf.5", "softverbs.h.3"):
        shown = subprocess.run(["mandoc", "-T", "html", "-O", "fragment", f"{build}/tools/pages/{name}"], capture_output=True, text=True, check=True).stdout
        title, _, section = name.rpartition(".")
        write(f"{sources}/{MANUAL}/{name}.md", f"# {title}({section})\n\n{for_page(shown)}")


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def heading(path):
    with open(path, encoding="utf-8") as file:
        return re.sub(r"[`*]", "", next(line[2:].strip() for line in file if line.startswith("# ")))


def in_order(folder, sources):
    """The pages of a folder, in the order of docs/README.md, then those that it does not name."""
    with open(f"{sources}/docs/README.md", encoding="utf-8") as file:
        named = ["docs/" + found for found in re.findall(r"\]\(([\w/.-]+\.md)\)", file.read())]
    pages = sorted(f"{folder}/{name}" for name in os.listdir(f"{sources}/{folder}") if name.endswith(".md"))
    return sorted(pages, key=lambda page: (named.index(page) if page in named else len(named), page))


def navigation(sources):
    lines = ["  - softverbs: README.md", "  - Pages: docs/README.md"]
    for title, pages in PARTS:
        if isinstance(pages, str):
            pages = [*ALSO.get(title, ()), *in_order(pages, sources)]
        lines.append(f"  - {title}:")
        lines += [f"      - {json.dumps(heading(f'{sources}/{page}'), ensure_ascii=False)}: {page}" for page in pages]
    return "\n".join(lines)


class Page(html.parser.HTMLParser):
    """The links of a page and the names that links to it can have."""

    def __init__(self, path):
        super().__init__()
        self.links, self.names = [], {""}
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.names |= {attributes.get("id"), attributes.get("name")}
        target = attributes.get("href" if tag == "a" else "src" if tag == "img" else "")
        if target is not None:
            self.links.append(target)


def broken_links(out):
    """Links of the finished pages that lead nowhere."""
    pages = {}
    for directory, _, names in os.walk(out):
        pages |= {os.path.join(directory, name): Page(os.path.join(directory, name)) for name in names if name.endswith(".html") and name != "404.html"}
    for path, page in sorted(pages.items()):
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(parts.path))) if parts.path else path
            name = urllib.parse.unquote(parts.fragment)
            if not os.path.exists(target):
                yield f"{os.path.relpath(path, out)}: {link}: there is no such file"
            elif name and not name.startswith("__") and target in pages and name not in pages[target].names:
                yield f"{os.path.relpath(path, out)}: {link}: there is no such heading"


def main():
    build, out = map(os.path.abspath, sys.argv[1:])
    shutil.rmtree(out, ignore_errors=True)
    sources = f"{out}/sources"
    stage_pages(sources)
    stage_manual(build, sources)
    write(f"{out}/mkdocs.yml", CONFIGURATION.format(nav=navigation(sources)))
    done = subprocess.run(["mkdocs", "build", "--strict", "--quiet", "-f", f"{out}/mkdocs.yml"], check=False)
    broken = list(broken_links(f"{out}/html")) if done.returncode == 0 else []
    print(*broken, sep="\n", end="\n" if broken else "")
    if done.returncode or broken:
        return 1
    print(f"{out}/html/README.html" if os.path.exists(f"{out}/html/README.html") else f"{out}/html/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
