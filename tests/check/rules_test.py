#!/usr/bin/env python3
"""Each rule of the checker with a program that breaks it, its correct twin, and a neighbour. Prints TAP.

The programs are in mistakes*.c. A comment "/* CASE VARIANT */" there, at the end of the line or above it, marks the line that the
finding must name.
"""
import glob
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tool"))
import cases
from cases import BUILD, TEMPORARY, Skip, softverbs, told
from patience import tries

PROGRAM = f"{BUILD}/tests/check/mistakes"
CONNECTIONS = f"{PROGRAM}_connections"  # with librdmacm
SRD = f"{PROGRAM}_srd"  # with libefa
FORMS = f"{PROGRAM}_forms"  # with libmlx5
SOURCES = sorted(glob.glob(os.path.join(HERE, "mistakes*.c")))
# The rules that a case breaks beside its own, as one mistake often causes others.
TOO = {
    ("atomic-misaligned", "faulty"): ("failed-work",),
    ("atomic-misaligned", "neighbour"): ("failed-work",),
    ("atomic-key-zero", "faulty"): ("failed-work",),
    ("atomic-key-zero", "neighbour"): ("failed-work",),
    ("cq-overrun", "neighbour"): ("buffers-overlap",),
    ("cq-overrun", "faulty"): ("never-polled",),
    ("never-polled", "neighbour"): ("never-destroyed",),
    ("event-overacknowledged", "neighbour"): ("never-destroyed",),
    ("single-threaded", "faulty"): ("refused-call",),
    ("receive-missing", "faulty"): ("receives-ran-out", "rnr-retry-endless"),
    ("receive-missing", "twin"): ("rnr-retry-endless",),
    ("receive-missing", "neighbour"): ("rnr-retry-endless",),
    ("awaits-gone", "faulty"): ("never-polled", "rnr-retry-endless"),
    ("awaits-gone", "twin"): ("rnr-retry-endless",),
    ("awaits-gone", "neighbour"): ("never-polled", "rnr-retry-endless"),
    ("cm-qp-left", "faulty"): ("never-destroyed",),
    ("cm-qp-left", "twin"): ("never-destroyed",),
    ("cm-qp-left", "neighbour"): ("never-destroyed",),
}


def _rules():
    """(id, level, when it is seen) of all rules."""
    with open(os.path.join(HERE, "../../src/check/rules.def"), encoding="utf-8") as file:
        return re.findall(r'^RULE\(\w+, "([\w-]+)", (\w+), (\w+),', file.read(), re.M)


def _needs_disk():
    kind = subprocess.run(["stat", "-f", "-c", "%T", BUILD], capture_output=True, text=True, check=True).stdout.strip()
    if kind not in ("ext2/ext3", "xfs", "f2fs", "nfs"):
        raise Skip(f"the build is on {kind}, and the rule is about files on ext4, XFS, F2FS and NFS")


# The machine must have this for the cases of a rule.
NEEDS = {"file-not-pinned": _needs_disk}
# The devices that have the rules.
PROFILES = {"read-sink-access": "siw"}
# The rules that also hold for queue pairs of SRD, by the case srd-RULE.
OVER_SRD = ("ah-in-use", "post-refused", "receives-ran-out", "region-in-use", "send-buffer-changed", "wrong-key")

# The rules that look at threads that wait, and why a try of one may be in vain.
OF_WAITS = ("awaits-gone", "cm-event-unacknowledged", "destroyed-inside", "event-missed", "event-unacknowledged", "never-armed", "not-drained",
            "post-refused", "receive-missing", "receives-ran-out")
BUSY = "a thread that waits, or ends a wait in time, gets no processor on a busy machine now and then"


AROUND = "--around" in sys.argv
# The rules that ask what only softverbs' own devices know, and cases whose program needs such a device: around another libibverbs
# they find nothing, and docs/reference/around.md says so.
NOT_AROUND = ("address-missing", "cq-index-ahead", "not-drained", "order-assumed", "receive-buffer-written", "receive-missing", "receive-short", "receive-wrapped",
              "receives-ran-out", "targets-overlap", "touched-early", "wqe-fence", "wqe-index", "wqe-number", "wqe-operation", "wqe-overrun", "wqe-units")
