#!/usr/bin/env python3
"""Makes the linker's version script, the stubs, or the older version nodes of defined symbols from a list of symbols.

Usage: generate.py map|stubs|versions LIST OUTPUT
       generate.py nodes LIST                       prints one line that names them

A private symbol has several nodes, and so has one of libmlx5. The version script gives it to the newest; for each older one
the file that defines the symbol has an alias NAME__NODE, to which .symver gives that node.
"""
import sys

PRIVATE = "IBVERBS_PRIVATE_"


def read(name):
    with open(name, encoding="ascii") as lines:
        rows = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    for row in rows:
        if len(row) != 3:
            sys.exit(f"{name}: not three words: {' '.join(row)}")
    return rows


def node_names(column):
    """The nodes of a symbol, the oldest first: IBVERBS_PRIVATE_25,33 names two."""
    first, *others = column.split(",")
    return [first] + [f"{first.rpartition('_')[0]}_{number}" for number in others]


def is_private(row):
    return row[1].startswith(PRIVATE)


def version_script(rows):
    nodes = {}
    for row in rows:
        for node in node_names(row[1]):
            nodes.setdefault(node, [])
        nodes[node_names(row[1])[-1]].append(row[0])
    before, text = "", ""
    older = {node for row in rows for node in node_names(row[1])[:-1]}
    hides = next(node for node in nodes if node not in older)  # `*` would hide what .symver puts into the same node
    for node, symbols in nodes.items():
        private = node.startswith(PRIVATE)
        listed = "".join(f"        {symbol};\n" for symbol in symbols)
        text += node + " {\n" + (f"    global:\n{listed}" if listed else "")
        text += "    local:\n        *;\n" if node == hides else ""
        text += "}" + (f" {before}" if before and not private else "") + ";\n\n"
        before = before if private else node
    return text


def older_names(row, target):
    """Lines that define the symbol in each of its nodes but the newest, as aliases of `target`."""
    return [f"VERSION_OF({row[0]}, {target}, {node[len(PRIVATE):]})" for node in node_names(row[1])[:-1]]


def stubs(rows):
    stubbed = [row for row in rows if row[2] != "-"]
    text = '#include "abi/stub.h"\n#include "abi/version.h"\n\n'
    for row in stubbed:
        text += f"STUB_EXPORTED({row[2]}, {row[0]})\n"
        text += "".join(line + "\n" for line in older_names(row, "stub_" + row[0]))
    text += "\nconst struct stub_entry stub_entries[] = {\n"
    for row in stubbed:
        text += f"    STUB_ENTRY({row[0]}, {'true' if is_private(row) else 'false'}),\n"
    return text + "    {NULL, NULL, NULL, false},\n};\n"


def versions(rows):
    text = "/* Made by generate.py: the older nodes of the private symbols that are built. */\n"
    for row in rows:
        if is_private(row) and row[2] == "-":
            text += f"#define VERSIONS_OF_{row[0]} " + " ".join(older_names(row, row[0])) + "\n"
    return text


def nodes(rows):
    """All version nodes of rdma-core, in words."""
    every = {node for row in rows for node in node_names(row[1]) if node.startswith("IBVERBS_")}
    public = sorted((node for node in every if not node.startswith(PRIVATE)), key=lambda node: int(node.split(".")[1]))
    private = sorted(int(node[len(PRIVATE):]) for node in every if node.startswith(PRIVATE))
    return f"{public[0]} to {public[-1]}, {PRIVATE}{', '.join(str(number) for number in private)}"


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "nodes":
        print(nodes(read(sys.argv[2])))
        return
    kinds = {"map": version_script, "stubs": stubs, "versions": versions}
    if len(sys.argv) != 4 or sys.argv[1] not in kinds:
        sys.exit(__doc__)
    with open(sys.argv[3], "w", encoding="ascii") as output:
        output.write(kinds[sys.argv[1]](read(sys.argv[2])))


if __name__ == "__main__":
    main()
