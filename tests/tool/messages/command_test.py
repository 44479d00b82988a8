#!/usr/bin/env python3
"""The commands besides run: help, explain, version; what does not exist is refused with a sentence."""
import ctypes
import errno
import ipaddress
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
import made_pages
from cases import expect, softverbs
from settings import entries


def unknown_commands_are_2():
    expect(softverbs("fly"), 2, b"", [b'no command "fly"', b"softverbs --help"])
    expect(softverbs("--fly"), 2, b"", [b'no option "--fly"'])
    expect(softverbs("help", "fly"), 2, b"", [b'no command "fly"'])
    expect(softverbs(), 2, b"", None)


def a_slip_is_answered_with_what_was_meant():
    for slip, meant in (("runn", "run"), ("shwo", "show"), ("explian", "explain"), ("doctr", "doctor")):
        expect(softverbs(slip), 2, b"", [f'no command "{slip}". Did you mean "{meant}"?'.encode()])
        expect(softverbs("help", slip), 2, b"", [f'Did you mean "{meant}"?'.encode()])
    expect(softverbs("show", "qp"), 2, b"", [b'There is no list "qp". Did you mean "qps"?'])
    expect(softverbs("event", "port-dwn", "soft0"), 2, b"", [b'There is no event "port-dwn". Did you mean "port-down"?'])
    expect(softverbs("event", "port-dwn"), 2, b"", [b'There is no event "port-dwn". Did you mean "port-down"?'])
    expect(softverbs("event", "port-down"), 2, b"", [b"It needs an event and a device."])
    expect(softverbs("cat"), 2, b"", [b'no command "cat". Did you mean "softverbs run -- cat"?'])
    for command in (("fly",), ("show", "fly"), ("event", "fly", "soft0")):
        assert b"mean" not in softverbs(*command).stderr, command


def help_of_help_is_help():
    for name in ("--help", "-h", "help"):
        expect(softverbs("help", name), out=expect(softverbs("--help")).stdout)


def help_lists_every_command_and_explains_it():
    overview = expect(softverbs("--help")).stdout.decode()
    commands = set(re.findall(r"^  (\w+) ", overview, re.MULTILINE)) - {"help"}
    assert {"run", "around", "env", "devices", "show", "stat", "top", "sysfs", "event", "inject", "trace", "replay", "sweep", "doctor", "ping", "explain", "decode", "draw", "live", "missing", "why", "report", "checks", "lab", "on", "sim", "adverse", "demo", "version"} == commands, overview
    for command in commands:
        text = expect(softverbs("help", command)).stdout
        assert text.startswith(f"Usage: softverbs {command}".encode()), text
        expect(softverbs(command, "--help"), out=text)
        expect(softverbs(command, "-h"), out=text)
        expect(softverbs(command, "--no-such"), 2, b"(exit 2)\n" if command == "env" else b"", [f"softverbs: {command}: There is no option --no-such".encode()])


def explain_knows_numbers_and_names():
    said = expect(softverbs("explain", "105")).stdout
    line = said[:said.index(b"\n") + 1]
    assert line.startswith(b"  105  RETRY_EXCEEDED ") and line.endswith(b".\n"), said
    expect(softverbs("explain", "retry_exceeded"), out=said)
    expect(softverbs("explain", "0x69"), out=said)
    every = expect(softverbs("explain")).stdout
    assert line in every and every.count(b"\n") > 50


def explain_knows_vendor_errors_with_their_sources():
    said = expect(softverbs("explain", "mlx5:129")).stdout.decode()
    assert "IBV_WC_RETRY_EXC_ERR" in said and re.search(r"observed +NVIDIA/nccl#214", said), said
    expect(softverbs("explain", "mlx5:0x81"), out=said.encode())
    rows = list(entries(f"{cases.TREE}/src/profile/vendors.def", "VENDOR"))
    seen = {(driver, int(str(code), 0), words) for driver, code, _, _, words, _ in rows}
    assert len(seen) == len(rows) > 40, len(rows)
    with open("/usr/include/infiniband/verbs.h", encoding="utf-8") as header:
        statuses = header.read()
    for driver, code, status, how, words, source in rows:
        (one,) = [one for one in json.loads(expect(softverbs("explain", "--json", f"{driver}:{code}")).stdout) if one["sentence"] == words]
        assert one["documented"] == (how == "DOCUMENTED") and len(words) > 5, one
        assert re.search(r"\w\.[ch]\b" if one["documented"] else r"^[\w-]+/[\w-]+#\d+", source), one
        assert not status or re.search(rf"\bIBV_WC_{status}\b", statuses), one
    for unknown in ("mlx5:1", "nobody:129", "mlx5:4294967295"):
        expect(softverbs("explain", unknown), 1, b"", [b"is not known", b"mlx5, efa, irdma, bnxt_re, mana, erdma"])


