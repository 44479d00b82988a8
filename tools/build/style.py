#!/usr/bin/env python3
"""Checks how the prose of the tree reads, against a budget that only falls; prints TAP.

Usage: style.py DIRECTORY [--write | --list PART HABIT]

Prose is what stands in comments, in docstrings, in messages (string literals of at least four words in src and tools) and in pages.
A habit is a pattern; its rate is the number of its places in 1,000 words, or of comments in 100 whose first word needs the code above it. tools/build/style-budget has the rate that each part of
the tree may have at most, give or take a tenth, as a part grows and shrinks. --write lowers the rates of the budget to those of the tree, or to the targets where the tree is below them, and raises none; --list shows the places.
Subjects of commits since the first line of the budget are checked as well, where there is a history.
"""
import ast
import io
import os
import re
import subprocess
import sys
import tokenize

sys.dont_write_bytecode = True
from tree import judged

# A relative clause of a person keeps its "who".
PERSON = r"(?:users?|persons?|people|those|one|authors?|developers?|readers?|maintainers?|owners?|operators?|newcomers?|strangers?|reviewers?|programmers?|lecturers?|students?|teams?|everybody|anybody)"
START = r"(?:^|(?<=[.!?:;] )|(?<=[.!?]\) ))"
HABITS = {
    "who": re.compile(r"(?<!\w)(?:whoever|whom|(?<!\w-)who)\b", re.I),
    "start": re.compile(rf"{START}(?:Who|Whoever|What)\b(?!\?)", re.M),
    "nobody": re.compile(r"\b(?:nobody|somebody)\b", re.I),
    "tell": re.compile(r"\b(?:tell|tells|told|telling)\b", re.I),
    "question": re.compile(r"[a-z)]\?(?=\s|$)", re.M),
    "said": re.compile(r"\b(?:is|are|was|were|be|been) (?:said|asked after|heard of|taken at)\b|\bword of\b", re.I),
    "inverted": re.compile(rf"{START}(?:Is|Are|Does|Do|Has|Have|Had|Should|Were) [^.?!:]{{3,120}}, (?!and|or|which)", re.M),
    "own": re.compile(r"\bof its own\b|\bof their own\b|\bnone of\b|\bno \w+ but\b|\bbut an?\b", re.I),
    "behind": re.compile(r"\bbehind\b", re.I),
    "none": re.compile(r"\bnone\b", re.I),
    "is_no": re.compile(r"\b(?:is|are|was|were) (?:no|none)\b", re.I),
    "stand": re.compile(r"\b(?:stands?|stood|standing|lies|lie|lay|lying)\b", re.I),
    "go": re.compile(r"\b(?:goes|comes)\b", re.I),
    "that_of": re.compile(r"\b(?:that|those) of\b|\bof which\b", re.I),
    "so_many": re.compile(r"\bso (?:many|much|long|far)\b", re.I),
    "image": re.compile(r"\b(?:mail|the void|deaf|hostages?|crowd|parting|last word|strangers?)\b", re.I),
}
# The first word of a comment that only its neighbours explain.
BEGINS = re.compile(r"(?:Of|In|On|At|By|For|From|With|Without|To|Into|After|Before|Behind|Under|Over|Between|As|Like|Likewise|Such|So|It|Its|They|Their|Them|This|"
                    r"That|These|Those|He|His|Both|One|Here|There)\b")
# What the house aims at: places in 1,000 words; of BEGINS, comments of 100. From "behind" on twice the highest rate of seven other libraries.
TARGETS = {"who": 0.3, "start": 0.1, "nobody": 0.3, "tell": 0.3, "question": 0.0, "behind": 0.28, "none": 1.04, "is_no": 1.46, "stand": 0.16, "go": 0.64,
           "that_of": 0.16, "so_many": 0.18, "begins": 6.0}
LEAST = 0.3  # the target of the other habits
SLACK = 1.1
PARTS = ("src", "tools", "tests", "bench", "docs", "messages")
PAGES = re.compile(r"(?:docs/.*|README|ARCHITECTURE|CONTRIBUTING|SECURITY|tests/README)\.md$")
TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|/\*.*?\*/|//[^\n]*', re.S)
STRINGS = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*(?:PRI\w+\s*)?"(?:[^"\\\n]|\\.)*")*')


