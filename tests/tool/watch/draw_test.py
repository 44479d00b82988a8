#!/usr/bin/env python3
"""softverbs draw: the page holds what the decoder says of the same capture, what was lost and why; without a browser."""
import html
import json
import os
import re
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import TEMPORARY, TREE, expect, softverbs

GOLDEN = f"{TREE}/tests/golden"
SENT, SENT_NUMBER, RECEIVED, RECEIVED_NUMBER = 0, 2, 3, 5  # places in a row of packets (tools/draw/page.c)
OPCODE, PSN, MARKS, CAUSE, WAITED, MESSAGE, NOTE, VERDICT, HAPPENING, BEFORE = 7, 8, 10, 11, 13, 14, 15, 16, 18, 19
STATE, ANSWERED, POSTED, COMPLETED, ENDED = 10, 12, 14, 15, 16  # in a row of messages; of its receive ENDED
DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def _page(*arguments, **options):
    return expect(softverbs("draw", "-o", "-", *arguments, **options)).stdout.decode()


def _data(page):
    found, = DATA.findall(page)
    return json.loads(found)


def _words(data, table, bits):
    return {word for bit, (word, _) in enumerate(data[table]) if bits >> bit & 1}


def _marked(data, word):
    return [row for row in data["packets"] if word in _words(data, "marks", row[MARKS])]


def _write(name, content):
    path = f"{TEMPORARY}/{name}"
    with open(path, "wb") as file:
        file.write(content)
    return path


# --- captures that are made here, of frames of another implementation


def _frames(name):
    """Time in nanoseconds and bytes of each packet of a recording."""
    with open(f"{GOLDEN}/{name}.pcap", "rb") as file:
        capture = file.read()
    at, found = 24, []
    while at < len(capture):
        seconds, micros, length, _ = struct.unpack_from("<IIII", capture, at)
        found.append(((seconds * 1000000 + micros) * 1000, capture[at + 16:at + 16 + length]))
        at += 16 + length
    return found


def _block(kind, body):
    length = 12 + len(body)
    return struct.pack("<II", kind, length) + body + struct.pack("<I", length)


def _option(code, value):
    return struct.pack("<HH", code, len(value)) + value + b"\0" * (-len(value) % 4)


def _packet(time, frame, sent=None, comment=None):
    options = (b"" if sent is None else _option(2, struct.pack("<I", 2 if sent else 1))) + (_option(1, comment.encode()) if comment else b"")
    body = struct.pack("<IIIII", 0, time >> 32, time & 0xffffffff, len(frame), len(frame)) + frame + b"\0" * (-len(frame) % 4)
    return _block(6, body + options + (b"\0\0\0\0" if options else b""))


def _capture(packets):
    start = _block(0x0a0d0d0a, struct.pack("<IHHq", 0x1a2b3c4d, 1, 0, -1)) + _block(1, struct.pack("<HHI", 1, 0, 0) + _option(9, b"\x09") + b"\0\0\0\0")
    return start + b"".join(_packet(*packet) for packet in packets)


def _send_and_ack():
    """A SEND_ONLY, and the ACK to it."""
    frames = [frame for _, frame in _frames("send_sizes")]
    send = next(frame for frame in frames if frame[42] == 4)
    return send, next(frame for frame in frames if frame[42] == 17 and frame[50:54] == bytes([frame[50]]) + send[51:54])


# --- cases


def the_page_has_every_packet_that_the_decoder_has():
    for name in sorted(name for name in os.listdir(GOLDEN) if name.endswith(".pcap")):
        path = f"{GOLDEN}/{name}"
        decoded = json.loads(expect(softverbs("decode", "--json", path)).stdout)["packets"]
        data = _data(_page(path))
        drawn = sorted((row[SENT_NUMBER], row[PSN], data["operations"][str(row[OPCODE])][0], round(row[SENT] / 1e9, 6)) for row in data["packets"])
        told = sorted((packet["number"], int(re.search(r" psn (\d+)", packet["description"]).group(1)),
                       " ".join(packet["description"].split()[:2]), round(packet["seconds"], 6)) for packet in decoded)
        assert drawn == told, (name, drawn[:3], told[:3])
        assert all(pair[2] >= 0 and pair[3] >= 0 for pair in data["pairs"]) or name in ("no_answer.pcap", "uc_write.pcap", "uc_send_imm.pcap"), (name, data["pairs"])