def explain_has_causes_an_example_a_cure_and_a_page_of_each():
    said = expect(softverbs("explain", "105")).stdout.decode()
    for head in ("usual causes", "example", "cure", "page"):
        assert re.search(rf"^ +{head} +\S", said, re.MULTILINE), (head, said)
    assert "ntohl" not in said and "byte order" in said and "docs/how-to/debugging.md" in said, said
    every = json.loads(expect(softverbs("explain", "--json")).stdout)
    every += json.loads(expect(softverbs("explain", "--json", *(name for _, name, *_ in _words()))).stdout)
    assert len(every) > 300, len(every)
    for one in every:
        assert all(len(one[part]) > 4 for part in ("sentence", "causes", "example", "cure", "page")), one
        assert os.path.exists(f"{cases.TREE}/docs/{one['page']}"), one
        for number in re.findall(r"\b\d{1,3}\b", " ".join(re.findall(r"\(([\d, to]+)\)", one["causes"] + one["cure"]))):
            assert int(number) in {each["number"] for each in every}, one


def the_page_of_reasons_has_what_explain_says():
    page = made_pages.whole(cases.TREE, "docs/reference/reasons.md")
    chapters = dict(re.findall(r"^### (\d+ \w+)\n\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL))
    every = json.loads(expect(softverbs("explain", "--json")).stdout)
    assert len(chapters) == len(every), (len(chapters), len(every))
    for one in every:
        chapter = re.sub(r"\\([*<>|])|\[(\d+)\]\(#[^)]*\)", r"\1\2", chapters[f"{one['number']} {one['name']}"])
        assert all(f"{one[part]}\n" in chapter for part in ("sentence", "causes", "example", "cure")), (one, chapter)
        assert f"(../{one['page']})" in chapter or f"({one['page'].removeprefix('reference/')})" in chapter, (one, chapter)


def explain_knows_numbers_that_are_no_reason():
    """EOPNOTSUPP's; and names that are only part of one."""
    assert b"EOPNOTSUPP" in expect(softverbs("explain", "95")).stdout
    expect(softverbs("explain", "rnr"), 1, b"", [b"RNR_EXCEEDED (106)", b"PEER_NOT_READY (118)"])


def explain_knows_what_programs_print():
    """Names, texts, any case; the other meanings of a number are on stderr."""
    by_name = expect(softverbs("explain", "IBV_WC_RETRY_EXC_ERR")).stdout
    assert b"No answer came from the peer" in by_name and b"usual causes" in by_name and b"cure" in by_name, by_name
    expect(softverbs("explain", "transport retry counter exceeded"), out=by_name)
    expect(softverbs("explain", "ibv_wc_retry_exc_err"), out=by_name)
    for word in ("EINVAL", "Invalid argument", "IBV_EVENT_QP_ACCESS_ERR", "RDMA_CM_EVENT_UNREACHABLE", "Work Request Flushed Error"):
        assert expect(softverbs("explain", word)).stdout.count(b"\n") >= 1, word
    done = softverbs("explain", "12")
    assert done.returncode == 0 and b"explain IBV_WC_RETRY_EXC_ERR" in done.stderr and b"explain ENOMEM" in done.stderr, cases.told(done)
    said, = json.loads(expect(softverbs("explain", "--json", "IBV_WC_REM_ACCESS_ERR")).stdout)
    assert said["number"] == 10 and said["text"] == "remote access error" and "205" in said["causes"] and said["cure"], said


def _words():
    """Kind, name, number and text of each word, and the reasons that its causes name."""
    with open(f"{cases.TREE}/tools/explain/words.def", encoding="utf-8") as file:
        text = file.read()
    for kind, name, number, shown, rest in re.findall(r'^WORD\((\w+), "(\w+)", (\w+), "([^"]*)",((?:.|\n)*?)\)\n(?=WORD|\n|/\*)', text, re.M):
        yield kind, name, number, shown, re.findall(r"\b\d{3}\b", " ".join(re.findall(r"\(([\d, to]+)\)", rest)))


def the_words_of_explain_are_those_of_the_libraries():
    verbs, manager = ctypes.CDLL("libibverbs.so.1"), ctypes.CDLL("librdmacm.so.1")  # the distribution's: of no newer words
    shown = {"STATUS": verbs.ibv_wc_status_str, "EVENT": verbs.ibv_event_type_str, "CM": manager.rdma_event_str}
    words = list(_words())
    assert len(words) > 70, len(words)
    for kind, name, number, text, reasons in words:
        for reason in reasons:
            expect(softverbs("explain", reason), out=None, err=None)
        if kind == "ERRNO":
            assert name == number and os.strerror(getattr(errno, name)) == text, (name, text)
            continue
        shown[kind].restype = ctypes.c_char_p
        assert shown[kind](int(number)).decode() in (text, "unknown"), (name, text, shown[kind](int(number)))
    numbers = {kind: [int(number) for each, _, number, _, _ in words if each == kind] for kind in ("STATUS", "EVENT", "CM")}
    assert all(found == list(range(len(found))) for found in numbers.values()), numbers
    assert len(numbers["STATUS"]) == 24 and shown["STATUS"](24) == b"unknown" == shown["EVENT"](21)


def explain_knows_what_is_counted():
    by_name, by_key = (expect(softverbs("explain", word)).stdout for word in ("RNR_SENT", "rnrs_sent"))
    assert by_name == by_key and b"found no receive posted" in by_name and b'counted as "rnrs_sent"' in by_name, by_name
    assert expect(softverbs("explain", "fault_kinds")).stdout.count(b"FAULT_") == 5
    said, = json.loads(expect(softverbs("explain", "--json", "ack_timeout")).stdout)
    assert said["number"] == 0 and said["name"] == "ACK_TIMEOUT" and "no acknowledgement" in said["sentence"], said


def explain_refuses_what_is_no_reason():
    for wrong in ("0", "99999", "4294967401", "no_such", "105x", "-105", ""):
        expect(softverbs("explain", "--", wrong), 1, b"", [b"No reason", wrong.encode()])


def version_names_versions():
    text = expect(softverbs("version")).stdout.decode()
    assert re.fullmatch(r"softverbs \d+\.\d+\.\d+\nbuilt from \S.*\nsymbols of rdma-core 25 to \d+: IBVERBS_1\.0 to .*\n"
                        r"built with the headers of rdma-core \d+\n"
                        r"layout \d+ of .*\n", text), text
    expect(softverbs("--version"), out=text.encode())
    expect(softverbs("-V"), out=text.encode())
    expect(softverbs("version", "now"), 2, b"", [b"no argument"])


def devices_are_those_that_programs_see():
    text = expect(softverbs("devices", env={"SOFTVERBS_DEVICES": "2"})).stdout.decode()
    rows = [line.split() for line in text.splitlines()]
    first = {row[0]: row for row in rows if row[0].startswith("soft")}
    assert set(first) == {"soft0", "soft1"} and rows[0][0] == "DEVICE", text
    for name, (_, guid, state, node, index, _) in first.items():
        base = f"/sys/class/infiniband/{name}"
        shown = cases.run("cat", f"{base}/node_guid", f"{base}/device/infiniband_verbs/{node}/ibdev",
                          env={"SOFTVERBS_DEVICES": "2"}).stdout.decode()
        assert shown == f"{guid}\n{name}\n" and state == "ACTIVE" and index == "0", (shown, text)
    gids = [int(ipaddress.IPv6Address(row[-1])) for row in rows[1:3]]
    shown = cases.run("sh", "-c", "cat /sys/class/infiniband/soft0/ports/1/gids/[01]").stdout.decode().split()
    assert [int(gid.replace(":", ""), 16) for gid in shown] == gids, (shown, text)


def missing_lists_what_is_missing_and_why():
    few = expect(softverbs("missing")).stdout.decode().splitlines()
    all_of_them = expect(softverbs("missing", "--provider")).stdout.decode().splitlines()
    assert any(re.fullmatch(r"ibv_cmd_\w+ +provider.*", line) for line in all_of_them), all_of_them
    assert not any("ibv_cmd_" in line for line in few) and len(few) < len(all_of_them)
    assert all(re.fullmatch(r"[\w.]+  +\S.*", line) for line in all_of_them), all_of_them
    expect(softverbs("missing", "all"), 2, b"", [b"no argument"])


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
