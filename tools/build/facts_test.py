#!/usr/bin/env python3
"""The check of facts finds what it is there for, in small made-up trees; prints TAP."""
import sys

sys.dont_write_bytecode = True
import made_up

LIST = """/* The list: FACT(kind, name, form, source, when, meaning) */
#define FACTS_KINDS(KIND) \\
    KIND(cq, CompletionQueue, cq) \\
    KIND(story, End, qp)
#define FACTS_cq(FACT) \\
    FACT(cq, handle, NUMBER, AT(object.handle), ALWAYS, "") \\
    FACT(cq, lost_last, FLAG, SOME(told.lost_last), OPTIONAL, "true: it was lost")
#define FACTS_story(FACT) \\
    FACT(story, state, WORD, STATE(state), ALWAYS, "at that time") \\
    FACT(story, name, WORD, MADE, ALWAYS, "") \\
    FACT(story, cqs, LIST(CompletionQueue), MADE, ALWAYS, "its queues") \\
    FACT(story, counts, MEMBERS, MADE, ALWAYS, "as in Traffic")
"""
EVENTS = 'COUNTED(LOST, "lost", "", NONE, "", "", NONE, NONE, NONE,\n    "A packet was lost.")\n'
PAGE = "".join(f"## {chapter}\n\n| field | type | meaning |\n|---|---|---|\n| <!-- list: facts {chapter} --> | | |\n\n" for chapter in ("CompletionQueue", "End"))
PAGE = f"# Page\n\n{PAGE}"
CAUSES = """DIAGNOSIS(LOST, EVENT, "!still cq.lost_last end.state=ERR|SQE end.state<>cq.handle", "{end.state}: {cq.handle?it was:they were} lost{, by >name} and {is|was} {cq.handle-end.state}")
DIAGNOSIS(OTHER, REFUSAL, "absence peer@LOST !@LOST=REJ error.name=KEY|RANGE", "{!end.state}")
"""
JUDGE = """MEMBER(name, TEXT), OBJECT(cq, cq), OBJECT(end, story), OBJECT(error, story), FLAG(still, since.still)
    if (is(name, "absence")) f();
"""
FINE = {"src/facts/facts.def": LIST, "src/events/events.def": EVENTS, "docs/reference/json.md": PAGE, "src/diagnose/diagnose.def": CAUSES,
        "src/diagnose/diagnose.c": JUDGE, "src/diag/diag.def": 'REASON(1, KEY, "A key.")\nREASON(2, RANGE, "A range.")\n'}


NUMBER_OF = """static json_int_t number_of(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

"""
HAS = """static bool has(const json_t *object, const char *word)
{
    return number_of(object, word);
}

"""


def _list(old, new):
    assert old in LIST, old
    return {"src/facts/facts.def": LIST.replace(old, new)}


def _cause(old, new):
    assert old in CAUSES, old
    return {"src/diagnose/diagnose.def": CAUSES.replace(old, new)}


TREES = {
    "a list whose kinds have their chapters": ({}, 0, "ok 1 - each of 6 facts"),
    "a fact that is there twice": (_list("    FACT(cq, lost_last", '    FACT(cq, handle, NUMBER, MADE, ALWAYS, "") \\\n    FACT(cq, lost_last'), 1, "cq: handle is there twice"),
    "a kind without a chapter": ({"docs/reference/json.md": PAGE.replace("## End", "## Story")}, 1, "has no chapter End with its list"),
    "a chapter without its list": ({"docs/reference/json.md": PAGE.replace("facts End", "facts CompletionQueue")}, 1, "has no chapter End with its list"),
    "a word that is none": (_list("STATE(state), ALWAYS", "STATE(state), ALLWAYS"), 1, "neither ALWAYS nor OPTIONAL"),
    "a tool that reads by the list": ({"tools/why/why.c": "facts_read(&facts_of_cq, json, &cq);\n"}, 0, "ok 2"),
    "a tool that reads by a key": ({"tools/why/why.c": 'int f;\nx = json_object_get(cq, "handle");\n'}, 1, 'tools/why/why.c:2: "handle" is a fact'),
    "one that does so by a function of its own": ({"tools/why/why.c": NUMBER_OF + 'y = number_of(first(list, 3),\n    "handle");\n'}, 1, 'why.c:7: "handle" is a fact'),
    "by a function of another file": ({"tools/other.c": NUMBER_OF, "tools/why/why.c": 'y = number_of(end, "state");\n'}, 1, 'why.c:1: "state" is a fact'),
    "by a function that calls one": ({"tools/why/why.c": NUMBER_OF + HAS + 'if (has(end, "state")) f();\n'}, 1, '"state" is a fact'),
    "one that compares keys": ({"tools/why/why.c": 'json_object_foreach(end, key, value) if (!strcmp(key, "state")) f();\n'}, 1, '"state" is a fact'),
    "one that unpacks": ({"tools/why/why.c": 'json_unpack(end, "{s:i}", "state", &x);\n'}, 1, "json_unpack names keys"),
    "one that has such a word of something else": ({"tools/why/why.c": NUMBER_OF + 'if (!strcmp(subject, "state")) table_add(table, "handle");\n'}, 0, "ok 2"),
    "a tool that writes a key": ({"tools/why/why.c": 'json_object_set_new(x, "handle", json_integer(7));\nputs("handle");\n'}, 0, "ok 2"),
    "a comment": ({"tools/why/why.c": '/* json_object_get(cq, "handle") */\n'}, 0, "ok 2"),
    "the reader itself": ({"tools/facts/read.c": 'x = json_object_get(cq, "handle");\n'}, 0, "ok 2"),
    "diagnoses of facts that there are": ({}, 0, "ok 3 - each of 2 diagnoses"),
    "a condition with a fact that is none": (_cause("cq.lost_last", "cq.lost_first"), 1, "LOST names cq.lost_first, which is no fact"),
    "one that it must not have": (_cause("!still", "!heard"), 1, "LOST names heard"),
    "one of an object that is none": (_cause("cq.lost_last", "srq.state"), 1, "LOST names srq.state"),
    "one that another must equal": (_cause("<>cq.handle", "<>cq.size"), 1, "LOST names cq.size"),
    "an event that is none": (_cause("!@LOST", "!@LAST"), 1, "OTHER names @LAST"),
    "one of the other end": (_cause("peer@LOST", "peer@LAST"), 1, "OTHER names peer@LAST"),
    "a reason that is none": (_cause("KEY|RANGE", "KEY|RANGES"), 1, "OTHER compares RANGES, which is no reason"),
    **{f"a sentence with a wrong name, {name}": (_cause(name, wrong), 1, f"LOST names {gone}") for name, wrong, gone in (
        ("{end.state}", "{end.stat}", "end.stat"), ("{cq.handle?", "{cq.handles?", "cq.handles"), (">name}", ">names}", "names"),
        ("{cq.handle-", "{cq.handl-", "cq.handl"), ("-end.state}", "-end.stage}", "end.stage"))},
    "one that is always known and yet is not": (_list("SOME(told.lost_last), OPTIONAL", "SOME(told.lost_last), ALWAYS"), 1, "SOME is not known for 0"),
}


if __name__ == "__main__":
    sys.exit(made_up.run("facts.py", TREES, beside=FINE))