def prose_of_c(text):
    """Each comment, its frame taken off; lines of // that follow each other are one."""
    run = []
    for token in TOKEN.finditer(text):
        word = token.group()
        if word.startswith("//"):
            between = text[run[-1][1]:token.start()] if run else "x"
            if run and not between.strip() and between.count("\n") == 1:
                run[-1] = (run[-1][0] + " " + word[2:], token.end())
                continue
            run.append((word[2:], token.end()))
        elif word.startswith("/*"):
            run.append((re.sub(r"\n\s*\*? ?", " ", word[2:-2].lstrip("*")), token.end()))
    return [re.sub(r"\s+", " ", one).strip() for one, _ in run]


def runs_of_comments(lines):
    """Lines of # that follow each other, as one."""
    found, block = [], []
    for line in [*lines, ""]:
        comment = re.match(r"\s*#(?!!)\s?(.*)", line) or re.search(r"\s{2}# (.*)$", line)
        if comment:
            block.append(comment.group(1).strip())
        elif block:
            found.append(" ".join(block))
            block = []
    return found


def prose_of_python(text):
    """Docstrings and comments. Any other string may be a program or a page: it is no prose of this file."""
    tree = ast.parse(text)
    nodes = [node for node in ast.walk(tree) if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))]
    lines = [""] * (text.count("\n") + 1)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            lines[token.start[0] - 1] = "  " + token.string
    return [re.sub(r"\s+", " ", said).strip() for said in filter(None, map(ast.get_docstring, nodes))] + runs_of_comments(lines)


def prose_of_pages(text):
    """Paragraphs, rows and lines of lists; no code, no headings, which may ask."""
    text = re.sub(r"(?s:^```.*?^```)|^(?: {4}|\t).*$|^#.*$", "\n\n", text, flags=re.M)
    text = re.sub(r"`[^`\n]*`", "CODE", re.sub(r"\]\([^)]*\)", "]", text))
    text = re.sub(r"\|", "\n\n", text)
    return [re.sub(r"\s+", " ", re.sub(r"^[-*\d.]+ ", "", one.strip())) for one in re.split(r"\n\s*\n|\n(?=[-*] )", text) if one.strip()]


def messages_of_c(text):
    """String literals of at least four words, which a user may read; no paths of headers."""
    text = re.sub(r"/\*.*?\*/|^\s*//[^\n]*|^\s*#\s*include[^\n]*", "", text, flags=re.S | re.M)
    found = []
    for literal in STRINGS.findall(text):
        said = " ".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', literal)).replace("\\n", " ")
        if len(re.findall(r"[A-Za-z]{2,}", said)) >= 4:
            found.append(re.sub(r"\s+", " ", said).strip())
    return found


def texts(top):
    """Part, path and text, for all prose of the tree."""
    for folder, folders, files in os.walk(top):
        folders[:] = sorted(one for one in folders if not one.startswith((".", "build")) and one != "dist" or one == "build" and folder.endswith("tools"))
        for file in sorted(files):
            path = os.path.relpath(os.path.join(folder, file), top)
            part = path.split("/")[0]
            page = PAGES.match(path) and "evidence/audit.md" not in path
            if part not in PARTS and not page or os.path.islink(os.path.join(top, path)):
                continue
            try:
                with open(os.path.join(top, path), encoding="utf-8") as opened:
                    text = opened.read()
            except (UnicodeDecodeError, OSError):
                continue
            if page:
                yield from (("docs", path, one) for one in prose_of_pages(text))
            elif file.endswith((".c", ".h", ".def", ".cc", ".l", ".y")):
                yield from ((part, path, one) for one in prose_of_c(text))
                if part in ("src", "tools") and "_test." not in file and "/tests/" not in path:
                    yield from (("messages", path, one) for one in messages_of_c(text))
            elif file.endswith((".py", ".sh", ".build")) and file != "style.py" and file != "style_test.py":
                yield from ((part, path, one) for one in (prose_of_python(text) if file.endswith(".py") else runs_of_comments(text.split("\n"))))


