#!/usr/bin/env python3
"""Programs of outside reports under softverbs: reports.py DIRECTORY [NAME...]

DIRECTORY has the folders field-a and field-b, whose programs the reports came with; they are not part of this tree. Each row is a
program with its arguments, the options of `softverbs run`, and a word that what is said must have (an id of a rule, or a part of a
sentence). Prints a line for each, and ends with 1 if one lacks its word.
"""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../clients"))
from patience import patience

SOFTVERBS = os.path.join(os.environ.get("SOFTVERBS_BUILD", os.path.join(HERE, "../../build")), "softverbs")
CHECK, WARN = ["--check=notes"], ["--log", "warn"]
ROWS = (
    ("field-a/01_mtu_mismatch", "", WARN, "reason 449"),
    ("field-a/05_not_drained", "wap", CHECK, "(not-drained)"),
    ("field-a/05_not_drained", "wpa", CHECK, "(event-missed)|(not-drained)"),
    ("field-a/10_freed_region", "", CHECK, "(region-given-up)"),
    ("field-a/10b_unmapped_read", "", CHECK, "(region-given-up)"),
    ("field-a/10c_unmapped_write", "", CHECK, "(region-given-up)"),
    ("field-a/27_route_error", "", [*WARN, "--inject", "when route: drop"], "ROUTE_ERROR"),
    ("field-a/31_srq_runs_dry", "", CHECK, "(receive-missing)|(receives-ran-out)"),
    ("field-a/34_builder_missing", "op", CHECK, "(builder-order)"),
    ("field-a/34_builder_missing", "start2", CHECK, "(builder-order)"),
    ("field-a/34_builder_missing", "complete", CHECK, "(builder-order)"),
    ("field-a/34_builder_missing", "sge", CHECK, "(builder-order)"),
    ("field-a/35_last_owner", "twice", CHECK, "(use-after-destroy)"),
    ("field-a/35_last_owner", "cq2", CHECK, "(event-overacknowledged)"),
    ("field-a/36_dead_queue", "", CHECK, "(cq-overrun)"),
    ("field-b/01_stale_pages", "dontneed", CHECK, "(region-given-up)"),
    ("field-b/01_stale_pages", "remap", CHECK, "(region-given-up)"),
    ("field-b/01_stale_pages", "mremap", CHECK, "(region-given-up)"),
    ("field-b/01_stale_pages", "shm", CHECK, "(region-given-up)"),
    ("field-b/02_file_mapping", "FILE", CHECK, "(file-not-pinned)"),
    ("field-b/02_file_mapping", "FILE", [*WARN, "--profile", "rxe"], "reason 866"),
    ("field-b/05_atomic_refused", "align", CHECK, "(atomic-misaligned)"),
    ("field-b/05_atomic_refused", "union", CHECK, "(atomic-key-zero)"),
    ("field-b/05_atomic_refused", "region", CHECK, "(failed-work)"),
    ("field-b/06_cut_address", "low", WARN, "cut to 32 bits"),
    ("field-b/06_cut_address", "sign", WARN, "cut to 32 bits"),
    ("field-b/06_cut_address", "swapped64", WARN, "order"),
    ("field-b/11_groups", "", WARN, "reason 34"),
    ("field-b/14_inline_unasked", "rc", CHECK, "(inline-unasked)|(post-refused)"),
    ("field-b/14_inline_unasked", "ud", CHECK, "(inline-unasked)|(post-refused)"),
    ("field-b/14_inline_unasked", "builder", CHECK, "(inline-unasked)|(post-refused)"),
    ("field-b/18_two_pds", "ah", CHECK, "(ah-domain)"),
    ("field-b/18_two_pds", "pd", CHECK, "(wrong-key)"),
)


def _compile(directory, name, into):
    program = os.path.join(into, name.replace("/", "-"))
    if not os.path.exists(program):
        subprocess.run(["gcc", "-g", "-O1", "-w", "-o", program, os.path.join(directory, name + ".c"), "-lrdmacm", "-libverbs", "-lpthread"], check=True)
    return program


def _said(program, arguments, options):
    try:
        done = subprocess.run([SOFTVERBS, "run", *options, "--", program, *arguments], capture_output=True, timeout=patience(20), check=False)
        return done.stdout + done.stderr
    except subprocess.TimeoutExpired as late:
        return (late.stdout or b"") + (late.stderr or b"")


def _has(said, word):
    return any(part in said for part in re.split(r"\|(?=\()", word))


def main(directory, names):
    lacking = 0
    with tempfile.TemporaryDirectory(dir=os.path.dirname(SOFTVERBS)) as into:  # on a disk: a file there is mapped
        for name, arguments, options, word in ROWS:
            if names and not any(part in name for part in names):
                continue
            words = [f"{into}/file" if one == "FILE" else one for one in arguments.split()]
            said = _said(_compile(directory, name, into), words, options).decode(errors="replace")
            lacking += not _has(said, word)
            print(f"{'yes' if _has(said, word) else 'NO '} {name} {arguments} {' '.join(options)}: {word}", flush=True)
            if names:
                print(said)
    print(f"{lacking} of {len(ROWS)} lack their word")
    return lacking > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
