"""Where a test sleeps for a time that a person guessed: a literal sleep, outside a loop that looks at a condition.

Such a sleep fails on a busy machine or wastes time on an idle one, so tests wait for a condition with patience. A sleep is allowed where
time itself is what is tested; a comment in its line says so. Pauses between two looks, in a loop that the condition ends, are allowed,
and so are sleeps whose length is drawn by chance.
"""
import ast
import re

C_SLEEP = re.compile(r"\b(?:usleep|sleep|nanosleep)\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)")
LITERAL = re.compile(r"^(?:[\w >]+[!=]= \w+ \? |\w+ \? |: |[\s\dA-Z_*+/]|\(useconds_t\)|&\(struct timespec\)|\{|\}|\.tv_n?sec = |, NULL)+$")
C_LOOP = re.compile(r"\b(?:for|while|PATIENTLY_WHILE)\b\s*\(|\bdo\b")
C_END = re.compile(r"\b(?:break|return|die|_?exit|goto|assert_\w+|EXPECT\w*)\b")


def indent(line):
    return len(line) - len(line.lstrip())


def opening(lines, at):
    """The lines that enclose this one in C, the innermost first: each is indented less than those before it."""
    width = indent(lines[at])
    for line in reversed(lines[:at]):
        if line.strip() and indent(line) < width:
            width = indent(line)
            yield line


def is_look(lines, at):
    """A loop of C whose head has a condition beside the count, or whose body can leave it, around this line."""
    if C_LOOP.search(lines[at]):
        return True
    for line in opening(lines, at):
        if C_LOOP.search(line):
            first = lines.index(line)
            last = next((i for i in range(at, len(lines)) if indent(lines[i]) <= indent(line) and lines[i].strip()), at)
            return bool("while" in line.lower() or "do" in line or "&&" in line or "||" in line or any(C_END.search(each) for each in lines[first + 1:last]))
    return False


def in_c(text):
    """The number of each line of C that sleeps for a literal time."""
    lines = text.split("\n")
    for at, line in enumerate(lines):
        found = C_SLEEP.search(line)
        if found and LITERAL.match(found.group(1)) and found.group(1) != "0" and not is_look(lines, at):
            yield at + 1


def ends_by_look(loop):
    """A loop of Python that a condition ends: a while with one; a while without, or a number of tries, that its body can leave."""
    if isinstance(loop, ast.While) and not isinstance(loop.test, ast.Constant):
        return True
    tries = isinstance(loop, ast.While) or isinstance(loop.target, ast.Name) and loop.target.id == "_"
    return tries and any(isinstance(node, (ast.Break, ast.Return, ast.Raise, ast.Assert)) for node in ast.walk(loop))


def is_literal(call):
    """time.sleep(2), sleep(QUIET) or sleep(2 * QUIET)."""
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name == "sleep" and all(isinstance(node, (ast.Constant, ast.BinOp, ast.operator, ast.Load)) or isinstance(node, ast.Name) and node.id.isupper()
                                   for argument in call.args for node in ast.walk(argument))


def in_python(text):
    """The number of each line of Python that sleeps for a literal time."""
    found = []

    def visit(node, look):
        if isinstance(node, (ast.For, ast.While)):
            look = ends_by_look(node)
        elif isinstance(node, (ast.FunctionDef, ast.Lambda)):
            look = False
        elif isinstance(node, ast.Call) and is_literal(node) and not look:
            found.append(node.lineno)
        for child in ast.iter_child_nodes(node):
            visit(child, look)

    visit(ast.parse(text), False)
    return found


def literal(path, text):
    """Lines of a file of tests that sleep for a literal time, as (number, has a reason)."""
    numbers = in_python(text) if path.endswith(".py") else in_c(text)
    lines = text.split("\n")
    return [(number, bool(re.search(r"#\s*\S|/\*|//", lines[number - 1]))) for number in numbers]