def payloads_stay_out_of_the_page():
    send = next(frame for _, frame in _frames("send_sizes") if frame[42] == 4 and len(frame) > 400)
    page = _page(f"{GOLDEN}/send_sizes.pcap")
    assert send[60:90].hex() not in page and str(list(send[60:70])) not in page


def repeats_have_their_cause():
    data = _data(_page(f"{GOLDEN}/rnr.pcap"))
    again = _marked(data, "repeat")
    assert again and {data["causes"][row[CAUSE]][0] for row in again} == {"rnr"}, again
    assert _marked(data, "rnr") and all(row[WAITED] > 0 for row in again)
    data = _data(_page(f"{GOLDEN}/no_answer.pcap"))
    assert {data["causes"][row[CAUSE]][0] for row in _marked(data, "repeat")} == {"timeout"}
    data = _data(_page(f"{GOLDEN}/nak_bad_rkey.pcap"))
    assert [(data["states"][message[10]][0], message[11]) for message in data["messages"]] == [("refused", 0x62)]
    data = _data(_page(f"{GOLDEN}/read_sizes.pcap"))
    assert {data["states"][message[10]][0] for message in data["messages"]} == {"acknowledged"} and not _marked(data, "repeat"), data["messages"]


def what_was_sent_and_received_is_one_packet():
    send, ack = _send_and_ack()
    ours, theirs = (int.from_bytes(frame[47:50], "big") for frame in (ack, send))
    there, back = f"qp {ours:#x} to {theirs:#x}", f"qp {theirs:#x} to {ours:#x}"
    data = _data(_page(_write("joined.pcapng", _capture([(1000, send, True, f"pid 7 client; {there}"), (3500, send, False, f"pid 8 server; {there}"),
                                                          (4000, ack, True, f"pid 8 server; {back}"), (4200, ack, False, f"pid 7 client; {back}")]))))
    assert [(row[SENT], row[RECEIVED], row[SENT_NUMBER], row[RECEIVED_NUMBER]) for row in data["packets"]] == [(0, 2500, 1, 2), (3000, 3200, 3, 4)]
    pair, = data["pairs"]
    assert [data["strings"][process] for process in pair[4:6]] == ["pid 7 client", "pid 8 server"], pair
    message, = data["messages"]
    assert message[12] == 1 and data["states"][message[10]][0] == "acknowledged", message


def what_was_lost_says_why():
    send, ack = _send_and_ack()
    data = _data(_page(_write("lost.pcapng", _capture([
        (1000, send, True, "pid 7 c; qp 0x11 to 0x12; fault: dropped"), (5001000, send, True, "pid 7 c; qp 0x11 to 0x12"),
        (9001000, send, True, "pid 7 c; qp 0x11 to 0x12"), (9002000, send, False, "pid 8 s; qp 0x11 to 0x12"),
        (9003000, ack, True, "pid 8 s; qp 0x12 to 0x11"), (9004000, ack, False, "pid 7 c; qp 0x12 to 0x11"),
        (9005000, ack, False, "pid 7 c; qp 0x12 to 0x11")]))))
    assert [sorted(_words(data, "marks", row[MARKS])) for row in data["packets"]] == [["fault", "lost"], ["missing", "repeat"], ["repeat"], [], ["duplicate"]], \
        [sorted(_words(data, "marks", row[MARKS])) for row in data["packets"]]
    assert [row[WAITED] for row in data["packets"][1:3]] == [5000000, 4000000]
    assert data["strings"][data["packets"][0][NOTE]] == "fault: dropped"


