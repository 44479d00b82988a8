#!/usr/bin/env python3
"""softverbs sim: a seed gives one order, time that does not pass, and reports of what stands still. Prints TAP."""
import os
import re
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tool"))
import cases
from cases import BUILD, PYTHON, SOFTVERBS, TEMPORARY, environment, expect, needs_simulated_runs, softverbs, told
from patience import patience

THREADS = f"{BUILD}/tests/sim/threads"
PING_PONG = ("ibv_rc_pingpong", "-g", "0", "-n", "50")
SUMMARY = rb"softverbs: sim: Seed (\d+): ([\d.]+) virtual seconds, (\d+) decisions, (\d+) loops\s+stopped, hash ([0-9a-f]{16})\."


def _sim(*words, status=0, out=None, options=()):
    done = softverbs("sim", *options, "--", *words)
    assert status is None or done.returncode == status, told(done)
    assert out is None or done.stdout == out, told(done)
    return done


def _summary(done):
    """Virtual seconds, decisions, stopped loops and hash."""
    found = re.search(SUMMARY, b" ".join(done.stderr.split()))
    assert found, told(done)
    return float(found[2]), int(found[3]), int(found[4]), found[5]


def _pair(program, *more):
    return (*program, *more, "---", "+500ms", *program, *more, "127.0.0.1")


def the_last_line_has_the_seed_and_the_hash():
    done = needs_simulated_runs()
    expect(done, 0, b"", None)
    assert _summary(done)[0] < 0.1 and b"Seed 1:" in done.stderr, told(done)


def a_seed_repeats_its_order_and_its_output():
    needs_simulated_runs()
    for program in (_pair(PING_PONG), _pair(PING_PONG, "-e"),
                    ("rping", "-s", "-C", "5", "-v", "-a", "127.0.0.1", "---", "+500ms", "rping", "-c", "-C", "5", "-v", "-a", "127.0.0.1")):
        seen = set()
        for seed in (1, 2, 3):
            runs = [_sim(*program, options=("--seed", str(seed))) for _ in range(4)]
            assert len({(_summary(done), done.stdout) for done in runs}) == 1, [told(done) for done in runs]
            assert _summary(runs[0])[2] == 0, told(runs[0])
            seen.add(_summary(runs[0])[3])
        assert len(seen) == 3, (program, seen)


def time_passes_when_no_thread_can_run():
    needs_simulated_runs()
    began = time.monotonic()
    virtual, _, _, _ = _summary(_sim("sleep", "100000"))
    assert 100000 <= virtual < 100001 and time.monotonic() - began < patience(60), virtual
    _sim(THREADS, "timers", out=b"1400\n")  # after 1 s, and four times after 0.1 s


def the_clock_and_chance_are_those_of_the_seed():
    needs_simulated_runs()
    look = "import os, time, random, socket; s = socket.create_server(('127.0.0.1', 0)); " \
           "print(os.getpid(), int(time.time()), os.urandom(8).hex(), random.random(), s.getsockname()[1])"
    first, again, other = (_sim(PYTHON, "-c", look, options=("--seed", seed)).stdout for seed in ("5", "5", "6"))
    assert first == again != other and first.startswith(b"2 1767225600 "), (first, other)


def the_time_stamp_counter_is_the_clock_or_the_run_says_so():
    needs_simulated_runs()
    one, other = (_sim(THREADS, "counter") for _ in range(2))
    assert (one.stdout == other.stdout) != (b"catch reads of the time stamp counter" in b" ".join(one.stderr.split())), (told(one), told(other))


def a_race_that_passes_outside_fails_by_seed():
    needs_simulated_runs()
    failed = [seed for seed in range(40) if softverbs("sim", "--seed", str(seed), "--", THREADS, "race").returncode == 1]
    assert 5 <= len(failed) <= 39, failed
    for _ in range(5):
        _sim(THREADS, "race", status=1, options=("--seed", str(failed[0])))


def a_deadlock_is_a_sentence_and_the_stacks():
    needs_simulated_runs()
    for seed in range(40):
        done = softverbs("sim", "--seed", str(seed), "--", THREADS, "deadlock")
        if done.returncode:
            break
    expect(done, 3, b"", None)
    text = b" ".join(done.stderr.split())
    assert b"Deadlock after" in text and f"with seed {seed}: no thread of the programs can run".encode() in text, told(done)
    assert done.stderr.count(b": waits in futex(") == 2 and done.stderr.count(b"pthread_mutex_lock") >= 2, told(done)


def threads_that_only_look_again_are_a_livelock():
    needs_simulated_runs()
    done = _sim(THREADS, "livelock", status=4)
    assert b"Livelock after" in done.stderr and b"waits in sched_yield" in done.stderr, told(done)


