#!/usr/bin/env python3
"""`softverbs why --qp` explains why a queue pair failed, from both ends: of live processes, and when they have ended."""
import contextlib
import ctypes
import json
import os
import re
import signal
import sys
import threading
import time
from xml.etree import ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import TEMPORARY, expect, softverbs, told
from stories import CAUSES, CONNECTED, DROPPED, ENDED, LOST_ENDED, LOST_EVENTS, NO_GRH, SCRIPTED, SERVER_HANGS, compare, failed, plain


def every_cause_is_told_live_and_afterwards():
    for name, lines in CAUSES.items():
        if name in (*LOST_EVENTS, *DROPPED, "stopped"):
            continue
        with failed(name) as (numbers, end):
            live = expect(softverbs("why", "--qp", f"{numbers[1]:#x}"))
            compare(name, plain(live.stdout.decode(), numbers), lines)
            end()
            last = expect(softverbs("why", "--last", "--qp", str(numbers[1]), str(numbers[0])))
            compare(f"{name}, ended", plain(last.stdout.decode(), numbers), ENDED.get(name, lines))


def a_key_that_ended_is_told_with_its_place_under_the_checker():
    with failed("remote-gone", "--check") as (numbers, end):
        said = expect(softverbs("why", "--qp", str(numbers[1]))).stdout.decode()
        assert re.search(r"deregistered \(ibv_dereg_mr\) \d+ ms before at \w+ \(stories.c:\d+\)", " ".join(said.split())), said
        end()


def _helper_of(pid):
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/comm", encoding="utf-8") as file:
            if file.read() == "softverbs\n":
                return int(thread)
    raise AssertionError(f"process {pid} has no helper thread")


@contextlib.contextmanager
def _without_processor(thread):
    """Stops one thread of a descendant; the others continue."""
    seize, interrupt, detach, any_child = 0x4206, 0x4207, 17, 0x40000000
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    if libc.ptrace(seize, thread, None, None):
        raise cases.Skip(f"this machine lets no program trace another: {os.strerror(ctypes.get_errno())}")
    assert not libc.ptrace(interrupt, thread, None, None)
    os.waitpid(thread, any_child)
    yield
    if libc.ptrace(detach, thread, None, None):  # it has ended, and its process with it
        os.waitpid(thread, any_child)


def a_process_that_waits_for_a_processor_at_its_end_leaves_its_story():
    """The helper thread of the server, which writes it, is stopped for longer than an end usually waits for it."""
    with failed("no-receive") as (numbers, end):
        with _without_processor(_helper_of(numbers[2])):
            ending = threading.Thread(target=end)
            ending.start()
            time.sleep(1.5)  # longer than an end usually waits for the helper
        ending.join()
        last = expect(softverbs("why", "--last", "--qp", str(numbers[1]), str(numbers[0])))
        compare("no-receive, late", plain(last.stdout.decode(), numbers), CAUSES["no-receive"])


def _wait_until_told(numbers, lines, *options, until=None):
    """The completion of the sent message arrives by itself, and only the program could wait for it."""
    end = cases.until(20)
    while True:
        said = plain(expect(softverbs("why", *options, "--qp", f"{numbers[1]:#x}")).stdout.decode(), numbers)
        if (until(said) if until else said == lines) or time.monotonic() > end:
            return said
        time.sleep(0.1)


def a_lost_event_is_told_live():
    for name in LOST_EVENTS:
        with failed(name) as (numbers, end):
            compare(name, _wait_until_told(numbers, CAUSES[name]), CAUSES[name])
            end()


def a_lost_event_is_told_when_its_process_has_ended():
    """One that ends at once has not waited for it, so all wait together first."""
    with contextlib.ExitStack() as stack:
        programs = {name: stack.enter_context(failed(name)) for name in LOST_ENDED}
        for name, (numbers, _) in programs.items():
            _wait_until_told(numbers, CAUSES[name])
        time.sleep(1)  # an end keeps a story of what has waited for half a second
        for _, end in programs.values():
            end()
        for name, (numbers, _) in programs.items():
            qp, pid = numbers[2:][::-1] if name == "server-waits" else numbers[:2][::-1]
            said = expect(softverbs("why", "--last", "--qp", str(qp), str(pid)))
            compare(f"{name}, ended", plain(said.stdout.decode(), numbers), LOST_ENDED[name])


