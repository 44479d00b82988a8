"""Runs a check of the tree's shape on small made-up trees; for the tests of the checks."""
import os
import subprocess
import sys
import tempfile


def check(script, files, *arguments, prepare=None):
    """Exit status and output of the check, a file beside this one, for a tree of these files. `prepare` is called with the tree's
    directory first; TOP in an argument is that directory."""
    with tempfile.TemporaryDirectory() as top:
        for name, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(top, name)), exist_ok=True)
            with open(os.path.join(top, name), "w", encoding="utf-8") as file:
                file.write(text)
        if prepare:
            prepare(top)
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), script)
        done = subprocess.run([sys.executable, path, top, *(text.replace("TOP", top) for text in arguments)], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


def run(script, cases, *arguments, beside=None, prepare=None, first=1, more=0):
    """Each case is name: (files, exit status, words of the output[, more arguments]); `beside` are files that every tree has. Prints
    TAP, returns the exit status. `more` cases follow in another call, whose `first` is the number of its first case."""
    failed = 0
    if first == 1:
        print(f"1..{len(cases) + more}")
    for number, (name, (files, status, words, *extra)) in enumerate(cases.items(), first):
        got, output = check(script, {**(beside or {}), **files}, *arguments, *(extra[0] if extra else ()), prepare=prepare)
        fine = got == status and words in output
        failed += not fine
        print(f"{'ok' if fine else 'not ok'} {number} - {name}")
        if not fine:
            print("".join(f"# {line}\n" for line in [f"exit status {got}", *output.split("\n")]), end="")
    return bool(failed)


def holds(cases):
    """Prints TAP for cases, each a name and whether it holds; returns the exit status."""
    print(f"1..{len(cases)}")
    for number, (name, fine) in enumerate(cases, 1):
        print(f"{'' if fine else 'not '}ok {number} - {name}")
    return 0 if all(fine for _, fine in cases) else 1
