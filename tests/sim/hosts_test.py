#!/usr/bin/env python3
"""softverbs sim --hosts: the hosts of a lab under one seed, with delays and losses in virtual time. Prints TAP."""
import os
import re
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tool"))
import cases
from cases import TEMPORARY, needs_simulated_runs, softverbs, told
from patience import patience

SUMMARY = rb"Seed \d+: ([\d.]+) virtual seconds, (\d+) decisions, 0 loops stopped, hash ([0-9a-f]{16})\."
PING_PONG = ("ibv_rc_pingpong", "-g", "1", "-n", "100")


def _hosts(*words, seed="1", link=(), status=0):
    links = [word for each in link for word in ("--link", each)]
    done = softverbs("sim", "--hosts", "2", "--seed", seed, *links, "--", *words)
    assert status is None or done.returncode == status, told(done)
    return done


def _pair(*program, more=()):
    return (*program, *more, "---", "@h2", "+500ms", *program, *more, "h1")


def _summary(done):
    found = re.search(SUMMARY, b" ".join(done.stderr.split()))
    assert found, told(done)
    return float(found[1]), int(found[2]), found[3]


def a_seed_repeats_what_hosts_do():
    needs_simulated_runs()
    for link in ((), ("loss=2%,delay=5us,jitter=4us",), ("sockets=2ms", "rate=10Gbit,ecn")):
        seen = set()
        for seed in ("3", "4", "5"):
            runs = [_hosts(*_pair(*PING_PONG), seed=seed, link=link) for _ in range(3)]
            assert len({(_summary(done), done.stdout) for done in runs}) == 1, [told(done) for done in runs]
            seen.add(_summary(runs[0]))
        assert len(seen) == 3, (link, seen)


def the_delay_of_a_link_is_virtual():
    needs_simulated_runs()
    began = time.monotonic()
    virtual, _, _ = _summary(_hosts(*_pair(*PING_PONG), link=("delay=10ms",)))
    assert 2 <= virtual < 4 and time.monotonic() - began < patience(60), virtual  # 100 round trips


def frames_of_sockets_are_delayed_apart():
    needs_simulated_runs()
    done = _hosts(*_pair(*PING_PONG), link=("sockets=1s",))
    # The server begins to measure when it has the client's last word, the client earlier.
    each = [float(found) for found in re.findall(rb"([\d.]+) usec/iter", done.stdout)]
    assert _summary(done)[0] > 1 and len(each) == 2 and min(each) < 1000, told(done)


def only_frames_of_roce_are_lost():
    needs_simulated_runs()
    done = _hosts("bash", "-c", "ibv_rc_pingpong -g 1 -n 100 & sleep 1; softverbs on h2 -- ibv_rc_pingpong -g 1 -n 100 h1; "
                  "ssh h2 hostname; wait; softverbs lab link", link=("loss=20%",))
    lost = [int(found) for found in re.findall(rb"(\d+) lost", done.stdout)]
    assert sum(lost) > 20 and b"\nh2\n" in done.stdout, told(done)


def links_change_while_a_run_goes_on():
    needs_simulated_runs()
    done = _hosts("bash", "-c", "ibv_rc_pingpong -g 1 -e & sleep 1; softverbs on h2 -- ibv_rc_pingpong -g 1 -e -n 10000000 h1 & sleep 0.01; "
                  "softverbs lab link h1-h2 down; wait $!", status=None)
    assert b"transport retry counter exceeded" in done.stderr, told(done)


def the_peer_of_a_killed_program_learns_of_its_end():
    needs_simulated_runs()
    done = _hosts("bash", "-c", "rping -s -C 1000000 & sleep 1; softverbs on h2 -- rping -c -C 1000000 -a 10.77.0.1 & sleep 0.01; "
                  "kill -9 $!; wait %1; echo ended")
    assert b"DISCONNECT" in done.stderr and b"ended" in done.stdout, told(done)


def two_captures_of_a_seed_are_equal():
    needs_simulated_runs()
    seen = set()
    for which in range(2):
        path = f"{TEMPORARY}/{which}.pcapng"
        softverbs("sim", "--hosts", "2", "--link", "loss=1%", "--capture", path, "--", *_pair(*PING_PONG))
        with open(path, "rb") as file:
            seen.add(file.read())
    assert len(seen) == 1 and len(min(seen)) > 10000, [len(each) for each in seen]


def a_standstill_is_explained_on_each_host():
    needs_simulated_runs()
    done = _hosts("bash", "-c", "rping -s -C 5 -v -P & sleep 1; softverbs on h2 -- rping -c -C 5 -a 10.77.0.1; wait", status=3)
    assert b"On host h1:" in done.stderr and b"On host h2:" in done.stderr and b"Deadlock" in done.stderr, told(done)
    assert b"has listened at" in done.stderr, told(done)


def wrong_words_are_refused():
    needs_simulated_runs()
    for words, sentence in ((("--link", "delay=1ms", "--", "true"), b"--hosts says how many"),
                            (("--hosts", "2", "--", "@h3", "true"), b"no host \"h3\""),
                            (("--hosts", "2", "--link", "speed=1", "--", "true"), b"--link"),
                            (("--hosts", "0", "--", "true"), b"--hosts")):
        done = softverbs("sim", *words)
        assert done.returncode == 2 and sentence in done.stderr, told(done)


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