def _wait_until_kept(numbers):
    """The library sees after some seconds that nothing moves."""
    end = cases.until(60)
    while not _is_kept(*numbers[:2]) and time.monotonic() < end:
        time.sleep(0.2)


def _is_kept(pid, qp):
    done = softverbs("why", "--json", "--last", "--qp", str(qp), str(pid))
    return not done.returncode and (json.loads(done.stdout)["ends"][0]["pid"], json.loads(done.stdout)["ends"][0]["qp"]) == (pid, qp)


def a_lost_event_is_told_of_a_process_that_was_killed():
    names = ("never-armed", "not-polled", "not-fetched")
    with contextlib.ExitStack() as stack:
        programs = {name: stack.enter_context(failed(name)) for name in names}
        for numbers, _ in programs.values():
            _wait_until_kept(numbers)
            os.kill(numbers[0], signal.SIGKILL)
        for name, (numbers, stop) in programs.items():
            stop()
            said = _wait_until_told(numbers, LOST_ENDED[name], "--last")  # its child ends with it
            compare(f"{name}, killed", said, LOST_ENDED[name])


def a_hang_for_want_of_a_receive_is_told_of_processes_that_were_killed():
    """Both ends report it: each sees after some seconds that nothing moves."""
    with failed("hang") as (numbers, _):
        _wait_until_kept(numbers)
        _wait_until_kept(numbers[2:])
        os.kill(numbers[0], signal.SIGKILL)
        until = cases.until(20)
        while os.path.exists(f"/proc/{numbers[2]}") and time.monotonic() < until:  # which ends with it
            time.sleep(0.05)
        compare("hang, killed", _wait_until_told(numbers, CAUSES["hang"], "--last"), CAUSES["hang"])
        said = plain(expect(softverbs("why", "--last", "--qp", str(numbers[3]), str(numbers[2]))).stdout.decode(), numbers)
        compare("hang, the killed server's", said, SERVER_HANGS)


def what_waited_and_then_ended_well_is_not_said_to_wait():
    """The story was kept as the queue pair waited, and is written once more when it is destroyed."""
    with failed("slow") as (numbers, end):
        _wait_until_kept(numbers)
        end()
        said = plain(expect(softverbs("why", "--last", "--qp", str(numbers[1]), str(numbers[0]))).stdout.decode(), numbers)
        assert said[1] == "It had no error." and not any("not polled" in line for line in said), said


def work_that_a_script_ends_is_told_by_its_rule():
    with failed("fine", "--inject", SCRIPTED[3].split("it: ")[1]) as (numbers, end):
        compare("scripted", plain(expect(softverbs("why", "--qp", str(numbers[1]))).stdout.decode(), numbers), SCRIPTED)
        end()
        said = expect(softverbs("why", "--last", "--qp", str(numbers[1]), str(numbers[0]))).stdout.decode()
        compare("scripted, ended", plain(said, numbers), [SCRIPTED[0].replace("s of S.", "s of process S."), *SCRIPTED[1:]])


def an_event_that_a_script_loses_or_holds_back_is_told_live():
    for action, became in (("drop", "was lost"), ("delay 1000s", "is held back")):
        lines = [CONNECTED, "It had no error.",
                 f"Completion queue with handle N of C has 1 completion that was not polled, and their event {became} by a rule of the script "
                 "(softverbs run --script)."]
        with failed("not-fetched", "--inject", f"when event: {action}") as (numbers, end):
            compare(action, _wait_until_told(numbers, lines), lines)
            end()


