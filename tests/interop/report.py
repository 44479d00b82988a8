"""docs/evidence/interop.md: a section for each setting, written by the last run that had all of its rows; the rest is prose."""
import datetime
import os
import re
import subprocess

from guest import HERE

from clients import Failure
from wrapped import joined, write_page

PAGE = os.path.join(HERE, "../../docs/evidence/interop.md")
END = "<!-- the end of the last runs -->\n"


def library():
    """The last commit that changed it."""
    shown = subprocess.run(["git", "log", "-1", "--format=%h", "--", "src"], cwd=f"{HERE}/../..", capture_output=True, text=True,
                           check=False)
    return shown.stdout.strip() or "unknown"


def in_brief(text):
    """A failure's first line, so that it fits into a cell of the table."""
    return " ".join(text.split("\n", 1)[0].replace("|", "/").split())[:160]


def section(heading, rows, packets, kernel):
    """`rows`: name -> the side that serves -> "ok" or why not."""
    columns = list(dict.fromkeys(where for result in rows.values() for where in result))
    cells = [result[where] for result in rows.values() for where in result]
    yield f"{heading}\n{datetime.date.today()}, the library as of commit {library()}, rxe of Linux {kernel}: "
    yield f"{cells.count('ok')} of {len(cells)} succeeded. They exchanged {packets} packets, all well formed and with the right ICRC.\n\n"
    yield "| program | " + " | ".join(columns) + " |\n" + "|---" * (len(columns) + 1) + "|\n"
    yield joined([name, *(in_brief(result.get(column, "not run")) for column in columns)] for name, result in rows.items()) + "\n"


def write_section(setting, rows, packets, kernel):
    """Writes the section of this setting in its old place, or as the last."""
    heading = f"### MTU {setting[0]}, IPv{setting[1]}\n"
    with open(PAGE, encoding="utf-8") as page:
        text = page.read()
    if END not in text:
        raise Failure(f"{PAGE} has no place for the table")
    old = re.search(re.escape(heading) + r".*?(?=### |" + re.escape(END) + ")", text, re.DOTALL)
    start, stop = old.span() if old else (text.index(END),) * 2
    with write_page(PAGE) as page:
        page.write(text[:start] + "".join(section(heading, rows, packets, kernel)) + text[stop:])
