#!/usr/bin/env python3
"""softverbs decode: recordings of another implementation are right to the last bit; what is changed in them is seen."""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import expect, softverbs

GOLDEN = f"{cases.TREE}/tests/golden"


def golden(name):
    with open(f"{GOLDEN}/{name}.pcap", "rb") as file:
        return bytearray(file.read())


def decode(*captures):
    """Runs it on files with these bytes."""
    with tempfile.TemporaryDirectory() as directory:
        names = []
        for capture in captures:
            names.append(f"{directory}/{len(names)}")
            with open(names[-1], "wb") as file:
                file.write(capture)
        return softverbs("decode", *names)


def seal(capture, record):
    """Sets the ICRC of the IPv4 packet whose record begins there, computed as the annex says and not by our code."""
    length, = struct.unpack_from("<I", capture, record + 8)
    start, end = record + 16 + 14, record + 16 + length
    covered = bytearray(b"\xff" * 8 + capture[start:end - 4])
    for at in (8 + 1, 8 + 8, 8 + 10, 8 + 11, 8 + 20 + 6, 8 + 20 + 7, 8 + 20 + 8 + 4):
        covered[at] = 0xff
    struct.pack_into("<I", capture, end - 4, zlib.crc32(covered))


def every_recording_is_right():
    names = sorted(f"{GOLDEN}/{name}" for name in os.listdir(GOLDEN) if name.endswith(".pcap"))
    text = expect(softverbs("decode", *names)).stdout.decode().splitlines()
    assert text[-1] == "663 RoCEv2 packets, 0 of them wrong; 0 cut by the capture and not checked; 0 others", text[-1]
    assert len(text) == 664 and not any("#" in line for line in text)


def uncut(ethernet, payloads, identification=0):
    """A datagram as a host hands it to its interface, which cuts it: a capture with the frame's headers and these UDP payloads."""
    headers, body = bytearray(ethernet), b"".join(payloads)
    version = headers[14] >> 4
    udp = 14 + (20 if version == 4 else 40)
    struct.pack_into(">H", headers, udp + 4, 8 + len(body))
    struct.pack_into(">H", headers, 14 + (2 if version == 4 else 4), 8 + len(body) + (20 if version == 4 else 0))
    frame = bytes(headers) + body
    return struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1) + struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame


def frames(name):
    """The bytes of each packet of a recording."""
    capture, at = golden(name), 24
    while at < len(capture):
        length, = struct.unpack_from("<I", capture, at + 8)
        yield bytes(capture[at + 16:at + 16 + length])
        at += 16 + length


def datagrams_that_the_interface_was_to_cut_are_several_packets():
    """judges.md, J5: UDP_SEGMENT, which a capture on the sender's host shows in one piece."""
    pings = [frame for frame in frames("rc_pingpong_v6") if len(frame) == 142 or len(frame) > 130]
    first = [frame for frame in pings if frame[14 + 8:14 + 24] == pings[0][14 + 8:14 + 24] and len(frame) == len(pings[0])][:3]
    assert len(first) == 3, [len(frame) for frame in pings]
    text = expect(decode(uncut(first[0][:62], [frame[62:] for frame in first]))).stdout.decode().splitlines()
    assert len(text) == 5 and all(" RC SEND_ONLY " in line and "#" not in line for line in text[:3]), text
    assert text[3].startswith("3 RoCEv2 packets, 0 of them wrong") and text[4] == "1 datagrams were captured before the interface cut them into packets", text
    broken = [first[0][62:], first[1][62:-1] + bytes([first[1][-1] ^ 1]), first[2][62:]]
    text = decode(uncut(first[0][:62], broken)).stdout.decode().splitlines()
    assert len(text) == 5 and ["#" in line for line in text[:3]] == [False, True, False], text


def lines_say_who_and_what():
    text = expect(decode(golden("atomics"))).stdout.decode().splitlines()
    assert "    1   0.000000 192.0.2." in text[0] and " RC " in text[0], text[0]
    assert any("RC FETCH_ADD" in line and " rkey 0x" in line for line in text), text
    assert "fe80::" in expect(decode(golden("rc_pingpong_v6"))).stdout.decode()


