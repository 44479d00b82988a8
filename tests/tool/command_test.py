#!/usr/bin/env python3
"""The commands besides run: help, explain, version; what does not exist is refused with a sentence."""
import ipaddress
import re
import sys

import cases
from cases import expect, softverbs


def unknown_commands_are_2():
    expect(softverbs("fly"), 2, b"", [b'no command "fly"', b"softverbs --help"])
    expect(softverbs("--fly"), 2, b"", [b'no option "--fly"'])
    expect(softverbs("help", "fly"), 2, b"", [b'no command "fly"'])
    expect(softverbs(), 2, b"", None)


def a_slip_is_answered_with_what_was_meant():
    for slip, meant in (("runn", "run"), ("shwo", "show"), ("explian", "explain"), ("doctr", "doctor")):
        expect(softverbs(slip), 2, b"", [f'no command "{slip}". Did you mean "{meant}"?'.encode()])
        expect(softverbs("help", slip), 2, b"", [f'Did you mean "{meant}"?'.encode()])
    assert b"mean" not in softverbs("fly").stderr


def help_of_help_is_help():
    for name in ("--help", "-h", "help"):
        expect(softverbs("help", name), out=expect(softverbs("--help")).stdout)


def help_lists_every_command_and_explains_it():
    overview = expect(softverbs("--help")).stdout.decode()
    commands = set(re.findall(r"^  (\w+) ", overview, re.MULTILINE)) - {"help"}
    assert {"run", "env", "devices", "show", "stat", "event", "doctor", "ping", "explain", "decode", "live", "missing", "version"} == commands, overview
    for command in commands:
        text = expect(softverbs("help", command)).stdout
        assert text.startswith(f"Usage: softverbs {command}".encode()), text
        expect(softverbs(command, "--help"), out=text)
        expect(softverbs(command, "-h"), out=text)
        expect(softverbs(command, "--no-such"), 2, b"(exit 2)\n" if command == "env" else b"", [f"softverbs: {command}: There is no option --no-such".encode()])


def explain_knows_numbers_and_names():
    line = expect(softverbs("explain", "105")).stdout
    assert line.startswith(b"  105  RETRY_EXCEEDED ") and line.endswith(b".\n"), line
    expect(softverbs("explain", "retry_exceeded"), out=line)
    expect(softverbs("explain", "0x69"), out=line)
    every = expect(softverbs("explain")).stdout
    assert line in every and every.count(b"\n") > 50


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