def what_unreliable_services_drop_is_told_by_the_end_that_dropped_it():
    for name in DROPPED:
        with failed(name) as (numbers, end):
            compare(name, plain(expect(softverbs("why", "--qp", str(numbers[1]))).stdout.decode(), numbers), CAUSES[name])
            end()
            last = plain(expect(softverbs("why", "--last", "--qp", str(numbers[3]), str(numbers[2]))).stdout.decode(), numbers)
            assert last[0].startswith("Queue pair s of S is UC in RTS") and CAUSES[name][2] in last, last


def a_receive_without_room_for_the_grh_is_told_by_its_queue_pair():
    with failed("no-grh", "--log", "info", "--log-file", f"{TEMPORARY}/no-grh") as (numbers, end):
        until = cases.until(20)
        while (said := plain(expect(softverbs("why", "--qp", str(numbers[3]))).stdout.decode(), numbers)) != NO_GRH and time.monotonic() < until:
            time.sleep(0.1)
        compare("no-grh", said, NO_GRH)
        end()
    last = plain(expect(softverbs("why", "--last", "--qp", str(numbers[3]), str(numbers[2]))).stdout.decode(), numbers)
    compare("no-grh, ended", last, [NO_GRH[0], "It had no error.", NO_GRH[2]])
    with open(f"{TEMPORARY}/no-grh", encoding="utf-8") as file:
        assert ", 100 bytes, and 40 of the GRH before them" in file.read()


def a_peer_that_is_stopped_is_not_said_to_have_ended():
    with failed("stopped") as (numbers, end):
        compare("stopped", plain(expect(softverbs("why", "--qp", str(numbers[1]))).stdout.decode(), numbers), CAUSES["stopped"])
        end()


def the_peer_of_a_killed_process_tells_for_it():
    with failed("dead") as (numbers, end):
        end()
        last = plain(expect(softverbs("why", "--last", "--qp", str(numbers[3]), str(numbers[2]))).stdout.decode(), numbers)
        compare("of the killed", last, ["Of queue pair s itself nothing is left: this is the story of its peer."] + CAUSES["dead"])


def what_a_fault_loses_is_said_to_be_lost():
    with failed("fine", "--fault", "drop=100%,seed=1") as (numbers, end):
        said = json.loads(expect(softverbs("why", "--json", "--qp", str(numbers[1]))).stdout)
        text = re.sub(r"\d+ packets", "N packets", "\n".join(said["sentences"]))
        assert "Faults that were asked for lost N packets of this end and 0 of the other." in text, text
        lost = [event for event in said["ends"][0]["events"] if event["event"] == "FRAME_LOST"]
        assert lost and all(event["psn"] == 0 for event in lost), lost
        end()


def what_a_fault_does_to_packets_is_in_the_records():
    """The story of the message that arrived nevertheless has no error."""
    for fault, event in (("dup=100%", "FAULT_DUPLICATE"), ("reorder=100%", "FAULT_REORDER"), ("delay=1ms", "FAULT_DELAY")):
        with failed("fine", "--fault", f"{fault},seed=1") as (numbers, end):
            said = json.loads(expect(softverbs("why", "--json", "--qp", str(numbers[1]))).stdout)
            assert said["reason"] == 0 and any("It had no error" in sentence for sentence in said["sentences"]), said
            done = [record["event"] for each in said["ends"] for record in each["events"]]
            assert event in done and "FAULT_DROP" not in done and "FRAME_LOST" not in done, (fault, done)
            end()
    with failed("fine", "--fault", "corrupt=100%,seed=1") as (numbers, end):
        said = json.loads(expect(softverbs("why", "--json", "--qp", str(numbers[1]))).stdout)
        done = [record["event"] for record in said["ends"][0]["events"]]
        assert "FAULT_CORRUPT" in done and "ACK_TIMEOUT" in done, done
        assert any("Faults that were asked for lost" in sentence for sentence in said["sentences"]), said["sentences"]
        end()


