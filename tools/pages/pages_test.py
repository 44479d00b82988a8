#!/usr/bin/env python3
"""Checks that the manual pages are well formed, and that the completions offer what the command has. Prints TAP.

Usage: pages_test.py DIRECTORY
"""
import os
import re
import shutil
import subprocess
import sys


def warnings(directory, name):
    """The complaints of groff; None: groff is not installed."""
    if not shutil.which("groff"):
        return None
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", f"{directory}/{name}"], capture_output=True, text=True, check=False,
                          env={**os.environ, "LC_ALL": "C.UTF-8"})
    lines = [line for line in done.stderr.splitlines() if "can't break line" not in line and "cannot break line" not in line]
    return lines + ([] if done.returncode == 0 and done.stdout else ["it can't be shown"])


def completed(directory, *words):
    """The completions of bash for the last of the words."""
    script = f'. {directory}/softverbs.bash; COMP_WORDS=(softverbs "$@"); COMP_CWORD=$#; _softverbs; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, check=True)
    return done.stdout.split()


def checks(directory):
    for name in ("softverbs.1", "softverbs.conf.5", "softverbs.h.3"):
        yield f"{name} has no mistakes", warnings(directory, name)
    with open(f"{directory}/softverbs.1", encoding="utf-8") as file:
        text = file.read().replace("\\", "")
    with open(f"{directory}/softverbs.h.3", encoding="utf-8") as file:
        header = file.read().replace("\\", "")
    yield "the page of the header has each function twice", [
        name for name in ("is_here", "inject", "clear", "watch", "count", "wait") if len(re.findall(rf"int softverbs_{name}\(", header)) != 2]
    yield "the page has the options of run", [] if "--capture FILE" in text else ["--capture is missing"]
    yield "the page has the environment", [name for name in ("SOFTVERBS_LIMITS", "NCCL_GIN_TYPE") if name not in text]
    with open(f"{directory}/_softverbs", encoding="utf-8") as file:
        lines = file.readlines()
    values, quoted = "".join(lines), [line for line in lines if "'\\''" in line]
    yield "zsh gets names without a backslash", [line for line in quoted if not line.split(":")[0].strip().strip("'").isalpha()]
    yield "links of the documents leave nothing behind", [words for words in ("(how)", "(containers)") if words in text]
    yield "bash completes a command", [] if completed(directory, "ver") == ["version"] else completed(directory, "ver")
    for heading in ("EXAMPLES", "EXIT STATUS", "FILES"):
        yield f"the page has {heading}", [] if f"\n.SH {heading}\n" in text else [f"there is no {heading}"]
    yield "the page has a date", [] if text.startswith(".TH SOFTVERBS 1 \"20") else [text.split("\n")[0]]
    for words, offered in ((("run", "--log", "wa"), ["warn"]), (("env", "--link-layer", "i"), ["ib"]), (("event", "port-d"), ["port-down"]),
                           (("event", "gid-c"), ["gid-change"]), (("show", "conn"), ["connections"]), (("explain", "IBV_WC_RNR"), ["IBV_WC_RNR_RETRY_EXC_ERR"]),
                           (("explain", "RETRY_EX"), ["RETRY_EXCEEDED"]), (("help", "expl"), ["explain"]), (("show", "bas"), []), (("run", "--net", "l"), ["lo"])):
        found = completed(directory, *words)
        yield f"bash completes {' '.join(words)}", [] if found == offered else found or ["nothing"]
    yield "zsh knows values", [word for word in ("'=:value:(none error warn", "(port-down port-up", "_net_interfaces") if word not in values]
    for command in ("run", "env"):
        found = completed(directory, command, "--capt")
        yield f"bash completes an option of {command}", [] if found == ["--capture"] else found


def main():
    results = list(checks(sys.argv[1]))
    print(f"1..{len(results)}")
    for number, (name, wrong) in enumerate(results, 1):
        skipped = " # SKIP groff is not installed" if wrong is None else ""
        print(f"{'not ok' if wrong else 'ok'} {number} - {name}{skipped}")
        print("".join(f"# {line}\n" for line in wrong or []), end="")


if __name__ == "__main__":
    main()