def _ip(frame):
    """Class, flow label, hop limit and UDP source port of an Ethernet frame."""
    if frame[14] >> 4 == 4:
        return frame[15], 0, frame[14 + 8], struct.unpack_from(">H", frame, 14 + 20)[0]
    first, = struct.unpack_from(">I", frame, 14)
    return first >> 20 & 0xff, first & 0xfffff, frame[14 + 7], struct.unpack_from(">H", frame, 14 + 40)[0]


def classes_labels_and_hop_limits_are_shown():
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/capture"
        for name in "atomics", "rc_pingpong_v6":
            capture, wanted = golden(name), [_ip(frame) for frame in frames(name)]
            capture[24 + 16 + 15] ^= 0x60  # the class, which the ICRC does not cover
            wanted[0] = _ip(capture[24 + 16:])
            _write(path, capture)
            packets = json.loads(expect(softverbs("decode", "--json", path)).stdout)["packets"]
            found = [(each["traffic_class"], each["flow_label"], each["hop_limit"], each["udp_port"]) for each in packets]
            assert found == wanted and wanted[0][0] != wanted[1][0], (found[:3], wanted[:3])
            kind, label, hops, port = wanted[0]
            line = expect(softverbs("decode", path)).stdout.decode().splitlines()[0]
            label = f", flow label 0x{label:05x}" if label else ""
            assert line.endswith(f" | class 0x{kind:02x}, hop limit {hops}{label}, UDP port {port}"), line


def messages_of_the_connection_manager_are_shown_by_name():
    text = expect(decode(golden("rping"))).stdout.decode().splitlines()
    messages = [line.split(" | CM ")[1] for line in text if " | CM " in line]
    assert [message.split()[0] for message in messages] == ["REQ", "REP", "RTU", "DREQ", "DREP"], messages
    for field in ("local_id 0xcb231b35", "service 0x1061c06", "qpn 0x17", "retry_count 7", "primary.flow_label 0xb98c8",
                  "ip 4 192.0.2.12 port 58110 > 192.0.2.11"):
        assert f" {field}" in messages[0], (field, messages[0])
    assert " reason 8" in expect(decode(golden("rping_reject"))).stdout.decode()
    assert " | CM SIDR_REP " in expect(decode(golden("udaddy"))).stdout.decode()


def both_ends_of_a_packet_in_one_file_are_named():
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/both"
        _captured(path)  # a server and a client
        packets = json.loads(expect(softverbs("decode", "--json", path)).stdout)["packets"]
        lines = expect(softverbs("decode", path)).stdout.decode().splitlines()
        sides = [[each["description"] for each in packets if each["direction"] == side] for side in ("sent", "received")]
        # a packet is sent again on a busy machine, and then need not arrive before the program ends
        assert sides[0] and set(sides[0]) == set(sides[1]) and len(packets) == len(sides[0]) + len(sides[1]), sides
        assert [sum(f" | {side} | class " in line for line in lines) for side in ("sent", "received")] == [len(sides[0]), len(sides[1])], lines
    assert all(each["direction"] is None for each in json.loads(expect(softverbs("decode", "--json", f"{GOLDEN}/atomics.pcap")).stdout)["packets"])


def a_changed_byte_is_a_wrong_icrc():
    capture = golden("atomics")
    capture[-10] ^= 1
    text = expect(decode(capture), 1, None).stdout.decode().splitlines()
    assert [line.endswith(" # wrong invariant CRC") for line in text[:-1]] == [False] * (len(text) - 2) + [True], text
    assert ", 1 of them wrong;" in text[-1], text[-1]


def _captured(path, environment=None, **options):
    """Packets of a program at the end of this file."""
    program = f"{cases.BUILD}/tests/clients/mistakes"
    expect(softverbs("run", "--", program, "none", env={"SOFTVERBS_CAPTURE": path, **(environment or {})}, **options), out=None)