def a_third_process_that_keeps_no_story_is_named_all_the_same():
    """The end that passed the message on names it; the stand-in is gone soon after its failure."""
    lines = CAUSES["short-third"]
    with failed("short-third", "--log", "none") as (numbers, end):
        wanted = [lines[0], lines[2], "T S refused it: process X, which has the shared receive queue, refused the message, and left no story (reason 218).",
                  lines[5], "\"softverbs explain 218\" has causes and cures."]
        said = [re.sub(r"process \d+", "process X", line) for line in _wait_until_told(numbers, None, until=lambda said: len(said) == 5)]
        compare("a third process without a story", said, wanted)
        ends = json.loads(expect(softverbs("why", "--json", "--qp", str(numbers[1]))).stdout)["ends"]
        assert len(ends) == 2 and ends[1]["error"]["name"] == "XRC_SUBSTITUTE_FAILED", ends
        end()


def each_of_three_processes_tells_the_same():
    path = f"{TEMPORARY}/third"
    with failed("short-third", "--story", path) as (numbers, end):
        of_target = plain(expect(softverbs("why", "--qp", str(numbers[3]))).stdout.decode(), numbers)
        compare("the target's", of_target[1:], CAUSES["short-third"][1:])
        ends = json.loads(expect(softverbs("why", "--json", "--qp", str(numbers[1]))).stdout)["ends"]
        assert [bool(each.get("stands_in")) for each in ends] == [False, False, True], ends
        assert (ends[2]["qp"], ends[2]["peer_pid"]) == (numbers[3], numbers[2]) and ends[1]["error"]["process"] == ends[2]["pid"], ends
        end()
    said = expect(softverbs("why", "--from", path)).stdout.decode()
    assert plain(said, numbers)[1:] == CAUSES["short-third"][1:], said


def a_wr_id_of_all_bits_is_told():
    """A pointer of -1, or a hash, may have them; the parser of the tools has no such numbers."""
    for number in (2**63, 2**64 - 1):
        with failed("remote-key", first=number) as (numbers, end):
            live = expect(softverbs("why", "--qp", str(numbers[1]))).stdout.decode()
            end()
        last = expect(softverbs("why", "--last", "--qp", str(numbers[1]), str(numbers[0]))).stdout.decode()
        for text in (live, last):
            assert f"posted IBV_WR_RDMA_WRITE of 8 bytes, wr_id {number}, to address" in " ".join(text.split()), text


def a_success_is_no_story():
    with failed("fine") as (numbers, end):
        compare("fine", plain(expect(softverbs("why", "--qp", str(numbers[1]))).stdout.decode(), numbers), [
            "Queue pair c of C is RC in RTS, connected with s of S.", "It had no error. \"softverbs why C\" says what its process waits for."])
        end()
        expect(softverbs("why", "--last", "--qp", str(numbers[1]), str(numbers[0])), 1, b"", [b"No process has a queue pair"])


def the_other_end_tells_the_same():
    with failed("remote-range") as (numbers, end):
        done = expect(softverbs("why", "--qp", str(numbers[3])))
        said = plain(done.stdout.decode(), numbers)
        compare("the server's", said[1:], CAUSES["remote-range"][1:])
        assert said[0] == "Queue pair s of S is RC in ERR, connected with c of C.", said
        end()


def no_work_is_posted_before_its_time():
    """A request that fails within its post: the clock of posts is a little ahead of the one of errors."""
    for cause in ("send-key", "send-key", "send-key", "bind"):
        with failed(cause) as (numbers, end):
            error = json.loads(expect(softverbs("why", "--json", "--qp", str(numbers[1]))).stdout)["ends"][0]["error"]
            assert 0 <= error["time"] - error["posted"] < 60e9, error
            end()


def it_has_a_form_for_programs():
    with failed("remote-range") as (numbers, end):
        said = json.loads(expect(softverbs("why", "--json", "--qp", str(numbers[1]))).stdout)
        own, peer = said["ends"]
        assert (own["pid"], own["qp"], peer["pid"], peer["qp"]) == numbers, said
        assert own["error"]["status"] == "IBV_WC_REM_ACCESS_ERR" and own["error"]["wr_id"] == 7 and own["flushed_sends"] == 3, own
        assert 0 <= own["error"]["time"] - own["error"]["posted"] < 60e9, own
        assert peer["error"]["memory"]["size"] == 1024 and peer["error"]["name"] == "REMOTE_RANGE", peer
        events = [event["event"] for event in own["events"]]
        assert "NAK_RECEIVED" in events and events.count("SEND_ENDED") == 1, events
        assert any("offset 768" in sentence for sentence in said["sentences"]), said
        end()


