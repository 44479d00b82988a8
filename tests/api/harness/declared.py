#!/usr/bin/env python3
"""The functions that <infiniband/verbs.h> declares and the library exports, read from the header, the list of symbols and src/calls/verbs.def.

    declared.py HEADER SYMBOLS VERBS OUTPUT     writes the C header that records which of the functions a test calls
"""
import re
import sys

TABLES = ("ibv_context_ops", "verbs_context", "ibv_cq_ex", "ibv_qp_ex", "ibv_wq", "ibv_dm")

# Names that the header also makes macros of: their values there.
MACROS = {
    "ibv_query_port": "___ibv_query_port(__VA_ARGS__)",
    "ibv_reg_mr": "__ibv_reg_mr(__VA_ARGS__, constant_access(__VA_ARGS__))",
    "ibv_reg_mr_iova": "__ibv_reg_mr_iova(__VA_ARGS__, constant_access_iova(__VA_ARGS__))",
}

FAILING = ("code", "minus", "negative", "poll") # what answers a number, by which it reports failure

# Functions whose int is no error number, or not always; the last two may be refused by the header, which leaves errno alone.
NOT_AS_DECLARED = {
    "ibv_poll_cq": "minus",
    "ibv_start_poll": "poll",
    "ibv_next_poll": "poll",
    "ibv_is_qpt_supported": None,
    "ibv_get_device_index": None,
    "ibv_query_qp_data_in_order": None,
    "ibv_qp_to_qp_ex": None,
    "ibv_bind_mw": None,
    "ibv_query_device_ex": None,
}


def without_comments(path):
    with open(path, encoding="utf-8") as file:
        return re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)


def exported(path):
    """The symbols: those for programs, and those for providers; not those for libraries of softverbs."""
    with open(path, encoding="ascii") as lines:
        rows = [line.split() for line in lines if line.strip() and not line.startswith(("#", "softverbs_"))]
    return [row[0] for row in rows if "PRIVATE" not in row[1]], [row[0] for row in rows if "PRIVATE" in row[1]]


def inline_functions(header):
    """Each function that the header itself holds, and the operations that it calls as (table, member)."""
    found = {}
    table = {"ops.": "ibv_context_ops", "vctx->": "verbs_context", "cq->": "ibv_cq_ex", "qp->": "ibv_qp_ex", "wq->": "ibv_wq",
             "dm->": "ibv_dm"}
    for match in re.finditer(r"static\s+inline\s+[^;{}]*?\b(\w+)\(([^{};]*)\)\s*\{(.*?)\n\}", header, re.DOTALL):
        body = match.group(3)
        calls = {(table[through], member) for through, member in re.findall(r"(ops\.|\w+->)(\w+)\(", body) if through in table}
        calls |= {("verbs_context", member) for member in re.findall(r"verbs_get_ctx_op\([^,]+,\s*(\w+)\)", body)}
        found[match.group(1)] = sorted(calls)
    return found


def operations(header):
    """The function pointers of each table, in their order."""
    found = {}
    for table in TABLES:
        body = re.search(rf"^struct {table} \{{(.*?)^\}};", header, re.DOTALL | re.MULTILINE).group(1)
        found[table] = re.findall(r"\(\s*\*\s*(\w+)\s*\)\s*\(", body)
    return found


def listed_verbs(path):
    """The exported verbs of src/calls/verbs.def, and how each reports failure; None: it does not fail."""
    words = {"event": "minus", "plain": None}
    with open(path, encoding="ascii") as file:
        rows = re.findall(r"^(?:NEWER_|OLD_)?VERB\((\w+), [^,]+, (\w+),", file.read(), re.M)
    return {name: words.get(answer, answer) for answer, name in rows}


def listed_members(path):
    """The members of the header's structures in src/calls/verbs.def, as (struct, member), and what programs write for each."""
    with open(path, encoding="ascii") as file:
        text = file.read()
    rows = re.findall(r"^(?:MEMBER\((\w+), \w+|ON_OBJECT\((\w+)), [^,]+, (\w+), (\w+),", text, re.M)
    found = {(member or on_object, name): called for member, on_object, name, called in rows}
    found.update({(table, name): f"ibv_{name}" for table, name in re.findall(r"^FAST\((\w+), \w+, [^,]+, (\w+),", text, re.M)})
    found.update({("ibv_qp_ex", name): f"ibv_{name}" for name in re.findall(r"^(?:NEWER_)?BUILDER\([^,]+, (\w+),", text, re.M)})
    found.update({("ibv_cq_ex", name): f"ibv_{name}" for name in re.findall(r"^ITERATOR\([^,]+, (\w+),", text, re.M)})
    return {**found, **{("ibv_cq_ex", name): f"ibv_wc_{name}" for name in re.findall(r"^(?:FIRST_)?READER\([^,]+, (\w+),", text, re.M)}}


def answers(header, symbols, verbs):
    """How each function reports failure to its caller, in the words of the lists; None: not at all."""
    with open(symbols, encoding="ascii") as lines:
        found = {line.split()[0]: line.split()[2] for line in lines if line.strip() and not line.startswith("#")}
    found.update(listed_verbs(verbs))
    by_type = {"int": "code", "ssize_t": "negative", "void": "nothing"}
    for match in re.finditer(r"static\s+inline\s+([^;{}()]*?)\b(\w+)\([^{};]*\)\s*\{", header):
        returned = match.group(1).strip()
        found.setdefault(match.group(2), "pointer" if returned.endswith("*") else by_type.get(returned))
    return {**found, **NOT_AS_DECLARED}


def recorded_call(name, answer):
    """A call that is recorded, and checked: its errno must agree with its answer. record.h has the functions."""
    call = MACROS.get(name, f"{name}(__VA_ARGS__)")
    if answer in FAILING:
        return f'record("{name}"), record_{answer}({call})'
    if answer == "pointer":
        return f'record("{name}"), (__typeof__({call}))record_pointer({call})'
    return f'record("{name}"), {call}'


def recorded(names, answer_of, header):
    """Names at which a test calls a function of either kind; and which of those that this header has can fail."""
    text = "/* Made by declared.py: every call of these functions is noted under its name, and its errno looked at. */\n" \
           "#include <infiniband/verbs.h>\n\n" \
           "#include \"record.h\"\n\n" \
           "#define constant_access(pd, address, length, access) \\\n" \
           "    __builtin_constant_p(((access) & IBV_ACCESS_OPTIONAL_RANGE) == 0)\n" \
           "#define constant_access_iova(pd, address, length, iova, access) \\\n" \
           "    __builtin_constant_p(((access) & IBV_ACCESS_OPTIONAL_RANGE) == 0)\n\n"
    names = sorted(names)
    failing = [name for name in names if answer_of.get(name) in FAILING and re.search(rf"\b{name}\(", header)]
    text += "#define RECORDED_FAILING " + ", ".join(f'"{name}"' for name in failing) + "\n\n"
    for name in names:
        text += f"#undef {name}\n" if name in MACROS else ""
        text += f"#define {name}(...) ({recorded_call(name, answer_of.get(name))})\n"
    return text


def main():
    header, symbols, verbs, output = sys.argv[1:]
    text = without_comments(header)
    names = set(exported(symbols)[0]) | set(inline_functions(text))
    with open(output, "w", encoding="ascii") as file:
        file.write(recorded((name for name in names if "ibv_" in name and not name.startswith("_")), answers(text, symbols, verbs), text))


if __name__ == "__main__":
    main()
