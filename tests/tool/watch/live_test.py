#!/usr/bin/env python3
"""softverbs live: a capture on standard output while it is written."""
import contextlib
import os
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import SOFTVERBS, Skip, TEMPORARY, expect, softverbs

MISTAKES = f"{cases.BUILD}/tests/clients/mistakes"


def _run(path):
    expect(softverbs("run", "--capture", path, "--", MISTAKES, "none"), out=None)


@contextlib.contextmanager
def _follow(path, out):
    with subprocess.Popen([SOFTVERBS, "live", path], stdout=out, stderr=subprocess.PIPE, env=cases.environment()) as process:
        try:
            yield process
        finally:
            process.kill()


def _wait_for(condition):
    deadline = cases.until(20)
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert condition()


def _content(path):
    with open(path, "rb") as file:
        return file.read()


def what_is_written_later_comes_at_once():
    path, copy = f"{TEMPORARY}/later.pcapng", f"{TEMPORARY}/copy.pcapng"
    with open(copy, "wb") as out, _follow(path, out) as follower:
        end = time.monotonic() + 0.2
        while time.monotonic() < end:
            assert follower.poll() is None and not os.path.exists(path)
            time.sleep(0.01)
        _run(path)
        _wait_for(lambda: len(_content(copy)) == os.path.getsize(path))
        first = _content(copy)
        assert first == _content(path)
        _run(path)  # it begins anew, which is another section of the same stream
        _wait_for(lambda: len(_content(copy)) >= len(first) + os.path.getsize(path))
        assert _content(copy)[len(first):] == _content(path)
    done = expect(softverbs("decode", copy), out=None)
    assert b" 0 of them wrong" in done.stdout and b"RC SEND_ONLY" in done.stdout, done.stdout


def a_part_of_a_block_is_left_out():
    """The process that wrote it was killed, and so was the next, before it made a block of it."""
    path, copy = f"{TEMPORARY}/torn.pcapng", f"{TEMPORARY}/torn-copy.pcapng"
    _run(path)
    whole = _content(path)
    blocks = [0]
    while blocks[-1] < len(whole):
        blocks.append(blocks[-1] + struct.unpack_from("<I", whole, blocks[-1] + 4)[0])
    with open(path, "wb") as file:
        file.write(whole[:blocks[3] + 32] + whole[blocks[4]:])
    with open(copy, "wb") as out, _follow(path, out) as follower:
        _wait_for(lambda: len(_content(copy)) == len(whole) - (blocks[4] - blocks[3]))
        assert b"32 bytes that are not whole blocks were left out" in follower.stderr.readline()
    assert _content(copy) == whole[:blocks[3]] + whole[blocks[4]:]
    expect(softverbs("decode", copy), out=None)


def it_ends_with_its_reader():
    path = f"{TEMPORARY}/end.pcapng"
    _run(path)
    reader, writer = os.pipe()
    with _follow(path, writer) as follower:
        os.close(writer)
        assert os.read(reader, 4) == _content(path)[:4]
        os.close(reader)
        assert follower.wait(20) == 0 and follower.stderr.read() == b""


def a_FIFO_is_served():
    path, fifo = f"{TEMPORARY}/fifo.pcapng", f"{TEMPORARY}/fifo"
    _run(path)
    os.mkfifo(fifo)
    with subprocess.Popen(["timeout", "20", "sh", "-c", f"exec {SOFTVERBS} live {path} >{fifo}"], env=cases.environment()) as follower:
        with open(fifo, "rb") as reader:
            assert reader.read(os.path.getsize(path)) == _content(path)
        assert follower.wait(20) == 0


def _follows(path):
    """A process follows this capture."""
    for process in os.listdir("/proc"):
        with contextlib.suppress(OSError), open(f"/proc/{process}/cmdline", "rb") as words:
            if words.read().split(b"\0")[1:3] == [b"live", path.encode()]:
                return True
    return False


def tshark_reads_it_live():
    if not os.path.exists("/usr/bin/tshark"):
        raise Skip("tshark is not installed")
    path = f"{TEMPORARY}/tshark.pcapng"
    with subprocess.Popen(f"timeout 30 {SOFTVERBS} live {path} | timeout 30 tshark -l -i - -c 2", shell=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          env=cases.environment()) as process:
        _wait_for(lambda: _follows(path))
        _run(path)
        out = process.communicate(timeout=cases.patience(60))[0]
    assert out.count(b"RRoCE") == 2 or out.count(b"InfiniBand") == 2, out


def what_is_no_capture_is_refused():
    path = f"{TEMPORARY}/text"
    with open(path, "w", encoding="ascii") as file:
        file.write("no capture at all")
    expect(softverbs("live", path), 1, b"", [b"not a capture"])
    expect(softverbs("live"), 2, b"", [b"It needs the name of a capture."])
    expect(softverbs("live", "/no/such", "/other"), 2, b"", [b"It needs the name of a capture."])


def what_will_never_be_a_capture_is_refused():
    fifo = f"{TEMPORARY}/no-file"
    os.mkfifo(fifo)
    expect(softverbs("live", TEMPORARY), 1, b"", [TEMPORARY.encode(), b"Is a directory"])
    expect(softverbs("live", fifo), 1, b"", [fifo.encode(), b"not a capture"])
    expect(softverbs("live", f"{TEMPORARY}/no-file/below"), 1, b"", [b"Not a directory"])


def an_output_that_takes_nothing_is_named():
    path = f"{TEMPORARY}/full.pcapng"
    _run(path)
    with open("/dev/full", "wb") as out:
        done = subprocess.run([SOFTVERBS, "live", path], stdout=out, stderr=subprocess.PIPE, env=cases.environment(), timeout=cases.patience(60), check=False)
    assert done.returncode == 1 and done.stderr == b"softverbs: live: the output: No space left on device\n", done


def run_names_it_where_a_capture_cannot_go():
    fifo = f"{TEMPORARY}/other"
    os.mkfifo(fifo)
    for name in ("-", fifo, "/proc/self/fd/1", "/dev/null"):  # not every chroot has /dev/stdout
        done = softverbs("run", "--capture", name, "--", "true")
        expect(done, 125, b"", [b"not a file", b"softverbs live FILE"])


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
