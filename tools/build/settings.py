#!/usr/bin/env python3
"""Checks that code and scripts agree with src/base/settings.def; prints TAP.

Usage: settings.py DIRECTORY [--dictionary]

`table` is the list of docs/reference/settings.md (made_pages.py). No other place of src/ and tools/ names a variable to
read or set it: they use `enum setting`. Each setting has a reader in src/ or tools/: a place that does more than set it. --dictionary prints libFuzzer's dictionary of names, words and limits.
"""
import os
import re
import sys

sys.dont_write_bytecode = True
from tree import judged, read, strip

FIELDS = ("variable", "key", "type", "range", "standard", "option", "value", "help", "meaning")
# Code that runs before main in every program under `run`, and has no header of the library's.
APART = ("tools/shim/paths.c", "tools/unopened/at_end.c")


def arguments(text):
    """The arguments of a macro call whose opening parenthesis was just passed, and what follows it: strings without their quotes."""
    parts, depth, at = [""], 1, 0
    for token in re.finditer(r'"((?:[^"\\]|\\.)*)"|([(),])|[^"(),]+', text):
        at = token.end()
        if token[1] is not None:
            parts[-1] += token[1].replace('\\"', '"').replace("\\\\", "\\")
            continue
        depth += {"(": 1, ")": -1}.get(token[2], 0)
        if not depth:
            break
        if token[2] == "," and depth == 1:
            parts.append("")
        elif token[0].strip():
            parts[-1] += token[0].strip()
    return parts, text[at:]


def entries(path, macro):
    """The arguments of each use of this macro in the list."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    for found in re.finditer(rf"^{macro}\(", text, re.M):
        yield arguments(text[found.end():])[0]


def settings(top):
    return [dict(zip(FIELDS, row)) for row in entries(os.path.join(top, "src/base/settings.def"), "SETTING")]


def limits(top):
    """Names, standards and bounds of config/limits.def."""
    for name, *numbers in entries(os.path.join(top, "src/config/limits.def"), "LIMIT"):
        yield name, *(eval(re.sub(r"\b(\d+)u\b", r"\1", number).replace("UINT8_MAX", "255"), {}) for number in numbers)  # pylint: disable=eval-used


def faults(top):
    """A list of all kinds of faults, as SOFTVERBS_FAULT takes it."""
    lines = entries(os.path.join(top, "src/events/events.def"), "FAULT")
    return ",".join([*(f"{word}={example}" for _, word, _, example, *_ in lines), "seed=7"])


def rows(top):
    """(variable, meaning as Markdown) of all that users may set."""
    lines = settings(top)
    keys = ", ".join(f"`{line['key']} = {line['value']}`" for line in lines if line["key"])
    names = ", ".join(f"`{name}` ({standard:,}; {least:,} to {most:,})" for name, standard, least, most in limits(top))
    for line in lines:
        if line["meaning"]:
            yield "SOFTVERBS_" + line["variable"], line["meaning"].replace("@KEYS@", keys).replace("@LIMITS@", names).replace("@FAULTS@", faults(top))
    for variable, _, meaning in entries(os.path.join(top, "src/base/settings.def"), "FOREIGN"):
        yield variable, meaning


def table(top):
    return "| variable | meaning |\n|---|---|\n" + "".join(f"| `{name}` | {meaning} |\n" for name, meaning in rows(top))


def production(top):
    """Path and text of each source of the library and the command."""
    for base in ("src", "tools"):
        for folder, _, names in os.walk(os.path.join(top, base)):
            for name in sorted(names):
                path = os.path.relpath(os.path.join(folder, name), top)
                if name.endswith((".c", ".h")) and "_test." not in name and "_fuzz." not in name and "testing" not in path:
                    yield path, read(top, path)


def named_elsewhere(top):
    """Calls that name a variable of ours."""
    for path, text in production(top):
        if path not in APART:
            for call in re.findall(r'\b(?:secure_getenv|getenv|setenv|unsetenv)\("SOFTVERBS_\w+"', text):
                yield f"{path}: {call})"


def unread(top):
    """Settings that no code reads: their constant is named only to set them, or not at all."""
    read_ones = set()
    for _, text in production(top):
        read_ones |= set(re.findall(r"(?<!setting_put\()\bSETTING_([A-Z]\w*)", strip(text)))
    return [f"SOFTVERBS_{line['variable']} has no reader in src/ and tools/" for line in settings(top) if line["variable"] not in read_ones]


def reserved_names(top):
    return {row[0] for row in entries(os.path.join(top, "src/base/settings.def"), "RESERVED")}


def readers(top):
    """The files whose variables users may have in the environment of a command: the action, the pages about CI, scripts and tests."""
    yield from ("action.yml", "docs/how-to/ci.md", "docs/how-to/action.md")
    for base in ("bench", "packaging", "tests", "tools"):
        for folder, _, names in os.walk(os.path.join(top, base)):
            yield from (os.path.relpath(os.path.join(folder, name), top) for name in sorted(names) if name.endswith((".py", ".sh", ".c")))


READ = re.compile(r"""(?:environ(?:\.get)?[\[(]["']|getenv\("|\$\{?|^ +)SOFTVERBS_(\w+)(?=["':}\s])""", re.M)


def unknown_variables(top):
    """Variables of ours that the project reads, and that softverbs would call unknown."""
    known = {line["variable"] for line in settings(top)} | reserved_names(top)
    for path in readers(top):
        names = set(READ.findall(read(top, path))) if os.path.exists(os.path.join(top, path)) else set()
        yield from (f"{path}: SOFTVERBS_{name}" for name in sorted(names - known))


def dictionary(top):
    words = {line["variable"] for line in settings(top)}
    for line in settings(top):
        words |= {line["key"], *line["range"].split(), line["standard"]}
    with open(os.path.join(top, "src/config/limits.def"), encoding="utf-8") as file:
        words |= set(re.findall(r"^LIMIT\((\w+)", strip(file.read()), re.M))
    words |= {item.split("=")[0] + "=" for item in faults(top).split(",")} | {"%", "ms", "us", "+-", "=", ",", "#"}
    return "".join(f'"{word}"\n' for word in sorted(words) if word)


def main():
    top = sys.argv[1]
    if "--dictionary" in sys.argv:
        print(dictionary(top), end="")
        return 0
    lines = settings(top)
    silent = [f"{line['variable']}: an option without words of help" for line in lines if line["option"] and not line["help"]]
    named, idle = list(named_elsewhere(top)), unread(top)
    unknown = list(unknown_variables(top))
    return judged((f"each option of {len(lines)} settings has its help", silent),
                  ("no other place names a variable of ours to read or set it", named),
                  ("each variable that the action, the pages about CI, scripts and tests read is a setting or RESERVED", unknown),
                  ("each setting has a reader", idle))


if __name__ == "__main__":
    sys.exit(main())