def a_page_is_where_a_shell_redirects_it():
    name = f"{GOLDEN}/rnr.pcap"
    place = f"{TEMPORARY}/redirected"
    os.makedirs(place)
    for file in ("page.html", "words"):
        with open(f"{place}/{file}", "w", encoding="utf-8") as output:
            subprocess.run([cases.SOFTVERBS, "draw", name], check=True, stdout=output, cwd=place, env=cases.environment())
    with open(f"{place}/page.html", encoding="utf-8") as page, open(f"{place}/words", encoding="utf-8") as words:
        assert page.read() == _page(name)
        assert words.read().startswith("rnr.html: "), "the summary, where the page has another place"
    assert sorted(os.listdir(place)) == ["page.html", "rnr.html", "words"], os.listdir(place)


def captures_of_two_hosts_are_one_page():
    send, ack = _send_and_ack()
    one = _write("one.pcapng", _capture([(1000, send, True, "pid 7 c; qp 0x11 to 0x12"), (1500, ack, False, "pid 7 c; qp 0x12 to 0x11")]))
    other = _write("other.pcapng", _capture([(900, send, False, "pid 8 s; qp 0x11 to 0x12"), (950, ack, True, "pid 8 s; qp 0x12 to 0x11")]))  # its clock lags
    data = _data(_page(one, other))
    assert len(data["packets"]) == 2 and not any(row[MARKS] for row in data["packets"]), data["packets"]


def a_run_with_losses_is_as_its_capture_says():
    path = f"{TEMPORARY}/run.pcapng"
    expect(softverbs("run", "--fault", "drop=30%,seed=3", "--", f"{cases.BUILD}/tests/clients/mistakes", "none", env={"SOFTVERBS_CAPTURE": path}), out=None)
    decoded = json.loads(expect(softverbs("decode", "--json", path)).stdout)["packets"]
    with open(path, "rb") as file:
        dropped = len(re.findall(rb"fault: dropped", file.read()))
    data = _data(_page(path))
    numbers = [row[place] for row in data["packets"] for place in (SENT_NUMBER, RECEIVED_NUMBER) if row[place] >= 0]
    assert sorted(numbers) == [packet["number"] for packet in decoded]
    assert len(_marked(data, "lost")) == dropped, (dropped, data["packets"])
    pair, = data["pairs"]
    assert all("mistakes" in data["strings"][process] for process in pair[4:6]), pair


def _happened(data, word):
    """The rows of this happening, with their words."""
    return [(index, data["strings"][row[NOTE]]) for index, row in enumerate(data["packets"]) if row and data["happenings"][row[HAPPENING]][0] == word]


def a_recording_has_work_and_how_it_ended():
    data = _data(_page(f"{GOLDEN}/remote-range.rec"))
    pair, = data["pairs"]
    assert all("stories" in data["strings"][process] for process in pair[4:6]), pair
    assert [words for _, words in _happened(data, "post")] == [f"posts RDMA_WRITE wr_id {number}, 512 bytes" for number in range(7, 11)]
    assert [words.split(": ")[0] for _, words in _happened(data, "completion")] == [
        f"completes RDMA_WRITE wr_id {number} with {'WR_FLUSH_ERR' if number > 7 else 'REM_ACCESS_ERR'}" for number in range(7, 11)]
    for number, message in enumerate(data["messages"]):  # each is joined with its own
        for place in (POSTED, COMPLETED):
            row = data["packets"][message[place]]
            assert f" wr_id {number + 7}" in data["strings"][row[NOTE]] and row[MESSAGE] == number, (number, message)
    assert len(data["messages"]) == 4 and data["states"][data["messages"][0][STATE]][0] == "refused", data["messages"]
    nak, = _marked(data, "nak")
    assert nak[RECEIVED] >= nak[SENT] > 0 and not _marked(data, "missing"), nak
    errors = {data["strings"][row[NOTE]].split(":")[0] for row in _marked(data, "error")}
    assert {"may not use the memory that the peer names", "is in the error state"} <= errors, errors
    assert all(row[SENT] >= before[SENT] for before, row in zip(data["packets"], data["packets"][1:]) if before[SENT] >= 0 <= row[SENT])


