"""Draws mutants by a seed: as many for each layer, first a kind, then a place of that kind.

Nothing is drawn that can't be committed or that changes nothing: what does not compile, what the compiler warns of, and what it
makes the same machine code of as of the original, with -O1.
"""
import os
import random
import re
import shlex
import subprocess

from mutant import Mutant, whole_lines
from sites import sites_of

SUPPORT = re.compile(r"/testing/|_test\.c$|_fuzz\.c$")


def production_files(top, layer):
    folder = os.path.join(top, "src", layer)
    names = (os.path.relpath(os.path.join(at, name), top) for at, _, files in os.walk(folder) for name in files)
    return sorted(name for name in names if name.endswith(".c") and not SUPPORT.search(name))


class Compiler:
    """Compiles single files of a copy with the flags of its build."""

    def __init__(self, copy):
        import json
        self.copy = copy
        with open(os.path.join(copy.build, "compile_commands.json"), encoding="utf-8") as file:
            self.commands = {os.path.normpath(os.path.join(entry["directory"], entry["file"])): entry["command"] for entry in json.load(file)}
        self.originals = {}

    def compile(self, name):
        """The machine code, None where there is an error or a warning."""
        words = shlex.split(self.commands[os.path.normpath(self.copy.path(name))])
        out = os.path.join(self.copy.build, "drawn.o")
        words = [word for word in words if not word.startswith("-M") and not word.endswith(".d") and word != "-O0"]
        words = [word for word in words if word != "ccache"]
        words[words.index("-o") + 1] = out
        words = [word for index, word in enumerate(words) if words[index - 1] != "-MQ"]
        words += ["-O1", "-g0", "-Werror", "-U_FORTIFY_SOURCE"]
        done = subprocess.run(words, cwd=self.copy.build, stderr=subprocess.DEVNULL)
        if done.returncode:
            return None
        with open(out, "rb") as file:
            return file.read()

    def differs(self, name, text, site):
        if name not in self.originals:
            self.originals[name] = self.compile(name)
        self.copy.write(name, text[:site.start] + site.new + text[site.end:])
        code = self.compile(name)
        self.copy.write(name, text)
        return code is not None and code != self.originals[name]


def draw_layer(copy, compiler, layer, count, chance):
    places = {}
    for name in production_files(copy.tree, layer):
        for site in sites_of(copy.read(name)):
            places.setdefault(site.kind, []).append((name, site))
    drawn, lines = [], set()
    while len(drawn) < count:
        kind = chance.choice(sorted(places))
        name, site = places[kind].pop(chance.randrange(len(places[kind])))
        text = copy.read(name)
        line, before, after = whole_lines(text, site)
        if (name, line) not in lines and compiler.differs(name, text, site):
            lines.add((name, line))
            drawn.append((name, line, kind, before, after))
    return sorted(drawn)


def draw(copy, layers, count, seed):
    compiler, chance, mutants = Compiler(copy), random.Random(seed), []
    for layer in layers:
        for name, line, kind, before, after in draw_layer(copy, compiler, layer, count, chance):
            mutants.append(Mutant(len(mutants) + 1, layer, name, line, kind, before, after))
    return mutants
