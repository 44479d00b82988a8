#!/usr/bin/env python3
"""Which clients run on which profile: writes docs/evidence/profiles.md (`make profiles`). Twenty clients of Debian, unmodified, on each
profile of profiles/; where one ends badly, the page has what the profile refused first. A row that has an outcome is left out, so that
a run continues where it was stopped; rows of profiles that are named run again."""
import argparse
import contextlib
import datetime
import glob
import json
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../clients"), os.path.join(HERE, "../clients/librdmacm")]
# pylint: disable=wrong-import-position
from clients import BUILD, Failure, Skip, free_port, need, serve
from rdmacm import Host, choose_port, exchange
from patience import until
from wrapped import write_page

PAGE = os.path.join(HERE, "../../docs/evidence/profiles.md")
PROFILES = os.path.join(HERE, "../../profiles")
WITHOUT = "(none)"  # softverbs' own device
MEMORY = os.path.join(BUILD, "profiles.json")
SECONDS = 25  # a client that waits this long for its other end has failed


def alone(suite, extra, *command):
    suite.start(list(command), extra).finish(until(SECONDS)).check()


def pair(suite, extra, *command):
    suite.pair(list(command), extra=extra, timeout=SECONDS)


def connected(suite, extra, server, client):
    exchange(suite, server, client, SECONDS, extra)


def pinged(suite, extra):
    port = choose_port()
    common = ["rping", "-p", port, "-C", "10", "-a", "127.0.0.1"]
    connected(suite, extra, [*common, "-s"], [*common, "-c"])


def by_port(program, *options):
    def run(suite, extra):
        port = [] if program == "udaddy" else ["-p", choose_port()]
        connected(suite, extra, [program, *options, *port], [program, *options, *port, "-s", "127.0.0.1"])
    return run


def requested(suite, extra):
    port = choose_port()
    connected(suite, extra, ["rdma_server", "-p", port], ["rdma_client", "-s", "127.0.0.1", "-p", port])


def streamed(suite, extra):
    port = choose_port()
    connected(suite, extra, ["rstream", "-p", port, "-S", "64", "-C", "10"], ["rstream", "-p", port, "-S", "64", "-C", "10", "-s", "127.0.0.1"])


def of_libfabric(suite, extra):
    port = free_port()
    common = suite.softverbs("run", "--", need("fi_pingpong"), "-p", "verbs", "-e", "msg", "-I", "10", "-S", "64")
    serve([*common, "-B", str(port)], [*common, "-P", str(port), "127.0.0.1"], port, suite.environment(extra), SECONDS)


def of_ucx(suite, extra):
    suite.pair(["ucx_perftest", "-t", "tag_lat", "-n", "100", "-w", "1", "-s", "64"], extra={**extra, "UCX_TLS": "rc_verbs,ud_verbs"}, timeout=SECONDS)


def plain(*command):
    return lambda suite, extra: pair(suite, extra, *command)


ROWS = {
    "ibv_devinfo -v": lambda suite, extra: alone(suite, extra, "ibv_devinfo", "-v"),
    "ibv_rc_pingpong": plain("ibv_rc_pingpong", "-g", "0", "-n", "100"),
    "ibv_rc_pingpong -e": plain("ibv_rc_pingpong", "-g", "0", "-n", "100", "-e"),
    "ibv_rc_pingpong -N": plain("ibv_rc_pingpong", "-g", "0", "-n", "100", "-N"),
    "ibv_uc_pingpong": plain("ibv_uc_pingpong", "-g", "0", "-n", "100"),
    "ibv_ud_pingpong": plain("ibv_ud_pingpong", "-g", "0", "-n", "100"),
    "ibv_srq_pingpong": plain("ibv_srq_pingpong", "-g", "0", "-n", "100"),
    "ibv_xsrq_pingpong": plain("ibv_xsrq_pingpong", "-g", "0", "-n", "100"),
    "ib_send_bw -c RC": plain("ib_send_bw", "-F", "-c", "RC", "-n", "100"),
    "ib_send_bw -c UC": plain("ib_send_bw", "-F", "-c", "UC", "-n", "100"),
    "ib_send_bw -c UD": plain("ib_send_bw", "-F", "-c", "UD", "-n", "100", "-s", "1024"),
    "ib_send_lat -I 64": plain("ib_send_lat", "-F", "-n", "100", "-s", "64", "-I", "64"),
    "ib_write_bw": plain("ib_write_bw", "-F", "-n", "100"),
    "ib_read_bw": plain("ib_read_bw", "-F", "-n", "100"),
    "ib_atomic_bw": plain("ib_atomic_bw", "-F", "-n", "100"),
    "rping": pinged,
    "ucmatose": by_port("ucmatose"),
    "udaddy": by_port("udaddy"),
    "rdma_client": requested,
    "rstream": streamed,
    "fi_pingpong (libfabric, MSG)": of_libfabric,
    "ucx_perftest (rc_verbs, ud_verbs)": of_ucx,
}