def a_loop_over_memory_is_stopped_and_the_run_marked():
    needs_simulated_runs()
    virtual, _, stopped, _ = _summary(_sim(THREADS, "memory", out=b"seen\n"))
    assert stopped >= 1 and 2 <= virtual < 3, (virtual, stopped)
    assert _summary(_sim(THREADS, "compute", out=b"done\n"))[2] >= 1


def a_loop_over_calls_that_find_nothing_lets_time_pass():
    needs_simulated_runs()
    for seed in ("0", "1", "2"):
        _sim(THREADS, "looks", out=b"came\n", options=("--seed", seed, "--limit", "30"))


def many_seeds_are_a_table():
    needs_simulated_runs()
    done = softverbs("sim", "--seeds", "0..39", "--", THREADS, "deadlock")
    assert done.returncode == 3 and done.stderr == b"", told(done)
    rows = [line.split(None, 2) for line in done.stdout.decode().splitlines()]
    assert rows[0] == ["runs", "first", "seed  outcome"] and len(rows) == 3, told(done)
    found = {words: (int(runs), seed) for runs, seed, words in rows[1:]}
    assert found["status 0"][0] + found["deadlock"][0] == 40 and found["deadlock"][0] >= 3, found
    _sim(THREADS, "deadlock", status=3, options=("--seed", found["deadlock"][1]))
    done = softverbs("sim", "--seeds", "0..39", "--until-failure", "--", "false")
    assert done.returncode == 1 and b"status 1" in done.stdout and int(done.stdout.split()[4]) < 40, told(done)


def turns_repeat_a_run_and_shrink():
    needs_simulated_runs()
    seed = next(seed for seed in range(60) if softverbs("sim", "--seed", str(seed), "--", THREADS, "race").returncode)
    saved, fewest = f"{TEMPORARY}/saved.sim", f"{TEMPORARY}/fewest.sim"
    first = _sim(THREADS, "race", status=1, options=("--seed", str(seed), "--save", saved))
    again = _sim(THREADS, "race", status=1, options=("--replay", saved))
    assert _summary(first) == _summary(again) and first.stdout == again.stdout, (told(first), told(again))
    for options in (("--seed", str(seed)), ("--replay", saved)):
        told_so = _sim(THREADS, "race", options=(*options, "--shrink", fewest)).stdout
        with open(fewest, encoding="ascii") as file:
            head, words, *turns = file.read().splitlines()
        assert head == "softverbs-sim 1" and words == f"seed {seed}" and 1 <= len(turns) <= 3, (told_so, turns)
        assert told_so.startswith(f"{len(turns)} of ".encode()), told_so
    for _ in range(5):
        _sim(THREADS, "race", status=1, options=("--replay", fewest))


def faults_that_a_run_does_not_need_are_left_out():
    needs_simulated_runs()
    script, fewest = f"{TEMPORARY}/faults.script", f"{TEMPORARY}/faults.sim"
    with open(script, "w", encoding="ascii") as file:
        file.write("# two rules\nwhen rdma_accept: delay 20ms\nwhen work, nth 3: complete REM_ACCESS_ERR # the one\n")
    program, faults = _pair(PING_PONG), ("--fault", "dup=1%,delay=1us", "--adverse=seed=3")
    done = _sim(*program, options=("--seed", "1", *faults, "--script", script, "--shrink", fewest))
    *named, last = done.stdout.decode().splitlines()
    assert sorted(line.split(": ", 1)[1] for line in named) == ["delay=1us", "dup=1%", "seed=3", "when rdma_accept: delay 20ms"], told(done)
    assert last.endswith(f"Repeat it with: softverbs sim --replay {fewest} --script={fewest}.script"), last
    with open(f"{fewest}.script", encoding="ascii") as file:
        assert file.read() == "# two rules\nwhen work, nth 3: complete REM_ACCESS_ERR # the one\n"
    _sim(*program, status=4, options=("--replay", fewest, f"--script={fewest}.script"))


def files_of_turns_that_are_none_are_refused():
    path = f"{TEMPORARY}/damaged.sim"
    for text in ("", "softverbs-sim 2\nseed 1\n", "softverbs-sim 1\nseed x\n", "softverbs-sim 1\nseed 1\n5 4\n5 3\n", "softverbs-sim 1\nseed 1\n5\n"):
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        expect(softverbs("sim", "--replay", path, "--", "true"), 2, b"", None)
    expect(softverbs("sim", "--replay", "/nonexistent", "--", "true"), 2, b"", [b"/nonexistent"])


