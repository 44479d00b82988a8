#!/usr/bin/env python3
"""made_pages.py over a made-up tree: pages with the lists of the source in them; prints TAP."""
import os
import subprocess
import sys
import tempfile

import made_up

HERE = os.path.dirname(os.path.abspath(__file__))
RULES = """RULE(EARLY, "early", ERROR, SEES,
    "What early", "a page(3)", "everywhere", "do it")
UNSEEN("Something else", "a look")
"""
REASONS = """/* One line each. */

/* calls (a page) */
REASON(302, LATE, "It is \\"late\\".")
REASON(301, WRONG, "It is wrong.")
"""
CAUSES = """#define MORE "Look <there>."
CAUSE(LATE,
    "It comes after (301), or (999).",
    "f(*x)",
    "Wait. " MORE, "how-to/debugging.md")
CAUSE(WRONG, "So it is.", "g()", MORE, "reference/errors.md")
"""
EVENTS = """PACKETS(SENT, "sent", BYTES, "SENT", "", X, OPERATION, LENGTH,
    "A packet was sent.")
COUNTED(LOST, "lost", "all", X, "", "", X, X, X,
    "A packet was lost.")
COUNTED(FOUND, "lost", "found", X, "", "", X, X, X,
    "It was found.")
FAULT(DROP, "drop", SHARE, "1%", "dropped",
    "A packet was dropped.")
"""
FACTS = """#define FACTS_KINDS(KIND) \\
    KIND(cq, Queue, cq)
#define FACTS_cq(FACT) \\
    FACT(cq, lost_last, FLAG, SOME(told.lost_last), OPTIONAL, "true: it was lost") \\
    FACT(cq, of, LIST(Queue), MADE, ALWAYS, "")
"""
FILES = {
    "src/check/rules.def": RULES, "src/diag/diag.def": REASONS, "tools/explain/calls.def": CAUSES, "tools/explain/words.def": "",
    "src/profile/vendors.def": 'VENDOR("a1", 0x81, "", OBSERVED, "No answer.", "b/c#1")\n',
    "src/events/events.def": EVENTS, "src/facts/facts.def": FACTS, "src/config/limits.def": "",
    "src/adverse/adverse.def": 'ADVERSE(1, PIECES, "pieces", 1,\n    "in pieces", "the buffer", "a look too early")\n',
    "src/base/settings.def": 'SETTING(LOG, "", CHOICE, "none warn", "none", "log", "LEVEL", "log to stderr", "`warn`: log")\n',
    "tests/api/errors/error_matrix.def": "ROW(UC, SEND, FINE, SUCCESS, NOTHING, RTS, GONE, NONE, NONE, NONE)\nROW(RC, SEND, KEY, OTHER, SUCCESS, ERR, RTS, LATE, NONE, FATAL)\n",
    "tests/api/errors/error_faults.def": 'FAULT(FINE, NULL, NULL, "nothing is wrong")\nFAULT(KEY, NULL, key, "the key is unknown")\n',
    "docs/reference/checker.md": "# Checker\n\nwords <!-- list: rules -->\n\n| a | b |\n|---|---|\n| words <!-- list: unseen --> | |\n",
    "docs/reference/reasons.md": "# Page\n\n## All reasons\n\nwords <!-- list: reasons -->\nthe end\n",
    "docs/reference/json.md": "| <!-- list: events Traffic --> | | |\n<!-- list: facts Queue -->\n<!-- list: events Calls -->\n<!-- list: events Messages -->\n",
    **{f"docs/reference/{name}.md": f"# Page\n\n<!-- list: {name} -->\n" for name in ("adverse", "errors", "settings")},
    "docs/reference/vendor-errors.md": "# Page\n\n<!-- list: vendors -->\n",
}


def made(top):
    """The pages of the tree with their lists, by their names."""
    for path, text in FILES.items():
        os.makedirs(os.path.dirname(f"{top}/{path}"), exist_ok=True)
        with open(f"{top}/{path}", "w", encoding="utf-8") as file:
            file.write(text)
    os.mkdir(f"{top}/out")
    subprocess.run([sys.executable, f"{HERE}/made_pages.py", top, f"{top}/out"], check=True)
    for name in os.listdir(f"{top}/out"):
        with open(f"{top}/out/{name}", encoding="utf-8") as file:
            yield name, file.read()


def main():
    with tempfile.TemporaryDirectory() as top:
        pages = dict(made(top))
        inputs = [path for path in FILES if path.endswith((".def", ".md")) and f"{top}/{path}" not in pages["made_pages.d"]]
    page, rules = pages["reasons.md"], pages["checker.md"]
    return made_up.holds([
        ("what is beside the list stays, and the words for readers of the tree are gone",
         page.startswith("# Page\n\n## All reasons\n\n| numbers |") and page.endswith("\nthe end\n") and "words" not in page + rules and "<!--" not in page),
        ("reasons are in the order of their numbers", 0 < page.index("### 301 WRONG") < page.index('### 302 LATE\n\nIt is "late".')),
        ("a section has its numbers and its title", "| 301 to 302 | [Calls](#calls) |" in page and "\n## Calls\n" in page),
        ("a number in brackets leads to its reason", "after ([301](#301-wrong)), or (999)." in page),
        ("letters of Markdown mark nothing", "f(\\*x)" in page),
        ("a text that has a name is filled in", "- **Cure:** Wait. Look \\<there\\>.\n- **Page:** [debugging](../how-to/debugging.md)" in page),
        ("a rule has a heading and a row", "| [early](#early) | error | always |" in rules and "\n### early\n\nWhat early.\n" in rules),
        ("rows are within the table around their place", rules.endswith("\n|---|---|\n| Something else | a look |\n")),
        ("settings and behaviours are tables", "| `SOFTVERBS_LOG` | `warn`: log |" in pages["settings.md"]
         and "| 1 | `pieces` | on | in pieces | the buffer | a look too early |" in pages["adverse.md"]),
        ("a field of counters has its parts", "| `lost` | map of integer | `all`: A packet was lost. `found`: It was found. |\n" in pages["json.md"]),
        ("a fact has its type", "\n| `lost_last` | boolean, optional | true: it was lost |\n| `of` | list of Queue | |\n" in pages["json.md"]),
        ("a row of errors has numbers for its reasons", "## RC\n\n| operation" in pages["errors.md"]
         and "| SEND | the key is unknown | OTHER (302) | SUCCESS | ERR, RTS | FATAL |\n" in pages["errors.md"]),
        ("what is gone and what waits is in words", "| SEND | nothing is wrong | SUCCESS | waits | RTS, gone |  |\n" in pages["errors.md"]),
        ("only reasons that a row names are explained", pages["errors.md"].endswith('| 302 | It is "late". |\n')),
        ("a code of a driver has both its numbers", "| a1 | 129 (0x81) | any | No answer. | observed: b/c#1 |\n" in pages["vendor-errors.md"] + "\n"),
        ("ninja knows of each list", not inputs),
    ])


if __name__ == "__main__":
    sys.exit(main())
