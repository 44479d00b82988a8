#!/usr/bin/env python3
"""USDT probes: each event of events.def is one, and a debugger stops at it with the event's number and fields."""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, TREE, Skip, expect, softverbs

LIBRARY = f"{BUILD}/lib/libibverbs.so.1"
PROGRAM = f"{BUILD}/tests/tool/scripted"
sys.path.insert(0, f"{TREE}/tools/build")
import events  # pylint: disable=wrong-import-position


def _probes():
    """Provider, name and arguments of each, as the notes of the library have them."""
    if not shutil.which("readelf"):
        raise Skip("readelf (package binutils) is not installed")
    notes = subprocess.run(["readelf", "-n", LIBRARY], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"Provider: (\S+)\s+Name: (\S+)\s+Location: .*\s+Arguments: (.*)", notes)
    if not found and not os.path.exists("/usr/include/sys/sdt.h") and "stapsdt" not in notes:
        raise Skip("this build has no probes: <sys/sdt.h> (package systemtap-sdt-dev) was not there")
    return found


def each_event_is_a_probe():
    probes = _probes()
    assert {provider for provider, _, _ in probes} == {"softverbs"}
    assert {name for _, name, _ in probes} == set(events.events(TREE)), {name for _, name, _ in probes} ^ set(events.events(TREE))
    assert all(re.fullmatch(r"-?4@\S+ -?8@\S+ -?8@\S+", arguments) for _, _, arguments in probes), probes


def _stopped(probe, *commands):
    """The output of gdb, for a process that stops at this probe for the first time."""
    _probes()
    if not shutil.which("gdb"):
        raise Skip("gdb is not installed")
    arguments = ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load no", "-iex", "set startup-with-shell off", "-ex", "break main",
                 "-ex", "run work", "-ex", f"break -probe-stap softverbs:{probe}", "-ex", "delete 1", "-ex", "continue",
                 *(part for command in commands for part in ("-ex", command)), "-ex", "kill", PROGRAM]
    return expect(softverbs("run", "--", *arguments), out=None, err=None).stdout.decode()


def a_debugger_stops_at_an_event():
    said = _stopped("QP_STATE", 'printf "%d arguments, qp %u, from %d to %d\\n", $_probe_argc, $_probe_arg0, $_probe_arg1, $_probe_arg2')
    assert re.search(r"^3 arguments, qp [1-9]\d*, from 0 to 1$", said, re.M), said  # RESET to INIT


def frequent_events_have_the_number_of_their_queue_pair():
    said = _stopped("PACKET_SENT", 'printf "qp %u\\n", $_probe_arg0', 'printf "%u bytes\\n", $_probe_arg2')
    assert re.search(r"^qp [1-9]\d*$", said, re.M) and re.search(r"^\d+ bytes$", said, re.M), said


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
