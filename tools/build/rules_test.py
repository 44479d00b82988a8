#!/usr/bin/env python3
"""rules.py over made-up trees."""
import os
import subprocess
import sys
import tempfile

import made_up

HERE = os.path.dirname(os.path.abspath(__file__))
DEFINED = "".join(f'RULE({name.upper()}, "{name}", ERROR, SEES,\n    "What {name}",\n    "a page(3)",\n    "everywhere",\n    "do it")\n' for name in ("early", "late"))
DEFINED += 'UNSEEN("Something else",\n    "a look")\n'
CASES = "/* early faulty */ /* early neighbour */ /* late faulty */ /* late neighbour */\n" + '{"early", one},\n{"late", other},\n'


def judged(cases=CASES):
    """The run of rules.py for a tree with these cases and the rules."""
    with tempfile.TemporaryDirectory() as tree:
        for path, text in (("src/check/rules.def", DEFINED), ("tests/check/mistakes_one.c", cases)):
            os.makedirs(os.path.dirname(f"{tree}/{path}"), exist_ok=True)
            with open(f"{tree}/{path}", "w", encoding="utf-8") as file:
                file.write(text)
        return subprocess.run([sys.executable, f"{HERE}/rules.py", tree], capture_output=True, text=True, check=False)


def main():
    fine = judged()
    return made_up.holds([
        ("each rule has its programs", fine.returncode == 0 and "not ok" not in fine.stdout),
        ("a rule without a neighbour fails", "# late: no line of tests/check/mistakes*.c is marked for neighbour" in judged(CASES.replace("/* late neighbour */", "")).stdout),
        ("a rule without a faulty program fails", "# early: no line of tests/check/mistakes*.c is marked for faulty" in judged(CASES.replace("/* early faulty */", "")).stdout),
        ("two marks for one program fail", "# late: no line" in judged(CASES + "/* late faulty */").stdout),
        ("a rule without a case fails", "# late: no case of tests/check/mistakes*.c" in judged(CASES.replace('{"late"', '{"later"')).stdout),
    ])


if __name__ == "__main__":
    sys.exit(main())