def places(habit, text):
    """The places of a habit in a text. After the noun of a person, "who" is a relative clause."""
    if habit == "begins":
        yield from filter(None, [BEGINS.match(text)])
        return
    for found in HABITS[habit].finditer(text):
        if habit == "who" and re.search(rf"\b{PERSON},? (?:of \w+ )?(?:who|whom)$", text[:found.end()], re.I):
            continue
        yield found


def measure(top):
    """The number of words of each part, and of places of each habit."""
    words, counts = dict.fromkeys(PARTS, 0), {(part, habit): 0 for part in PARTS for habit in HABITS}
    begun, comments = dict.fromkeys(PARTS, 0), dict.fromkeys(PARTS, 0)
    for part, _, text in texts(top):
        comments[part] += 1
        begun[part] += bool(BEGINS.match(text))
        words[part] += len(re.findall(r"[A-Za-z][\w'-]*", text))
        for habit in HABITS:
            counts[part, habit] += sum(1 for _ in places(habit, text))
    rates = {key: 1000 * count / words[key[0]] if words[key[0]] else 0.0 for key, count in counts.items()}
    return words, rates | {(part, "begins"): 100 * begun[part] / comments[part] for part in ("src", "tools") if comments[part]}


def read_budget(top):
    """The commit behind whose successors subjects are checked, the subjects that were let through, and the highest rates."""
    since, passed, rates = None, set(), {}
    with open(os.path.join(top, "tools/build/style-budget"), encoding="utf-8") as file:
        for line in file:
            key, *rest = line.split()[:1] + line.split(None, 1)[1:] if line.strip() and not line.startswith("#") else [None]
            if key == "since":
                since = rest[0].strip()
            elif key == "passed":
                passed.add(rest[0].strip())
            elif key:
                habit, rate = rest[0].split()
                rates[key, habit] = float(rate)
    return since, passed, rates


def subjects(top, since):
    """The subjects of the commits since one; none without a history."""
    done = subprocess.run(["git", "-C", top, "log", "--no-merges", "--format=%h %s", f"{since}..HEAD"], capture_output=True, text=True, check=False)
    return [line.split(None, 1) for line in done.stdout.splitlines()] if done.returncode == 0 else []


def faults_of_subject(subject):
    if len(subject) > 72:
        yield "more than 72 characters"
    if not re.match(r"[\w./, -]+: [a-z]", subject):
        yield 'not of the form "area: do this"'
    for habit in ("who", "nobody", "tell", "question"):
        if any(places(habit, subject)):
            yield f"the habit {habit}"


def unit(habit):
    return "100 comments" if habit == "begins" else "1,000 words"


def write(top, rates, old):
    path = os.path.join(top, "tools/build/style-budget")
    with open(path, encoding="utf-8") as file:
        head = [line for line in file if line.startswith(("#", "since", "passed")) or not line.strip()]
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(head)
        for key in sorted(rates, key=lambda one: (PARTS.index(one[0]), [*HABITS, "begins"].index(one[1]))):
            rate = max(int(rates[key] * 100 + 0.999) / 100, TARGETS.get(key[1], LEAST))
            file.write(f"{key[0]} {key[1]} {min(rate, old.get(key, rate)):.2f}\n")


def main():
    top = sys.argv[1]
    if sys.argv[2:3] == ["--list"]:
        for part, path, text in texts(top):
            for found in places(sys.argv[4], text) if part == sys.argv[3] else ():
                print(f"{path}: {text[max(0, found.start() - 60):found.end() + 60]}")
        return 0
    words, rates = measure(top)
    since, passed, budget = read_budget(top)
    if sys.argv[2:3] == ["--write"]:
        write(top, rates, budget)
        return 0
    over = [f"{part}: {habit}: {rate:.2f} in {unit(habit)}, {budget.get((part, habit), 0.0):.2f} allowed (style.py . --list {part} {habit})"
            for (part, habit), rate in rates.items() if rate > SLACK * budget.get((part, habit), 0.0) + 0.005]
    checked = subjects(top, since)
    strange = [f"{commit} {subject}: {fault}" for commit, subject in checked if not commit.startswith(tuple(passed) or ("-",))
               for fault in faults_of_subject(subject)]
    return judged((f"{sum(words.values())} words are within the budget of {len(HABITS) + 1} habits", over),
                  (f"{len(checked)} subjects of commits are plain", strange))


if __name__ == "__main__":
    sys.exit(main())
