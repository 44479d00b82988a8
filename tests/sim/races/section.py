"""The section of docs/evidence/sim.md that races.py writes."""
import os
import textwrap

HEADING = "## Known races"
HEAD = f"""{HEADING}

Races of other projects in their unchanged sources, with small programs of ours that use them ([how](../how-to/sim.md)).
*Found*: in so many of 100 seeds of the sources before the mend. *Repeats*: so many runs of the first such seed were
equal in decisions, output and outcome. *Turns*: so many are left after `--shrink`, of the first seeds until one has at
most 6; so many replays of that file were equal. *With the mend*: found in so many seeds; *stopped*: so many runs did
not end in 120 s of real time on a machine that had a load of 20 to 30, and show nothing. `make sim-races
CHECKOUTS=DIRECTORY` makes this section; stopped, it goes on.

| mend | what races | found | repeats | turns; replays | with the mend |
|---|---|---|---|---|---|
"""


def paragraphs(notes):
    """The lines of notes, each with an empty line after it."""
    return [line for note in notes for line in [*textwrap.wrap(note, 120), ""]]


def write(path, rows, notes):
    """Puts the section in the place of the one that is there, or at the end of the page."""
    with open(path, encoding="utf-8") as file:
        page = file.read()
    begin = page.find(HEADING)
    before = page[:begin] if begin >= 0 else page.rstrip("\n") + "\n\n"
    next_one = page.find("\n## ", begin + 1) if begin >= 0 else -1
    after = page[next_one:] if next_one >= 0 else ""
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write(before + HEAD + "\n".join([*rows, "", *notes, ""]) + after)
    os.replace(f"{path}.new", path)
