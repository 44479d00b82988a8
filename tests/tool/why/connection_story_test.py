#!/usr/bin/env python3
"""`softverbs why --id` explains why a connection of librdmacm is not made, or has ended, from both ends: of live processes, and
afterwards."""
import json
import os
import re
import socket
import subprocess
import sys
import time
from xml.etree import ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
import debugger
from cases import TEMPORARY, expect, softverbs
from connected import PROGRAM, made

# C and S are the processes of client and server, P the port that the server has, N a number.
IDLE = "Identifier N of C, at 127.0.0.1:N to 127.0.0.1:P of port space TCP, with queue pair N, is in state idle."
IN_STATE = "Identifier N of C, at 127.0.0.1:N to 127.0.0.1:P of port space TCP, with queue pair N, is in state {}."
REJECTED = "C got RDMA_CM_EVENT_REJECTED, status 28 (reason 601)."
EXPLAINED = "\"softverbs explain 601\" has causes and cures."
NOBODY = ["Identifier N of C, at 127.0.0.1:N to 127.0.0.1:7 of port space TCP, with queue pair N, is in state idle.",
          "C got RDMA_CM_EVENT_REJECTED, status 8 (reason 600).", "No process of this directory listens at port 7 of port space TCP."]
NOBODY_EXPLAINED = "\"softverbs explain 600\" has causes and cures."
NO_ANSWER = "C sent REQ 1 time, and no answer came."
LISTENS = "S listens at 0.0.0.0:P of port space TCP."
SWAPPED = "127.0.0.1:Q of port space TCP"  # port P with its bytes in the other order
NOT_AT = [NOBODY[0].replace("127.0.0.1:7 of port space TCP", SWAPPED), NOBODY[1], NOBODY[2].replace("port 7", "port Q")]
IN_OTHER_ORDER = LISTENS[:-1] + ", and Q is P with its bytes in the other order: a port in a struct sockaddr needs htons(3)."
LIVE = {
    "rejected": [IDLE, "Its other end is identifier N of S, in state idle.", REJECTED,
                 "S rejected it: its program called rdma_reject, or its call of rdma_accept was refused.", EXPLAINED],
    "destroyed": [IDLE, "Its other end is identifier N of S, in state REQ rcvd.", REJECTED,
                  "S destroyed the identifier of the request without answering it (rdma_destroy_id).", EXPLAINED],
    "died": [IDLE, REJECTED, "The process of the other end ended before it had answered.", EXPLAINED],
    "nobody": [*NOBODY, NOBODY_EXPLAINED],
    "other-port": [*NOBODY, LISTENS, NOBODY_EXPLAINED],
    "swapped": [*NOT_AT, IN_OTHER_ORDER, NOBODY_EXPLAINED],
    "not-accepted": [IN_STATE.format("REQ sent"), "Its other end is identifier N of S, in state REQ rcvd.", NO_ANSWER,
                     "S has fetched RDMA_CM_EVENT_CONNECT_REQUEST and called neither rdma_accept nor rdma_reject for N seconds."],
    "not-fetched": [IN_STATE.format("REQ sent"), "Its other end is identifier N of S, in state REQ rcvd.", NO_ANSWER,
                    "S has not fetched the event of it (rdma_get_cm_event): 1 waits."],
    "backlog": [IN_STATE.format("REQ sent"), NO_ANSWER,
                "S listens at 0.0.0.0:P of port space TCP, and 1 request waits that rdma_get_cm_event has not fetched: as many as its "
                "backlog, so that further ones are dropped."],
    "stopped": [IN_STATE.format("REQ sent"), NO_ANSWER, "Process S does not answer: it is stopped (SIGSTOP, a debugger), has no time, ends, or is another user's and refuses."],
    "ended": [IDLE, "Its other end is identifier N of S, in state idle.", "C itself ended the connection (rdma_disconnect)."],
    "ended-there": [IN_STATE.format("DREQ rcvd"), "Its other end is identifier N of S, in state DREQ sent.",
                    "The other end ended the connection (rdma_disconnect, rdma_destroy_id, or its program ended), and is not answered "
                    "before this one calls rdma_disconnect, too."],
    "killed": [IDLE, "The process of the other end has ended without a word: it was killed, or called _exit."],
    "connected": [IN_STATE.format("established"), "Its other end is identifier N of S, in state established.",
                  "It has been connected for N seconds, with queue pair N."],
}
# The texts that differ once both have ended, and the causes that leave nothing: connections that ended as they should.
NOT_ANSWERED = [IDLE, "Its other end is identifier N of S, in state REQ rcvd.", REJECTED]
ENDED = {
    "other-port": [*NOBODY, NOBODY_EXPLAINED],
    "swapped": [*NOT_AT, NOBODY_EXPLAINED],
    "not-accepted": [*NOT_ANSWERED, "S ended before it had answered.", EXPLAINED],
    "not-fetched": [*NOT_ANSWERED, "S ended before it had answered: it never fetched RDMA_CM_EVENT_CONNECT_REQUEST (rdma_get_cm_event).",
                    EXPLAINED],
}
LEAVES_NOTHING = {"ended", "ended-there", "killed", "connected"}
LIVE_ONLY = LEAVES_NOTHING | {"backlog", "stopped"}


