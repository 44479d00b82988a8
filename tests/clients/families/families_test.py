#!/usr/bin/env python3
"""Tests of main.py: the verdict that follows from the result of a row. Tests of checked.py: the text about a row's findings. Tests of page.py:
the packages of rows."""
import json
import sys
import time

import checked
import main
import page as clients_page
from row import FAILED, OK, OWN, SKIPPED, Fault, Row

from clients import Failure, Skip
from wrapped import BETWEEN

FAULT = Fault("known", "a reason", "a source")


def row(run, packages=(), fault=None):
    return Row("family", "name", packages, "not at all", run, fault, seconds=1)


def raises(why):
    def run():
        raise why
    return run


def finding(rule, function):
    place = {"function": function, "module": "library.so"}
    return {"program": "client", "rule": rule, "level": "error", "text": "a sentence", "posted": [place], "found": [], "created": []}


def reports(*findings):
    """Replaces the run of a row whose programs have these findings; the last line is the count of one that came again."""
    def apart(_, environment):
        with open(environment["SOFTVERBS_CHECK_REPORT"], "w", encoding="utf-8") as file:
            file.write("".join(json.dumps(each) + "\n" for each in (*findings, {"program": "client", "rule": "a-rule", "count": 7})))
        return OK, ""
    return apart


def findings():
    checked.known = lambda: [["cl*", "a-rule", "post_*"]]
    def told(*found):
        return checked.describe(checked.run(row(None), reports(*found))[2])
    yield "a row without findings has a dash", checked.describe(checked.run(row(None), lambda *_: (OK, ""))[2]) == "-"
    yield "a finding that was examined is known", told(finding("a-rule", "post_one")) == "known: a-rule"
    yield "one of another function is open", told(finding("a-rule", "other")) == "**open:** a-rule (client, other)"
    yield "one of another rule is open", told(finding("b-rule", "post_one"), finding("a-rule", "post_one")) == "**open:** b-rule (client, post_one); known: a-rule"
    result = {"verdict": OK, "said": "", "commit": "abc", "system": "Debian 12", "findings": checked.run(row(None), reports(finding("b-rule", "other")))[2]}
    page = "".join(checked.lines([row(None), row(None)._replace(name="second")], {"name": result}))
    yield "the page says what ran and what not", "1 of 2 rows ran: 1 ok" in page and "1 rows have an open finding, 0 have known ones only, 0 have no finding" in page and "- family: second" in page


def packages():
    clients_page.version_of = {"one": "1.0", "two": "2.0"}.get
    def table(*rows):
        return "".join(clients_page.table("family", [(row(None, names), OK, "") for names in rows]))
    yield "packages that all rows have are before the table only", "Packages: one 1.0.\n" in table(("one",)) and "| name | not at all | ok |" in table(("one",))
    yield "a row names its packages where rows differ, and a line their versions", "Packages: one 1.0, two 2.0.\n" in table(("one",), ("one", "two")) \
        and "| name | one, two | not at all | ok |" in table(("one",), ("one", "two"))
    yield "rows with the same packages, data and result are one line", "\n| name; name | not at all | ok |\n" in table(("one",), ("one",))


def verdicts():
    judge = main.judge
    yield "a row that returns is ok", judge(row(None), lambda: None)[0] == OK
    yield "a row that finds other data has failed", judge(row(None), raises(Failure("other data"))) == (FAILED, "other data")
    yield "a row whose program is not found has failed", judge(row(None), raises(FileNotFoundError("none")))[0] == FAILED
    yield "a row that cannot run is skipped", judge(row(None), raises(Skip("why"))) == (SKIPPED, "why")
    yield "a failure that is known is the client's own", judge(row(None, fault=FAULT), raises(Failure("a known one"))) == (OWN, "a reason (a source)")
    yield "another failure of such a row is none", judge(row(None, fault=FAULT), raises(Failure("another")))[0] == FAILED
    yield "a row is skipped without its packages", main.run_apart(row(None, ("no-such-package",)), []) == (SKIPPED, "not installed: no-such-package")
    began = time.monotonic()
    late = main.run_apart(row(None), ["sh", "-c", "sleep 1000"])
    yield "a row that is late has failed, and is killed", late == (FAILED, "not at its end after 1 seconds") and time.monotonic() - began < 100
    yield "a row that says nothing has failed", main.run_apart(row(None), ["true"])[0] == FAILED
    names = [each.name for each in main.all_rows()]
    yield "each row has a name of its own", len(names) == len(set(names)) and not any(BETWEEN in name for name in names)


if __name__ == "__main__":
    found = [*verdicts(), *findings(), *packages()]
    print(f"1..{len(found)}")
    for number, (name, held) in enumerate(found, 1):
        print(f"{'ok' if held else 'not ok'} {number} - {name}")
    sys.exit(not all(held for _, held in found))
