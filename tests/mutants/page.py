"""Writes docs/evidence/mutants.md: how many mutants were killed, and each that no test kills."""
import collections
import os
import textwrap

HEAD = """# Mutants: what the tests miss

`make mutants` changes one place of the production code at a time, in a copy of the tree, and runs the tests of that
place's layer: first the test that the file's name points to, then the rest of its suites, until one fails. %(count)d such
changes were drawn with the seed %(seed)d over `src/wire`, `src/cm`, `src/transport` and `src/verbs`, as many for each
layer: first a kind of change, then a place of that kind. The list (`tests/mutants/drawn`) was drawn, and committed,
before any test was written for one of them. A change was not drawn if it does not compile, if the compiler warns of it,
or if the machine code is the same.

Only the layer's own suites count (`SUITES` in `tests/mutants/copied.py`). A mutant that others would notice, such as
`clients` or the builds with sanitizers, is not killed by that. `NUMBERS="3 17"` judges these mutants anew.

- **killed**: a test fails, ends by a signal, or takes more than ten times as long as without the mutant. A test that
  has threads or processes must do so twice.
- **equivalent**: no program can see a difference; the reason is given.
- **left**: no test of the layer's suites sees it; the reason is given where there is one.
- **gone**: the line was changed since, before the mutant was judged.
- **not judged**: the run was stopped before. `make mutants` continues there, and writes this page anew.

%(sum)s
%(unjudged)s
## Those that no test kills

A change that has more than a line is shown by its first one that differs. Lines are numbered as in the commit in which the
list was drawn.

| # | place | change | fate |
|---|---|---|---|
"""


def shown(mutant):
    """The line that differs, before and after."""
    before, after = mutant.before.split("\n"), mutant.after.split("\n")
    for index in range(max(len(before), len(after))):
        old, new = (before[index:] or [""])[0], (after[index:] or [""])[0]
        if old != new:
            return index, old.strip(), new.strip()
    return 0, before[0].strip(), after[0].strip()


def escaped(text):
    return text.replace("|", "\\|")


def cell(text):
    return "``%s``" % escaped(text) if text else "nothing"


def fate_of(mutant, fates, argued, gone):
    number = str(mutant.number)
    if fates.get(number, ("", ""))[0]:
        return "killed", ""
    if number in argued:
        kind, _, reason = argued[number].partition(": ")
        return kind, "**%s**: %s" % (kind, reason)
    if number in fates:
        return "left", "**left**"
    if mutant.number in gone:
        return "gone", "gone"
    return "not judged", "not judged"


def row(mutant, words):
    index, old, new = shown(mutant)
    return "| %d | `%s:%d` | %s: %s → %s | %s |\n" % (mutant.number, mutant.path, mutant.line + index, escaped(mutant.kind), cell(old), cell(new), words)


def sums(mutants, kinds):
    layers = collections.Counter((mutant.layer, kinds[mutant.number]) for mutant in mutants)
    names = ["killed", "equivalent", "left", "gone", "not judged"]
    table = "| layer | mutants | %s |\n|---|---|%s\n" % (" | ".join(names), "---|" * len(names))
    order = list(dict.fromkeys(mutant.layer for mutant in mutants))
    for layer in order:
        counts = [layers[layer, name] for name in names]
        table += "| `%s` | %d | %s |\n" % (layer, sum(counts), " | ".join(map(str, counts)))
    whole = [sum(layers[layer, name] for layer in order) for name in names]
    return table + "| all | %d | %s |" % (len(mutants), " | ".join(map(str, whole)))


def read_argued(path):
    """Lines of a number, `equivalent` or `left`, and the reason: "17 equivalent: ...". """
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return dict(line.rstrip("\n").split(" ", 1) for line in file if line.strip())


def named(kinds, name):
    """A sentence with the numbers of those that have this fate."""
    numbers = [str(number) for number, kind in kinds.items() if kind == name]
    return "\n" + textwrap.fill(f"{name.capitalize()}: {', '.join(numbers)}.", 120) + "\n" if numbers else ""


def write_page(path, mutants, fates, argued, gone, seed):
    """`gone`: the numbers of those whose line the tree has no more."""
    rows, kinds = "", {}
    for mutant in mutants:
        kind, words = fate_of(mutant, fates, argued, gone)
        kinds[mutant.number] = kind
        rows += row(mutant, words) if kind in ("equivalent", "left") else ""
    with open(path, "w", encoding="utf-8") as file:
        file.write(HEAD % {"count": len(mutants), "seed": seed, "sum": sums(mutants, kinds), "unjudged": named(kinds, "gone") + named(kinds, "not judged")} + rows)
