#!/usr/bin/env python3
"""The checker on mistakes of public threads, which were chosen before any was tried: docs/evidence/mistakes.md. Prints TAP.

A comment with the number of a mistake, at the end of a line, marks what a finding must name, and the twin without it has no finding.
"""
import glob
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tool"))
import cases
from cases import BUILD, TEMPORARY, Skip, softverbs, told
from patience import tries

PROGRAM = f"{BUILD}/tests/check/public"
CONNECTIONS = f"{BUILD}/tests/check/mistakes_connections"
# A mistake with librdmacm is the program of a rule.
OF_LIBRDMACM = {15: "cm-event-unacknowledged"}
# The profile under which it is one.
PROFILES = {1: "siw", 16: "rxe", 22: "irdma"}
BUSY = "a thread that waits, or ends a wait in time, gets no processor on a busy machine now and then"
PAGE = os.path.join(HERE, "../../docs/evidence/mistakes.md")


def _rows():
    """The mistakes of the page, and whether it says that they are named."""
    with open(PAGE, encoding="utf-8") as file:
        page = file.read().partition("## Mistakes for the checker")[2]
    told_of = re.findall(r"^\| (\d+) \| [^|]* \| (yes|no) \|$", page, re.M)
    assert len(re.findall(r"^\| \d+ \| \[", page, re.M)) == 25, page
    return {int(number): right == "yes" for number, right in told_of}


def _command(number, variant):
    if number not in OF_LIBRDMACM:
        return [PROGRAM, str(number), variant]
    if not os.path.exists(CONNECTIONS):
        raise Skip("librdmacm is not here")
    return [CONNECTIONS, OF_LIBRDMACM[number], variant]


def _marked(number):
    mark = OF_LIBRDMACM[number] + " faulty" if number in OF_LIBRDMACM else str(number)
    found = set()
    for source in glob.glob(os.path.join(HERE, "public*.c")) + [os.path.join(HERE, "mistakes_connections.c")]:
        with open(source, encoding="utf-8") as file:
            found |= {(os.path.basename(source), line) for line, text in enumerate(file, 1) if f"/* {mark} */" in text}
    assert found, number
    return found


def _findings(number, variant):
    path = f"{TEMPORARY}/{number}-{variant}.json"
    profile = ["--profile", PROFILES[number]] if number in PROFILES else []
    done = softverbs("run", *profile, "--check=notes", f"--check-report={path}", "--", *_command(number, variant))
    assert done.returncode == 0, told(done)
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return [line for line in lines if "text" in line], done


def _is_named(number):
    found, done = _findings(number, "faulty")
    places = {(os.path.basename(place["file"]), place["line"]) for one in found for name in ("posted", "found", "created", "destroyed") for place in one[name]}
    assert places & _marked(number), (found, told(done))


def _has_none(number):
    found, done = _findings(number, "twin")
    assert not found, (found, told(done))


def _add_cases(module):
    for number, right in _rows().items():
        if right:
            setattr(module, f"mistake_{number}_is_named", _case(_is_named, number))
        setattr(module, f"the_twin_of_{number}_has_no_finding", _case(_has_none, number))


def _case(function, number):
    def case():
        tries(f"mistake {number}", 3, BUSY, lambda: function(number), AssertionError)
    case.__module__ = "__main__"  # as its sentence is not private
    return case


if __name__ == "__main__":
    _add_cases(sys.modules[__name__])
    cases.main(sys.modules[__name__])