OWN_ALONE = (("awaits-gone", "neighbour"), ("destroyed-inside", "neighbour"), ("never-polled", "neighbour"), ("peers-disagree", "neighbour"), ("use-after-destroy", "neighbour"))


# The rules that report it instead when the rule is off.
INSTEAD = {"inline-missing": ("send-buffer-changed",)}


def _marked_line(rule, variant):
    lines = []
    for source in SOURCES:
        with open(source, encoding="utf-8") as file:
            lines += [(number, line, os.path.basename(source)) for number, line in enumerate(file.read().splitlines(), 1)]
    found = [number for number, (_, line, _) in enumerate(lines) if f"/* {rule} {variant} */" in line]
    assert len(found) == 1, f"{rule} {variant} is marked in lines {found}"
    at = found[0]
    while lines[at][1].lstrip().startswith("/*"):
        at += 1
    return lines[at][2], lines[at][0]


def _is_of(source, case):
    with open(os.path.join(HERE, f"mistakes_{source}.c"), encoding="utf-8") as file:
        return f'{{"{case}",' in file.read()


def _is_of_srd(case):
    return _is_of("srd", case)


def _is_of_forms(case):
    return _is_of("forms", case)


def _program(case):
    if _is_of_srd(case):
        return SRD
    if _is_of_forms(case):
        return FORMS
    if not _is_of("connections", case):
        return PROGRAM
    if not os.path.exists(CONNECTIONS):
        raise Skip("librdmacm is not here")
    return CONNECTIONS


def _findings(rule, variant, words):
    """The program's report; it must end well. With --around the checker is in front of another libibverbs, which is softverbs', too."""
    NEEDS.get(rule, lambda: None)()
    path = f"{TEMPORARY}/{rule}-{variant}.json"
    profile = "efa3" if _is_of_srd(rule) else "connectx-7-roce,mlx5" if _is_of_forms(rule) else PROFILES.get(rule)
    options = [f"--profile={profile}"] if profile else []
    around = ["--", cases.SOFTVERBS, "around"] if AROUND else []
    done = softverbs("run", *options, *around, f"--check={words}", f"--check-report={path}", "--", _program(rule), rule, variant)
    assert done.returncode == 0, told(done)
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    os.unlink(path)
    return [line for line in lines if "text" in line and line["rule"] not in TOO.get((rule, variant), ())], done


def _places(finding):
    """The lines of the program that it names."""
    return [(os.path.basename(place["file"]), place["line"]) for name in ("posted", "found", "created", "destroyed") for place in finding[name]]


def _breaks(rule, level, variant, words):
    found, done = _findings(rule, variant, words)
    assert [one["rule"] for one in found] == [rule], (found, told(done))
    assert found[0]["level"] == level.lower(), found
    assert _marked_line(rule, variant) in _places(found[0]), (_marked_line(rule, variant), found)
    assert f"({rule})".encode() in done.stderr, told(done)


def _is_silent(rule, variant, words):
    found, done = _findings(rule, variant, words)
    found = [one for one in found if variant == "twin" or one["rule"] not in INSTEAD.get(rule, ())]
    assert not found and rule.encode() not in done.stderr, (found, told(done))


def what_is_allowed_is_not_reported():
    for case in ("allowed", "behind-arming", "xrc", "empty-element", "fenced", "peers-write", "one-id", "waits"):
        found, done = _findings(case, "twin", "notes")
        assert not found, (case, found, told(done))


def _holds_over_srd(rule):
    for variant in ("faulty", "twin"):
        found, done = _findings(f"srd-{rule}", variant, rule)
        assert [one["rule"] for one in found] == [rule][:variant == "faulty"], (variant, found, told(done))
        assert not found or _marked_line(f"srd-{rule}", variant) in _places(found[0]), (found, told(done))


def rules_hold_for_queue_pairs_of_srd():
    for rule in OVER_SRD:
        tries(f"{rule} over SRD", 3 if rule in OF_WAITS else 1, BUSY, lambda rule=rule: _holds_over_srd(rule), AssertionError)


def each_error_of_srd_is_reported():
    found, done = _findings("srd-failed-work", "twin", "adapter")
    said = [(one["rule"], one["text"].split(" of queue pair")[0]) for one in found]
    assert said == [("failed-work", "A RDMA READ"), ("failed-work", "A RDMA WRITE")], (found, told(done))


