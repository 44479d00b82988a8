#!/usr/bin/env python3
"""`softverbs run --record` writes what enters the engines, and `softverbs replay` runs them again to the same end."""
import contextlib
import json
import os
import random
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import SOFTVERBS, TEMPORARY, TREE, expect, softverbs
from patience import tries
from stories import CAUSES, DROPPED, LOST_EVENTS, failed

HEAD = b"SVRECORD" + struct.pack("<I", 1)
SELDOM = {"segments", "dead", "nobody", "hang", "hang-third", "server-waits", "both", "own-end", "stopped", *DROPPED, *LOST_EVENTS}  # of raw packets, which are not recorded, or without an error of this process


def _recorded(name, *options):
    """The recording of a failing pair, the reason that its client's queue pair has, and the queue pair's number."""
    path = f"{TEMPORARY}/{name}.rec"
    with failed(name, "--record", path, *options) as (numbers, end):
        error = json.loads(expect(softverbs("why", "--json", "--qp", str(numbers[1]))).stdout)["ends"][0].get("error")
        end()
    return path, error, numbers


def _replayed(path, *options, status=0):
    return json.loads(expect(softverbs("replay", "--json", *options, path), status).stdout)


def _ping_pong(program, path, arguments="", *options):
    """Runs both ends with their packets recorded to this file."""
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        port = some.getsockname()[1]
    one = f"{program} -g 0 -p {port} {arguments}"
    run = [SOFTVERBS, "run", "--dir", cases.DIRECTORY, "--record", path, *options, "--"]
    more = " -c 1" if program == "ibv_xsrq_pingpong" else ""
    listens = f":{port:04X} 0*:0000 0A"
    wait = f"for i in $(seq 200); do grep -q '{listens}' /proc/net/tcp /proc/net/tcp6 && break; sleep 0.05; done"
    expect(subprocess.run([*run, "sh", "-c", f"{one}{more} >/dev/null & {wait}; {one} localhost && wait $!"], capture_output=True,
                          timeout=cases.patience(120), check=False), out=None, err=None)


def every_failing_run_ends_the_same_way_again():
    for name in CAUSES.keys() - SELDOM:
        path, error, numbers = _recorded(name)
        again = _replayed(path)
        assert again["same"] and not again["wrong"] and again["queue_pairs"] >= 2, (name, again["wrong"])
        end = next(end for end in again["ends"] if (end["pid"], end["qp"]) == numbers[:2])
        status = error["status"].replace("IBV_WC_", "")
        assert end["reason"] == error["reason"], (name, end, error)
        assert f" with {status}: " in end["failed"] and end["failed"].endswith(f"({end['reason']})"), (name, end, status)


def the_steps_are_told_in_words():
    path, _, numbers = _recorded("remote-range")
    said = expect(softverbs("replay", "--qp", f"{numbers[1]:#x}", path)).stdout.decode()
    for words in ("posts RDMA_WRITE wr_id 7, 512 bytes", "transmits RC WRITE_ONLY", "receives RC ACKNOWLEDGE",
                  "completes RDMA_WRITE wr_id 7 with REM_ACCESS_ERR: ", "is in the error state", "failed first when it completes",
                  "each engine did what it did when it was recorded."):
        assert words in said, (words, said)
    steps = said.splitlines()[:-3]
    assert steps and all(f" qp {numbers[1]:#x} " in line for line in steps), steps
    assert "may not use the memory that the peer names: " in expect(softverbs("replay", "--qp", str(numbers[3]), path)).stdout.decode()
    few = expect(softverbs("replay", "--until", "9", path)).stdout.decode()
    assert "posts" not in few and "9 records" in few, few
    ends = expect(softverbs("replay", "--ends", path)).stdout.decode().splitlines()
    assert len(ends) == 2 and " failed first when it completes RDMA_WRITE wr_id 7 " in ends[0], ends


def a_drop_has_the_reason_of_its_service():
    path, _, numbers = _recorded("no-receive")
    said = " ".join(expect(softverbs("replay", "--qp", str(numbers[3]), path)).stdout.decode().split())
    assert "no receive is posted (ibv_post_recv)" in said and " (216) " in said and "unreliable" not in said, said