def names():
    return sorted(os.path.basename(path).removesuffix(".profile") for path in glob.glob(f"{PROFILES}/*.profile"))


def first_refusal(path, name):
    """The first refusal of the profile, in the words of the log without the program's number."""
    with contextlib.suppress(FileNotFoundError):
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                found = re.search(rf"\] (\w+): profile {re.escape(name)}: ([^:]*): .*\(reason (\d+)\)", line) or \
                    re.search(rf"\] (\w+): profile {re.escape(name)}: ()The .*\(reason (\d+)\)", line)
                if found:
                    return f"{found[1]}{': ' if found[2] else ''}{found[2]} ({found[3]})"
    return None


def first_reason(path):
    """The number of the first reason that the log has."""
    with contextlib.suppress(FileNotFoundError):
        with open(path, encoding="utf-8", errors="replace") as file:
            found = re.search(r"\(reason (\d+)\)", file.read())
            return f"no refusal of the profile; the log has reason {found[1]} first" if found else None
    return None


def outcome(suite, name, row):
    """"yes", "-" where the client is not installed, or why it ends badly."""
    with tempfile.TemporaryDirectory() as folder:
        log = f"{folder}/log"
        extra = {"SOFTVERBS_LOG": "warn", "SOFTVERBS_LOG_FILE": log}
        if name != WITHOUT:
            extra["SOFTVERBS_PROFILE"] = os.path.abspath(f"{PROFILES}/{name}.profile")
        try:
            ROWS[row](suite, extra)
            return "yes"
        except Skip:
            return "-"
        except Failure as why:
            last = [re.sub(r"^\[[\d.]+\].*(?=UCX)", "", line.strip()) for line in str(why).splitlines() if line.strip()]
            return first_refusal(log, name) or first_reason(log) or f"no refusal of the profile: {last[-1][:100] if last else 'nothing said'}"


HEAD = """# Clients by profile

Written by `tests/profiles/clients_by_profile.py` (`make profiles`) on {when}, at {commit}: {rows} clients of Debian 12, unmodified, on the devices of
each [profile](../how-to/profiles.md), both ends with the same one. A client that ends well has "yes". Of one that does not, the notes have the first
call that the profile refused, with the number of its reason (`softverbs explain 851`), or what else there is to be seen: perftest and UCX have
special ways with iWARP, and on ports of InfiniBand addresses of IP lead to no device. The first column is without a profile.
"""


def write(results, when, commit):
    rows, columns = list(ROWS), list(results)
    notes, lines = [], [HEAD.format(when=when, commit=commit, rows=len(rows))]
    lines += ["| client | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for row in rows:
        cells = []
        for name in columns:
            said = results[name][row]
            if said not in ("yes", "-"):
                if said not in notes:
                    notes.append(said)
                said = f"[{notes.index(said) + 1}]"
            cells.append(said)
        lines.append(f"| `{row}` | " + " | ".join(cells) + " |")
    lines += ["", "## Notes", ""] + [f"{number}. {note}" for number, note in enumerate(notes, 1)]
    with write_page(PAGE) as page:
        page.write("\n".join(lines) + "\n")


def remembered():
    with contextlib.suppress(FileNotFoundError):
        with open(MEMORY, encoding="utf-8") as file:
            return json.load(file)
    return {}


def main():
    columns = [WITHOUT, *names()]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("profile", nargs="*", help="runs the rows of this one again: (none), or a name of profiles/")
    again = parser.parse_args().profile
    if unknown := [name for name in again if name not in columns]:
        parser.error(f"no profile has the name {unknown[0]}")
    results = {name: rows for name, rows in remembered().items() if name in columns and name not in again}
    for name in columns:
        suite = Host()
        for row in ROWS:
            if row in results.setdefault(name, {}):
                continue
            results[name][row] = outcome(suite, name, row)
            print(f"{name}: {row}: {results[name][row]}", flush=True)
            with open(MEMORY, "w", encoding="utf-8") as file:
                json.dump(results, file)
    commit = os.popen(f"git -C {HERE} rev-parse --short HEAD").read().strip()
    write({name: results[name] for name in columns}, datetime.date.today().isoformat(), commit)


if __name__ == "__main__":
    main()