def _holders(pid, sought):
    """The permissions of the mappings of a process that hold these bytes."""
    found = set()
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            begin, end, access = re.match(r"(\w+)-(\w+) (\S+)", line).groups()
            if "r" not in access or "[v" in line:
                continue
            with contextlib.suppress(OSError):  # the end of a file that has become shorter
                memory.seek(int(begin, 16))
                if sought in memory.read(int(end, 16) - int(begin, 16)):
                    found.add(access)
    return found


def no_peer_maps_a_record():
    """Memory that a peer can map is mapped here as shared; wr_id is never sent, so that it is in records and queues only."""
    first = 0x51c0ffee7a11c0de
    with failed("remote-range", first=first) as (numbers, end):
        said = json.loads(expect(softverbs("why", "--json", "--qp", str(numbers[1]))).stdout)
        assert any(event.get("wr_id") == first for event in said["ends"][0]["events"]), said
        found = _holders(numbers[0], first.to_bytes(8, "little"))
        assert found and not any("s" in access for access in found), found
        assert any("s" in access for access in _holders(numbers[0], b"stories")), "no shared mapping was looked at"
        end()


def only_its_user_can_read_what_is_kept():
    with failed("remote-range") as (_, end):
        end()
    kept = [name for name in os.listdir(cases.DIRECTORY) if name.endswith(".story")]
    assert kept and all(os.stat(f"{cases.DIRECTORY}/{name}").st_mode & 0o777 == 0o600 for name in kept), kept


def who_wants_no_lines_keeps_no_story():
    for name in os.listdir(cases.DIRECTORY):
        if name.endswith(".story"):
            os.unlink(f"{cases.DIRECTORY}/{name}")
    with failed("remote-range", "--log", "none") as (_, end):
        end()
    assert not [name for name in os.listdir(cases.DIRECTORY) if name.endswith(".story")]


def run_keeps_stories_in_a_file():
    path = f"{TEMPORARY}/stories"
    for name in ("remote-range", "deaf"):
        with failed(name, "--story", path, "--log", "none") as (numbers, end):
            end()
        told_of = expect(softverbs("why", "--from", path, "--qp", f"{numbers[1]:#x}")).stdout.decode()
        compare(f"{name}, in a file", plain(told_of, numbers), ENDED.get(name, CAUSES[name]))
    said = expect(softverbs("why", "--from", path)).stdout.decode().split("\n\n")
    assert len(said) == 2 and plain(said[1], numbers) == plain(told_of, numbers), said
    assert len(json.loads(expect(softverbs("why", "--json", "--from", path, str(numbers[0]))).stdout)) == 1
    expect(softverbs("why", "--from", path, "--qp", "17"), 1, b"", [b"has no story of queue pair 0x11."])
    expect(softverbs("why", "--from", f"{path}-none"), 2, b"", [b"can't be read: No such file"])
    assert os.stat(path).st_mode & 0o777 == 0o600


def the_log_has_it_where_it_is_asked_for():
    path = f"{TEMPORARY}/log-of-story"
    for level, lines in (("warn", 0), ("info", 1)):
        with failed("remote-range", "--log", level, "--log-file", f"{path}-{level}") as (numbers, end):
            end()
        with open(f"{path}-{level}", encoding="utf-8") as file:
            said = [line for line in file if " story: " in line]
        assert bool(said) == bool(lines), said
    text = "".join(said)
    for part in (f"qp {numbers[1]:#x}: story: IBV_WR_RDMA_WRITE of 512 bytes, wr_id 7, posted ", "ended with IBV_WC_REM_ACCESS_ERR by REMOTE_ACCESS (reason 108)",
                 f"qp {numbers[3]:#x}: story: a request of the peer of 512 bytes", "it needs IBV_ACCESS_REMOTE_WRITE of 512 bytes",
                 "that key is of a region of 1024 bytes", "ms before NAK_RECEIVED", f"\"softverbs why --qp {numbers[1]:#x}\""):
        assert part in text, (part, said)
    assert all(len(line) < 640 for line in said), said