def verify_compares_two_runs():
    needs_simulated_runs()
    _sim(THREADS, "race", status=_sim_status("3"), options=("--seed", "3", "--verify"))
    done = _sim("cat", "/proc/sys/kernel/random/uuid", status=1, options=("--verify",))
    text = b" ".join(done.stderr.split())
    assert b"Two runs of seed 1 differ" in text and b"other output" in text and b"are the same." in text, told(done)
    done = _sim(THREADS, "uuid", status=1, options=("--verify",))
    text = b" ".join(done.stderr.split())
    assert b"is the first that differs" in text and b"called lseek" in text, told(done)


def a_run_that_ends_well_is_not_shrunk():
    needs_simulated_runs()
    done = _sim("true", status=2, options=("--shrink", f"{TEMPORARY}/none.sim"))
    assert b"nothing to shrink" in done.stderr, told(done)


def _sim_status(seed):
    return softverbs("sim", "--seed", seed, "--", THREADS, "race").returncode


def calls_that_are_not_answered_are_named():
    needs_simulated_runs()
    done = _sim(PYTHON, "-c", "import ctypes; ctypes.CDLL(None).semop(99, 0, 0)")
    assert b"called semtimedop 1 times" in b" ".join(done.stderr.split()), told(done)


def a_standstill_of_queue_pairs_is_explained():
    needs_simulated_runs()
    done = _sim(f"{BUILD}/tests/tool/hangs", "unarmed", status=3)
    text = b" ".join(done.stderr.split())
    assert b"Deadlock after" in text and b"ibv_get_cq_event" in text, told(done)
    assert b"has 2 completions that nothing polls, and no event is asked for" in text, told(done)


def options_of_run_hold_and_repeat():
    """Faults, captures and recordings follow the virtual clock, so the files of a seed are equal."""
    needs_simulated_runs()
    seen = set()
    for number in range(3):
        capture, recording = f"{TEMPORARY}/{number}.pcapng", f"{TEMPORARY}/{number}.rec"
        done = _sim(*_pair(PING_PONG, "-s", "70000"), options=("--seed", "5", "--fault", "drop=3%", "--capture", capture, "--record", recording))
        with open(capture, "rb") as captured, open(recording, "rb") as recorded:
            seen.add((_summary(done), captured.read(), recorded.read()))
    assert len(seen) == 1 and len(min(seen)[1]) > 100000, [each[0] for each in seen]
    expect(softverbs("replay", f"{TEMPORARY}/0.rec"), 0, None, None)
    script = f"{TEMPORARY}/third.script"
    with open(script, "w", encoding="ascii") as file:
        file.write("when work, nth 3: complete REM_ACCESS_ERR\n")
    for seed in ("0", "1", "2"):  # the server polls for ever
        done = _sim(*_pair(PING_PONG), status=4, options=("--script", script, "--seed", seed))
        text = b" ".join(done.stderr.split())
        assert b"Failed status remote access error (10) for wr_id 2" in text and b"which had queue pair" in text and b"has ended." in text, told(done)
    hashes = {_summary(_sim(*_pair(PING_PONG), options=(f"--adverse=seed={seed}",)))[3] for seed in (1, 1, 2, 2)}
    assert len(hashes) == 2, hashes
    done = softverbs("sim", "--check", "--", f"{BUILD}/tests/check/mistakes", "send-buffer-changed", "faulty")
    assert b"send-buffer-changed" in done.stderr, told(done)


def a_limit_of_real_time_ends_the_run():
    needs_simulated_runs()
    done = _sim("sh", "-c", "while :; do :; done", status=124, options=("--limit", "1"))
    assert b"stopped after 1 real" in done.stderr and b"process 2" in done.stderr, told(done)


def _natively(*words):
    return subprocess.run([THREADS, *words], capture_output=True, timeout=patience(60), check=True, env=environment()).stdout


def a_call_that_waits_keeps_its_file_as_in_the_kernel():
    needs_simulated_runs()
    for call in ("read", "recv", "poll", "select", "epoll", "write", "send"):
        for deed in ("none", "close", "dup2"):
            _sim(THREADS, "waits", call, deed, out=_natively("waits", call, deed), options=("--seed", "2"))


def signals_interrupt_as_in_the_kernel():
    needs_simulated_runs()
    for words in (("interrupted", "restart"), ("interrupted", "once"), ("child",)):
        for seed in ("1", "2", "3"):
            _sim(THREADS, *words, out=_natively(*words), options=("--seed", seed))


def a_wait_has_a_mask_of_its_own_as_in_the_kernel():
    needs_simulated_runs()
    for call in ("ppoll", "pselect", "epoll", "sigsuspend"):
        _sim(THREADS, "masked", call, out=_natively("masked", call))


def pieces_come_and_go_as_in_the_kernel():
    needs_simulated_runs()
    for words in (("all", "recv"), ("all", "recvmsg"), ("pieces",), ("closed",)):
        _sim(THREADS, *words, out=_natively(*words))