def work_of_srd_with_one_id_is_not_reported():
    found, done = _findings("srd-one-id", "twin", "notes,-receives-ran-out")
    assert not found, (found, told(done))


def all_refused_calls_are_seen():
    found, done = _findings("refused", "twin", "refused-call")
    words = ("A call that registers memory", "ibv_rereg_mr", "ibv_open_qp", "ibv_import_device", "ibv_import_pd", "ibv_import_mr", "ibv_import_dm")
    assert [one["text"].split(" was refused")[0] for one in found] == list(words), (found, told(done))


def all_uses_of_what_is_gone_are_seen():
    found, done = _findings("gone", "twin", "use-after-destroy")
    words = ("ibv_reg_mr names the protection domain with handle {number}", "ibv_poll_cq names the completion queue with handle {number}",
             "ibv_req_notify_cq names the completion queue with handle {number}", "ibv_query_qp names the queue pair 0x{number:x}",
             "ibv_wr_start names the queue pair 0x{number:x}", "ibv_post_send names the address handle with handle {number}",
             "ibv_create_qp names the completion queue with handle {number}", "ibv_alloc_pd names the context with descriptor {number}")
    assert [one["text"].split(" that was")[0] for one in found] == [text.format(number=one["number"]) for text, one in zip(words, found)], (found, told(done))
    assert len(found) == len(words), (found, told(done))


def different_packet_numbers_of_peers_are_seen():
    found, done = _findings("psn", "faulty", "notes")
    assert [one["rule"] for one in found] == ["peers-disagree"] and ": sq_psn of " in found[0]["text"], (found, told(done))
    assert not _findings("psn", "twin", "notes")[0]


def queues_that_a_child_makes_in_its_parents_context_are_seen():
    found, done = _findings("made-in-child", "faulty", "adapter")
    assert [(one["rule"], one["text"].split(" in the child")[0]) for one in found] == [
        ("used-in-child", "A call that makes a queue"), ("used-in-child", "ibv_create_qp")], (found, told(done))
    assert not _findings("made-in-child", "twin", "adapter")[0]


def memory_that_moves_or_is_unmapped_is_seen():
    for variant, rule in (("faulty", "buffer-freed"), ("neighbour", "buffer-unmapped"), ("twin", None)):
        found, done = _findings("moved", variant, "notes")
        assert [one["rule"] for one in found] == [rule][:rule is not None], (variant, found, told(done))


def each_call_that_gives_up_memory_is_seen():
    calls = ("mmap", "mremap", "ftruncate", "fallocate", "madvise", "shmdt", "free", "realloc")
    found, done = _findings("given-up", "twin", "notes")
    said = [(one["rule"], one["text"].split()[0], _places(one)[0]) for one in found]
    assert said == [("region-given-up", call, _marked_line("given-up", call)) for call in calls], (found, told(done))


def memory_that_is_given_up_rightly_is_not_reported():
    found, done = _findings("given-up-rightly", "twin", "notes")
    assert not found, (found, told(done))


def queues_count_as_locked_memory():
    for variant in ("faulty", "neighbour", "twin"):
        found, done = _findings("locked-queues", variant, "notes")
        assert [one["rule"] for one in found] == ["memlock-exceeded"][:variant != "twin"], (variant, found, told(done))
        assert not found or _marked_line("locked-queues", variant) in _places(found[0]), (found, told(done))


def refused_calls_of_librdmacm_are_seen():
    found, done = _findings("cm-refused", "twin", "notes")
    said = [(one["rule"], one["text"].split(" (")[0], _places(one)[0][0]) for one in found]
    assert said == [("refused-call", "rdma_connect was refused: Invalid argument", "mistakes_connections.c"),
                    ("use-after-destroy", "rdma_destroy_id names the rdma_cm_id that was destroyed; the checker refuses it with EINVAL", "mistakes_connections.c")], (found, told(done))


def the_place_of_failed_work_is_left_out_where_other_work_may_be_meant():
    for variant, wanted in (("faulty", []), ("twin", []), ("neighbour", ["post_write", "fail_one_of_two", "main"])):
        (one,), done = _findings("failed-one", variant, "failed-work")
        assert one["rule"] == "failed-work" and [place["function"] for place in one["posted"]][:3] == wanted, (one, told(done))


