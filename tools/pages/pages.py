#!/usr/bin/env python3
"""Writes the manual pages and the completions of bash and zsh, made of what the command says of itself.

Usage: pages.py SOFTVERBS TREE VERSION DIRECTORY

Commands, their arguments and options come from `softverbs --help` and `softverbs help COMMAND`; the environment and the
configuration file from src/base/settings.def of the tree, the functions from tools/interface/softverbs.h. DIRECTORY gets softverbs.1,
softverbs.conf.5, softverbs.h.3, softverbs.bash and _softverbs.
"""
import os
import re
import shlex
import subprocess
import sys

DATE = "2026-11-26"  # of the pages, which have the same bytes in each build; a release sets it anew
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../build"))
import settings


def said(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def commands(softverbs):
    """Each command's line of summary by its name, in the order of --help."""
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
    """The text without marks, and without links in brackets, such as ([how](page.md))."""
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", re.sub(r" \(\[[^]]*\]\([^)]*\)\)", "", markdown)).replace("`", "")


def page(title, section, version, parts):
    text = f'.TH {title} {section} "{DATE}" "softverbs {version}" "softverbs"\n'
    return text + "".join(f".SH {heading}\n{body}\n" for heading, body in parts)


def listed(rows):
    return "\n".join(f".TP\n.B {roff(name)}\n{roff(meaning)}".replace('"', "\\(dq") for name, meaning in rows)


EXAMPLES = [
    ("softverbs run -- ib_write_bw", "A server on this host; \"softverbs run -- ib_write_bw localhost\" is its client."),
    ("softverbs run -- ibv_rc_pingpong -g 0", "RoCE programs of ibverbs-utils want a GID. With --link-layer ib they address by LID, without -g."),
    ("softverbs run --net eth0 -- ib_send_bw -x 1", "Over the network, to other hosts and to adapters; -x names the IPv4 GID, which \"softverbs devices\" shows."),
    ("eval \"$(softverbs env)\"", "Every later command of this shell runs on softverbs."),
    ("softverbs run --fault drop=1%,seed=7 -- ./test", "One packet of a hundred is lost; the seed repeats the choice."),
    ("softverbs run --adverse=seed=7 -- ./test", "The adapter does what the rules allow and most adapters never do; another seed, other times."),
    ("softverbs run --capture all.pcapng -- ./test; softverbs decode all.pcapng", "Every packet as RoCEv2, for Wireshark, too."),
    ("softverbs explain IBV_WC_RETRY_EXC_ERR", "What a status, an event, an errno or the number in vendor_err means, and its usual causes."),
    ("softverbs why; softverbs why --last", "What programs that hang wait for; the last lines of those that have ended."),
    ("softverbs why --id 3", "Why this connection of librdmacm is not made, or has ended, from both ends."),
    ("softverbs why --qp 0x12", "Why this queue pair failed, from both ends; with --last also when its processes have ended."),
]
STATUSES = [
    ("0", "All is well. run: the status of the program, whatever it is."),
    ("1", "The answer is no: what was asked for does not exist, does not answer, or the machine lacks something; output could not be written."),
    ("2", "A command, an option, an argument or a setting that does not exist or can't be used; a sentence on standard error says which."),
    ("125", "run, env: softverbs could not do its part, and the program was not started."),
    ("126, 127", "run: the program can't be executed, or does not exist."),
]
FILES = [
    ("/dev/shm/softverbs-UID-NETNS-USERNS/", "Where processes meet (SOFTVERBS_DIR): a table of 2.2 MiB, a socket for each live process, and the last lines of the log of "
     "processes, of at most 64 and for seven days. It may be removed while none of them runs."),
    ("/dev/shm/softverbs-UID-USERNS-paths-HASH/", "What stands for /sys/class/infiniband and /dev/infiniband, one for each set of devices. It may be removed; \"softverbs run\" "
     "makes it anew, and removes those that no process has used for a day where there are more than 16."),
]


def command_part(softverbs, name):
    """The help of a command, as the screen shows it."""
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
        ("EXIT STATUS", listed(STATUSES)),
        ("ENVIRONMENT", rows),
        ("FILES", listed(FILES)),
        ("EXAMPLES", listed(EXAMPLES)),
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


def described_functions(text):
    """(prototype, comment) of each function of the header for users."""
    for comment, kind, name, parameters in re.findall(r"/\* ((?:(?!\*/).)*?) \*/\nstatic inline ([^\n(]*?)(\w+)\(([^)]*)\)\n\{", text, re.DOTALL):
        yield f"{kind}{name}({' '.join(parameters.split())})", sentences(comment)


def sentences(comment):
    """A comment without its stars; examples keep their lines."""
    paragraphs = re.sub(r"\n \* ?", "\n", comment).split("\n\n")
    return "\n.PP\n".join(f".nf\n{roff(part)}\n.fi" if part.startswith("    ") else roff(part) for part in paragraphs)


def interface(tree, version):
    with open(os.path.join(tree, "tools/interface/softverbs.h"), encoding="utf-8") as file:
        text = file.read()
    functions = list(described_functions(text))
    synopsis = "\n".join(f".br\n{roff(prototype)};" for prototype, _ in functions)
    return page("SOFTVERBS.H", 3, version, [
        ("NAME", "softverbs.h \\- faults from inside a program, or from a test beside it"),
        ("SYNOPSIS", ".B #include <softverbs.h>\n.PP\n" + synopsis),
        ("DESCRIPTION", sentences(re.match(r"/\* (.*?) \*/", text, re.DOTALL)[1]) + "\n"
         + "\n".join(f".TP\n.B {roff(prototype)}\n{meaning}" for prototype, meaning in functions)),
        ("SEE ALSO", ".BR softverbs (1)"),
    ])


# -- completions


def option_values(softverbs, tree, name):
    """What the value of each option may be: words, or "FILE", "DIR", "INTERFACE"; options with other values are left out."""
    text = said(softverbs, "help", name) + (said(softverbs, "help", "run") if name == "env" else "")
    kinds = dict(re.findall(r"^  (?:-\w, )?(--[\w-]+) ([A-Z]+)", text, re.MULTILINE))
    choices = {"--" + line["option"]: line["range"] for line in settings.settings(tree) if line["option"] and line["type"] == "CHOICE"}
    return {option: choices.get(option, kind) for option, kind in kinds.items() if option in choices or kind in ("FILE", "DIR", "INTERFACE")}


def lists(softverbs):
    refused = subprocess.run([softverbs, "show", "no-such"], capture_output=True, text=True, check=False).stderr
    return re.findall(r"\w+", " ".join(refused.split()).split("It shows ")[1].split(". See")[0].replace(" or ", " "))


def events(softverbs):
    text = said(softverbs, "help", "event").split("\n\n")[2]
    return [word.strip(",") for line in text.splitlines() for word in re.findall(r"^  ([a-z][\w, -]*?)(?:   |$)", line) for word in word.split()]


def reasons(softverbs, tree):
    names = [line.split()[1] for line in said(softverbs, "explain").splitlines() if re.match(r" *\d+  ", line)]
    with open(os.path.join(tree, "tools/explain/words.def"), encoding="utf-8") as file:
        return names + re.findall(r'^WORD\(\w+, "(\w+)"', file.read(), re.MULTILINE)


DEVICES = "$(softverbs devices 2>/dev/null | awk 'NR > 1 && /^[^ ]/ { print $1 }')"
BASH = {"FILE": "-f", "DIR": "-d", "INTERFACE": '-W "$(ls /sys/class/net 2>/dev/null)"'}
ZSH = {"FILE": "_files", "DIR": "_directories", "INTERFACE": "_net_interfaces"}
PLACES = {"run": "-c -f", "doctor": "-c -f", "decode": "-f", "live": "-f", "ping": "-A hostname"}  # what bash offers for arguments
ZSH_PLACES = {"run": "*::program:_normal", "doctor": "*:program:_command_names -e", "decode": "*:file:_files", "live": "*:file:_files", "ping": "1:host:_hosts"}


def bash(softverbs, tree):
    names, values, places, words = commands(softverbs), "", "", ""
    for name in names:
        words += f"    {name}) words=\"{' '.join(option for option, _ in options(softverbs, name))}\" ;;\n"
        for option, kind in option_values(softverbs, tree, name).items():
            generated = BASH[kind] if kind in BASH else f'-W "{kind}"'
            values += f'    {name}:{option}) COMPREPLY=($(compgen {generated} -- "$word")); return ;;\n'
    own = {"help": " ".join(names), "show": " ".join(lists(softverbs)), "explain": " ".join(reasons(softverbs, tree))}
    for name, text in own.items():
        places += f'    {name}) COMPREPLY=($(compgen -W "{text}" -- "$word")) ;;\n'
    places += f'    event) if [[ " {" ".join(events(softverbs))} " = *" $before "* ]]; then COMPREPLY=($(compgen -W "{DEVICES}" -- "$word"))\n'
    places += f'       else COMPREPLY=($(compgen -W "{" ".join(events(softverbs))}" -- "$word")); fi ;;\n'
    places += "".join(f'    {name}) COMPREPLY=($(compgen {generated} -- "$word")) ;;\n' for name, generated in PLACES.items())
    return ("# bash completion of softverbs\n_softverbs() {\n    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words\n"
            "    if [ \"$COMP_CWORD\" = 1 ]; then\n"
            f"        COMPREPLY=($(compgen -W \"{' '.join([*names, 'help'])}\" -- \"$word\"))\n        return\n    fi\n"
            "    case ${COMP_WORDS[1]}:$before in\n" + values + "    esac\n    case ${COMP_WORDS[1]} in\n" + words + "    esac\n"
            "    if [[ $word = -* ]]; then COMPREPLY=($(compgen -W \"$words\" -- \"$word\")); return; fi\n"
            "    case ${COMP_WORDS[1]} in\n" + places + "    *) COMPREPLY=() ;;\n    esac\n}\ncomplete -F _softverbs softverbs\n")


def zsh_option(option, value, kinds):
    if not value:
        return option
    kind = kinds.get(option)
    return f"{option}'=:value:{ZSH.get(kind, f'({kind})') if kind else ' '}'"


def zsh(softverbs, tree):
    described = "".join(f"        {shlex.quote(f'{name}:{summary}')}\n" for name, summary in commands(softverbs).items())
    places = dict(ZSH_PLACES)
    places["show"] = f"1:list:({' '.join(lists(softverbs))})"
    places["event"] = f"1:event:({' '.join(events(softverbs))})' '2:device:(soft0 soft1 soft2 soft3)"
    places["explain"] = f"*:name:({' '.join(reasons(softverbs, tree))})"
    cases = ""
    for name in commands(softverbs):
        kinds = option_values(softverbs, tree, name)
        words = [zsh_option(option, value, kinds) for option, value in options(softverbs, name)]
        cases += f"    {name}) _arguments {' '.join(words)}{f' {chr(39)}{places[name]}{chr(39)}' if name in places else ''} ;;\n"
    cases += f"    help) _arguments '2:command:({' '.join(commands(softverbs))})' ;;\n"
    return ("#compdef softverbs\nlocal -a described\nif (( CURRENT == 2 )); then\n    described=(\n" + described +
            "        'help:Explain a command'\n    )\n    _describe command described\nelse\n    case $words[2] in\n" + cases + "    esac\nfi\n")


def main():
    softverbs, tree, version, directory = sys.argv[1:]
    softverbs = os.path.abspath(softverbs)
    made = {"softverbs.1": manual(softverbs, tree, version), "softverbs.conf.5": configuration(tree, version), "softverbs.h.3": interface(tree, version),
            "softverbs.bash": bash(softverbs, tree), "_softverbs": zsh(softverbs, tree)}
    for name, text in made.items():
        with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
