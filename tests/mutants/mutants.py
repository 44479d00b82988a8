#!/usr/bin/env python3
"""Changes the production code in one place at a time, in a copy of the tree, and says which test notices.

Usage: mutants.py draw
       mutants.py run [NUMBER...]
       mutants.py again left
       mutants.py page

draw: draws the list anew, by SEED. run: judges the mutants that have no fate yet, or those of the numbers; it can be stopped, and goes
on where it was. again left: judges those that survived once more. page: writes docs/evidence/mutants.md, as `run` does at its end.
The copy, its build and the fates are kept in build-mutants/.
"""
import json
import os
import sys

sys.dont_write_bytecode = True
import copied
import draw
import judge
import mutant
import page

SEED = 20261128
EACH = 50 # of each layer
LAYERS = ["wire", "cm", "transport", "verbs"]

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
PLACE = os.path.join(TOP, "build-mutants")
LIST, ARGUED, FATES = os.path.join(HERE, "drawn"), os.path.join(HERE, "argued"), os.path.join(PLACE, "fates")
PAGE = os.path.join(TOP, "docs/evidence/mutants.md")


def read_fates():
    """Number: test that killed it, or None, and how. A later line counts."""
    if not os.path.exists(FATES):
        return {}
    with open(FATES, encoding="utf-8") as file:
        return {str(number): (test, how) for number, test, how in map(json.loads, file)}


def note(number, test, how):
    with open(FATES, "a", encoding="utf-8") as file:
        file.write(json.dumps([number, test, how]) + "\n")


def is_gone(one):
    """True where the tree has the line no more."""
    path = os.path.join(TOP, one.path)
    if not os.path.exists(path):
        return True
    with open(path, encoding="utf-8") as file:
        return mutant.put(file.read(), one) is None


def write_page():
    mutants = mutant.read_list(LIST)
    gone = {one.number for one in mutants if is_gone(one)}
    page.write_page(PAGE, mutants, read_fates(), page.read_argued(ARGUED), gone, SEED)


def prepared():
    copy = copied.Copy(TOP, PLACE)
    copy.update()
    return copy


def judge_one(copy, one, tests, took):
    original = copy.read(one.path)
    text = mutant.put(original, one)
    if text is None:
        print("%d: the code of %s is not there any more" % (one.number, one.path))
        return
    try:
        copy.write(one.path, text)
        test, how = judge.judge(copy, tests, one.path, took)
    finally:
        copy.write(one.path, original)
    note(one.number, test, how)
    print("%3d %-45s %-22s %s" % (one.number, "%s:%d" % (one.path, one.line), one.kind, "%s %s" % (test, how) if test else "SURVIVES"), flush=True)


def measured(layer, tests):
    """Kept in a file, so that a run that was stopped goes on at once."""
    path = os.path.join(PLACE, "took-" + layer)
    took = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            took = json.load(file)
    judge.measure(tests, took)
    for test in tests:
        if took[test["name"]] is None:
            print("%s fails without a mutant, and judges nothing" % test["name"])
    with open(path, "w", encoding="utf-8") as file:
        json.dump(took, file)
    return took


def judge_layer(copy, layer, mutants):
    if not mutants:
        return
    tests = copy.tests(layer)
    wrong = copy.ninja(sorted({target for test in tests for target in test["targets"]}))
    if wrong:
        sys.exit(wrong)
    took = measured(layer, tests)
    tests = [test for test in tests if took[test["name"]] is not None]
    print("%s: %d tests, %.0f s without a mutant" % (layer, len(tests), sum(took[test["name"]] for test in tests)), flush=True)
    for one in mutants:
        judge_one(copy, one, tests, took)


def run(wanted):
    copy, mutants = prepared(), mutant.read_list(LIST)
    for layer in LAYERS:
        judge_layer(copy, layer, [one for one in mutants if one.layer == layer and one.number in wanted])
    write_page()


def open_numbers():
    return {one.number for one in mutant.read_list(LIST)} - {int(number) for number in read_fates()}


def left_numbers():
    argued = page.read_argued(ARGUED)
    return {int(number) for number, (test, _) in read_fates().items() if not test and not argued.get(number, "").startswith("equivalent")}


def main(arguments):
    os.makedirs(PLACE, exist_ok=True)
    if arguments == ["draw"]:
        mutant.write_list(LIST, draw.draw(prepared(), LAYERS, EACH, SEED))
    elif arguments == ["page"]:
        write_page()
    elif arguments == ["again", "left"]:
        run(left_numbers())
    elif arguments[:1] == ["run"] and all(word.isdigit() for word in arguments[1:]):
        run({int(word) for word in arguments[1:]} or open_numbers())
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