def _plain(text, numbers):
    """The sentences before the events, with what differs from run to run replaced."""
    client, server, port = numbers
    other = socket.htons(max(port, 0))
    said = text.split("    What happened at ")[0]
    for found, word in ((f"connected ({client})", "C"), (f"connected ({server})", "S"), (f"Process {server} ", "Process S "),
                        (f":{port} ", ":P "), (f":{other} ", ":Q "), (f"port {other} ", "port Q "), (f" {other} is {port} ", " Q is P ")):
        said = said.replace(found, word)
    said = re.sub(r"(at 127\.0\.0\.1:|[Ii]dentifier |queue pair )(?:0x)?[0-9a-f]+\b", r"\1N", said)
    said = said.replace("in state timewait.", "in state idle.")  # which ends by itself
    said = re.sub(r"for \d+ seconds?", "for N seconds", said)
    return [line.strip() for line in said.splitlines() if line.strip() and " event of it wait" not in line]


def _compare(name, said, wanted):
    assert said == wanted, f"{name}:\n" + "\n".join(said) + "\nand not\n" + "\n".join(wanted)


def _ask(identifier, numbers, *options):
    return expect(softverbs("why", *options, "--id", str(identifier), str(numbers[0]))).stdout.decode()


def _ask_until(name, identifier, numbers, wanted):
    """The other end may take a moment to act."""
    end = cases.until(20)
    while (said := _plain(_ask(identifier, numbers), numbers)) != wanted and time.monotonic() < end:
        time.sleep(0.1)
    _compare(name, said, wanted)


def every_cause_is_told_live_and_afterwards():
    for name, lines in LIVE.items():
        with made(name) as (numbers, identifier, end):
            _ask_until(name, identifier, numbers, lines)
            end()
            if name not in LIVE_ONLY:
                _compare(f"{name}, ended", _plain(_ask(identifier, numbers, "--last"), numbers), ENDED.get(name, lines))
            elif name in LEAVES_NOTHING:
                expect(softverbs("why", "--last", "--id", str(identifier), str(numbers[0])), 1, b"", [b"has identifier"])


def what_is_lost_is_said_to_be_lost():
    with made("lost", "--fault", "drop=100%", env={"SOFTVERBS_CM_RETRIES": "0"}) as (numbers, identifier, end):
        lines = _plain(_ask(identifier, numbers), numbers)
        lines = [re.sub(r"lost \d+", "lost N", line) for line in lines]
        _compare("lost", lines, [IDLE, "C got RDMA_CM_EVENT_UNREACHABLE, status -110 (reason 603).", NO_ANSWER, LISTENS,
                                 "Faults that were asked for lost N message of the connection manager.",
                                 "\"softverbs explain 603\" has causes and cures."])
        end()