def every_recorded_failure_is_drawn():
    for name in sorted(name for name in os.listdir(GOLDEN) if name.endswith(".rec")):
        data = _data(_page(f"{GOLDEN}/{name}"))
        ends = json.loads(expect(softverbs("replay", "--ends", "--json", f"{GOLDEN}/{name}")).stdout)["ends"]
        told = {data["strings"][row[NOTE]] for row in _marked(data, "error")}
        assert len(data["pairs"]) == 1 and {end["failed"] for end in ends if end["failed"]} <= told, (name, ends, told)
    assert len(_happened(_data(_page(f"{GOLDEN}/deaf.rec")), "timer")) == 3
    data = _data(_page(f"{GOLDEN}/no-receive.rec"))
    assert {data["causes"][row[CAUSE]][0] for row in _marked(data, "repeat")} == {"rnr"}, data["packets"]
    data = _data(_page(f"{GOLDEN}/short-receive.rec"))
    (index, words), = [(index, words) for index, words in _happened(data, "arrival") if "LOC_LEN" in words]
    assert data["messages"][data["packets"][index][MESSAGE]][ENDED] == index, words


def a_running_pair_is_recorded_with_its_moments():
    path = f"{TEMPORARY}/run.rec"
    expect(softverbs("run", "--record", path, "--", f"{cases.BUILD}/tests/clients/mistakes", "none"), out=None)
    data = _data(_page(path))
    assert data["messages"] and all(min(message[POSTED], message[COMPLETED]) >= 0 for message in data["messages"]), data["messages"]
    times = {row[SENT] for row in data["packets"] if row[SENT] >= 0}
    assert len(times) > len(data["packets"]) / 4, "the moments are those of a coarse clock"
    for message in data["messages"]:
        post, end = (data["packets"][message[place]][SENT] for place in (POSTED, COMPLETED))
        assert 0 <= post <= data["packets"][message[5]][SENT] <= end, message


def what_is_no_whole_recording_is_drawn_as_far_as_it_goes():
    with open(f"{GOLDEN}/remote-range.rec", "rb") as file:
        whole = file.read()
    done = softverbs("draw", "-o", "-", _write("cut.rec", whole[:-3]))
    assert done.returncode == 1 and b"ends within a record, at byte" in done.stderr and _data(done.stdout.decode())["packets"], cases.told(done)
    done = softverbs("draw", "-o", "-", _write("bad.rec", whole + b"\xff" * 16))
    assert done.returncode == 1 and b"damaged at byte %d" % len(whole) in done.stderr and _data(done.stdout.decode())["packets"], cases.told(done)
    expect(softverbs("draw", "-o", "-", _write("other.rec", whole[:8] + struct.pack("<I", 7) + whole[12:])), 1, b"",
           [b"has the form 7, and this softverbs reads 1"])
    expect(softverbs("draw", "-o", "-", _write("head.rec", whole[:12])), 1, b"", [b"nothing is in it that can be drawn"])
    expect(softverbs("draw", "-o", "-", _write("nothing.rec", b"")), 1, b"", [b"nothing.rec is empty."])
    expect(softverbs("draw", TEMPORARY), 1, b"", [b"Is a directory"])
    for at in range(12, len(whole), 97):  # whatever is in it, it ends
        damaged = bytearray(whole)
        damaged[at] ^= 0x55
        assert softverbs("draw", "-o", "/dev/null", _write("damaged.rec", bytes(damaged))).returncode in (0, 1), at


def hostile_texts_stay_texts():
    send, _ = _send_and_ack()
    evil = "pid 7 </script><script>alert(1)</script>; qp 0x11 to 0x12; <!-- \u2028 \" \\ '"
    path = _write("<img src=x onerror=alert(1)>&.pcapng", _capture([(1000, send, True, evil), (2000, send, True, "\x00\x01\x02"), (3000, send, True, "")]))
    page = _page(path)
    assert page.count("<script") == 2 and "<img" not in page and "<!-- " not in page, "something got out of its place"
    data = _data(page)
    assert data["title"] == os.path.basename(path) and html.unescape(re.search(r"<title>(.*) · softverbs draw", page).group(1)) == data["title"]
    assert any("</script>" in text for text in data["strings"]), data["strings"]


