#!/usr/bin/env python3
"""A new setting is one line of src/base/settings.def and its use, a new event or kind of fault one line of src/events/events.def and its
use: in copies of these lists such lines are added, what knows how many there are is compiled anew against the copies, and the setting is
in the help, the manual page, the completions, the checks and the reader; the event in the log, the JSON, its page and `explain`."""
import concurrent.futures
import functools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
import made_pages
from cases import BUILD, TREE, expect, softverbs

LINE = ('SETTING(FLAVOUR, "flavour", CHOICE, "sweet sour", "sweet", "flavour", "WORD",\n'
        '    "how the devices taste", "`sweet` or `sour`: the flavour of the devices")\n')
USE = '#include <stdio.h>\n\n#include "config/settings.h"\n\nint main(void)\n{\n    return puts(setting_text(SETTING_FLAVOUR)) < 0;\n}\n'
EVENT_LINES = ('FAULT(SPICE, "spice", SHARE, "3%", "spiced",\n    "SOFTVERBS_FAULT spiced a packet.")\n'
               'COUNTED(FLAVOURED, "flavoured", "", NONE, "FLAVOURED", "flavour_pkts", INFO, NONE, PSN, NONE,\n    "A packet had a flavour.")\n')
EVENT_USE = """#include <stdio.h>

#include "diag/log.h"
#include "report/counts_report.h"
#include "tap/traffic.h"

int main(void)
{
    struct lock lock = {0};
    uint32_t number = 0x12;
    struct traffic_flow flow = {.lock = &lock, .number = number};
    struct counts_total total = {0};
    log_start();
    lock_take(&lock);
    traffic_note(&flow, EVENT_FLAVOURED, 17, 0);
    lock_release(&lock);
    counts_sum(&total.rest, &flow.counts);
    putchar('{');
    counts_report(stdout, &total, NULL);
    return puts("}") < 0;
}
"""
FAULT_USE = """#include <stdio.h>

#include "script/faults.h"
#include "tap/fault.h"

int main(void)
{
    static struct script script;
    char why[256], words[96];
    if (!fault_parse("spice=100%", &script, why, sizeof why) || script.count != 1)
        return 1;
    struct fault fault = fault_draw(1, 1);
    fault_add(&fault, 1u << (script.rules[0].draw.fault - 1), 0);
    return !fault_has(&fault, FAULT_SPICE) || puts(fault_describe(&fault, words, sizeof words)) < 0;
}
"""
PLACE = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
COUNTS_THEM = re.compile(r"\bSETTINGS\b|\bsettings\.def\b|\bPREPARE_|\b(events/|tap/fault|report/counts_report)")


def _commands():
    with open(f"{BUILD}/compile_commands.json", encoding="utf-8") as file:
        return {os.path.relpath(os.path.join(entry["directory"], entry["file"]), TREE): entry for entry in json.load(file)
                if "/test" not in entry["output"] or "tests/" not in entry["output"]}


def _compile(entry, source, shadow, output):
    """Compiles as the build does, but with the list in `shadow` before all others."""
    words = shlex.split(re.sub(r" -M(D|[FQ] \S+)| -[co] \S+", "", entry["command"]))
    first = next(at for at, word in enumerate(words) if word.startswith("-I"))
    subprocess.run([*words[:first], f"-I{shadow}", *words[first:], "-O0", "-g0", "-U_FORTIFY_SOURCE", "-fno-lto", "-c", source, "-o", output], cwd=entry["directory"], check=True)


def _add(place, path, behind, lines):
    """The list with more lines before this one, in the tree and where the compiler finds it first."""
    with open(f"{TREE}/src/{path}", encoding="utf-8") as file:
        text = file.read()
    assert text.count(behind) == 1
    for folder in (f"{place}/tree/src", f"{place}/shadow"):
        os.makedirs(os.path.dirname(f"{folder}/{path}"), exist_ok=True)
        with open(f"{folder}/{path}", "w", encoding="utf-8") as file:
            file.write(text.replace(behind, lines + behind))


def _tree_with_the_lines(place):
    """A tree of sources and the page, and the lists where the compiler finds them first."""
    shutil.copytree(f"{TREE}/src", f"{place}/tree/src")
    os.makedirs(f"{place}/tree/docs/reference")
    for folder in ("explain", "interface"):
        shutil.copytree(f"{TREE}/tools/{folder}", f"{place}/tree/tools/{folder}")
    shutil.copy(f"{TREE}/docs/reference/json.md", f"{place}/tree/docs/reference/json.md")
    _add(place, "base/settings.def", "FOREIGN(NCCL", LINE)
    _add(place, "events/events.def", "\nEVENT(QP_STATE,", EVENT_LINES)


def _compile_all(place):
    """The sources that know how many settings or events there are, as objects: by the build's name for each."""
    made, begun = {}, []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as beside:
        _begin_all(place, made, lambda *of_one: begun.append(beside.submit(_compile, *of_one)))
    for each in begun:
        each.result()
    return made


