"""Draws mutants by a seed: as many for each layer, first a kind, then a place of that kind.

Nothing is drawn that can't be committed or that changes nothing: what does not compile, what the compiler warns of, and what it
makes the same machine code of as of the original, with -O1.
"""
import concurrent.futures
import json
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
    """Compiles single files of a layer, of a copy, with the flags of its build."""

    def __init__(self, copy, layer):
        self.copy, self.out, self.commands, self.originals = copy, "drawn-%s.o" % layer, {}, {}
        with open(os.path.join(copy.build, "compile_commands.json"), encoding="utf-8") as file:
            for entry in json.load(file):
                if entry["output"].startswith("src/%s/lib%s.a.p/" % (layer, layer)):
                    self.commands[os.path.normpath(os.path.join(entry["directory"], entry["file"]))] = entry["command"]

    def compile(self, name):
        """The machine code, None where there is an error or a warning."""
        words = [word for word in shlex.split(self.commands[os.path.normpath(self.copy.path(name))]) if word not in ("ccache", "-MD")]
        words = [word for index, word in enumerate(words) if not {word, words[index - 1]} & {"-MQ", "-MF"}]
        words[words.index("-o") + 1] = self.out
        done = subprocess.run([*words, "-O1", "-g0", "-Werror", "-U_FORTIFY_SOURCE"], cwd=self.copy.build, stderr=subprocess.DEVNULL)
        if done.returncode:
            return None
        with open(os.path.join(self.copy.build, self.out), "rb") as file:
            return file.read()

    def differs(self, name, text, site):
        if name not in self.originals:
            self.originals[name] = self.compile(name)
            if self.originals[name] is None:
                raise RuntimeError("%s does not compile as it is" % name)
        self.copy.write(name, text[:site.start] + site.new + text[site.end:])
        code = self.compile(name)
        self.copy.write(name, text)
        return code is not None and code != self.originals[name]


def draw_layer(copy, layer, count, seed):
    places, compiler, chance = {}, Compiler(copy, layer), random.Random("%d %s" % (seed, layer))
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
            print("%s: %d of %d" % (layer, len(drawn), count), flush=True)
    return [(layer, *one) for one in sorted(drawn)]


def draw(copy, layers, count, seed):
    """Two layers at a time."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        lists = pool.map(lambda layer: draw_layer(copy, layer, count, seed), layers)
        found = [one for drawn in lists for one in drawn]
    return [Mutant(number, *one) for number, one in enumerate(found, 1)]
