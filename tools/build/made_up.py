"""Runs a check of the tree's shape on small made-up trees; for the tests of the checks."""
import os
import subprocess
import sys
import tempfile


def check(script, files, *arguments):
    """Exit status and output of the check, which stands beside this file, for a tree of these files."""
    with tempfile.TemporaryDirectory() as top:
        for name, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(top, name)), exist_ok=True)
            with open(os.path.join(top, name), "w", encoding="utf-8") as file:
                file.write(text)
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), script)
        done = subprocess.run([sys.executable, path, top, *arguments], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


def run(script, cases, *arguments, beside=None):
    """Each case is name: (files, exit status, words of the output[, more arguments]); `beside` are files that every tree has. Prints
    TAP, returns the exit status."""
    failed = 0
    print(f"1..{len(cases)}")
    for number, (name, (files, status, words, *more)) in enumerate(cases.items(), 1):
        got, output = check(script, {**(beside or {}), **files}, *arguments, *(more[0] if more else ()))
        fine = got == status and words in output
        failed += not fine
        print(f"{'ok' if fine else 'not ok'} {number} - {name}")
        if not fine:
            print("".join(f"# {line}\n" for line in [f"exit status {got}", *output.split("\n")]), end="")
    return bool(failed)
