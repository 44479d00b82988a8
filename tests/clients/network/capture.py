#!/usr/bin/env python3
"""`softverbs run --capture`: what tshark and `softverbs decode` say to the packets of real programs, and that their numbers
are those that the processes counted."""
import collections
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# pylint: disable=wrong-import-position
from clients import BUILD, Failure, Skip, Suite, need

COMMENT = 0x100000  # tshark's severity of a comment; everything worse is a chat, note, warning or error
SENT, RECEIVED = "2", "1"
SESSIONS = (
    ("ibv_rc_pingpong", "-g", "0", "-c", "-s", "4099", "-n", "200"),
    ("ibv_uc_pingpong", "-g", "0", "-n", "200"),
    ("ibv_ud_pingpong", "-g", "0", "-s", "1021", "-n", "200"),
    ("ib_send_bw", "-F", "-n", "200", "-c", "RC", "-s", "100000"),
    ("ib_send_bw", "-F", "-n", "200", "-c", "XRC", "-s", "1000"),
    ("ib_send_bw", "-F", "-n", "100", "-c", "UD", "-s", "1024", "-g", "-x", "0"),
    ("ib_write_bw", "-F", "-n", "20", "-s", "3000001"),
    ("ib_write_lat", "-F", "-n", "100", "-c", "UC", "-s", "20001"),
    ("ib_read_bw", "-F", "-n", "100", "-s", "70000"),
    ("ib_atomic_bw", "-F", "-n", "100"),
    ("ib_atomic_lat", "-F", "-n", "100", "-A", "CMP_AND_SWAP"),
)


def tshark(path, *fields, checksums=True):
    """The fields of each packet, as tshark dissects it with all checks on. Checksums are not there yet where packets were seen
    before the adapter that would fill them in."""
    command = [need("tshark"), "-r", path, "-o", f"ip.check_checksum:{checksums}", "-o", f"udp.check_checksum:{checksums}"]
    command += ["-T", "fields"]
    for field in fields:
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    if done.returncode != 0:
        raise Failure(f"tshark: {done.stderr}")
    return [line.split("\t") for line in done.stdout.splitlines()]


def has_no_complaint(path):
    """tshark finds every packet well-formed; its only remarks are the comments that name the process. Returns the comment and
    flags of each packet."""
    packets = tshark(path, "infiniband.bth.opcode", "_ws.malformed", "_ws.expert.severity", "frame.comment", "frame.packet_flags")
    for number, (opcode, malformed, severity, comment, _) in enumerate(packets, 1):
        worst = max(int(value) for value in severity.split(","))
        if not opcode or malformed or worst > COMMENT or not comment.startswith("pid "):
            raise Failure(f"packet {number}: opcode {opcode!r}, malformed {malformed!r}, severity {severity}, {comment!r}")
    return [(comment, flags) for _, _, _, comment, flags in packets]


def decodes(path):
    done = subprocess.run([f"{BUILD}/softverbs", "decode", path], capture_output=True, check=False, text=True)
    if done.returncode != 0:
        raise Failure(f"softverbs decode: {done.stdout[-2000:]}{done.stderr}")
    return done.stdout


def names_of_opcodes(path):
    """The name that softverbs decode gives each packet."""
    lines = decodes(path).splitlines()[:-1]
    return [line.split(" > ")[1].split(" qp ")[0].split(" ", 1)[1] for line in lines]


def captured(path, about):
    """(pid, direction) -> name of the operation -> packets, as has_no_complaint returned them."""
    counts = collections.defaultdict(collections.Counter)
    names = names_of_opcodes(path)
    if len(about) != len(names):
        raise Failure(f"tshark sees {len(about)} packets, softverbs decode {len(names)}")
    for (comment, flags), name in zip(about, names):
        counts[comment.split()[1], str(int(flags, 0) & 3)][name] += 1
    return counts


def counted(path):
    counts = {}
    with open(path, encoding="ascii") as lines:
        for report in map(json.loads, lines):
            device = report["traffic"][0]
            counts[str(report["pid"]), SENT] = collections.Counter(device["sent"])
            counts[str(report["pid"]), RECEIVED] = collections.Counter(device["received"])
    return {who: count for who, count in counts.items() if count}


def session(suite, command):
    with tempfile.TemporaryDirectory() as directory:
        capture, counters = f"{directory}/capture.pcapng", f"{directory}/counters"
        suite.pair(list(command), extra={"SOFTVERBS_CAPTURE": capture, "SOFTVERBS_COUNTERS": counters})
        packets = has_no_complaint(capture)
        found, expected = dict(captured(capture, packets)), counted(counters)
        if not packets or found != expected:
            raise Failure(f"captured {found}\ncounted {expected}")
    return f"{len(packets)} packets"


