#!/usr/bin/env python3
"""A new setting is one line of src/base/settings.def and its use: in a copy of that list the line is added, what knows the number
of settings is compiled anew against the copy, and the setting is in the help, the manual page, the completions, the checks and the reader."""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import cases
from cases import BUILD, expect, softverbs

TREE = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
LINE = ('SETTING(FLAVOUR, "flavour", CHOICE, "sweet sour", "sweet", "flavour", "WORD",\n'
        '    "how the devices taste", "`sweet` or `sour`: the flavour of the devices")\n')
USE = '#include <stdio.h>\n\n#include "config/settings.h"\n\nint main(void)\n{\n    return puts(setting_text(SETTING_FLAVOUR)) < 0;\n}\n'
COUNTS_THEM = re.compile(r"\bSETTINGS\b|\bsettings\.def\b|\bPREPARE_")


def _commands():
    with open(f"{BUILD}/compile_commands.json", encoding="utf-8") as file:
        return {os.path.relpath(os.path.join(entry["directory"], entry["file"]), TREE): entry for entry in json.load(file)
                if "/test" not in entry["output"] or "tests/" not in entry["output"]}


def _compile(entry, source, shadow, output):
    """Compiles as the build does, but with the list in `shadow` before all others."""
    words = shlex.split(re.sub(r" -M(D|[FQ] \S+)| -[co] \S+", "", entry["command"]))
    first = next(at for at, word in enumerate(words) if word.startswith("-I"))
    subprocess.run([*words[:first], f"-I{shadow}", *words[first:], "-c", source, "-o", output], cwd=entry["directory"], check=True)


def _tree_with_the_line(place):
    """A tree with the list alone, and the list where the compiler finds it first."""
    with open(f"{TREE}/src/base/settings.def", encoding="utf-8") as file:
        text = file.read()
    assert text.count("\nFOREIGN(") == 1
    for folder in ("config", "events"):
        shutil.copytree(f"{TREE}/src/{folder}", f"{place}/tree/src/{folder}")
    for folder in (f"{place}/tree/src/base", f"{place}/shadow/base"):
        os.makedirs(folder)
        with open(f"{folder}/settings.def", "w", encoding="utf-8") as file:
            file.write(text.replace("\nFOREIGN(", "\n" + LINE + "FOREIGN("))


def _compile_all(place):
    """The sources that know how many settings there are, as objects: by the build's name for each."""
    made = {}
    for source, entry in _commands().items():
        if not source.startswith(("tools/", "src/config/")) or re.search("_fuzz|_test|/shim/", source):
            continue
        with open(f"{TREE}/{source}", encoding="utf-8") as file:
            if COUNTS_THEM.search(file.read()):
                made[entry["output"]] = f"{place}/{source.replace('/', '_')}.o"
                _compile(entry, f"{TREE}/{source}", f"{place}/shadow", made[entry["output"]])
    return made


def _link(output, made, instead=None):
    """As the build links the command, with what was made in the place of its own; `instead` of all objects of the command."""
    line = subprocess.run(["ninja", "-C", BUILD, "-t", "commands", "softverbs"], capture_output=True, text=True, check=True).stdout.splitlines()[-1]
    words = shlex.split(line)
    at = words.index("-o") + 1
    own = instead or [made.get(word, word) for word in words if word.endswith(".o")]
    of_libraries = [path for name, path in made.items() if "libconfig" in name]
    rest = [word for word in words[at + 1:] if not word.endswith(".o")]
    subprocess.run([*words[:at], output, *own, *of_libraries, *rest], cwd=BUILD, check=True)
    return output


def _expect_in_pages(tool, place):
    script = f"{TREE}/tools/pages/pages.py"
    subprocess.run([sys.executable, script, tool, f"{place}/tree", "1", place], check=True)
    for name, words in {"softverbs.1": ["SOFTVERBS_FLAVOUR", "sweet or sour: the flavour", "flavour WORD"],
                        "softverbs.conf.5": ["flavour = WORD"], "softverbs.bash": ["--flavour"], "_softverbs": ["--flavour"]}.items():
        with open(f"{place}/{name}", encoding="utf-8") as file:
            text = file.read().replace("\\", "")
        assert all(word in text for word in words), (name, words)


def _expect_in_reader(place, made):
    source, output = f"{place}/use.c", f"{place}/use.o"
    with open(source, "w", encoding="utf-8") as file:
        file.write(USE)
    _compile(_commands()["src/config/settings.c"], source, f"{place}/shadow", output)
    use = _link(f"{place}/use", made, [output])
    with open(f"{place}/file", "w", encoding="utf-8") as file:
        file.write("flavour = sour\n")
    for environment, answer in (({}, b"sweet\n"), ({"SOFTVERBS_FLAVOUR": "sour"}, b"sour\n"), ({"SOFTVERBS_CONFIG": f"{place}/file"}, b"sour\n")):
        expect(softverbs(tool=use, env=environment), 0, answer)


def a_new_setting_is_one_line_and_its_use():
    with tempfile.TemporaryDirectory() as place:
        _tree_with_the_line(place)
        made = _compile_all(place)
        tool = _link(f"{place}/softverbs", made)
        assert "--flavour WORD" in softverbs("help", "run", tool=tool).stdout.decode()
        expect(softverbs("env", "--flavour", "bitter", tool=tool), 2, b"(exit 2)\n", [b'"bitter": it is none of sweet and sour'])
        expect(softverbs("env", tool=tool, env={"SOFTVERBS_FLAVOUR": "bitter"}), 2, b"(exit 2)\n", [b"it is none of sweet and sour"])
        assert b"none of" not in softverbs("env", "--flavour", "sour", tool=tool).stderr
        _expect_in_pages(tool, place)
        _expect_in_reader(place, made)


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
