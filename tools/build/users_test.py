#!/usr/bin/env python3
"""The check of users finds what it is there for, in small made-up trees; prints TAP."""
import sys

sys.dont_write_bytecode = True
import made_up

FINE, RAW = (0, "ok 1 - no file compares"), (1, "not ok 1 - no file compares")


def tree(text, path="src/a/a.c"):
    return {path: text}


TREES = {
    "what base/user.h answers is fine": (tree("return user_owns_file(fd, \"\", &status) && geteuid();"), *FINE),
    "a comparison of an owner is refused": (tree("return status.st_uid == geteuid();"), *RAW),
    "its line is named": (tree("return status.st_uid == geteuid();"), 1, "# src/a/a.c: status.st_uid == geteuid()"),
    "likewise of one that is pointed to": (tree("return status->st_uid != geteuid();"), *RAW),
    "the other way around": (tree("return geteuid() == owner.uid;"), *RAW),
    "of the real user": (tree("if (message->uid != getuid())\n    return;"), *RAW),
    "of a group": (tree("return status.st_gid != getegid();"), *RAW),
    "over two lines": (tree("return owner.uid ==\n       geteuid();"), *RAW),
    "with a cast": (tree("return user == (long long)geteuid();"), *RAW),
    "of two owners": (tree("return one->st_uid == other.st_uid;"), *RAW),
    "of an owner with a number": (tree("return status->st_uid == maker;"), *RAW),
    "by way of a variable": (tree("uid_t own = geteuid();\nreturn owner.uid == own;"), *RAW),
    "by way of a member": (tree("struct ucred self = {.uid = geteuid()};\nreturn self.uid == owner;"), *RAW),
    "in tools, too": (tree("return status.st_uid == geteuid();", "tools/a.c"), *RAW),
    "in headers, too": (tree("return status.st_uid == geteuid();", "src/a/a.h"), *RAW),
    "in tests it is fine": (tree("return status.st_uid == geteuid();", "src/a/a_test.c"), *FINE),
    "whether it is root may be asked": (tree("return !geteuid() || geteuid() == 0 || status.st_uid == 0 || 0 != getuid();"), *FINE),
    "a name may be made of it": (tree('snprintf(name, 9, "%u", geteuid());\nuser = getpwuid(geteuid());'), *FINE),
    "comments compare nothing": (tree("/* st_uid == geteuid() */"), *FINE),
    "the one file may": (tree("return status.st_uid == geteuid();", "src/base/user.c"), 1, "\nok 1 - no file compares"),
    "an exception that nothing needs is refused": (tree("", "src/base/user.c"), 1, "not ok 2 - each exception"),
}


if __name__ == "__main__":
    sys.exit(made_up.run("users.py", TREES))