def options_of_run(suite):
    """Both processes of a pair in one file, which a later run begins anew; with %p each has its own."""
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/capture.pcapng"
        for count in (30, 3):
            run = f"{suite.root}/softverbs run --capture {path} --"
            options = "ibv_rc_pingpong -g 0 -s 64 -n"
            script = f"{run} {options} {count} -p $0 & sleep 1; {run} {options} {count} -p $0 127.0.0.1 && wait $!"
            suite.run_one(["sh", "-c", script, "23517"])
        names = names_of_opcodes(path)
        if names.count("RC SEND_ONLY") != 3 * 2 * 2:  # both ways, each seen by both
            raise Failure(f"{names.count('RC SEND_ONLY')} SENDs in the second capture")
        suite.pair(["ibv_rc_pingpong", "-g", "0", "-n", "10"], extra={"SOFTVERBS_CAPTURE": f"{directory}/%p.pcapng"})
        own = [name for name in os.listdir(directory) if name[:-7].isdigit()]
        if len(own) != 2 or any(names_of_opcodes(f"{directory}/{name}").count("RC SEND_ONLY") != 20 for name in own):
            raise Failure(f"files: {os.listdir(directory)}")


def goes_on(suite, path, sentence):
    """The library without a run that checks it."""
    command = ["env", f"SOFTVERBS_CAPTURE={path}", "ibv_rc_pingpong", "-g", "0", "-c", "-s", "9000", "-n", "100"]
    for side in suite.pair(command, extra={"SOFTVERBS_LOG": "error"}):
        if side.err.count(sentence) != 1:
            raise Failure(f"\"{sentence}\" was not said once: {side}")


def each_packet_has_one_class(suite):
    """Two ends with different traffic classes: a packet has its sender's, in the copy of its receiver as well."""
    for command in (("ib_send_bw", "-c", "RC"), ("ib_read_bw",), ("ib_write_bw", "-c", "UC"), ("ib_send_bw", "-c", "UD")):
        with tempfile.TemporaryDirectory() as directory:
            path = f"{directory}/capture.pcapng"
            suite.pair([*command, "-F", "-n", "20", "-s", "512", "-x", "0"], ["--tclass", "32"], ["--tclass", "104"], extra={"SOFTVERBS_CAPTURE": path})
            seen, classes = collections.defaultdict(set), set()
            for *packet, ipv4, ipv6, hops in tshark(path, "infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.bth.psn", "ip.dsfield", "ipv6.tclass", "ipv6.hlim"):
                seen[tuple(packet)].add((ipv4 or ipv6, hops))
                classes.add(int(ipv4 or ipv6, 0))
            double = {packet: ways for packet, ways in seen.items() if len(ways) > 1}
            if double or not {32, 104} <= classes | ({32} if command[-1] in ("UC", "UD") else set()):
                raise Failure(f"{' '.join(command)}: classes {classes}, {len(double)} packets have two: {list(double.items())[:3]}")


def unwritable(suite):
    with tempfile.TemporaryDirectory() as directory:
        goes_on(suite, directory, "Is a directory")
        other = f"{directory}/other"
        with open(other, "w", encoding="ascii") as file:
            file.write("my thesis")
        goes_on(suite, other, "it holds something that softverbs did not write")
        with open(other, encoding="ascii") as file:
            if file.read() != "my thesis":
                raise Failure("the file was written to")


def full_disk(suite):
    """A file system of 256 KiB, while the packets need some 7 MB."""
    with tempfile.TemporaryDirectory() as directory:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", directory], capture_output=True,
                                 check=False)
        if mounted.returncode != 0:
            raise Skip("needs to mount a file system")
        try:
            path = f"{directory}/capture.pcapng"
            goes_on(suite, path, "No space left on device")
            if len(has_no_complaint(path)) < 4 or "0 of them wrong" not in decodes(path):
                raise Failure("what fitted is not readable")
        finally:
            subprocess.run(["umount", directory], check=True)


def main():
    suite = Suite()
    for command in SESSIONS:
        suite.add(f"tshark has nothing to say to {' '.join(command)}, and its packets are those counted",
                  lambda command=command: session(suite, command))
    suite.add("processes share a file, which a later run begins anew, or have their own", lambda: options_of_run(suite))
    suite.add("a packet has the traffic class of its sender in both copies", lambda: each_packet_has_one_class(suite))
    suite.add("a program goes on without a capture that can't be written", lambda: unwritable(suite))
    suite.add("a program goes on when the disk is full, and the capture is readable", lambda: full_disk(suite))
    suite.add_tidiness()
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
