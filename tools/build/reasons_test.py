#!/usr/bin/env python3
"""reasons.py over made-up trees."""
import os
import subprocess
import sys
import tempfile

import made_up

HERE = os.path.dirname(os.path.abspath(__file__))
DEFINED = """/* Ranges. */

/* packets */
REASON(1, CUT, "It was cut.")
REASON(2, LATE, "It was late.")

/* calls */
REASON(300, WRONG, "It is wrong.")
REASON(399, ODD, "It is odd.")
"""


EXPLAINED = "".join(f'CAUSE({name},\n    "It (1) is \\"so\\".",\n    "A call.", MACRO " More.", "reference/errors.md")\n' for name in ("CUT", "LATE", "WRONG", "ODD"))


def judged(test, defined=DEFINED, explained=EXPLAINED):
    """The run of reasons.py for a tree with these reasons and this test."""
    with tempfile.TemporaryDirectory() as tree:
        for path, text in (("src/diag/diag.def", defined), ("src/diag/one_test.c", test), ("tests/other_test.py", ""),
                           ("tools/explain/calls.def", explained), ("tools/explain/words.def", "WORD(ODD)"), ("docs/reference/errors.md", "")):
            os.makedirs(os.path.dirname(f"{tree}/{path}"), exist_ok=True)
            with open(f"{tree}/{path}", "w", encoding="utf-8") as file:
                file.write(text)
        excused = 'import sys; sys.path.insert(0, sys.argv[1]); import reasons; reasons.UNTESTED = {"ODD"}; sys.argv[1:] = sys.argv[2:]; sys.exit(reasons.main())'
        return subprocess.run([sys.executable, "-c", excused, HERE, tree], capture_output=True, text=True, check=False)


def main():
    fine = judged('REASON_CUT; "(reason 2)"; "WRONG"')
    return made_up.holds([
        ("all are named", fine.returncode == 0 and "not ok" not in fine.stdout),
        ("a new one without a test fails", "# no test names WRONG" in judged("REASON_CUT REASON_LATE").stdout),
        ("a word that is no name counts for nothing", "# no test names LATE" in judged('REASON_CUT LATE "WRONG"').stdout),
        ("what has a test is not excused", "# take ODD out" in judged('REASON_CUT REASON_LATE REASON_WRONG REASON_ODD').stdout),
        ("one that explain says nothing of fails", "# reason 2 has no entry below tools/explain: add CAUSE(LATE" in judged("", explained=EXPLAINED.replace("LATE", "SOON")).stdout),
        ("an entry of no reason fails", "# CAUSE(SOON, ...) below tools/explain is of no reason" in judged("", explained=EXPLAINED.replace("LATE", "SOON")).stdout),
        ("a page that is not there fails", "names the page docs/reference/lost.md" in judged("", explained=EXPLAINED.replace("errors", "lost")).stdout),
        ("the next numbers are said", "# next numbers: packets 3, calls 301" in fine.stdout),
    ])


if __name__ == "__main__":
    sys.exit(main())
