#!/usr/bin/env python3
"""Tests of mutants.py with made-up files; prints TAP."""
import os
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../clients"))
import judge
import mutant
import page
from patience import patience
from sites import sites_of

MADE_UP = """#define LIMIT 7 /* no place */
static const int table[] = {3, -1};
/* if (a < b) */
int f(int a, int b)
{
    if (a < b && !g(a, 2))
        return 0;
    h("x < y", b);
    for (int i = 0; i < a; i++)
        b += i;
    return (struct s){.x = a, .y = true}.x;
}
"""


def changed(text, kind):
    return [text[:site.start] + site.new + text[site.end:] for site in sites_of(text) if site.kind == kind]


def lines(kind):
    """The line of the made-up file that each change of this kind leaves."""
    found = []
    for text in changed(MADE_UP, kind):
        old, new = MADE_UP.split("\n"), text.split("\n")
        assert len(old) == len(new), text
        different = [other for one, other in zip(old, new) if one != other]
        assert len(different) == 1, different
        found.append(different[0].strip())
    return found


def comparisons_change():
    assert lines("comparison changed") == ["if (a <= b && !g(a, 2))", "for (int i = 0; i <= a; i++)"], lines("comparison changed")


def conditions_are_joined_otherwise():
    assert lines("&& for ||") == ["if (a < b || !g(a, 2))"], lines("&& for ||")


def conditions_are_inverted():
    assert lines("condition inverted") == ["if (!(a < b && !g(a, 2)))", "if (a < b && g(a, 2))"], lines("condition inverted")


def conditions_are_dropped():
    assert [" ".join(line.split()) for line in lines("condition dropped")] == ["if (1)", "if ( !g(a, 2))", "if (a < b )"], lines("condition dropped")


def constants_change_and_macros_and_text_do_not():
    found = lines("constant changed")
    for line in ("static const int table[] = {2, -1};", "static const int table[] = {3, -2};", "return 1;", "if (a < b && !g(a, 3))"):
        assert line in found, (line, found)
    assert not any("LIMIT" in line or '"' in line for line in found), found


def statements_are_removed():
    assert [" ".join(line.split()) for line in lines("statement removed")] == [";", ";", "for (int i = 0; ; i++)", ";", "return (struct s){ .y = true}.x;", "return (struct s){.x = a, }.x;"], \
        lines("statement removed")


def arguments_are_swapped():
    assert lines("arguments swapped") == ["if (a < b && !g(2, a))", 'h(b, "x < y");'], lines("arguments swapped")


def operators_and_values_change():
    assert lines("operator changed") == ["b -= i;"], lines("operator changed")
    assert lines("value changed") == ["return (struct s){.x = a, .y = false}.x;"], lines("value changed")


def a_mutant_is_put_where_its_line_is_now():
    one = mutant.Mutant(1, "cm", "x.c", 2, "kind", "  b;", "  c;")
    assert mutant.put("a;\n  b;\nz;\n", one) == "a;\n  c;\nz;\n"
    assert mutant.put("  b;\n\n\n\n\na;\n  b;\nz;\n", one._replace(line=6)) == "  b;\n\n\n\n\na;\n  c;\nz;\n"
    assert mutant.put("a;\n   b;\n", one) is None
    assert mutant.put("a;\n  b; c;\n", one) is None


def a_change_of_many_lines_is_whole_lines():
    text = "one\nif (a &&\n    b)\nlast\n"
    site = next(site for site in sites_of("int f(void)\n{\n" + text + "}\n") if site.kind == "condition inverted")
    line, before, after = mutant.whole_lines("int f(void)\n{\n" + text + "}\n", site)
    assert (line, before, after) == (4, "if (a &&\n    b)", "if (!(a &&\n    b))"), (line, before, after)


def of_tests(*commands, **more):
    return [{"cmd": ["/b/" + command], "name": command, "suites": ["x"], "env": {}, "workdir": None, "protocol": "exitcode", **more} for command in commands]


def the_test_of_the_same_name_comes_first():
    names = [test["name"] for test in judge.in_order(of_tests("api_data", "ud_test", "cm_connect_test", "connect_test"), "src/cm/connect.c", {})]
    assert set(names[:2]) == {"cm_connect_test", "connect_test"}, names
    assert judge.in_order(of_tests("api_send", "api_cq"), "src/verbs/create/cq_create.c", {})[0]["name"] == "api_cq"


def run(script, **more):
    return judge.run_test(dict(of_tests("x", **more)[0], cmd=["sh", "-c", script]), patience(60))


def a_test_that_fails_ends_by_a_signal_or_hangs_kills():
    assert run("exit 0") is None and run("exit 77") is None
    assert run("exit 1") == "fails"
    assert run("kill -SEGV $$") == "ends by SIGSEGV"
    assert run("echo 'not ok 1'", protocol="tap") == "fails" and run("echo 'not ok 1'") is None
    assert judge.run_test(dict(of_tests("x")[0], cmd=["sleep", "60"]), 0.1) == "hangs"


def a_test_is_measured_once():
    tests, known = of_tests("x"), {"y": 3}
    tests[0]["cmd"], tests[0]["timeout"] = ["true"], patience(60)
    judge.measure(tests, known)
    first = known["x"]
    assert first > 0, first
    tests[0]["cmd"] = ["false"]
    judge.measure(tests, known)
    assert known == {"x": first, "y": 3}, known
    judge.measure(tests, known := {})
    assert known == {"x": None}, known


def _page(place, one, fates):
    page.write_page(place + "/page.md", [one], fates, {}, set(), 1)
    with open(place + "/page.md", encoding="utf-8") as file:
        return file.read()


def each_mutant_has_one_fate():
    one = mutant.Mutant(3, "cm", "src/cm/x.c", 2, "comparison changed", "  if (a || b < c)", "  if (a || b <= c)")
    assert page.fate_of(one, {"3": ("cm x", "fails")}, {}, {3})[0] == "killed"
    assert page.fate_of(one, {"3": (None, None)}, {"3": "equivalent: b is never c"}, set()) == ("equivalent", "**equivalent**: b is never c")
    assert page.fate_of(one, {"3": (None, None)}, {}, set())[0] == "left"
    assert page.fate_of(one, {}, {}, set())[0] == "not judged"
    assert page.fate_of(one, {}, {}, {3})[0] == "gone"
    with tempfile.TemporaryDirectory() as place:
        killed, left, later = (_page(place, one, fates) for fates in ({"3": ("cm x", "fails")}, {"3": (None, None)}, {}))
    assert "| 3 | `src/cm/x.c:2` | comparison changed: ``if (a \\|\\| b < c)`` → ``if (a \\|\\| b <= c)`` | **left** |" in left, left
    assert "| all | 1 | 1 | 0 | 0 | 0 | 0 |" in killed and "src/cm/x.c" not in killed, killed
    assert "Not judged: 3.\n" in later and "src/cm/x.c" not in later and "Not judged" not in left, later


if __name__ == "__main__":
    tests = [value for name, value in list(globals().items()) if "_" in name[1:] and name[0] != "_" and callable(value) and name not in ("sites_of", "of_tests")]
    print("1..%d" % len(tests))
    for number, test in enumerate(tests, 1):
        try:
            test()
            print("ok %d - %s" % (number, test.__name__.replace("_", " ")))
        except AssertionError as error:
            print("not ok %d - %s" % (number, test.__name__.replace("_", " ")))
            print("# %s" % error)