def ci_is_told_in_its_own_forms():
    path = f"{TEMPORARY}/for-ci"
    for name in ("remote-range", "own-end"):
        with failed(name, "--story", path) as (numbers, end):
            end()
    lines = expect(softverbs("why", "--from", path, "--github")).stdout.decode().splitlines()
    assert len(lines) == 2, lines
    assert re.match(r"::error title=softverbs REMOTE_RANGE::Queue pair 0x\w+ of stories .*offset 768 do not fit \(reason 207\)\.%0A", lines[0]), lines
    assert lines[1].startswith("::notice title=softverbs QP_ENDED::"), lines
    suite = ElementTree.fromstring(expect(softverbs("why", "--from", path, "--junit")).stdout)
    cases_of = suite.findall("testcase")
    assert (suite.tag, suite.get("tests"), suite.get("failures"), len(cases_of)) == ("testsuite", "2", "1", 2), suite.attrib
    assert [len(case.findall("failure")) for case in cases_of] == [1, 0] and "offset 768" in cases_of[0].find("failure").text
    assert all(case.get("name") and case.get("classname") == "stories" for case in cases_of)
    _check_sarif(json.loads(expect(softverbs("why", "--from", path, "--sarif")).stdout), ["REMOTE_RANGE", "QP_ENDED"])
    one = json.loads(expect(softverbs("why", "--from", path, "--sarif", "--qp", str(numbers[1]))).stdout)
    _check_sarif(one, ["QP_ENDED"])
    empty = f"{TEMPORARY}/nothing"
    open(empty, "w", encoding="utf-8").close()
    _check_sarif(json.loads(expect(softverbs("why", "--from", empty, "--sarif")).stdout), [])
    assert ElementTree.fromstring(expect(softverbs("why", "--from", empty, "--junit")).stdout).get("failures") == "0"


def _check_sarif(document, rules):
    """The members that SARIF 2.1.0 requires, and the forms of those that we give."""
    assert document["version"] == "2.1.0" and isinstance(document["runs"], list) and document["$schema"].endswith("sarif-2.1.0.json"), document
    run, = document["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "softverbs" and len({rule["id"] for rule in driver["rules"]}) == len(driver["rules"]), driver
    assert all(rule["shortDescription"]["text"] and rule["help"]["text"] for rule in driver["rules"]), driver
    assert [result["ruleId"] for result in run["results"]] == rules, run
    for result in run["results"]:
        assert result["level"] in ("none", "note", "warning", "error") and result["message"]["text"], result
        assert result["ruleId"] in {rule["id"] for rule in driver["rules"]}, result
        assert all(place["logicalLocations"][0]["fullyQualifiedName"].startswith("queue pair 0x") for place in result["locations"]), result


def what_stands_in_a_file_is_not_trusted():
    for text in (b"\x00" * 100, b"{}\n", b"[]\n{\"qp\":17}\n", b"{\"qp\":17,\"error\":7,\"events\":[1,{}],\"program\":\"\\u001b[2J\"}\n", b"{" * 100000):
        with open(f"{cases.DIRECTORY}/last-1-1.story", "wb") as file:
            file.write(text)
        done = softverbs("why", "--last", "--qp", "17")
        assert done.returncode in (0, 1) and b"\x1b" not in done.stdout, told(done)
    os.unlink(f"{cases.DIRECTORY}/last-1-1.story")


def what_is_not_there_is_said():
    expect(softverbs("why", "--qp", "17"), 1, b"", [b"No process that lives has a queue pair 0x11 here, and no process has left its story."])
    expect(softverbs("why", "--qp", "ten"), 2, b"", [b"\"ten\" is not the number of a queue pair."])


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
