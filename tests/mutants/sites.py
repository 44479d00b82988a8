"""The places of a C source file that can be mutated, and what each becomes.

The text is split into tokens and not parsed: a change that makes no sense as C does not compile, and draw.py throws it away.
"""
import collections
import re

# `kind`: one of KINDS. text[start:end] becomes `new`.
Site = collections.namedtuple("Site", "kind start end new")
Token = collections.namedtuple("Token", "text start end")

COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
LOGIC = {"&&": "||", "||": "&&"}
ARITHMETIC = {"+": "-", "-": "+", "&": "|", "|": "&", "<<": ">>", ">>": "<<", "+=": "-=", "-=": "+="}
VALUES = {"true": "false", "false": "true"}
HEADS = {"if", "while", "for", "switch"}
NO_STATEMENT = HEADS | {"do", "else", "case", "default", "struct", "enum", "union", "static", "const", "typedef", "return", "goto"}
NO_CALL = HEADS | {"return", "sizeof", "else", "do", "case"}
OPEN, CLOSE = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}

TOKEN = re.compile(r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:\\\n|[^\n])*)
                      |"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|0[xX][0-9a-fA-F]+\w*|\d[\w.]*|[A-Za-z_]\w*
                      |->|\+\+|--|<<=|>>=|\.\.\.|&&|\|\||[-+*/%&|^<>=!]=|<<|>>|.""", re.S | re.M | re.X)


def tokens_of(text):
    """Comments, strings' contents and lines of the preprocessor are not places."""
    return [Token(m[0], m.start(), m.end()) for m in TOKEN.finditer(text) if m.lastgroup != "skip"]


def match_pairs(tokens):
    """The index of each bracket's partner."""
    pairs, stack = {}, []
    for index, token in enumerate(tokens):
        if token.text in OPEN:
            stack.append(index)
        elif token.text in CLOSE and stack:
            start = stack.pop()
            pairs[start], pairs[index] = index, start
    return pairs


class Source:
    def __init__(self, text):
        self.text = text
        self.tokens = tokens_of(text)
        self.pairs = match_pairs(self.tokens)

    def word(self, index):
        return self.tokens[index].text if 0 <= index < len(self.tokens) else ""

    def site(self, kind, first, last, new):
        """A change of the tokens from `first` to `last`, both included."""
        return Site(kind, self.tokens[first].start, self.tokens[last].end, new)

    def slice(self, first, last):
        return self.text[self.tokens[first].start:self.tokens[last].end]

    def is_operand_before(self, index):
        word = self.word(index)
        return word in (")", "]") or (re.match(r"\w", word) is not None and word not in NO_CALL)

    def reach(self, index, step, stops):
        """The last token of an operand, looked for from `index` on: what ends it is one of `stops` or the bracket around it."""
        skipped = CLOSE if step < 0 else OPEN
        ends = set(OPEN) if step < 0 else CLOSE
        while True:
            word = self.word(index)
            if not word or word in ends or word in stops:
                return index - step
            if word in skipped:
                if index not in self.pairs:
                    return index - step
                index = self.pairs[index]
            index += step


def replaced(source, index, kind, table):
    word = source.word(index)
    if word in table:
        yield source.site(kind, index, index, table[word])


def comparisons(source, index):
    if source.is_operand_before(index - 1):
        yield from replaced(source, index, "comparison changed", COMPARISONS)


def logic(source, index):
    yield from replaced(source, index, "&& for ||", LOGIC)


def arithmetic(source, index):
    if source.is_operand_before(index - 1):
        yield from replaced(source, index, "operator changed", ARITHMETIC)


def values(source, index):
    yield from replaced(source, index, "value changed", VALUES)


def constants(source, index):
    word = source.word(index)
    found = re.fullmatch(r"(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)", word)
    if found:
        number = int(found[1], 0) if found[1] == "0" or not re.fullmatch(r"0\d+", found[1]) else int(found[1], 8)
        for other in {number + 1, number - 1 if number else 1}:
            yield source.site("constant changed", index, index, (hex(other) if "x" in found[1].lower() else str(other)) + found[2])


def inverted(source, index):
    """if (C) becomes if (!(C)); !C becomes C."""
    if source.word(index) in ("if", "while") and source.word(index + 1) == "(" and index + 1 in source.pairs:
        first, last = index + 2, source.pairs[index + 1] - 1
        yield source.site("condition inverted", first, last, "!(%s)" % source.slice(first, last))
    elif source.word(index) == "!":
        yield source.site("condition inverted", index, index, "")


ENDS_OF_OPERANDS = {"&&", "||", "?", ":", ",", ";", "=", "return", "|=", "&="}


def dropped(source, index):
    """A && B becomes A, or B; if (C) becomes if (1)."""
    word = source.word(index)
    if word in LOGIC:
        first, last = source.reach(index - 1, -1, ENDS_OF_OPERANDS), source.reach(index + 1, 1, ENDS_OF_OPERANDS)
        yield source.site("condition dropped", first, index, "")
        yield source.site("condition dropped", index, last, "")
    elif word == "if" and source.word(index + 1) == "(" and index + 1 in source.pairs:
        yield source.site("condition dropped", index + 2, source.pairs[index + 1] - 1, "1")


def begins_statement(source, index):
    before = source.word(index - 1)
    if before == ")":
        start = source.pairs.get(index - 1)
        head = source.word(start - 1) if start else ""
        return head in HEADS or "FOREACH" in head
    return before in (";", "{", "}", "else", "do")


def is_in_function(source, index):
    return any(source.word(start) == "{" and source.word(start - 1) == ")" and start < index < source.pairs[start]
               for start in source.pairs if start < source.pairs[start])


def statements(source, index):
    word = source.word(index)
    returns = word in ("return", "goto")
    if (word in NO_STATEMENT and not returns) or not re.match(r"[\w*+(-]", word) or not begins_statement(source, index):
        return
    last = source.reach(index, 1, {";"}) + 1
    ends_block = source.word(last + 1) in ("}", "case", "default")
    if source.word(last) == ";" and not (returns and ends_block and source.word(index - 1) != ")") and is_in_function(source, index):
        yield source.site("statement removed", index, last, ";")


def fields(source, index):
    """{.a = b, .c = d} becomes {.c = d}."""
    if source.word(index) == "." and source.word(index - 1) in ("{", ",") and source.word(index + 2) == "=":
        last = source.reach(index + 3, 1, {","})
        yield source.site("statement removed", index, last + (source.word(last + 1) == ","), "")


def swapped(source, index):
    """f(a, b) becomes f(b, a)."""
    start = index + 1
    if not re.match(r"[A-Za-z_]", source.word(index)) or source.word(index) in NO_CALL or source.word(start) != "(" or start not in source.pairs:
        return
    at, arguments = start + 1, []
    while at < source.pairs[start]:
        last = source.reach(at, 1, {","})
        arguments.append((at, last))
        at = last + 2
    for (first, last), (then, end) in zip(arguments, arguments[1:]):
        one, other = source.slice(first, last), source.slice(then, end)
        if one != other and is_in_function(source, index):
            between = source.text[source.tokens[last].end:source.tokens[then].start]
            yield source.site("arguments swapped", first, end, other + between + one)


FINDERS = [comparisons, logic, arithmetic, values, constants, inverted, dropped, statements, fields, swapped]


def sites_of(text):
    """All of a file, in its order."""
    source = Source(text)
    return [site for index in range(len(source.tokens)) for find in FINDERS for site in find(source, index)]
