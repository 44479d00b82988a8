#!/usr/bin/env python3
"""The check of the style finds each habit in small made-up trees, and nothing in plain prose; prints TAP."""
import os
import sys
import tempfile

sys.dont_write_bytecode = True
import made_up
import style

BUDGET = {"tools/build/style-budget": "# comment\nsince 0123456789ab\nsrc own 400.00\n"}
PLAIN = ["The peer returns an error.", "A user who waits gets it.", "If the ring is full, the sender waits.", "The log reports what was lost.", "Whether it holds is known."]
HABITS = {
    "who": ["A lock wakes who waits for it.", "Whom it wakes is random.", "It is for whoever asks."],
    "start": ["Who polls waits.", "It ends. What is severed is lost.", "Whoever asks waits."],
    "nobody": ["Behind it nobody waits.", "Somebody has to look."],
    "tell": ["The thread is told once.", "It tells of losses."],
    "question": ["Is it there? Then wait.", "Why not?"],
    "said": ["That is said of each.", "No word of it is kept."],
    "inverted": ["Is there room by now, the sender goes on.", "It waits. Does it end, the peer goes on."],
    "behind": ["The look behind the sleep.", "Behind it the list ends."],
    "none": ["A ring that has none waits.", "None is lost."],
    "is_no": ["There is no room.", "They are none."],
    "stand": ["A key stands in the table.", "The page lies there."],
    "go": ["The event comes later.", "It goes to the ring."],
    "that_of": ["The lock is that of the queue.", "Those of peers are shared.", "A list of which one is shown."],
    "so_many": ["It waits so many rounds.", "A wait so long fails."],
    "image": ["It goes into the void.", "Mail comes.", "The peer is deaf."],
}
FORMS = {"src/a/x.c": "/* {} */\n", "src/a/y.h": "// {}\n", "tools/x.py": "# {}\n", "tests/x_test.py": 'def f():\n    """{}"""\n', "docs/user/x.md": "{}\n", "README.md": "# A head\n\n{}\n"}


def files(path, texts):
    """A tree with one file, where each text is a comment or a paragraph."""
    return {**BUDGET, path: "\n\n".join(FORMS[path].replace("{}", text) for text in texts)}


def cases():
    for path in FORMS:
        yield f"{path}: plain sentences", (files(path, PLAIN), 0, "ok 1")
        yield f"{path}: each habit", (files(path, [texts[0] for texts in HABITS.values()]), 1, "not ok 1")
    yield "a message counts", ({**BUDGET, "src/a/x.c": 'say("nobody is there at all");\n'}, 1, "messages: nobody")
    yield "a short string is no message", ({**BUDGET, "src/a/x.c": 'say("nobody");\n'}, 0, "ok 1")
    yield "an included path is no message", ({**BUDGET, "src/a/x.c": '#include "nobody/is/there/at_all.h"\n'}, 0, "ok 1")
    yield "code is no prose", ({**BUDGET, "src/a/x.c": "int nobody = told ? who : 0;\n", "docs/x.md": "```\nwho is told?\n```\n\n    nobody\n\n`who`\n"}, 0, "ok 1")
    yield "prose of a page with code counts", ({**BUDGET, "docs/x.md": "# A head\n\n```\ncode\n```\n\nNobody is there.\n"}, 1, "docs: nobody")
    for name, program in (("a string", 'RUN("""\n# Nobody is told.\nwho = 1\n""")\n'), ("code", "nobody = told  # a list\n")):
        yield f"{name} in a script is no prose", ({**BUDGET, "tests/x_test.py": f'"""It runs a program."""\n{program}'}, 0, "ok 1")
    yield "a rate within the budget is fine", (files("src/a/x.c", ["A port of its own"]), 0, "ok 1")
    yield "a rate beyond it is not", (files("src/a/x.c", ["Of its own, of its own"]), 1, "src: own: 333.33 in 1,000 words, 0.00 allowed")


def beginnings():
    """A comment that begins with a pronoun or preposition counts in the library and its tools, once."""
    for text, count in (("Of one that is there.", 100), ("It is here. It stays.", 100), ("The ring is here. It stays.", 0), ("Offsets count.", 0)):
        with tempfile.TemporaryDirectory() as top:
            os.makedirs(os.path.join(top, "src/a"))
            with open(os.path.join(top, "src/a/x.c"), "w", encoding="utf-8") as file:
                file.write(f"/* {text} */\n")
            assert style.measure(top)[1]["src", "begins"] == count, text


def habits():
    """Each text has the habit, and plain sentences have none."""
    for habit, texts in HABITS.items():
        assert all(any(style.places(habit, text)) for text in texts), habit
    for text in PLAIN:
        assert not any(place for habit in style.HABITS for place in style.places(habit, text)), text


def forms():
    """In each kind of file, each habit is found, with its place."""
    for path in FORMS:
        with tempfile.TemporaryDirectory() as top:
            for name, text in files(path, [texts[0] for texts in HABITS.values()]).items():
                os.makedirs(os.path.dirname(os.path.join(top, name)), exist_ok=True)
                with open(os.path.join(top, name), "w", encoding="utf-8") as file:
                    file.write(text)
            found = {habit for _, _, text in style.texts(top) for habit in HABITS if any(style.places(habit, text))}
            assert found == set(HABITS), (path, set(HABITS) - found)


def subjects():
    """The faults of single subjects, of which each must have the one named, or none."""
    for subject, fault in (("base: hand long-held locks to waiters", None), ("base: who holds a lock for long lets others in", "the habit who"),
                           ("event: what is not there can't be told", "the habit tell"), ("Mend things", 'not of the form "area: do this"'),
                           ("verbs: " + "a" * 66, "more than 72 characters")):
        found = list(style.faults_of_subject(subject))
        assert found == ([fault] if fault else []), (subject, found)


if __name__ == "__main__":
    for unit in (habits, beginnings, forms, subjects):
        unit()
    table = dict(cases())
    table["a rate beyond it is not"] = ({**table["a rate beyond it is not"][0], "tools/build/style-budget": "since 0123456789ab\n"}, *table["a rate beyond it is not"][1:])
    sys.exit(made_up.run("style.py", table))
