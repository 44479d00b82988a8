"""The tables of docs/reference/errors.md, made of tests/api/errors/error_matrix.def."""
import os

from settings import entries

FOLDER = "tests/api/errors"
FIELDS = ("type", "operation", "fault", "requester", "responder", "state", "peer_state", "reason", "peer_reason", "event")
HEAD = "| operation | fault | requester | responder's receive | states after | event |\n|---|---|---|---|---|---|\n"


def status(word, reason, numbers):
    return "waits" if word == "NOTHING" else word if reason == "NONE" else f"{word} ({numbers[reason]})"


def row(line, faults, numbers):
    peer_state = line["peer_state"].replace("GONE", "gone")
    return (f"| {line['operation']} | {faults[line['fault']]} | {status(line['requester'], line['reason'], numbers)} | "
            f"{status(line['responder'], line['peer_reason'], numbers)} | {line['state']}, {peer_state} | {line['event'].replace('NONE', '')} |\n")


def part(top):
    """A chapter for each type of queue pairs, and one with the reasons that their rows name."""
    lines = [dict(zip(FIELDS, each)) for each in entries(os.path.join(top, FOLDER, "error_matrix.def"), "ROW")]
    faults = {name: sentence for name, _, _, sentence in entries(os.path.join(top, FOLDER, "error_faults.def"), "FAULT")}
    known = list(entries(os.path.join(top, "src/diag/diag.def"), "REASON"))
    numbers = {name: number for number, name, _ in known}
    text = ""
    for kind in ("RC", "UC", "UD"):
        text += f"\n## {kind}\n\n{HEAD}" + "".join(row(line, faults, numbers) for line in lines if line["type"] == kind)
    named = {line[key] for line in lines for key in ("reason", "peer_reason")}
    return text + "\n## Reasons\n\n| number | meaning |\n|---|---|\n" + "".join(f"| {number} | {said} |\n" for number, name, said in known if name in named)
