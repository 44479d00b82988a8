"""Markdown with lines of at most 120 characters, as `tools/build/links.py` asks of pages, and tables that say each result once; for scripts that write pages."""
import contextlib
import io
import re

WIDTH = 120
ITEM = re.compile(r"\s*(?:[-*]|\d+\.) +")
WORD = re.compile(r"(?:!?\[(?:[^\]\[]|\[[^\]]*\])*\]\([^)\s]*\)|``.*?``|`[^`]*`|\S)+")  # links and code stay in one line
MARKS = ("|", "#", "```", "<", ">")
BETWEEN = "; "  # first cells of a line that several rows share


def _is_text(line):
    return bool(line.strip()) and not line.lstrip().startswith(MARKS)


def _filled(words, first, rest):
    """Where a line would begin with the mark of a list or heading, the word before the mark moves to that line, too."""
    lines = [first + words[0]]
    for word in words[1:]:
        if len(lines[-1]) + 1 + len(word) <= WIDTH:
            lines[-1] += " " + word
            continue
        if re.fullmatch(r"[-*+]|\d+\.|#+", word):
            lines[-1], _, before = lines[-1].rpartition(" ")
            word = f"{before} {word}"
        lines.append(rest + word)
    return lines


def _paragraph(lines):
    if all(len(line) <= WIDTH for line in lines):
        return lines
    first = ITEM.match(lines[0]) or re.match(r"\s*", lines[0])
    rest = re.match(r"\s*", lines[1])[0] if len(lines) > 1 else " " * len(first[0])
    return _filled(WORD.findall(" ".join([lines[0][first.end():], *(line.strip() for line in lines[1:])])), first[0], rest)


def wrapped(text):
    """The page with its long paragraphs and items of lists filled anew. Tables, headings, code and HTML stay as they are."""
    out, paragraph, code = [], [], False
    for line in text.split("\n"):
        fence = line.lstrip().startswith("```")
        indented = line.startswith("    ") and not paragraph and not (out and ITEM.match(out[-1]))
        if paragraph and (fence or not _is_text(line) or ITEM.match(line)):
            out += _paragraph(paragraph)
            paragraph = []
        code = code != fence
        if code or fence or indented or not _is_text(line):
            out.append(line)
        else:
            paragraph.append(line)
    return "\n".join(out + (_paragraph(paragraph) if paragraph else []))


def joined(rows):
    """The lines of a table, of lists of cells. Rows that differ in their first cell alone are one line, which has all of these cells."""
    names = {}
    for name, *others in rows:
        names.setdefault(tuple(others), []).append(name)
    return "".join(f"| {' | '.join([BETWEEN.join(first), *others])} |\n" for others, first in names.items())


@contextlib.contextmanager
def write_page(path):
    """A file for the page's text, which is written when the block ends."""
    text = io.StringIO()
    yield text
    with open(path, "w", encoding="utf-8") as file:
        file.write(wrapped(text.getvalue()))