def programs_that_wait_before_there_is_a_connection_have_their_next_call():
    """`why` led the client to ibv_modify_qp, and had nothing of the server."""
    with made("not-connected") as (numbers, identifier, end):
        said = {each["pid"]: each["waits"] for each in json.loads(expect(softverbs("why", "--json")).stdout)}
        of_qp, of_id = said[numbers[0]]
        assert "is in INIT: librdmacm moves the queue pair of an identifier to RTR and RTS" in of_qp, said
        assert of_id == f"Identifier {identifier} is in state route resolved: no connection is being made: the next call is rdma_connect.", said
        (listens,) = said[numbers[1]]
        assert f"has listened at 0.0.0.0:{numbers[2]} for " in listens and "no request for a connection waits" in listens, said
        end()


def a_port_without_htons_is_named_where_the_client_waits():
    with made("swapped") as (numbers, identifier, end):
        port, other = numbers[2], socket.htons(numbers[2])
        said = {each["pid"]: each["waits"] for each in json.loads(expect(softverbs("why", "--json")).stdout)}
        assert said[numbers[0]][-1] == (
            f"The connection of identifier {identifier} with 127.0.0.1:{other} was rejected with reason 8, as no program listened there: connected ({numbers[1]}) listens at "
            f"0.0.0.0:{port} of port space TCP, and {other} is {port} with its bytes in the other order: a port in a struct sockaddr needs htons(3)."), said
        end()
    with made("other-port") as (numbers, _, end):
        said = {each["pid"]: each["waits"] for each in json.loads(expect(softverbs("why", "--json")).stdout)}
        assert "with 127.0.0.1:7 was rejected with reason 8: an identifier is for one connection" in said[numbers[0]][-1], said
        end()


def an_address_without_htonl_is_logged():
    if os.readlink("/proc/self/ns/net") == os.readlink(f"/proc/{os.getppid()}/ns/net") or \
            subprocess.run(["ip", "route", "add", "1.0.0.0/8", "dev", "lo"], capture_output=True, check=False).returncode:
        raise cases.Skip("no network namespace can be made here, or no route in it")
    for options, status, reason in (((), -19, 605), (("--inject", "when address: drop"), -110, 616)):  # and where no way is found
        done = softverbs("run", "--log", "warn", *options, "--", f"{cases.BUILD}/tests/tool/connected", "swapped-address")
        said = expect(done, 0, b"", None).stderr.decode()
        assert f"status {status}, 1.0.0.127: with its bytes in the other order (htonl) it is 127.0.0.1, an address of this host: " in said, said
        assert f"(reason {reason})" in said, said


def _ask_as(user, tool, env, *options):
    return subprocess.run(["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--", tool, "why", *options], env=env, capture_output=True, text=True,
                          timeout=cases.patience(60), check=False).stdout