def losses_and_an_adverse_adapter_are_run_again_too():
    for options in (["--fault", "drop=10%,reorder=10%,dup=10%,seed=3"], ["--adverse=seed=5"]):
        path = f"{TEMPORARY}/pingpong.rec"
        tries("a ping-pong bears its losses", 3, "a tenth of the repeats is lost, too, and a peer may wait for a processor meanwhile",
              lambda path=path, options=options: _ping_pong("ibv_rc_pingpong", path, "-n 200 -s 9000 -m 1024", *options), AssertionError)
        again = _replayed(path)
        assert again["same"] and again["queue_pairs"] == 2 and again["records"] > 4000, again["wrong"]
        if options[0] == "--fault":
            assert any(step["words"].startswith("a timer expires") or "NAK" in step["words"] for step in again["steps"])


def two_commands_share_a_recording():
    path = f"{TEMPORARY}/shared.rec"
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        port = some.getsockname()[1]
    command = [SOFTVERBS, "run", "--dir", cases.DIRECTORY, "--record", path, "--", "ibv_rc_pingpong", "-g", "0", "-n", "9", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        for _ in range(200):
            with contextlib.suppress(OSError), open("/proc/net/tcp6", encoding="utf-8") as sockets:
                if f":{port:04X} 00000000000000000000000000000000:0000 0A" in sockets.read():
                    break
            time.sleep(0.05)
        expect(subprocess.run([*command, "localhost"], capture_output=True, timeout=cases.patience(120), check=False), out=None)
        assert not server.wait(60)
    again = _replayed(path)
    assert again["same"] and again["queue_pairs"] == 2, again["wrong"]


def other_services_are_run_again_too():
    for program in ("ibv_ud_pingpong", "ibv_uc_pingpong", "ibv_srq_pingpong", "ibv_xsrq_pingpong"):
        path = f"{TEMPORARY}/{program}.rec"
        _ping_pong(program, path)
        again = _replayed(path)
        assert again["same"] and again["queue_pairs"] >= 2, (program, again["wrong"])


def what_an_atomic_found_is_not_compared():
    """The atomic's word is the program's, and begins at 5 here: the replay has no such memory."""
    path = f"{TEMPORARY}/atomics.rec"
    done = softverbs("run", "--record", path, "--", f"{cases.BUILD}/tests/tool/atomics")
    expect(done, out=b"0 5\n0 9\n0 77\n0 77\n0 77\n")
    again = _replayed(path)
    assert again["same"] and again["queue_pairs"] == 1, again["wrong"]
    assert sum("transmits RC ATOMIC_ACKNOWLEDGE" in step["words"] for step in again["steps"]) == 3, again["steps"]


def a_stripped_recording_has_no_payload():
    payload = b"\x7b" * 64  # of ibv_rc_pingpong
    path, out = f"{TEMPORARY}/payload.rec", f"{TEMPORARY}/stripped.rec"
    _ping_pong("ibv_rc_pingpong", path, "-n 5")
    expect(softverbs("replay", "--strip", out, path), out=b"")
    with open(path, "rb") as whole, open(out, "rb") as stripped:
        assert payload in whole.read() and payload not in stripped.read()
    before, after = _replayed(path), _replayed(out)
    assert before["same"] and before == after, after["wrong"]
    expect(softverbs("replay", "--strip", f"{TEMPORARY}/none/here", path), 1, b"", [b"can't be written: No such file"])


def what_is_no_whole_recording_is_said_to_be_none():
    path, _, _ = _recorded("short-receive")
    with open(path, "rb") as file:
        whole = file.read()
    cut = f"{TEMPORARY}/cut.rec"

    def of(content, said, status=1):
        with open(cut, "wb") as file:
            file.write(content)
        done = softverbs("replay", "--ends", cut)
        expect(done, status, None, [said])

    of(whole[:-3], b"ends within a record, at byte")
    of(whole[:5], b"ends within a record")
    of(b"", b"is empty: no process wrote to it")
    of(b"\x0a\x0d\x0d\x0a" + whole, b"is not a recording: it does not begin with \"SVRECORD\"")
    of(HEAD[:8] + struct.pack("<I", 7) + whole[12:], b"has the form 7, and this softverbs reads 1")
    for kind in (b"\x00" * 16, b"\xff" * 16):
        of(whole + kind, b"is damaged: no record begins at byte %d" % len(whole))
    expect(softverbs("replay", f"{TEMPORARY}/none.rec"), 1, b"", [b"can't be read: No such file"])
    expect(softverbs("replay"), 2, b"", [b"needs one recording"])
    expect(softverbs("replay", "--qp", "many", path), 2, b"", [b"\"many\" is not a number of a queue pair"])
    golden = f"{TREE}/tests/golden/no-receive.rec"
    expect(softverbs("replay", "--qp", "0x1", golden), 1, None, [b"no-receive.rec has no queue pair 0x1; without --qp all queue pairs are shown"])


def damaged_recordings_end_with_one_sentence():
    dice, ends = random.Random(42), set()
    for name in ("short-receive", "no-receive", "receive-key", "short-atomic"):
        path = f"{TREE}/tests/golden/{name}.rec"
        with open(path, "rb") as file:
            whole = file.read()
        for _ in range(25):
            damaged = bytearray(whole[:dice.randrange(12, len(whole) + 1)] if dice.random() < 0.3 else whole)
            for _ in range(dice.randrange(4)):
                damaged[dice.randrange(12, len(damaged)) if len(damaged) > 12 else 0] = dice.choice((0, 1, 0x7f, 0x80, 0xff, dice.randrange(256)))
            with open(f"{TEMPORARY}/damaged.rec", "wb") as file:
                file.write(damaged)
            done = softverbs("replay", "--ends", f"{TEMPORARY}/damaged.rec")
            assert done.returncode in (0, 1) and done.stderr.count(b"\n") == done.returncode, (name, damaged.hex(), cases.told(done))
            ends.add(done.returncode)
    assert ends == {0, 1}, ends


def an_engine_that_does_otherwise_is_noticed():
    """The immediate answer to the first packet is changed in the recording: the engine does not do that."""
    path, _, _ = _recorded("remote-key")
    with open(path, "rb") as file:
        whole = bytearray(file.read())
    at, changed = 12, False
    while at < len(whole):
        size, _, _, kind, count = struct.unpack_from("<IIIHH", whole, at)
        numbers = struct.unpack_from(f"<{count}Q", whole, at + 16)
        if count == 4 and numbers[2:] == (10, 108):  # ends a send, REM_ACCESS_ERR
            struct.pack_into("<Q", whole, at + 16 + 3 * 8, 107)
            changed = True
        at += size
    assert changed
    with open(f"{TEMPORARY}/changed.rec", "wb") as file:
        file.write(whole)
    again = _replayed(f"{TEMPORARY}/changed.rec", status=1)
    assert not again["same"] and "the recording has \"ends a send" in again["wrong"], again["wrong"]


def a_file_that_is_no_recording_stays():
    path = f"{TEMPORARY}/precious"
    with open(path, "w", encoding="utf-8") as file:
        file.write("precious")
    expect(softverbs("run", "--record", path, "--", "true"), 125, b"", [b"is not a recording, and stays as it is"])
    with open(path, encoding="utf-8") as file:
        assert file.read() == "precious"
    expect(softverbs("run", "--record", f"{TEMPORARY}/none/x", "--", "true"), 125, b"", [b"Nothing can be recorded to"])


def recordings_of_other_builds_are_run_again():
    """The records in tests/golden are from a build of gcc; this build may be of clang, or with a sanitizer."""
    names = sorted(name for name in os.listdir(f"{TREE}/tests/golden") if name.endswith(".rec"))
    assert len(names) >= 8, names
    for name in names:
        again = _replayed(f"{TREE}/tests/golden/{name}")
        assert again["same"], (name, again["wrong"])
        assert any(end["reason"] for end in again["ends"]), name


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
