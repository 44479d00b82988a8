#!/usr/bin/env python3
"""Programs that address by LID only, unchanged, on ports of InfiniBand (--link-layer ib): no program is given a GID."""
import os
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# pylint: disable=wrong-import-position
from clients import BUILD, Failure, Suite, free_port, need, serve, tail
from patience import until

PORT = "/sys/class/infiniband/soft0/ports/1"
FACE = {"link_layer": "InfiniBand", "lid": "0x2", "sm_lid": "0x1", "lid_mask_count": "0", "rate": "100 Gb/sec (4X EDR)", "pkeys/0": "0xffff",
        "gid_attrs/types/0": "IB/RoCE v1"}


class InfiniBand(Suite):
    def environment(self, extra=None):
        return super().environment({"SOFTVERBS_LINK_LAYER": "ib", **(extra or {})})


def pingpong(suite, program, *options):
    for side in suite.pair([f"ibv_{program}_pingpong", "-c", "-n", "500", *options]):
        side.find(r"^500 iters in ")
        side.find(r"local address:  LID 0x0002, .*GID ::")
        if "invalid data" in side.out:
            raise Failure(f"wrong data arrived:\n{tail(side.out)}")


def between_devices(suite):
    sides = suite.pair(["ibv_ud_pingpong", "-c", "-n", "100"], ["-d", "soft0"], ["-d", "soft1"], extra={"SOFTVERBS_DEVICES": "2"})
    for side, lid in zip(sides, (3, 2)):
        side.find(rf"remote address: LID 0x000{lid}, ")
        side.find(r"^100 iters in ")


def perftest(suite, program, *options):
    client = suite.pair([program, "-F", "-n", "500", *options])[1]
    client.find(r"Link type +: IB")
    client.find(r"local address: LID 0x02 ")


def qperf(suite, *tests):
    """One server for all of them; its client asks it to end."""
    port, program = free_port(), need("qperf")
    command = [*suite.softverbs("run", "--", program), "-lp", str(port)]
    client = serve(command, [*command, "127.0.0.1", "-t", "1", *tests, "quit"], port, suite.environment())[1]
    for test in tests:
        client.find(rf"^{test}:$")
    if not re.search(r"bw +=  +[1-9]", client.out) or " 0 bytes/sec" in client.out:
        raise Failure(client)


def example(suite, extra=None):
    port = free_port()
    command = [*suite.softverbs("run", "--"), os.path.join(BUILD, "examples/lid_pingpong"), str(port)]
    for side in serve(command, [*command, "127.0.0.1"], port, suite.environment(extra)):
        side.find(r'^LID 2 and LID 2: 1000 messages each way; the last one here is "round 1999 from LID 2"$')


def a_face_of_an_hca(suite):
    shown = suite.run_one(["ibv_devinfo", "-v"])
    for pattern in (r"link_layer:\s*InfiniBand", r"port_lid:\s*2$", r"sm_lid:\s*1$", r"port_lmc:\s*0x00", r"state:\s*PORT_ACTIVE \(4\)",
                    r"GID\[\s*0\]:\s*fe80:"):
        shown.find(pattern)
    if "RoCE" in shown.out:
        raise Failure(shown)
    for name, value in FACE.items():
        found = suite.run_one(["cat", f"{PORT}/{name}"]).out
        if found != f"{value}\n":
            raise Failure(f"{name} is {found!r}")
    suite.run_one(["sh", "-c", "rdma link"]).find(r"^link soft0/1 subnet_prefix fe80:0000:0000:0000 lid 2 sm_lid 1 lmc 0 state ACTIVE physical_state LINK_UP")


def with_last_byte_changed(suite, path):
    """The output of decode for the file when the last packet's VCRC is wrong: it is before padding and the options."""
    with open(path, "rb") as file:
        capture = bytearray(file.read())
    block = capture.rindex(struct.pack("<I", 6), 0, len(capture) - 64)
    while True:  # the packet's block, not a byte that looks like one
        length, = struct.unpack_from("<I", capture, block + 4)
        if block + length == len(capture):
            break
        block = capture.rindex(struct.pack("<I", 6), 0, block)
    packet, = struct.unpack_from("<I", capture, block + 20)
    capture[block + 28 + packet - 1] ^= 1
    with open(path + ".broken", "wb") as file:
        file.write(capture)
    return subprocess.run([f"{suite.root}/softverbs", "decode", path + ".broken"], capture_output=True, check=False).stdout


def captured(suite):
    """Wireshark finds LRH, BTH and so on, with LIDs; datagrams have no GRH."""
    need("tshark")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        path = f"{directory}/ib.pcapng"
        example(suite, {"SOFTVERBS_CAPTURE": path})
        suite.pair(["ibv_ud_pingpong", "-n", "10"], extra={"SOFTVERBS_CAPTURE": path})
        read = ["tshark", "-r", path, "-T", "fields", "-e", "infiniband.lrh.dlid", "-e", "infiniband.lrh.slid", "-e", "infiniband.lrh.lnh",
                "-e", "infiniband.bth.opcode", "-e", "_ws.malformed"]
        decoded = suite.run_one([f"{suite.root}/softverbs", "decode", path])
        broken = with_last_byte_changed(suite, path)
        rows = subprocess.run(read, capture_output=True, check=True, text=True).stdout.splitlines()
    decoded.find(rf"^{len(rows)} InfiniBand packets, 0 of them wrong; 0 cut by the capture and not checked; 0 others$")
    decoded.find(r" LID 2 > LID 2 UD SEND_ONLY ")
    if b"the variant CRC is wrong" not in broken:
        raise Failure(broken.decode())
    kinds = {tuple(row.split("\t")) for row in rows}
    # SEND ONLY and ACKNOWLEDGE of RC, SEND ONLY of UD
    expected = {("2", "2", "0x02", opcode, "") for opcode in ("4", "17", "100")}
    if len(rows) < 4000 or kinds != expected:
        raise Failure(f"{len(rows)} packets: {sorted(kinds)}")


def refuses_addresses_by_name(suite):
    done = suite.start(["ucmatose", "-s", "127.0.0.1"], {"SOFTVERBS_LOG": "warn"}).finish(until(60))
    if "(reason 607)" not in done.err or "error: -19" not in done.out + done.err:
        raise Failure(done)


def main():
    suite = InfiniBand()
    suite.add("ibv_devinfo, /sys and rdma show a port of InfiniBand", lambda: a_face_of_an_hca(suite))
    for program in ("rc", "uc", "ud", "srq"):
        suite.add(f"ibv_{program}_pingpong without -g", lambda program=program: pingpong(suite, program))
    suite.add("each device has a LID of its own", lambda: between_devices(suite))
    suite.add("ibv_xsrq_pingpong without -g", lambda: [side.find("^success$") for side in suite.pair(["ibv_xsrq_pingpong", "-n", "100"])])
    for command in ("ib_send_bw", "ib_send_bw -c UD", "ib_send_lat -c UC", "ib_write_bw", "ib_read_lat"):
        suite.add(f"{command} without -x", lambda command=command: perftest(suite, *command.split()))
    suite.add("qperf without -cm", lambda: qperf(suite, "rc_bw", "rc_lat", "uc_bw", "ud_lat"))
    suite.add("a first program from a textbook", lambda: example(suite))
    suite.add("a capture has LIDs", lambda: captured(suite))
    suite.add("librdmacm finds no device for an IP address", lambda: refuses_addresses_by_name(suite))
    suite.add_tidiness()
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