def damaged_captures_are_drawn_as_far_as_they_go():
    with open(f"{GOLDEN}/send.pcap", "rb") as file:
        capture = bytearray(file.read())
    done = softverbs("draw", "-o", "-", _write("short.pcap", bytes(capture[:-7])))
    assert done.returncode == 1 and b"broken at byte" in done.stderr and len(_data(done.stdout.decode())["packets"]) == 29, cases.told(done)
    capture[-9] ^= 1
    data = _data(_page(_write("bit.pcap", bytes(capture))))
    row, = _marked(data, "wrong")
    assert data["strings"][row[VERDICT]] == "wrong invariant CRC", row
    expect(softverbs("draw", "-o", "-", _write("none", b"no capture at all, but long enough")), 1, b"", [b"neither a capture (pcap or pcapng) nor a recording (softverbs run --record)"])
    expect(softverbs("draw", "-o", "-", _write("empty.pcapng", _capture([]))), 1, b"", [b"no packet of RoCEv2 or InfiniBand"])
    expect(softverbs("draw", "/no/such/file"), 1, b"", [b"/no/such/file: No such file"])


def only_what_is_asked_for_is_drawn():
    path = f"{GOLDEN}/send.pcap"
    every = _data(_page(path))["packets"]
    assert len(_data(_page("--limit", "4", path))["packets"]) == 4
    assert _data(_page("--limit", "4", path))["left_out"] == len(every) - 4
    middle = every[len(every) // 2][SENT]
    late = _data(_page("--from", f"{middle / 1e9:.9f}", path))["packets"]
    assert 0 < len(late) < len(every), (len(late), len(every))
    path = f"{GOLDEN}/rping.pcap"
    data = _data(_page("--qp", "1", path))
    assert 0 < sum(row != 0 for row in data["packets"]) < len(data["packets"])
    expect(softverbs("draw", "--qp", "0x777", path), 1, b"", [b"No packet belongs to queue pair 0x777"])
    for wrong in (["--qp", "x"], ["--from", "-1"], ["--limit", "0"], []):
        expect(softverbs("draw", *wrong, *([path] if wrong else [])), 2, b"", None)


def the_page_is_written_beside_and_for_its_owner_only():
    done = expect(softverbs("draw", f"{GOLDEN}/rnr.pcap", cwd=TEMPORARY), out=None)
    assert re.fullmatch(rb"rnr\.html: 16 packets of 1 pair of queue pairs, \d+ sent again, 0 lost\n", done.stdout), done.stdout
    assert os.stat(f"{TEMPORARY}/rnr.html").st_mode & 0o777 == 0o600
    expect(softverbs("draw", "-o", "/dev/full", f"{GOLDEN}/rnr.pcap"), 1, b"", [b"/dev/full can't be written: No space left"])


def the_page_loads_nothing():
    page = _page(f"{GOLDEN}/rnr.pcap")
    assert "default-src 'none'" in page and not re.search(r"""(src|href)\s*=\s*["']|https?://|@import|url\(|\beval\(|innerHTML""", page.replace("default-src", "").replace("style-src", "").replace("script-src", "")), \
        "it may load something"


def filters_and_places_are_right():
    """The page's own functions, in node."""
    if not shutil.which("node"):
        raise cases.Skip("node is not installed")
    path = _write("page.html", _page(f"{GOLDEN}/rnr_small_rx.pcap").encode())
    done = subprocess.run(["node", f"{TREE}/tests/tool/watch/draw_page.js", f"{TREE}/tools/draw/page", path], capture_output=True, check=False, timeout=cases.patience(60))
    assert done.returncode == 0, cases.told(done)


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
