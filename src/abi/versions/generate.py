#!/usr/bin/env python3
"""Makes, of a list of symbols, the linker's version script or the stubs.

Usage: generate.py map|stubs LIST OUTPUT
"""
import sys

PRIVATE = "IBVERBS_PRIVATE_"


def read(name):
    with open(name, encoding="ascii") as lines:
        rows = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    for row in rows:
        if len(row) != 4:
            sys.exit(f"{name}: not four words: {' '.join(row)}")
    return rows


def version_script(rows):
    nodes = {}
    for symbol, node, _, _ in rows:
        nodes.setdefault(node, []).append(symbol)
    before, text = "", ""
    for node, symbols in nodes.items():
        private = node.startswith(PRIVATE)
        text += node + " {\n    global:\n" + "".join(f"        {symbol};\n" for symbol in symbols)
        text += "" if before else "    local:\n        *;\n"
        text += "}" + (f" {before}" if before and not private else "") + ";\n\n"
        before = before if private else node
    return text


def stubs(rows):
    stubbed = [row for row in rows if row[3] != "-"]
    text = '#include "abi/stub.h"\n\n'
    text += "".join(f"STUB_EXPORTED({answer}, {symbol})\n" for symbol, _, _, answer in stubbed)
    text += "\nconst struct stub_entry stub_entries[] = {\n"
    for symbol, node, _, _ in stubbed:
        text += f"    STUB_ENTRY({symbol}, {'true' if node.startswith(PRIVATE) else 'false'}),\n"
    return text + "    {NULL, NULL, NULL, false},\n};\n"


def main():
    kinds = {"map": version_script, "stubs": stubs}
    if len(sys.argv) != 4 or sys.argv[1] not in kinds:
        sys.exit(__doc__)
    with open(sys.argv[3], "w", encoding="ascii") as output:
        output.write(kinds[sys.argv[1]](read(sys.argv[2])))


if __name__ == "__main__":
    main()
