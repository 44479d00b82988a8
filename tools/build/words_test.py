#!/usr/bin/env python3
"""The check of words finds what it is there for, in small made-up trees; prints TAP."""
import os
import subprocess
import sys
import tempfile

CHECK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "words.py")
WORDS = "# comment\npatience  *  *  rto\nmail  link,ipc  files  control\nhand_over  *  functions  forward\nwork  *  types  send_wqe\ncrowd  tests  *  what they do\n"
CASES = {
    "a tree without them is fine": ("src/a/x.c", "int x_wait(void)\n{\n}\n", ""),
    "a file's name is a name": ("src/a/patience.c", "", "src/a/patience.c: patience: not patience but rto"),
    "so is that of a test's file": ("src/a/patience_test.c", "", "patience_test"),
    "a function's name is one, static or not": ("src/a/x.c", "static bool lose_patience(int a)\n{\n}\n", "lose_patience"),
    "so is a prototype's": ("src/a/x.h", "const struct link *x_patience_of(int a);\n", "x_patience_of"),
    "a part of a word is none": ("src/a/x.c", "void impatience(void)\n{\n}\n", ""),
    "two words are one": ("src/a/x.c", "void x_hand_over(void)\n{\n}\n", "x_hand_over"),
    "in their order": ("src/a/x.c", "void x_over_hand(void)\n{\n}\n", ""),
    "a type's name is one": ("src/a/x.h", "struct work {\n    int a;\n};\n", "work"),
    "where only types are meant, a function may have it": ("src/a/x.c", "void x_work(void)\n{\n}\n", ""),
    "where only files are meant, a type may have it": ("src/link/x.h", "struct mail {\n};\n", ""),
    "a folder that is named is meant": ("src/ipc/mail.c", "", "mail"),
    "another is not": ("src/a/mail.c", "", ""),
    "a test's name is a sentence": ("src/a/x_test.c", "static void patience_ends(void **state)\n{\n}\n", ""),
    "the file of a test of tests/ is a name": ("tests/api/crowd.c", "", "tests/api/crowd.c: crowd: not crowd but what they do"),
    "so is a script's": ("tests/clients/a/crowd.py", "", "crowd"),
    "a word of tests/ may be one of src/": ("src/a/crowd.c", "", ""),
    "what is retired everywhere is so in tests/": ("tests/a/patience.h", "", "patience"),
    "a type of a test is a name": ("tests/a/x_test.c", "struct crowd {\n};\n", "crowd"),
    "so is what tests stand on": ("tests/a/x.h", "void crowd_begin(void);\n", "crowd_begin"),
    "a test of tests/ is a sentence, too": ("tests/a/x_test.c", "static void a_crowd_waits(void)\n{\n}\n", ""),
    "a member's name is one": ("src/a/x.h", "struct x {\n    int a, patience;\n};\n", "patience"),
    "so is a local's": ("src/a/x.c", "void x_run(void)\n{\n    for (int i = 0, patience_left = 3; i < 3; i++)\n        ;\n}\n", "patience_left"),
    "a parameter's": ("src/a/x.c", "#define X(patience) (patience)\n", "patience"),
    "a key of the public JSON stays": ("src/a/x.c", "void x_run(void)\n{\n    fact_put(&facts->patience);\n}\n", ""),
    "where members and variables are not meant, one may have it": ("src/a/x.c", "int mail;\n", ""),
    "those of tests are not read": ("src/a/x_test.c", "int patience;\n", ""),
    "so are comments and strings": ("src/a/x.c", "/* patience(1) */\nconst char *x = \"patience(\";\n", ""),
}


def check(path, text):
    """Exit status and output for a tree with this file."""
    with tempfile.TemporaryDirectory() as top:
        for name, content in ((path, text), ("tools/build/retired-words", WORDS)):
            os.makedirs(os.path.dirname(os.path.join(top, name)), exist_ok=True)
            with open(os.path.join(top, name), "w", encoding="utf-8") as file:
                file.write(content)
        done = subprocess.run([sys.executable, CHECK, top], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout


def main():
    failed = 0
    print(f"1..{len(CASES)}")
    for number, (name, (path, text, words)) in enumerate(CASES.items(), 1):
        status, output = check(path, text)
        fine = status == bool(words) and (words in output)
        failed += not fine
        print(f"{'ok' if fine else 'not ok'} {number} - {name}")
        if not fine:
            print("".join(f"# {line}\n" for line in [f"exit status {status}", *output.split("\n")]), end="")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
