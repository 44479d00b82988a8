#!/usr/bin/env python3
"""reasons_page.py over made-up trees."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
REASONS = """/* One line each. */

/* calls (a page) */
REASON(302, LATE, "It is \\"late\\".")
REASON(301, WRONG, "It is wrong.")
"""
CAUSES = """#define MORE "Look <there>."
CAUSE(LATE,
    "It comes behind (301), or (999).",
    "f(*x)",
    "Wait. " MORE, "how-to/debugging.md")
CAUSE(WRONG, "So it is.", "g()", MORE, "reference/errors.md")
"""


def judged(*pairs):
    """The page of the tree, and what the check says of it once each first text of a pair in the lists has become the second."""
    with tempfile.TemporaryDirectory() as tree:
        files = {"src/diag/diag.def": REASONS, "tools/explain/calls.def": CAUSES, "tools/explain/words.def": "CAUSE(NONE)\n",
                 "docs/reference/reasons.md": "# Page\n\n## All reasons\nold\n"}
        for path, text in files.items():
            os.makedirs(os.path.dirname(f"{tree}/{path}"), exist_ok=True)
            with open(f"{tree}/{path}", "w", encoding="utf-8") as file:
                file.write(text)
        subprocess.run([sys.executable, f"{HERE}/reasons_page.py", tree, "--write"], check=True)
        for old, new in pairs:
            for path in ("src/diag/diag.def", "tools/explain/calls.def"):
                with open(f"{tree}/{path}", "w", encoding="utf-8") as file:
                    file.write(files[path].replace(old, new))
        with open(f"{tree}/docs/reference/reasons.md", encoding="utf-8") as file:
            page = file.read()
        return page, subprocess.run([sys.executable, f"{HERE}/reasons_page.py", tree], capture_output=True, text=True, check=False)


def main():
    page, fine = judged()
    stale = "tools/build/reasons_page.py . --write makes it anew"
    cases = [
        ("a page that was just written is right", fine.returncode == 0 and "has the 2 reasons of the list" in fine.stdout),
        ("what stands before the heading stays, what stood behind it goes", page.startswith("# Page\n\n## All reasons\n\n| numbers |") and "old" not in page),
        ("reasons stand by number", 0 < page.index("### 301 WRONG") < page.index('### 302 LATE\n\nIt is "late".')),
        ("a section has its numbers and its title", "| 301 to 302 | [Calls](#calls) |" in page and "\n## Calls\n" in page),
        ("a number in brackets leads to its reason", "behind ([301](#301-wrong)), or (999)." in page),
        ("letters of Markdown mark nothing", "f(\\*x)" in page),
        ("a text that has a name is filled in", "- **Cure:** Wait. Look \\<there\\>.\n- **Page:** [debugging](../how-to/debugging.md)" in page),
        ("another sentence makes the page stale", stale in judged(("It is wrong.", "It is bad."))[1].stdout),
        ("another cure does", judged(("Look <there>.", "Look here."))[1].returncode == 1),
        ("another number does", judged(("301", "300"))[1].returncode == 1),
    ]
    print(f"1..{len(cases)}")
    for number, (name, holds) in enumerate(cases, 1):
        print(f"{'' if holds else 'not '}ok {number} - {name}")
    return 0 if all(holds for _, holds in cases) else 1


if __name__ == "__main__":
    sys.exit(main())
