"""The table of docs/reference/vendor-errors.md, made of src/profile/vendors.def."""
import os

from settings import entries


def part(top):
    rows = entries(os.path.join(top, "src/profile/vendors.def"), "VENDOR")
    text = "| driver | code | status | meaning | source |\n|---|---|---|---|---|\n"
    for driver, code, status, how, words, source in rows:
        number = int(str(code), 0)
        text += f"| {driver} | {number} (0x{number:x}) | {status or 'any'} | {words} | {how.lower()}: {source} |\n"
    return text
