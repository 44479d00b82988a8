"""One mutant: where it is, and how it is put into a file. The list of those that were drawn is a file of one JSON object a line."""
import collections
import json

# `before` and `after` are whole lines of `path`, whose first was number `line` when the list was drawn.
Mutant = collections.namedtuple("Mutant", "number layer path line kind before after")


def whole_lines(text, site):
    """The number of the first line that a site changes, and its lines before and after."""
    start = text.rfind("\n", 0, site.start) + 1
    end = text.find("\n", site.end)
    end = len(text) if end < 0 else end
    return text.count("\n", 0, start) + 1, text[start:end], text[start:site.start] + site.new + text[site.end:end]


def put(text, mutant):
    """The text with the mutant in it, None where the code is not there any more: nearest to the line where it was."""
    best = None
    at = text.find(mutant.before)
    while at >= 0:
        if (at == 0 or text[at - 1] == "\n") and text[at + len(mutant.before):at + len(mutant.before) + 1] in ("\n", ""):
            distance = abs(text.count("\n", 0, at) + 1 - mutant.line)
            if best is None or distance < best[0]:
                best = distance, at
        at = text.find(mutant.before, at + 1)
    if best is None:
        return None
    return text[:best[1]] + mutant.after + text[best[1] + len(mutant.before):]


def read_list(path):
    with open(path, encoding="utf-8") as file:
        return [Mutant(**json.loads(line)) for line in file]


def write_list(path, mutants):
    with open(path, "w", encoding="utf-8") as file:
        for mutant in mutants:
            file.write(json.dumps(mutant._asdict()) + "\n")
