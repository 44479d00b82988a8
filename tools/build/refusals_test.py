#!/usr/bin/env python3
"""Made-up trees for refusals.py: each that breaks its rule must be named."""
import sys

sys.dont_write_bytecode = True
import made_up

FILE = "src/verbs/a.c"
CASES = {
    "an errno that nobody logs is named": ({FILE: "int f(void)\n{\n    return EINVAL;\n}\n"}, 1, "src/verbs/a.c:3: return EINVAL"),
    "a negative one, too": ({FILE: "int f(void)\n{\n    return -EOPNOTSUPP;\n}\n"}, 1, "a.c:3"),
    "one of two, too": ({FILE: "int f(int a)\n{\n    return a ? 0 : E2BIG;\n}\n"}, 1, "a.c:3"),
    "one in a variable, too": ({FILE: "void f(void)\n{\n    errno = ENOENT;\n}\n"}, 1, "a.c:3"),
    "one of the interface's own folder, too": ({"src/abi/a.c": "int f(void)\n{\n    return EPERM;\n}\n"}, 1, "src/abi/a.c:3"),
    "a refusal is fine": ({FILE: 'int f(void)\n{\n    return refuse(EINVAL, REASON_PORT, "port is 2");\n}\n'}, 0, "ok 1"),
    "what another has logged is fine": ({FILE: "int f(void)\n{\n    return refused(ENOENT);\n}\n"}, 0, "ok 1"),
    "an answer is fine": ({FILE: "int f(void)\n{\n    return not_refused(ENODATA);\n}\n"}, 0, "ok 1"),
    "a lack of memory is fine": ({FILE: "int f(void)\n{\n    return ENOMEM;\n}\n"}, 0, "ok 1"),
    "to compare with one is fine": ({FILE: "int f(int a)\n{\n    return a == EINVAL;\n}\n"}, 0, "ok 1"),
    "a comment is none": ({FILE: "/* return EINVAL; */\n"}, 0, "ok 1"),
    "a file of the list may not have more": ({"src/verbs/kinds/ethernet/flow.c": "int f(void)\n{\n    return EINVAL;\n    return EPERM;\n}\n"}, 1,
                                             "flow.c:4"),
    "nor keep its number with fewer": ({"src/verbs/kinds/ethernet/flow.c": "int f(void)\n{\n    return 0;\n}\n"}, 1, "not ok 2"),
}

if __name__ == "__main__":
    sys.exit(made_up.run("refusals.py", CASES))