def messages_come_as_in_the_kernel():
    needs_simulated_runs()
    for word in ("all", "span", "one"):
        _sim(THREADS, "messages", word, out=_natively("messages", word))


def wrong_addresses_are_errors_as_in_the_kernel():
    needs_simulated_runs()
    _sim(THREADS, "faults", out=_natively("faults"))
    _sim(PYTHON, "-c", "import ctypes; ctypes.string_at(16)", status=139)


def a_group_that_is_killed_has_ended():
    needs_simulated_runs()
    for seed in range(12):
        _sim(THREADS, "killed", out=b"1 9\n" * 3, options=("--seed", str(seed)))


def signals_of_the_library_reach_the_program_too():
    needs_simulated_runs()
    _sim("bash", "-c", "trap 'echo SYS' SYS; kill -SYS $$; trap 'echo 63' 63; kill -63 $$; trap '' SYS; kill -SYS $$; echo on", out=b"SYS\n63\non\n")
    _sim("sh", "-c", "kill -SYS $$", status=128 + 31)


def constructors_of_libraries_read_the_virtual_clock():
    needs_simulated_runs()
    library, program = f"{TEMPORARY}/libearly.so", f"{TEMPORARY}/early"
    sources = {library: "#include <stdio.h>\n#include <time.h>\nint early;\n__attribute__((constructor)) static void begin(void) { printf(\"%ld\\n\", (long)time(0)); }\n",
               program: "extern int early;\nint main(void) { return early; }\n"}
    for made, text in sources.items():
        with open(f"{made}.c", "w", encoding="ascii") as file:
            file.write(text)
        more = ["-shared", "-fPIC"] if made == library else [library]
        subprocess.run(["cc", "-o", made, f"{made}.c", *more], check=True)
    _sim(program, out=b"1767225600\n")


def a_signal_to_the_command_ends_the_run():
    needs_simulated_runs()
    for loop in (":", "sleep 1"):
        with subprocess.Popen([SOFTVERBS, "sim", "--limit", "3000", "--", "sh", "-c", f"echo begun; while :; do {loop}; done"], stderr=subprocess.PIPE,
                              stdout=subprocess.PIPE, env=environment(), start_new_session=True) as command:
            assert command.stdout.readline() == b"begun\n"
            command.terminate()
            assert command.wait(patience(20)) == 128 + signal.SIGTERM, command.stderr.read()


def processes_begin_and_end():
    needs_simulated_runs()
    script = "sleep 5 & first=$!; (exit 3); echo $?; kill -9 $first; wait $first; echo $?; echo a | tr a b; date +%s"
    runs = [_sim("bash", "-c", script) for _ in range(3)]
    assert len({(_summary(done), done.stdout) for done in runs}) == 1, [told(done) for done in runs]
    assert runs[0].stdout == b"3\n137\nb\n1767225600\n", told(runs[0])


def the_largest_status_is_that_of_the_command():
    needs_simulated_runs()
    _sim("sh", "-c", "exit 7", "---", "false", status=7)
    done = _sim("sh", "-c", "kill -SEGV $$", status=139)
    assert b"was ended by signal 11" in done.stderr, told(done)
    _sim("no-such-program", status=127)
    _sim("sh", "-c", "(sleep 1; exit 9) & exit 0", status=0)  # not a program's, though it outlives one


def the_command_itself_is_simulated():
    """It has the names of the sanitizers' symbols, for which it looks."""
    done = cases.softverbs("sim", "--", cases.SOFTVERBS, "run", "--", "true")
    assert done.returncode == 0 and b"can't be simulated" not in done.stderr, done.stderr


def programs_that_cannot_be_simulated_are_refused():
    source = f"{TEMPORARY}/empty.c"
    with open(source, "w", encoding="ascii") as file:
        file.write("int main(void) { return 0; }\n")
    for options, part in ((("-static",), b"it is static"), (("-fsanitize=address",), b"AddressSanitizer"), (("-fsanitize=thread",), b"ThreadSanitizer")):
        program = f"{TEMPORARY}/empty{options[0]}"
        if subprocess.run(["cc", *options, "-o", program, source], capture_output=True, check=False).returncode:
            continue
        done = softverbs("sim", "--", program)
        assert done.returncode == 126 and part in b" ".join(done.stderr.split()), told(done)


def wrong_words_are_refused():
    for words, part in ((("--seed", "x", "--", "true"), b"--seed \"x\""), (("--strategy", "best", "--", "true"), b"strategy \"best\""),
                        ((), b"needs a program"), (("--", "true", "---", "---", "true"), b"before or after ---"), (("--limit", "0", "--", "true"), b"--limit \"0\"")):
        done = softverbs("sim", *words)
        assert done.returncode == 2 and part in done.stderr, told(done)


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
