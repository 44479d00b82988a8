#!/usr/bin/env python3
"""Our own programs against the public interface, linked with the distribution's library like any user's: many processes,
many queue pairs, idling, and sudden death; SOFTVERBS_TEST_DEATHS and _KILLS say how much of it. Each prints what it found, which is shown with the test's name."""
import glob
import json
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# pylint: disable=wrong-import-position
from clients import BUILD, Failure, Program, Skip, Suite
from patience import tries, until

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../..")


def run(suite, name, *arguments, timeout=120, before=()):
    command = [*before, os.path.join(BUILD, "tests/clients", name), *map(str, arguments)]
    return "; ".join(suite.run_one(command, timeout=timeout).out.split("\n")[:-1])


def start_elsewhere(suite, name, *arguments):
    """Starts the program in a separate directory, where nothing else wakes it."""
    directory = tempfile.mkdtemp(prefix="softverbs-test-")
    suite.cleanup.append(directory)
    return suite.start([os.path.join(BUILD, "tests/clients", name), *map(str, arguments)], {"SOFTVERBS_DIR": directory})


def end(program, timeout=120):
    return "; ".join(program.finish(until(timeout)).check().out.split("\n")[:-1])


def kill_clients(suite, *arguments, before=()):
    kills = os.environ.get("SOFTVERBS_TEST_KILLS", 300)
    return run(suite, "kills_at_doorbell", kills, os.getpid(), *arguments, timeout=7200, before=before)


def take_turns(suite, extra, enough):
    """Counts the ACKs where nearly all messages are unsignalled and each is answered by a message."""
    if len(os.sched_getaffinity(0)) < 2:
        raise Skip("on one processor the helper threads do the work, and acknowledge at once")
    return tries("few ACKs", 10, "helper threads of a busy machine send some", lambda: count_acks(suite, extra, enough), Failure)


def count_acks(suite, extra, enough):
    messages = 20007 # the last is not signalled
    with tempfile.TemporaryDirectory() as directory:
        first = ["nice", "-n", "-20"] if os.geteuid() == 0 else []  # a thread that lacks a processor replies late
        suite.run_one([*first, os.path.join(BUILD, "tests/clients/call_reply_unsignalled"), str(messages)],
                      extra={"SOFTVERBS_COUNTERS": f"{directory}/counters", **{k: f"{directory}/{v}" for k, v in extra.items()}})
        with open(f"{directory}/counters", encoding="utf-8") as file:
            sent = [json.loads(line)["traffic"][0]["sent"] for line in file]
        captures = len(glob.glob(f"{directory}/*.pcapng"))
    if [side["RC SEND_ONLY"] for side in sent] != [messages, messages] or captures != 2 * len(extra):
        raise Failure(f"{sent}, {captures} captures")
    acks = sum(side["RC ACKNOWLEDGE"] for side in sent)
    if not enough(acks / (2 * messages)):
        raise Failure(f"{acks} ACKs for {2 * messages} messages")
    return f"{acks} ACKs for {2 * messages} messages"


def kill_srd(suite, rounds, extra=(), **environment):
    command = [os.path.join(BUILD, "tests/clients/killed_srd"), str(os.environ.get("SOFTVERBS_TEST_DEATHS", rounds))]
    run_by = [*suite.softverbs("run"), *(extra or ("--profile", "efa3")), "--"]
    return Program([*run_by, *command], suite.environment(environment)).finish(until(3600)).check().out.strip()


def kill_srd_again(suite, rounds):
    """A device of so few numbers that nearly each process has one that the survivor has sent to before."""
    profile = os.path.join(suite.directory, "few.profile")
    with open(os.path.join(ROOT, "profiles/efa3.profile"), encoding="utf-8") as source, open(profile, "w", encoding="utf-8") as copy:
        copy.write(re.sub(r"(?m)^qpn_bits .*$", "qpn_bits = 10", source.read()))
    output = kill_srd(suite, rounds, ("--profile", profile), SOFTVERBS_SEED="5")
    os.unlink(profile)
    if not int(re.search(r"(\d+) numbers used again", output).group(1)):
        raise Failure(output)
    return output


def become_another(suite):
    if os.geteuid():
        raise Skip("only root can become another user")
    return run(suite, "lost_rights", "user")


def main():
    suite = Suite()
    suite.add("who may no longer read its peer's memory gets it through the ring", lambda: run(suite, "lost_rights", "filter"))
    # it can't remove its socket any more; the next process does
    suite.add("who becomes another user, too", lambda: become_another(suite))
    suite.add("64 processes talk all to all, RC and UD", lambda: run(suite, "all_to_all", 64))
    suite.add("one process talks to itself", lambda: run(suite, "all_to_all", 1))
    suite.add("10,000 queue pairs take less than 4 KiB each", lambda: run(suite, "many_qps", 10000, 4096))
    suite.add("200 deaths end in errors and nothing hangs",
              lambda: run(suite, "killed_peer", os.environ.get("SOFTVERBS_TEST_DEATHS", 200), timeout=300))
    suite.add("SRD: work for a process that is killed ends once, and another takes its place", lambda: kill_srd(suite, 25))
    suite.add("SRD: the other may have the same number", lambda: kill_srd_again(suite, 15))
    suite.add("who ends has acknowledged what nobody asked about", lambda: run(suite, "exit_after_receive", "quietly", "quietly", 100))
    suite.add("who ends with _exit need not", lambda: run(suite, "exit_after_receive", "suddenly", "suddenly", 50))
    suite.add("who ends with _exit has acknowledged", lambda: run(suite, "exit_after_receive", "here", "here", 200))
    suite.add("who ends with _exit has acknowledged, on one processor",
              lambda: run(suite, "exit_after_receive", "here", "here", 200, before=("taskset", "-c", "0")))
    suite.add("replies take along the ACKs that nobody asked for", lambda: take_turns(suite, {}, lambda share: share < 0.5))
    suite.add("a capture has these ACKs as packets", lambda: take_turns(suite, {"SOFTVERBS_CAPTURE": "%p.pcapng"}, lambda share: share > 0.9))
    suite.add("kills of a client, at the doorbell too, hold up no other", lambda: kill_clients(suite))
    suite.add("kills with stops, on one processor", lambda: kill_clients(suite, "stops", before=("taskset", "-c", "0")))
    suite.add("400 receivers get theirs while others are stopped", lambda: run(suite, "sleeping_receivers", 400))
    suite.add_early("a connected pair idles for 10 s in less than 10 ms", lambda: start_elsewhere(suite, "idle_cost", 10, 10), end)
    suite.add_early("patience with a peer that takes nothing ends with its reason", lambda: start_elsewhere(suite, "unresponsive_peer"), end)
    suite.add_tidiness()
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
