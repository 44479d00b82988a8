#!/usr/bin/env python3
"""Writes the manual page and the completions of bash and zsh, of what the command says of itself.

Usage: pages.py SOFTVERBS TREE VERSION DIRECTORY

Commands, their arguments and options come from `softverbs --help` and `softverbs help COMMAND`; the environment and the
configuration file from src/base/settings.def of the tree. DIRECTORY gets softverbs.1, softverbs.conf.5, softverbs.bash and _softverbs.
"""
import os
import re
import shlex
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../build"))
import settings


def said(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def commands(softverbs):
    """name to its line of summary, in the order of --help."""
    rows = re.findall(r"^  (\w+) +(.*)$", said(softverbs, "--help"), re.MULTILINE)
    return {name: summary for name, summary in rows if name != "help"}


def options(softverbs, name):
    """The long options that the help of a command describes, each with whether it takes a value."""
    text = said(softverbs, "help", name)
    of_run = options(softverbs, "run") if "[OPTIONS of run]" in text else []
    return sorted({*of_run, *described(text)})


def described(text):
    return {(option, bool(value)) for option, value in re.findall(r"^  (?:-\w, )?(--[\w-]+)( [A-Z]+)?", text, re.MULTILINE)}


def roff(text):
    """Text as groff prints it unchanged."""
    lines = text.replace("\\", "\\e").replace("-", "\\-").splitlines()
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line for line in lines)


def plain(markdown):
    """Without marks, and without links that stand in brackets, such as ([how](page.md))."""
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", re.sub(r" \(\[[^]]*\]\([^)]*\)\)", "", markdown)).replace("`", "")


def page(title, section, version, parts):
    text = f'.TH {title} {section} "" "softverbs {version}" "softverbs"\n'
    return text + "".join(f".SH {heading}\n{body}\n" for heading, body in parts)


def command_part(softverbs, name):
    """The help of one command, as it stands on the screen."""
    usage, _, rest = said(softverbs, "help", name).partition("\n")
    return f".SS {roff(usage.removeprefix('Usage: '))}\n.nf\n{roff(rest.strip())}\n.fi"


def manual(softverbs, tree, version):
    rows = "\n".join(f".TP\n.B {roff(name)}\n{roff(plain(meaning))}" for name, meaning in settings.rows(tree))
    described = commands(softverbs)
    return page("SOFTVERBS", 1, version, [
        ("NAME", "softverbs \\- RDMA verbs without RDMA hardware"),
        ("SYNOPSIS", ".B softverbs\n.I COMMAND\n[OPTIONS] [ARGUMENTS]\n.br\n.B softverbs run \\-\\-\n.I PROGRAM\n[ARGUMENTS]"),
        ("DESCRIPTION", roff("Runs unmodified RDMA programs on software devices: the verbs library of rdma-core done in user space. "
                             "No RDMA card, no kernel module and no root are needed.")),
        ("COMMANDS", "\n".join(command_part(softverbs, name) for name in described)),
        ("ENVIRONMENT", rows),
        ("SEE ALSO", ".BR softverbs.conf (5),\n.BR ibv_devinfo (1),\n.BR ibv_rc_pingpong (1)"),
    ])


def configuration(tree, version):
    meaning = dict(settings.rows(tree))["SOFTVERBS_CONFIG"]
    return page("SOFTVERBS.CONF", 5, version, [
        ("NAME", "softverbs.conf \\- devices, limits and links of softverbs"),
        ("DESCRIPTION", roff("The file that SOFTVERBS_CONFIG names is " + plain(meaning) + ". Lines that begin with # are comments. What "
                             "the environment says goes before what the file says. The file is as powerful as a script: trust whoever may write it.")),
        ("EXAMPLE", ".nf\n" + roff("# two devices, the first one on the network\ndevices = left,right\nnet = eth0\nmax_qp = 128") + "\n.fi"),
        ("SEE ALSO", ".BR softverbs (1)"),
    ])


def bash(softverbs):
    cases = "".join(f"    {name}) words=\"{' '.join(option for option, _ in options(softverbs, name))}\" ;;\n"
                    for name in commands(softverbs))
    return ("# bash completion of softverbs\n_softverbs() {\n    local word=${COMP_WORDS[COMP_CWORD]} words\n"
            "    if [ \"$COMP_CWORD\" = 1 ]; then\n"
            f"        COMPREPLY=($(compgen -W \"{' '.join([*commands(softverbs), 'help'])}\" -- \"$word\"))\n        return\n    fi\n"
            "    case ${COMP_WORDS[1]} in\n" + cases + f"    help) words=\"{' '.join(commands(softverbs))}\" ;;\n    esac\n"
            "    case $word in\n    -*) COMPREPLY=($(compgen -W \"$words\" -- \"$word\")) ;;\n"
            "    *) if [ \"${COMP_WORDS[1]}\" = help ]; then COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
            "       else COMPREPLY=($(compgen -c -f -- \"$word\")); fi ;;\n    esac\n}\ncomplete -F _softverbs softverbs\n")


def zsh(softverbs):
    described = "".join(f"        {shlex.quote(f'{name}:{summary}')}\n" for name, summary in commands(softverbs).items())
    cases = "".join(f"    {name}) _arguments {' '.join(f'{option}' + (chr(39) + '=:value:_files' + chr(39) if value else '') for option, value in options(softverbs, name))} '*::program:_normal' ;;\n"
                    for name in commands(softverbs))
    return ("#compdef softverbs\nlocal -a described\nif (( CURRENT == 2 )); then\n    described=(\n" + described +
            "        'help:Explain a command'\n    )\n    _describe command described\nelse\n    case $words[2] in\n" + cases + "    esac\nfi\n")


def main():
    softverbs, tree, version, directory = sys.argv[1:]
    softverbs = os.path.abspath(softverbs)
    made = {"softverbs.1": manual(softverbs, tree, version), "softverbs.conf.5": configuration(tree, version),
            "softverbs.bash": bash(softverbs), "_softverbs": zsh(softverbs)}
    for name, text in made.items():
        with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
