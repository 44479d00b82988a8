"""docs/interop.md: its table is written by the last whole run, between two marks; the rest is prose."""
import datetime
import os
import subprocess

from guest import HERE

from clients import Failure

PAGE = os.path.join(HERE, "../../docs/interop.md")
BEGIN, END = "<!-- the last run -->\n", "<!-- the end of the last run -->\n"


def in_brief(text):
    """A failure's first line, so that it fits into a cell of the table."""
    return " ".join(text.split("\n", 1)[0].replace("|", "/").split())[:160]


def table(results, setting, columns):
    yield f"\n### MTU {setting[0]}, IPv{setting[1]}\n\n"
    yield "| program | " + " | ".join(columns) + " |\n" + "|---" * (len(columns) + 1) + "|\n"
    for (which, name), result in results.items():
        if which == setting:
            yield f"| {name} | " + " | ".join(in_brief(result.get(column, "not run")) for column in columns) + " |\n"


def library():
    """The last commit that changed it."""
    shown = subprocess.run(["git", "log", "-1", "--format=%h", "--", "src"], cwd=f"{HERE}/../..", capture_output=True, text=True,
                           check=False)
    return shown.stdout.strip() or "unknown"


def summary(results, packets, kernel):
    cells = [cell for result in results.values() for cell in result.values()]
    yield f"{datetime.date.today()}, the library as of commit {library()}, rxe of Linux {kernel}: "
    yield f"{cells.count('ok')} of {len(cells)} succeeded.\n\n"
    yield f"The captures of the successful ones hold {sum(packets.values())} packets, none malformed and none with a bad ICRC:\n\n"
    yield "| operation | packets |\n|---|---|\n"
    for operation, count in sorted(packets.items()):
        yield f"| {operation} | {count} |\n"


def write_page(results, packets, kernel):
    with open(PAGE, encoding="utf-8") as page:
        text = page.read()
    if BEGIN not in text or END not in text:
        raise Failure(f"{PAGE} has no place for the table")
    parts = [*summary(results, packets, kernel)]
    columns = list(dict.fromkeys(where for result in results.values() for where in result))
    for setting in dict.fromkeys(setting for setting, _ in results):
        parts += table(results, setting, columns)
    head, tail = text.split(BEGIN)[0], text.split(END)[1]
    with open(PAGE, "w", encoding="utf-8") as page:
        page.write(head + BEGIN + "\n" + "".join(parts) + "\n" + END + tail)
