"""A copy of the tree that is mutated, and its build without optimization. The tree itself is never changed."""
import filecmp
import json
import os
import shutil
import subprocess

# The suites that judge each layer, its own alone. The verbs' results and errno have their tests in tests/api (tests/README.md).
SUITES = {"wire": ["wire"], "cm": ["cm"], "transport": ["transport"], "verbs": ["verbs", "api", "refusals"]}
# A page against the programs of the others, which needs all of them.
LEFT_OUT = {"conformance"}


class Copy:
    def __init__(self, top, place):
        self.top, self.tree = top, os.path.join(place, "tree")
        self.build = os.path.join(self.tree, "build")

    def update(self):
        """Files that have not changed keep their times, so that ninja builds little."""
        names = subprocess.run(["git", "-C", self.top, "ls-files", "-z"], check=True, capture_output=True, text=True).stdout.split("\0")
        for name in filter(None, names):
            source, target = os.path.join(self.top, name), os.path.join(self.tree, name)
            if not os.path.isfile(source) or (os.path.isfile(target) and filecmp.cmp(source, target, shallow=False)):
                continue
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(source, target)
        if not os.path.exists(os.path.join(self.build, "build.ninja")):
            options = ["-Dtests=true", "-Db_lto=false", "-Doptimization=0", "-Ddebug=false"]
            subprocess.run(["meson", "setup", self.build, self.tree, *options], check=True, stdout=subprocess.DEVNULL)

    def path(self, name):
        return os.path.join(self.tree, name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def ninja(self, targets):
        """The output of a build that fails, or None."""
        # A compiler's cache would keep files that are not needed again; and a file that changes while it is read enters it with the wrong name.
        environment = dict(os.environ, CCACHE_DISABLE="1")
        done = subprocess.run(["ninja", "-j", "1", "-C", self.build, *targets], capture_output=True, text=True, env=environment)
        return done.stdout if done.returncode else None

    def introspect(self, what):
        return json.loads(subprocess.run(["meson", "introspect", what, self.build], check=True, capture_output=True, text=True).stdout)

    def tests(self, layer):
        """Each as a dictionary of meson's, with its `targets` for ninja and its `suites`."""
        files = {target["id"]: [os.path.relpath(name, self.build) for name in target["filename"]] for target in self.introspect("--targets")}
        found = []
        for test in self.introspect("--tests"):
            test["suites"] = [suite.split(":")[-1] for suite in test["suite"]]
            if test["name"] not in LEFT_OUT and set(test["suites"]) & set(SUITES[layer]):
                test["targets"] = [name for target in test["depends"] for name in files.get(target, [])]
                if test["cmd"][0].startswith(self.build):
                    test["targets"].append(os.path.relpath(test["cmd"][0], self.build))
                found.append(test)
        return found