def _blocks(capture):
    """Where each block begins, and the end."""
    at = [0]
    while at[-1] < len(capture):
        at.append(at[-1] + struct.unpack_from("<I", capture, at[-1] + 4)[0])
    return at


def _packets(capture):
    """How many blocks are of packets: enhanced packet blocks."""
    return sum(struct.unpack_from("<I", capture, at)[0] == 6 for at in _blocks(capture)[:-1])


def _read(path):
    with open(path, "rb") as file:
        return file.read()


def _write(path, content):
    with open(path, "wb") as file:
        file.write(content)


def _shown_by_tshark(path):
    """Packets that Wireshark's own reader finds."""
    if not shutil.which("tshark"):
        raise cases.Skip("tshark is not installed")
    done = subprocess.run(["tshark", "-r", path], capture_output=True, check=False)
    assert done.returncode == 0, done
    return done.stdout.count(b"\n")


def the_plugin_of_wireshark_has_the_parts_of_comments_as_fields():
    if not shutil.which("tshark"):
        raise cases.Skip("tshark is not installed")
    names = ["frame.comment", "softverbs.pid", "softverbs.program", "softverbs.qp.from", "softverbs.qp.to", "softverbs.event"]
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/c.pcapng"
        _captured(path, {"SOFTVERBS_FAULT": "dup=100%"})
        done = subprocess.run(["tshark", "-X", f"lua_script:{cases.BUILD}/lib/softverbs.lua", "-r", path, "-T", "fields", *(part for name in names for part in ("-e", name))],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0 and done.stdout, done
    events = 0
    for line in done.stdout.splitlines():
        comment, pid, program, sender, receiver, event = line.split("\t")
        parts = [part.strip() for part in comment.split(";")]
        assert parts[0] == f"pid {pid} {program}" and parts[2:] == [part for part in event.split(",") if part], line
        if len(parts) == 1:  # of a frame without a queue pair of this process as its sender
            assert not sender and not receiver, line
        else:
            assert parts[1] == f"qp {int(sender, 16):#x} to {int(receiver, 16):#x}", line
        events += bool(event)
    assert events, done.stdout


def _srd(opcode, number, last, payload=b""):
    """An SRD packet from queue pair 0x12 to 0x11, of flow 0xa with cookie 0xb, without an ICRC."""
    return struct.pack(">BBHIIIIIIII", opcode, 0, 0xffff, 0x11, number & 0xffffff, 0x1234, 0x12, 0xa, 0xb, number, last) + payload + bytes(4)


def the_plugin_of_wireshark_shows_the_header_of_srd():
    if not shutil.which("tshark"):
        raise cases.Skip("tshark is not installed")
    names = ("srd", "srd.qkey", "srd.source", "srd.epoch", "srd.cookie", "srd.number", "srd.floor", "srd.status")
    head = "0x00001234\t0x000012\t0x0000000a\t0x0000000b\t"
    packets = ((_srd(0xc4, 7, 3, b"data"), f"SEND_ONLY\t{head}7\t3\t"), (_srd(0xd1, 7, 10), f"ACKNOWLEDGE\t{head}7\t\t10"),
               (_srd(0xd1, 7, 0, b"\0\0\0\0"), f"ACKNOWLEDGE\t{head}7\t\t"), (_srd(0xd9, 0, 0), f"WELCOME\t{head}0\t\t"),
               (_srd(0xd8, 0, 0)[:30], "\t" * 7))  # cut in its header
    ethernet = next(frames("send"))[:14 + 20 + 8]
    with tempfile.TemporaryDirectory() as directory:
        for packet, wanted in packets:
            _write(f"{directory}/c.pcap", uncut(ethernet, [packet]))
            done = subprocess.run(["tshark", "-X", f"lua_script:{cases.BUILD}/lib/softverbs.lua", "-r", f"{directory}/c.pcap", "-T", "fields",
                                   *(part for name in names for part in ("-e", f"softverbs.{name}"))], capture_output=True, text=True, check=False)
            assert done.stdout.removesuffix("\n") == wanted, (wanted, done)


def srd_packets_are_described():
    ethernet = next(frames("send"))[:14 + 20 + 8]
    done = decode(uncut(ethernet, [_srd(0xca, 9, 4, b"")[:-4] + bytes(12) + struct.pack(">I", 4) + b"data" + bytes(4)]))
    assert b"SRD WRITE_ONLY qp 0x11 psn 9 qkey 0x1234 from 0x12 epoch 0xa cookie 0xb number 9 floor 4 address 0x0 rkey 0x0 length 4 " in done.stdout, done


def a_capture_whose_writer_was_killed_is_read_to_its_end():
    """The kernel ends a write between two pages; the next process makes of what is left a block that readers skip."""
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/c.pcapng"
        _captured(path)
        capture = _read(path)
        last = _blocks(capture)[-2]
        before = _packets(capture) - 1
        _write(path, capture[:last + 16])
        _captured(path)
        packets = _packets(_read(path))  # a busy machine repeats some
        done = expect(softverbs("decode", path), err=[b"16 bytes are of packets whose writer was killed"], out=None)
        assert packets > before, packets
        assert f"{packets} RoCEv2 packets, 0 of them wrong" in done.stdout.decode(), done.stdout
        assert _shown_by_tshark(path) == packets


def a_part_of_a_block_is_skipped_and_told():
    """The capture's end is not mended, as of an older softverbs."""
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/c.pcapng"
        _captured(path)
        capture = _read(path)
        blocks = _blocks(capture)
        packets = len(blocks) - 3
        _write(path, capture[:blocks[4] + 32] + capture[blocks[5]:])
        done = expect(softverbs("decode", path), 1, None, [b"32 bytes that are not whole blocks were skipped"])
        assert f"{packets - 1} RoCEv2 packets, 0 of them wrong" in done.stdout.decode(), done.stdout
        assert b'"skipped": 32' in softverbs("decode", "--json", path).stdout


def reserved_bits_encode_differently():
    capture = golden("atomics")
    capture[24 + 16 + 14 + 20 + 8 + 8] |= 0x40  # beside the acknowledge request bit
    seal(capture, 24)
    text = expect(decode(capture), 1, None).stdout.decode().splitlines()
    assert text[0].endswith(" # encodes differently at byte 8"), text[0]


def reserved_bits_of_a_message_encode_differently():
    capture = golden("rping")
    capture[24 + 16 + 14 + 20 + 8 + 12 + 8 + 24 + 4] = 1  # of the REQ, after its communication ID
    seal(capture, 24)
    text = expect(decode(capture), 1, None).stdout.decode().splitlines()
    assert text[0].endswith(" # its message encodes differently at byte 28") and " | CM REQ " in text[0], text[0]
    assert ", 1 of them wrong;" in text[-1], text[-1]


def faults_are_told_apart():
    capture = golden("atomics")
    capture[24 + 16 + 14 + 20 + 8] = 0x15
    seal(capture, 24)
    assert b" # unknown operation\n" in expect(decode(capture), 1, None).stdout
    capture = golden("atomics")
    capture[24 + 16 + 14 + 20 + 8 + 1] |= 1
    seal(capture, 24)
    assert b" # unknown transport header version\n" in expect(decode(capture), 1, None).stdout


def what_a_capture_cut_is_counted_and_not_judged():
    capture = golden("rc_pingpong")
    length, = struct.unpack_from("<I", capture, 24 + 8)
    del capture[24 + 16 + 60:24 + 16 + length]
    struct.pack_into("<I", capture, 24 + 8, 60)
    text = expect(decode(capture)).stdout.decode().splitlines()
    assert " 0 of them wrong; 1 cut by the capture and not checked; 0 others" in text[-1], text[-1]


def a_file_that_is_none_or_ends_early_is_named():
    expect(decode(b"no capture at all, but long enough"), 1, None, [b"not a pcap or pcapng file"])
    expect(softverbs("decode", "/no/such/file"), 1, None, [b"/no/such/file: No such file"])
    expect(decode(golden("atomics")[:-1]), 1, None, [b"broken at byte"])
    expect(softverbs("decode"), 2, b"", [b"It needs the name of a capture."])


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