def _begin_all(place, made, begin):
    for source, entry in _commands().items():
        if not source.startswith(("tools/", "src/config/", "src/events/", "src/tap/fault.c", "src/script/faults.c", "src/report/counts_")) or re.search("_fuzz|_test|/shim/|/rdma/", source):
            continue
        with open(f"{TREE}/{source}", encoding="utf-8") as file:
            if COUNTS_THEM.search(file.read()):
                made[entry["output"]] = f"{place}/{source.replace('/', '_')}.o"
                begin(entry, f"{TREE}/{source}", f"{place}/shadow", made[entry["output"]])


def _link(output, made, instead=None):
    """Links as the build links the command, with the object that was made here instead of the command's; `instead` of all
    objects of the command."""
    line = subprocess.run(["ninja", "-C", BUILD, "-t", "commands", "softverbs"], capture_output=True, text=True, check=True).stdout.splitlines()[-1]
    words = shlex.split(line)
    at = words.index("-o") + 1
    own = instead or [made.get(word, word) for word in words if word.endswith(".o")]
    of_libraries = [path for name, path in made.items() if re.search("lib(config|events|tap|script|report)", name)]
    rest = [word for word in words[at + 1:] if not word.endswith(".o")]
    quick = ["-fno-lto" if instead else "-O0"]  # objects of the library have their code, too; some of the command don't
    subprocess.run([*words[:at], output, *quick, *own, *of_libraries, *rest], cwd=BUILD, check=True)
    return output


@functools.cache
def _built():
    """Once for all cases: a place with the tree, the objects that were made anew, and the command of them."""
    place = PLACE.name
    _tree_with_the_lines(place)
    made = _compile_all(place)
    return place, made, _link(f"{place}/softverbs", made)


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
    place, made, tool = _built()
    assert "--flavour WORD" in softverbs("help", "run", tool=tool).stdout.decode()
    expect(softverbs("env", "--flavour", "bitter", tool=tool), 2, b"(exit 2)\n", [b'"bitter": it is not one of sweet and sour'])
    expect(softverbs("env", tool=tool, env={"SOFTVERBS_FLAVOUR": "bitter"}), 2, b"(exit 2)\n", [b"it is not one of sweet and sour"])
    assert b"not one of" not in softverbs("env", "--flavour", "sour", tool=tool).stderr
    _expect_in_pages(tool, place)
    _expect_in_reader(place, made)


def _use(place, made, name, text):
    """The program of this text, with the lists as they are in the copy."""
    source, output = f"{place}/{name}.c", f"{place}/{name}.o"
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    _compile(_commands()["src/report/counts_report.c"], source, f"{place}/shadow", output)
    return _link(f"{place}/{name}", made, [output])


def _check_events(place):
    script = f"{TREE}/tools/build/events.py"
    return subprocess.run([sys.executable, script, f"{place}/tree"], capture_output=True, text=True, check=False).stdout


def a_new_event_is_one_line_and_its_use():
    place, made, tool = _built()
    use = _use(place, made, "event_use", EVENT_USE)
    for word in ("FLAVOURED", "flavoured"):
        assert b'A packet had a flavour. (event, counted as "flavoured")' in expect(softverbs("explain", word, tool=tool)).stdout
    done = expect(softverbs(tool=use, env={"SOFTVERBS_LOG": "info"}), 0, None, None)
    assert b" qp 0x12: A packet had a flavour. (FLAVOURED, psn 17)\n" in done.stderr, cases.told(done)
    assert json.loads(done.stdout)["flavoured"] == 1, cases.told(done)
    said = _check_events(place)
    assert "FLAVOURED: nothing notes it" in said and "FAULT_SPICE: nothing notes it" in said, said
    with open(f"{place}/tree/src/tap/use.c", "w", encoding="utf-8") as file:
        file.write(EVENT_USE + FAULT_USE)
    assert "not ok" not in _check_events(place), _check_events(place)
    assert "\n| `flavoured` | integer | A packet had a flavour. |\n" in made_pages.whole(f"{place}/tree", "docs/reference/json.md")


def a_new_kind_of_faults_is_one_line_and_its_use():
    place, made, tool = _built()
    expect(softverbs(tool=_use(place, made, "fault_use", FAULT_USE)), 0, b"fault: spiced\n")
    assert "spice=3%" in " ".join(softverbs("help", "run", tool=tool).stdout.decode().split())
    assert b"not one of" not in softverbs("env", "--fault", "spice=3%", tool=tool).stderr
    expect(softverbs("env", "--fault", "salt=3%", tool=tool), 2, None, [b"is not one of drop, dup", b"spice, and seed"])
    assert b"SOFTVERBS_FAULT spiced a packet." in expect(softverbs("explain", "FAULT_SPICE", tool=tool)).stdout


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
