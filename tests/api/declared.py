#!/usr/bin/env python3
"""What <infiniband/verbs.h> declares and the library exports, read from the header and from the list of symbols.

    declared.py HEADER SYMBOLS OUTPUT     writes the C header that records which of the functions a test calls
"""
import re
import sys

TABLES = ("ibv_context_ops", "verbs_context", "ibv_cq_ex", "ibv_qp_ex", "ibv_wq", "ibv_dm")

# Names that the header also makes macros of: what they stand for there.
MACROS = {
    "ibv_query_port": "___ibv_query_port(__VA_ARGS__)",
    "ibv_reg_mr": "__ibv_reg_mr(__VA_ARGS__, constant_access(__VA_ARGS__))",
    "ibv_reg_mr_iova": "__ibv_reg_mr_iova(__VA_ARGS__, constant_access_iova(__VA_ARGS__))",
}


def without_comments(path):
    with open(path, encoding="utf-8") as file:
        return re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)


def exported(path):
    """The symbols: those for programs, and those for providers."""
    with open(path, encoding="ascii") as lines:
        rows = [line.split() for line in lines if line.strip() and not line.startswith("#")]
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


def recorded(names):
    """Names at which a test calls a function of either kind."""
    text = "/* Made by declared.py: every call of these functions is noted under its name. */\n" \
           "#include <infiniband/verbs.h>\n\n" \
           "void record(const char *name);\n\n" \
           "#define constant_access(pd, address, length, access) \\\n" \
           "    __builtin_constant_p(((access) & IBV_ACCESS_OPTIONAL_RANGE) == 0)\n" \
           "#define constant_access_iova(pd, address, length, iova, access) \\\n" \
           "    __builtin_constant_p(((access) & IBV_ACCESS_OPTIONAL_RANGE) == 0)\n\n"
    for name in sorted(names):
        meaning = MACROS.get(name, f"{name}(__VA_ARGS__)")
        text += f"#undef {name}\n" if name in MACROS else ""
        text += f'#define {name}(...) (record("{name}"), {meaning})\n'
    return text


def main():
    header, symbols, output = sys.argv[1:]
    names = set(exported(symbols)[0]) | set(inline_functions(without_comments(header)))
    with open(output, "w", encoding="ascii") as file:
        file.write(recorded(name for name in names if "ibv_" in name and not name.startswith("_")))


if __name__ == "__main__":
    main()
