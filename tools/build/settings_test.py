#!/usr/bin/env python3
"""The check of settings finds what it is there for, in small made-up trees; prints TAP."""
import sys

sys.dont_write_bytecode = True
import made_up

LIST = 'SETTING(LOG, "", CHOICE, "none warn", "none", "log", "LEVEL", "log to stderr", "`warn`: log")\n'
TREE = {
    "src/base/settings.def": LIST,
    "src/config/limits.def": "",
    "src/events/events.def": "",
    "src/diag/log.c": "const char *level = setting_environment(SETTING_LOG);\n",
}
DEAD = LIST + 'SETTING(DEAD, "", TEXT, "", "", "", "", "", "")\n'

CASES = {
    "a setting that is read is fine": ({}, 0, "ok 4"),
    "an option needs help": ({"src/base/settings.def": LIST.replace("log to stderr", "")}, 1, "not ok 1"),
    "no other place names a variable": ({"tools/run.c": 'getenv("SOFTVERBS_LOG");\n'}, 1, 'tools/run.c: getenv("SOFTVERBS_LOG")'),
    "a variable that a script reads is a setting": ({"tests/x.py": 'os.environ["SOFT' + 'VERBS_OTHER"]\n'}, 1, "tests/x.py: SOFTVERBS_OTHER"),
    "or is reserved": ({"tests/x.py": 'os.environ["SOFT' + 'VERBS_OTHER"]\n', "src/base/settings.def": LIST + "RESERVED(OTHER)\n"}, 0, "ok 3"),
    "a setting that nothing reads is found": ({"src/base/settings.def": DEAD}, 1, "SOFTVERBS_DEAD has no reader"),
    "to set it is not to read it": ({"src/base/settings.def": DEAD, "tools/run.c": 'setting_put(SETTING_DEAD, "1");\n'}, 1, "SOFTVERBS_DEAD has no reader"),
    "a comment does not read it": ({"src/base/settings.def": DEAD, "tools/run.c": "/* SETTING_DEAD */\n"}, 1, "SOFTVERBS_DEAD has no reader"),
    "a test is no reader": ({"src/base/settings.def": DEAD, "src/diag/log_test.c": "setting_environment(SETTING_DEAD);\n"}, 1, "SOFTVERBS_DEAD has no reader"),
    "a reader of the command counts": ({"src/base/settings.def": DEAD, "tools/run.c": "setting_text(SETTING_DEAD);\n"}, 0, "ok 4"),
}


if __name__ == "__main__":
    sys.exit(made_up.run("settings.py", CASES, beside=TREE))
