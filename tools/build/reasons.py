#!/usr/bin/env python3
"""Checks that each reason of src/diag/diag.def has a test that names it, and an entry of `softverbs explain`; prints TAP.

Usage: reasons.py TREE. A test names a reason as REASON_NAME or "NAME", by its number ("(reason 302)", `vendor_err 302`), or in
a table of tests/api/*.def. The reasons of UNTESTED had no test when this check was made: the list may only shrink. Tests of them
show the errno of the call and not the reason."""
import os
import re
import sys

GAP = 5  # five numbers in a row are free only after the end of a section
CAUSE = re.compile(r'^CAUSE\((\w+),(?:[^"]|"(?:[^"\\]|\\.)*")*?"([^"]*)"\)$', re.MULTILINE)  # the reason's name and its page
LINE = re.compile(r'^REASON\((\d+), (\w+), "', re.MULTILINE)
UNTESTED = set("""
    ADDRESS BATCH_INCOMPLETE BIND_ACCESS BIND_BOUND BIND_EMPTY BIND_LOCAL_WRITE BIND_RANGE BIND_REGION
    BIND_WINDOW GID_FAMILY
    INVALIDATE_LOCAL LEFT_OVER LETTER_USER MAD_CLASS MAD_LENGTH MAD_MESSAGE MAD_NOT_SERVED MAD_TOO_MANY MAD_UNSOLICITED
    PACKET_DESTINATION PACKET_FORWARDED PACKET_ICRC PACKET_NOT_JOINED PACKET_PAD PACKET_PAYLOAD
    PACKET_SOURCE PACKET_TRUNCATED PACKET_VERSION RAW_DROPPED_BY_RULE RAW_NOT_STEERED RAW_TOO_SHORT
    REMOTE_WINDOW_QP REQUEST_UNSUPPORTED RSS_NO_QUEUE TABLE_TRUNCATED TM_INCOMPLETE UNSUPPORTED XRC_DOMAIN
    XRC_SRQ_DESTROYED
""".split())


def tests(tree):
    """The text of all tests, beside the code and below tests/; each word of a table counts as quoted."""
    for place in ("src", "tests"):
        for folder, _, names in os.walk(os.path.join(tree, place)):
            for name in names:
                if re.search(r"_test\.(c|py)$", name) or (place == "tests" and name.endswith((".c", ".h", ".py", ".def"))):
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        text = file.read()
                        yield re.sub(r"\b([A-Z][A-Z0-9_]+)\b", r'"\1"', text) if name.endswith(".def") else text


def untested(reasons, text):
    names = {one or other for one, other in re.findall(r"\bREASON_(\w+)|\"([A-Z][A-Z0-9_]+)\"", text)}
    numbers = {int(number) for number in re.findall(r"\b(?:reason|vendor_err)[ =]*(\d+)\b", text)}
    return {name for number, name in reasons if name not in names and number not in numbers}


def free_numbers(text):
    """The number of the next reason of each section: the first of five free numbers in a row after the section's first number."""
    used = {int(number) for number, _ in LINE.findall(text)}
    for name, section in re.findall(r"^/\* ([^*]+) \*/\n(REASON.*?)(?=\n\n|\Z)", text, re.MULTILINE | re.DOTALL):
        number = int(LINE.search(section).group(1))
        while any(number + i in used for i in range(GAP)):
            number += 1
        yield name, number


def explained(tree):
    """The page that the entry of each reason names, by the reason's name."""
    folder, pages = os.path.join(tree, "tools/explain"), {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".def") and name != "words.def":
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                pages.update(CAUSE.findall(file.read()))
    return pages


def unexplained(tree, reasons):
    """A sentence for each reason without an entry, for each entry without a reason, and for each page that is not there."""
    pages, names = explained(tree), {name for _, name in reasons}
    for number, name in reasons:
        if name not in pages:
            yield (f"reason {number} has no entry below tools/explain: add CAUSE({name}, causes, example, cure, page) to calls.def, "
                   "completions.def, packets.def, special.def or connections.def")
    for name in sorted(set(pages) - names):
        yield f"CAUSE({name}, ...) below tools/explain is of no reason of src/diag/diag.def: take it out, or rename it"
    for name, page in sorted(pages.items()):
        if name in names and not os.path.exists(os.path.join(tree, "docs", page)):
            yield f"CAUSE({name}, ...) names the page docs/{page}, which is not there"


def main():
    with open(os.path.join(sys.argv[1], "src/diag/diag.def"), encoding="utf-8") as file:
        text = file.read()
    reasons = [(int(number), name) for number, name in LINE.findall(text)]
    lacking = untested(reasons, "\n".join(tests(sys.argv[1])))
    print("1..3")
    new, done = sorted(lacking - UNTESTED), sorted(UNTESTED - lacking)
    print(f"{'not ' if new else ''}ok 1 - each reason has a test that names it")
    for name in new:
        print(f"# no test names {name}: one must show that it is given, or it is given to nobody")
    print(f"{'not ' if done else ''}ok 2 - those that have a test by now are not excused")
    for name in done:
        print(f"# take {name} out of UNTESTED in tools/build/reasons.py")
    mute = list(unexplained(sys.argv[1], reasons))
    print(f"{'not ' if mute else ''}ok 3 - softverbs explain knows causes, an example and a cure of each reason")
    for sentence in mute:
        print(f"# {sentence}")
    free = {number: name for name, number in free_numbers(text)}  # a full section is followed by another
    print("# next numbers: " + ", ".join(f"{name} {number}" for number, name in free.items()))
    return 1 if new or done or mute else 0


if __name__ == "__main__":
    sys.exit(main())