def a_process_of_another_user_is_not_called_stopped():
    """The client's user asks; the server belongs to another one."""
    if os.geteuid() != 0:
        raise cases.Skip("only root can become another user")
    if not os.path.exists(PROGRAM):
        raise cases.Skip("librdmacm is not installed")
    place, tool, refuses = f"{TEMPORARY}/of-two", cases.installed(f"{TEMPORARY}/installed"), "does not answer: another user runs it, and it is not asked."
    env = cases.environment(SOFTVERBS_DIR=place, HOME="/tmp")
    os.mkdir(place)
    os.chmod(place, 0o777)
    for cause in ("connected", "not-accepted"):
        with subprocess.Popen([tool, "run", "--", PROGRAM, cause, "54321", "12345"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as program:
            numbers = program.stdout.readline().split()
            said = [_ask_as(54321, tool, env, *options) for options in (("--json",), ("--id", "0", numbers[0]))]
            (waits,) = [each["waits"] for each in json.loads(said[0]) if each["pid"] == int(numbers[0])]
            said.append(_ask_as(54321, tool, env, "--qp", waits[0].split()[2]))
            program.stdin.close()
            program.wait(cases.patience(60))
        server = numbers[1].decode()
        if cause == "connected":
            assert f"waits for its peer: process {server} (connected), which has queue pair 0x" in waits[0] and waits[0].endswith(refuses), said
            assert f"The part of the other end is not known: process {server} {refuses}" in said[2], said
        else:
            assert any(line.endswith(f": process {server} {refuses}") for line in waits) and f"Process {server} {refuses}" in said[1], (waits, said)


def one_event_is_counted_once_and_told_at_both_ends():
    """`why` counted it for the listener and for the new identifier, and named it for none of the other end."""
    with made("not-fetched") as (numbers, _, end):
        said = {each["pid"]: each["waits"] for each in json.loads(expect(softverbs("why", "--json")).stdout)}
        (asked,) = said[numbers[1]]
        assert re.fullmatch(rf"Identifier \d+ listens at 0.0.0.0:{numbers[2]}, and 1 request waits that rdma_get_cm_event does not fetch\.", asked), said
        waits = [line for line in said[numbers[0]] if line.startswith("Identifier ")]
        assert len(waits) == 1 and f": connected ({numbers[1]}) has not fetched the event of it (rdma_get_cm_event): 1 waits." in waits[0], said
        end()


def an_identifier_that_was_only_made_has_its_next_call():
    with made("nobody") as (numbers, _, end):
        said = {each["pid"]: each["waits"] for each in json.loads(expect(softverbs("why", "--json")).stdout)}
        (line,) = said[numbers[1]]
        assert re.fullmatch(r"Identifier \d+ is in state idle: no connection is being made: the next call is rdma_resolve_addr or rdma_bind_addr\.", line), said
        end()


def a_disconnect_that_is_not_answered_is_told_at_both_ends():
    with made("ended-there") as (numbers, _, end):
        said = {each["pid"]: " ".join(each["waits"]) for each in json.loads(expect(softverbs("why", "--json")).stdout)}
        assert "to end the connection" in said[numbers[0]] and "rdma_disconnect, which answers that, was not called" in said[numbers[0]], said
        assert "called rdma_disconnect" in said[numbers[1]] and f"(process {numbers[0]}) has not answered" in said[numbers[1]], said
        end()


def the_other_end_tells_its_own():
    with made("rejected") as (numbers, _, end):
        end()
        said = json.loads(expect(softverbs("why", "--json", "--last", "--id", "1", str(numbers[1]))).stdout)
        events = [(event["event"], event.get("message") or event.get("cm_event")) for event in said[0]["ends"][0]["id"]["events"]]
        assert ("CM_ARRIVED", "REQ") in events and ("CM_EVENT_FETCHED", "CONNECT_REQUEST") in events and ("CM_SENT", "REJ") in events, events
        assert said[0]["ends"][1]["pid"] == numbers[0], said


def a_service_of_datagrams_is_told_of():
    with made("datagram-rejected") as (numbers, identifier, end):
        said = _ask(identifier, numbers)
        assert "got RDMA_CM_EVENT_UNREACHABLE, status 2 (reason 601)." in said and "sent SIDR_REQ" in said and "got SIDR_REP" in said, said
        end()


def run_keeps_them_in_a_file():
    path = f"{TEMPORARY}/stories"
    with made("rejected", "--story", path, "--log", "none") as (numbers, identifier, end):
        end()
    said = expect(softverbs("why", "--from", path, "--id", str(identifier), str(numbers[0]))).stdout.decode()
    _compare("in a file", _plain(said, numbers), LIVE["rejected"])
    whole = expect(softverbs("why", "--from", path)).stdout.decode()
    assert "rejected it: its program called rdma_reject" in whole, whole
    expect(softverbs("why", "--from", path, "--id", "99"), 1, b"", [b"has identifier 99"])


def ci_is_told_in_its_own_forms():
    """Each connection once, by the end that heard of it."""
    path = f"{TEMPORARY}/for-ci"
    alone = {"SOFTVERBS_DIR": f"{TEMPORARY}/for-ci-node"}  # the stories of other cases are in the usual one
    os.mkdir(alone["SOFTVERBS_DIR"], 0o700)
    identifiers = []
    for name in ("rejected", "nobody"):
        with made(name, "--story", path, "--log", "none") as (numbers, identifier, end):
            identifiers.append(identifier)
            end()
    lines = expect(softverbs("why", "--from", path, "--github", env=alone)).stdout.decode().splitlines()
    assert [line.split("::")[1] for line in lines] == ["error title=softverbs CM_REJECTED", "error title=softverbs CM_NOBODY_LISTENS"], lines
    assert "its program called rdma_reject" in lines[0], lines
    suite = ElementTree.fromstring(expect(softverbs("why", "--from", path, "--junit", env=alone)).stdout)
    assert (suite.get("tests"), suite.get("failures")) == ("2", "2"), suite.attrib
    assert suite[0].get("name") == f"identifier {identifiers[0]} of connected: CM_REJECTED", suite[0].attrib
    run, = json.loads(expect(softverbs("why", "--from", path, "--sarif", env=alone)).stdout)["runs"]
    assert [result["ruleId"] for result in run["results"]] == ["CM_REJECTED", "CM_NOBODY_LISTENS"], run
    place = run["results"][0]["locations"][0]["logicalLocations"][0]["fullyQualifiedName"]
    assert place.startswith(f"identifier {identifiers[0]} of connected"), place
    one = json.loads(expect(softverbs("why", "--from", path, "--id", str(identifier), "--sarif", str(numbers[0]), env=alone)).stdout)
    assert [result["ruleId"] for result in one["runs"][0]["results"]] == ["CM_NOBODY_LISTENS"], one


def a_stopped_program_is_looked_at():
    for name in ("rejected", "not-accepted"):
        with made(name) as (numbers, identifier, end):
            _ask_until(name, identifier, numbers, LIVE[name])
            out, err = debugger.gdb(f"attach {numbers[0]}", "softverbs objects id", f"softverbs connection {identifier}", "softverbs connection 99", program=PROGRAM)
            said = _plain(out[out.find("Identifier "):], numbers)
            assert said[:len(LIVE[name])] == LIVE[name], (name, said, err)
            assert f"soft0 identifier {identifier}, TCP in " in out and f"connected ({numbers[0]}) has no identifier 99" in err, (out, err)
            end()


def core_files_tell_what_the_processes_tell():
    """Nothing else is left: no process, and no story in the directory."""
    path = f"{TEMPORARY}/of-cores"
    for name in ("rejected", "not-accepted", "not-fetched", "ended-there", "connected"):
        with made(name, "--log", "none") as (numbers, identifier, end):
            _ask_until(name, identifier, numbers, LIVE[name])
            live = json.loads(expect(softverbs("why", "--json", "--id", str(identifier), str(numbers[0]))).stdout)[0]
            for core in debugger.dump(*numbers[:2], program=PROGRAM):
                debugger.gdb(f"core-file {core}", f"softverbs stories {path}", program=PROGRAM)
            end()
        options = ("--from", path, "--id", str(identifier), str(numbers[0]))
        _compare(f"{name}, core files", _plain(expect(softverbs("why", *options)).stdout.decode(), numbers), LIVE[name])
        dead = json.loads(expect(softverbs("why", "--json", *options)).stdout)[0]
        for one, other in zip(live["ends"], dead["ends"], strict=True):
            assert _lasting(one) == _lasting(other), f"{name}:\n{one}\n{other}"


def _lasting(end):
    """The parts of an end that do not change by themselves, as times and repeats do."""
    known, identifier = end["id"], end["id"]["identifier"]
    events = [[event.get(key) for key in ("event", "message", "cm_event", "status", "reason", "was", "now")] for event in known["events"]]
    return ({key: value for key, value in identifier.items() if key not in ("seconds", "repeats")},
            {key: known.get(key) for key in ("number", "communication_id", "peer_communication_id")}, [event for event in events if "MRA" not in event])


def what_stands_in_a_file_is_not_trusted():
    for text in (b"{\"id\":7}\n", b"{\"id\":{}}\n", b"{\"pid\":1,\"id\":{\"number\":7,\"identifier\":[],\"events\":[1,{},{\"event\":7}]}}\n",
                 b"{\"pid\":1,\"program\":\"\\u001b[2J\",\"id\":{\"number\":7,\"identifier\":{\"state\":\"\\u001b\"},\"events\":{}}}\n"):
        with open(f"{cases.DIRECTORY}/last-1-1.story", "wb") as file:
            file.write(text)
        done = softverbs("why", "--last", "--id", "7")
        assert done.returncode in (0, 1) and b"\x1b" not in done.stdout, cases.told(done)
    os.unlink(f"{cases.DIRECTORY}/last-1-1.story")


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
