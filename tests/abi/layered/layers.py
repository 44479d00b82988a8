#!/usr/bin/env python3
"""ibv_rc_pingpong, as it is, with a library in which a layer is around all calls: all its calls are noted, by name and object.
Prints TAP.

The oracle is what the program does (rdma-core's libibverbs/examples/rc_pingpong.c), and the number of its queue pair, which it prints.
"""
import collections
import glob
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../clients"))
from clients import Failure, Suite, free_port, need, serve

DEPTH = 100  # receives that are posted before anything else
MIDST = 1000  # notes, as in layered.c
NOTES_MOST = 1 << 18  # of notes.h
MANY, FEW = 100000, 50  # many: the thread that takes the layer off may wait for a processor meanwhile
SECONDS = 120

SENDS = {"": ["ibv_post_send"], "-N": ["ibv_wr_start", "ibv_wr_send", "ibv_wr_set_sge", "ibv_wr_complete"]}
POLLS = {"": ["ibv_poll_cq"], "-t": ["ibv_start_poll", "ibv_next_poll", "ibv_end_poll", "ibv_wc_read_completion_ts"]}
WAITS = ["ibv_req_notify_cq", "ibv_get_cq_event"]


def choose(table, options):
    return next((table[option] for option in options if option in table), table[""])


def of_traffic(options):
    return {"ibv_post_recv", *choose(SENDS, options), *choose(POLLS, options), *(WAITS if "-e" in options else [])}


def before_traffic(options):
    """The calls that the program makes first, with the kind of each call's object."""
    yield from (("ibv_get_device_list", "-"), ("ibv_open_device", "device"))
    if "-e" in options:
        yield "ibv_create_comp_channel", "context"
    yield "ibv_alloc_pd", "context"
    if "-t" in options:
        yield "ibv_query_device_ex", "context"
    yield "ibv_reg_mr", "pd"
    yield ("ibv_create_cq_ex" if "-t" in options else "ibv_create_cq"), "context"
    yield from [("ibv_create_qp_ex", "context"), ("ibv_qp_to_qp_ex", "qp")] if "-N" in options else [("ibv_create_qp", "pd")]
    yield from (("ibv_query_qp", "qp"), ("ibv_modify_qp", "qp"), ("ibv_query_port", "context"), ("ibv_query_gid", "context"),
                ("ibv_modify_qp", "qp"), ("ibv_modify_qp", "qp"))


def after_traffic(options):
    yield from (("ibv_ack_cq_events", "cq"), ("ibv_destroy_qp", "qp"), ("ibv_destroy_cq", "cq"), ("ibv_dereg_mr", "mr"),
                ("ibv_dealloc_pd", "pd"))
    if "-e" in options:
        yield "ibv_destroy_comp_channel", "channel"
    yield from (("ibv_close_device", "context"), ("ibv_free_device_list", "-"))


def read_notes(path):
    """(call, kind of object, its number, how often one after the other), in their order."""
    with open(path, encoding="ascii") as file:
        return [(call, kind, int(number), int(times)) for _, call, kind, number, times in (line.split() for line in file)]


def count_calls(notes):
    calls = collections.Counter()
    for call, _, _, times in notes:
        calls[call] += times
    return calls


def expect(what, found, wanted):
    if found != wanted:
        raise Failure(f"{what}: {found}, and not {wanted}")


def check_objects(notes, number):
    """One object of each kind, and the queue pair is the one that the program shows."""
    numbers = collections.defaultdict(set)
    for _, kind, at, _ in notes:
        numbers[kind].add(at)
    expect("objects", {kind: len(found) for kind, found in numbers.items()}, dict.fromkeys(numbers, 1))
    expect("number of the queue pair", numbers["qp"], {number})


def check_all(notes, options, count, number):
    traffic = of_traffic(options)
    rest = [(call, kind) for call, kind, _, times in notes if call not in traffic for _ in range(times)]
    expect("calls before and after the traffic", rest, [*before_traffic(options), *after_traffic(options)])
    check_objects(notes, number)
    calls = count_calls(notes)
    expect("calls of the traffic", {call for call in calls if call in traffic}, traffic)
    expect("sends", [calls[call] for call in choose(SENDS, options)], [count] * len(choose(SENDS, options)))
    if calls["ibv_post_recv"] < DEPTH:
        raise Failure(f"{calls['ibv_post_recv']} receives")
    if "-t" in options:
        expect("completions", calls["ibv_wc_read_completion_ts"], 2 * count)
    if "-e" in options and calls["ibv_req_notify_cq"] != calls["ibv_get_cq_event"] + 1:
        raise Failure(f"the queue is armed {calls['ibv_req_notify_cq']} times for {calls['ibv_get_cq_event']} events")


def check_midst(notes, options, count, number):
    """Traffic only, after the last call that came before it and before the first that came after."""
    expect("other calls than traffic", set(count_calls(notes)) - of_traffic(options), set())
    check_objects(notes, number)
    if not MIDST <= len(notes) < NOTES_MOST:
        raise Failure(f"{len(notes)} notes")


def exchange(suite, when, options, count, check):
    prefix = f"{suite.directory}/notes-{when}{''.join(options)}"
    extra = {"LD_LIBRARY_PATH": os.environ["LAYERED"], "SOFTVERBS_TEST_LAYER": when, "SOFTVERBS_TEST_NOTES": prefix}
    port = free_port()
    command = [need("ibv_rc_pingpong"), "-g", "0", "-s", "64", "-r", str(DEPTH), "-n", str(count), "-p", str(port), *options]
    sides = serve(command, [*command, "127.0.0.1"], port, suite.environment(extra), SECONDS)
    numbers = {int(side.find(r"local address:.*QPN (0x[0-9a-f]+)")[1], 16) for side in sides}
    for side in sides:
        side.find(rf"^{count} iters in ")
    notes = [read_notes(path) for path in glob.glob(f"{prefix}.*")]
    expect("programs", len(notes), len(sides))
    for found in notes:
        number = next((at for _, kind, at, _ in found if kind == "qp"), None)
        numbers.discard(number) if number in numbers else expect("queue pair", number, numbers)
        check(found, options, count, number)
    for path in glob.glob(f"{prefix}.*"):
        os.unlink(path)


def main():
    suite = Suite()
    for options in ([], ["-e"], ["-t"], ["-N"], ["-t", "-N"]):
        name = " ".join(["ibv_rc_pingpong", *options])
        suite.add(f"{name}: all its calls are noted", lambda options=options: exchange(suite, "always", options, FEW, check_all))
        suite.add(f"{name}: a layer joins and leaves in its midst", lambda options=options: exchange(suite, "midst", options, MANY, check_midst))
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