def synchronous_identifiers_are_not_reported():
    found, done = _findings("cm-synchronous", "twin", "notes")
    assert not found, (found, told(done))


def what_a_refused_call_would_break_is_not_reported():
    found, done = _findings("busy", "twin", "notes,-refused-call")
    assert not found, (found, told(done))


def _a_full_queue_is_told():
    found, done = _findings("refused-full", "faulty", "notes")
    assert [one["rule"] for one in found] == ["post-refused"] and "reason 327" in found[0]["text"], (found, told(done))
    assert not _findings("refused-full", "twin", "notes")[0]


def a_full_queue_whose_refusals_nobody_looked_at_is_seen():
    tries("refused-full", 3, BUSY, _a_full_queue_is_told, AssertionError)


def builders_out_of_turn_are_seen():
    found, done = _findings("builders", "faulty", "builder-order")
    said = [one["text"].split(" of queue pair")[0] + one["text"].split(" is called", 1)[1] for one in found]
    assert said == ["ibv_wr_start between ibv_wr_start and ibv_wr_complete or ibv_wr_abort of the same thread",
                    "ibv_wr_set_sge, and no work request was begun since ibv_wr_start",
                    "ibv_wr_complete, and ibv_wr_start was not"], (found, told(done))
    assert not _findings("builders", "twin", "notes")[0]


def addresses_that_were_cut_or_turned_are_named():
    for variant, words in (("faulty", "which has an address with this lower half: the upper one was cut off"),
                           ("neighbour", "which has the address whose bytes are in the other order (be64toh)")):
        found, done = _findings("spoilt-address", variant, "wrong-key")
        assert [one["rule"] for one in found] == ["wrong-key"] and words in found[0]["text"], (found, told(done))


def _the_page_names_what_is_left_out():
    with open(f"{cases.TREE}/docs/reference/around.md", encoding="utf-8") as file:
        table = file.read().split("## Rules that are left out")[1].split("\n\n")[1]
    assert tuple(re.findall(r"^\| ([\w-]+) \| (?!why)", table, re.M)) == NOT_AROUND, table


def _is_unseen(rule, variant, words):
    found, done = _findings(rule, variant, words)
    assert not [one for one in found if one["rule"] == rule], (found, told(done))


def _cases_of(rule, level, words):
    """(name, function and arguments): each mistake with the rule on and off, and the correct twin."""
    for variant in ("faulty", "neighbour"):
        if AROUND and rule in NOT_AROUND:
            yield f"{variant}_is_not_seen", (_is_unseen, rule, variant, words)
        elif not AROUND or (rule, variant) not in OWN_ALONE:
            yield variant, (_breaks, rule, level, variant, words)
            yield f"{variant}_with_the_rule_off", (_is_silent, rule, variant, f"{words},-{rule}")
    yield "twin", (_is_silent, rule, "twin", words)


def _add_cases(module):
    """Around another libibverbs `make check` has one mistake of each rule, and `make around` all cases."""
    if AROUND:
        setattr(module, "the_page_names_what_is_left_out", _case(_the_page_names_what_is_left_out, ""))
    for rule, level, seen in _rules():
        words = "notes,pages" if seen == "PAGES" and not AROUND else "notes"
        words += "" if level == "FAILED" else ",-failed-work"  # what many mistakes lead to
        for name, case in _cases_of(rule, level, words):
            if not AROUND or "--all" in sys.argv or name.startswith("faulty") and not name.endswith("off"):
                setattr(module, f"{rule.replace('-', '_')}_{name}", _case(*case))


def _case(function, rule, *arguments):
    def case():
        if rule in OF_WAITS:
            tries(f"{rule} {arguments}", 3, BUSY, lambda: function(rule, *arguments), AssertionError)
        else:
            function(*[rule, *arguments][not rule:])
    case.__module__ = "__main__"  # as its sentence is not private
    return case


def _leave_own_cases_out(module):
    """The cases above are of softverbs' own devices."""
    for name in [name for name, value in vars(module).items() if callable(value) and "_" in name and not name.startswith("_")]:
        if vars(module)[name].__module__ == "__main__":
            delattr(module, name)


if __name__ == "__main__":
    if AROUND:
        _leave_own_cases_out(sys.modules[__name__])
    _add_cases(sys.modules[__name__])
    cases.main(sys.modules[__name__])
