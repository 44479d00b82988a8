#!/usr/bin/env python3
"""The check of profiles finds what it is there for, in small made-up trees; prints TAP."""
import sys

sys.dont_write_bytecode = True
import made_up

HEAD = "# source linux: linux-stable, tag v6.1\n"
KEPT = {"src/profile/profile.def": "#define DEVICE(key)\nDEVICE(max_qp)\n", "docs/reference/profiles.md": "| `max_qp` | number |\n"}


def tree(text, name="siw", **more):
    return KEPT | {f"profiles/{name}.profile": text} | more


FIVE = "".join(f"a{i} = 1 # linux x.h:{i}\n" for i in range(4))
TREES = {
    "a value with its line is fine": (tree(HEAD + "max_qp = 3 # linux a/b.h:12\n"), 0, "1 values, 0 assumed"),
    "two lines are fine": (tree(HEAD + "max_qp = 3 # linux a/b.h:12, c.c:4 (the smaller)\n"), 0, "ok 1"),
    "a page is fine": (tree("max_qp = 3 # https://example.com/x\n"), 0, "ok 1"),
    "a value without a source is found": (tree(HEAD + "\nmax_qp = 3\n"), 1, "# profiles/siw.profile:3: max_qp has no source"),
    "words are no source": (tree(HEAD + "max_qp = 3 # looks right\n"), 1, "max_qp has no source"),
    "a file without a line is no source": (tree(HEAD + "max_qp = 3 # linux a/b.h\n"), 1, "max_qp has no source"),
    "a tree without a commit is found": (tree("max_qp = 3 # linux a/b.h:12\n"), 1, "the head does not say which commit of \"linux\""),
    "a branch is no commit": (tree("# source linux: master\nmax_qp = 3 # linux a/b.h:12\n"), 1, "which commit"),
    "one in five may be assumed": (tree(HEAD + FIVE + "max_qp = 3 # assumed\n"), 0, "5 values, 1 assumed"),
    "more may not": (tree(HEAD + "a = 1 # linux x.h:1\nmax_qp = 3 # assumed: why\n"), 1, "1 of 2 values are assumed"),
    "of rxe none": (tree(HEAD + FIVE + "max_qp = 3 # assumed\n", name="rxe"), 1, "profiles/rxe.profile: 1 of 5 values are assumed"),
    "the least of all is fine": (tree("max_qp = 3 # least: b\n") | {"profiles/b.profile": "max_qp = 3 # https://x\nqp_types = RC # https://x\n", "profiles/c.profile": "max_qp = 0x4 # https://x\nqp_types = UD # https://x\n"}, 0, "ok 3"),
    "another has less": (tree("max_qp = 3 # least: b\n") | {"profiles/b.profile": "max_qp = 3 # https://x\nqp_types = RC # https://x\n", "profiles/c.profile": "max_qp = 2 # https://x\nqp_types = UD # https://x\n"}, 1,
                         "max_qp is not the least that the profiles have"),
    "of another service": (tree("max_qp = 3 # least: b of those with RC\n") |
                           {"profiles/b.profile": "max_qp = 3 # https://x\nqp_types = RC # https://x\n", "profiles/c.profile": "max_qp = 2 # https://x\nqp_types = UD # https://x\n"}, 0, "ok 3"),
    "that one has another": (tree("max_qp = 3 # least: b\n") | {"profiles/b.profile": "max_qp = 4 # https://x\nqp_types = RC # https://x\n"}, 1, "or not that of b"),
    "a key that the page lacks is found": (tree(HEAD) | {"docs/reference/profiles.md": "nothing\n"}, 1, "docs/reference/profiles.md has no key max_qp"),
}


if __name__ == "__main__":
    sys.exit(made_up.run("profiles.py", TREES))
