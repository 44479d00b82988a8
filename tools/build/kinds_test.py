#!/usr/bin/env python3
"""The check of kinds finds what it is there for, in small made-up trees; prints TAP."""
import sys

sys.dont_write_bytecode = True
import made_up


def naming(count, folder="src/a"):
    return {f"{folder}/{i}.c": "int x = IBV_QPT_RC;\n" for i in range(count)}


def chain(count):
    """A header of a type that brings `count` headers along, each by the one before."""
    names = ["verbs/qp/qp.h", *(f"base/{i}.h" for i in range(count))]
    return {f"src/{name}": f'#include "{other}"\n' for name, other in zip(names, names[1:])} | {f"src/{names[-1]}": ""}


TREES = {
    "three files may name types": (naming(3), 0, "that name IBV_QPT_: 3 of at most 3"),
    "four may not": (naming(4), 1, "not ok 1 - files outside of verbs/kinds/ that name IBV_QPT_: 4 of at most 3"),
    "kinds may be many": ({**naming(3), **naming(20, "src/verbs/kinds"), **naming(20, "src/verbs/kinds/xrc")}, 0, "3 of at most 3"),
    "tests count": ({**naming(3), "src/a_test.c": "IBV_QPT_UD"}, 1, "a_test.c"),
    "rdma-core's own header does not": ({**naming(3), **naming(1, "src/newer")}, 0, "3 of at most 3"),
    "a type asked by its number is found": ({"src/a/x.c": "if (attr->qp_type == 4) {\n"}, 1, "a/x.c: qp_type == 4"),
    "in a switch, too": ({"src/a/x.c": "switch (qp->kind->type) {\ncase 4:\n}\n"}, 1, "not ok 3"),
    "a type asked by its name is found": ({"src/a/x.c": 'if (!strcmp(qp->kind->name, "UD"))\n'}, 1, "not ok 3"),
    "a name may be printed": ({"src/a/x.c": 'fprintf(out, "%s", qp->kind->name);\n'}, 0, "ok 3"),
    "a kind may ask itself": ({"src/verbs/kinds/x.c": "if (attr->qp_type == 4)\n"}, 0, "ok 3"),
    "11 comparisons of services are fine": ({"src/a/x.c": "if (service == SERVICE_UD)\n" * 11, "src/wire/op.c": "x == SERVICE_RC;\n"}, 0, "11 of at most 11"),
    "12 are not": ({"src/a/x.c": "if (flow->service != SERVICE_UD)\n" * 12}, 1, "not ok 4"),
    "the service of an opcode is no type": ({"src/a/x.c": "if (op_service(packet->opcode) == SERVICE_CNP)\n" * 12}, 0, "0 of at most 11"),
    "nor as cases": ({"src/a/x.c": "case SERVICE_UD:\n" * 12}, 1, "not ok 4"),
    "fourteen headers may come along": (chain(14), 0, "verbs/qp/qp.h 14"),
    "fifteen may not": (chain(15), 1, "verbs/qp/qp.h: brings 15 headers, at most 14"),
    "each counts once": ({**chain(14), "src/base/13.h": '#include "base/0.h"\n'}, 0, "verbs/qp/qp.h 14"),
}


if __name__ == "__main__":
    sys.exit(made_up.run("kinds.py", TREES))
