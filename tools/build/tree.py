"""The common parts of the checks of the tree's shape."""
import os
import re

# Code that is not linked into what is installed: tests and their support.
SUPPORT = re.compile(r"(^|/)(tests?|testing|fuzz|bench|simulator|newer|versions|build|ci|pages)/|_(test|fuzz|bench|rig|trial|model|desk)\.[ch]$|"
                     r"/(rig|script)\.[ch]$")


def read_layers(top):
    """The headers that each layer may include from the others, and those that all layers may use, as src/layers says."""
    others, ground = {}, []
    try:
        with open(os.path.join(top, "src/layers"), encoding="utf-8") as file:
            for name, star, rest in re.findall(r"^(\w+)(\*?):(.*)$", file.read(), re.M):
                others[name] = set(rest.split())
                ground += [name + "/"] if star else []
    except FileNotFoundError:
        pass
    return others, tuple(ground)


def read_floors(top):
    """The folders that each folder of each layer may include, as the indented lines of src/layers say. A layer without such
    lines has no floors. The files at the top of a layer (folder "") are the lowest: every folder may include them, and they may include the
    folders of the line "."."""
    floors, layer = {}, None
    try:
        with open(os.path.join(top, "src/layers"), encoding="utf-8") as file:
            for line in file:
                found = re.match(r"( *)([\w/.]+)\*?:(.*)$", line)
                if found and found.group(1):
                    floors.setdefault(layer, {})[found.group(2)] = set(found.group(3).split())
                elif found:
                    layer = found.group(2)
    except FileNotFoundError:
        pass
    return floors


def strip(text):
    """The text without comments, strings, and attributes, which look like calls."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"", " ", text, flags=re.S)
    return re.sub(r"\b__attribute__\(\([^()]*(?:\([^()]*\)[^()]*)*\)\) ?", "", text)


def report(number, name, faults):
    print(f"{'not ok' if faults else 'ok'} {number} - {name}")
    for fault in faults:
        print(f"# {fault}")


def judged(*checks):
    """Prints TAP for checks, each a name and its faults; returns the exit status."""
    print(f"1..{len(checks)}")
    for number, (name, faults) in enumerate(checks, 1):
        report(number, name, faults)
    return int(any(faults for _, faults in checks))


def read(top, path):
    with open(os.path.join(top, path), encoding="utf-8") as file:
        return file.read()
