"""The list of docs/reference/reasons.md, made of src/diag/diag.def and tools/explain.

A section of diag.def is a chapter. In it each reason is a heading, with its sentence, causes, an example, a cure and a page. Numbers
of reasons in brackets are links.
"""
import os
import re

from settings import arguments
from tree import read

LINE = re.compile(r'^REASON\((\d+), (\w+), "((?:[^"\\]|\\.)*)"\)', re.M)
SECTION = re.compile(r"^/\* ([^*]+) \*/\n(REASON.*?)(?=\n\n|\Z)", re.M | re.S)
DEFINE = re.compile(r'^#define (\w+) (".*")$', re.M)


def sections(top):
    """Each section of the list: its title, and its reasons (number, name, sentence) by their numbers."""
    for title, text in SECTION.findall(read(top, "src/diag/diag.def")):
        title = re.sub(r" *\(.*\)", "", title).strip()
        yield title[0].upper() + title[1:], sorted((int(number), name, said.replace('\\"', '"')) for number, name, said in LINE.findall(text))


def causes(top):
    """Causes, example, cure and page of each reason, by its name."""
    folder, found = os.path.join(top, "tools/explain"), {}
    texts = {name: read(top, f"tools/explain/{name}") for name in sorted(os.listdir(folder)) if name.endswith(".def") and name != "words.def"}
    defined = dict(pair for text in texts.values() for pair in DEFINE.findall(text))
    for text in texts.values():
        text = re.sub(r"\b[A-Z]\w+\b", lambda word: defined.get(word[0], word[0]), re.sub(r"^#[^\n]*$|^/\*.*?\*/", "", text, flags=re.M | re.S))
        for start in re.finditer(r"^CAUSE\(", text, re.M):
            name, *rest = arguments(text[start.end():])[0]
            found[name] = rest
    return found


def anchor(number, name):
    return f"#{number}-{name.lower()}"


def plain(text, anchors):
    """The text as Markdown: no letter of it marks anything, and numbers of reasons are links."""
    text = re.sub(r"([*<>|])", r"\\\1", text)
    link = lambda found: f"[{found[0]}]({anchors[int(found[0])]})" if int(found[0]) in anchors else found[0]
    return re.sub(r"(?<= )\([\d, to]+\)", lambda found: re.sub(r"\d+", link, found[0]), text)


def entry(number, name, said, parts, anchors):
    text = f"\n### {number} {name}\n\n{plain(said, anchors)}\n"
    if not parts:  # the test `reasons` names such a reason
        return text
    why, example, cure, page = parts
    title = os.path.splitext(os.path.basename(page))[0]
    text += f"\n- **Usual causes:** {plain(why, anchors)}\n- **Example:** {plain(example, anchors)}\n"
    return text + f"- **Cure:** {plain(cure, anchors)}\n- **Page:** [{title}]({os.path.relpath(page, 'reference')})\n"


def part(top):
    all_sections, explained = list(sections(top)), causes(top)
    anchors = {number: anchor(number, name) for _, reasons in all_sections for number, name, _ in reasons}
    text = "\n| numbers | subject |\n|---|---|\n"
    for title, reasons in all_sections:
        first, last = reasons[0][0], reasons[-1][0]
        text += f"| {first}{'' if first == last else f' to {last}'} | [{title}](#{re.sub(r'[^a-z0-9 -]', '', title.lower()).replace(' ', '-')}) |\n"
    for title, reasons in all_sections:
        text += f"\n## {title}\n" + "".join(entry(*reason, explained.get(reason[1]), anchors) for reason in reasons)
    return text
