#!/usr/bin/env python3
"""The commands that show programs while they run, in a real terminal."""
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, SOFTVERBS, TEMPORARY, softverbs
from terminal import Terminal

PROGRAM = f"{BUILD}/tests/tool/scripted"


def _pid(text, call):
    return int(re.search(rf" (\d+)(?:/\d+)? {call}\(", text)[1])


def a_trace_in_a_terminal_ends_with_its_program():
    with Terminal(f"{SOFTVERBS} run --trace=create_qp_ex,post_send -- {PROGRAM} work") as terminal:
        text = terminal.until(lambda text: "[ended 0]" in text, 500)
        joined = re.sub(r"\n", " ", text)
        assert len(re.findall(r"ibv_create_qp_ex\(", joined)) == 1 and "wr_id=4, opcode=IBV_WR_SEND" in joined, text


def a_trace_in_a_terminal_shows_that_its_program_was_killed():
    with Terminal(f"{SOFTVERBS} run --trace=alloc_pd,post_send -- {PROGRAM} lines") as terminal:
        process = _pid(terminal.until(lambda text: "ibv_alloc_pd(" in text, 500), "ibv_alloc_pd")
        os.kill(process, signal.SIGKILL)
        terminal.until(lambda text: "[ended 137]" in text, 500)


def a_trace_in_a_terminal_is_interrupted_with_its_program():
    """Ctrl-C is for the program; the trace says what happened until then."""
    with Terminal(f"{SOFTVERBS} run --trace=alloc_pd -- sh -c 'trap \"exit 9\" INT; {PROGRAM} lines; exit 8'") as terminal:
        terminal.until(lambda text: "ibv_alloc_pd(" in text, 500)
        terminal.keys("C-c")
        terminal.until(lambda text: "[ended 9]" in text, 500)


def a_trace_in_a_terminal_joins_and_leaves():
    with subprocess.Popen([SOFTVERBS, "run", "--", PROGRAM, "lines"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env=cases.environment()) as process:
        process.stdout.readline()
        with Terminal(f"{SOFTVERBS} trace -p {process.pid} -e post_send") as terminal:
            def posted(text):
                process.stdin.write(b"\n")
                process.stdin.flush()
                return "ibv_post_send(" in text
            terminal.until(posted)
            terminal.keys("C-c")
            terminal.until(lambda text: "[ended 0]" in text)
            assert process.poll() is None
        process.kill()


def _both(command, port, count):
    """Traces of server and client: their lines, and how many were lost."""
    if not shutil.which(command[0]):
        raise cases.Skip(f"{command[0]} is not installed")
    paths = [f"{TEMPORARY}/both-{side}" for side in ("server", "client")]
    line = [command[0], *command[1:], "-p", str(port), "-n", str(count)]
    with subprocess.Popen([SOFTVERBS, "run", "--trace-file", paths[0], "--", *line], env=cases.environment(),
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as server:
        deadline = cases.until(30)
        while True:
            client = softverbs("run", "--trace-file", paths[1], "--", *line, "127.0.0.1")
            if client.returncode == 0 or time.monotonic() > deadline or server.poll() is not None:
                break
            time.sleep(0.1)
        said = [server.communicate(timeout=cases.patience(60))[1], client.stderr.decode()]
        assert client.returncode == server.returncode == 0, (said, server.returncode, cases.told(client))
    lost = [int(match[1]) if (match := re.search(r"(\d+) lines? w\w+ lost", text)) else 0 for text in said]
    result = []
    for path, number in zip(paths, lost):
        with open(path, encoding="utf-8") as file:
            result.append((file.read(), number))
    return result


def _completions(text, status):
    """The completions that polls gave: each line says how many, also where it does not show all."""
    return sum(int(match[1]) for match in re.finditer(r"ibv_poll_cq\(.*\) = (\d+)(?: \[|, | <)", text)
               if match[1] != "0" and f"status={status}" in match.string[match.start():match.string.index("\n", match.start())])


def each_post_and_completion_of_ib_send_bw_is_there_or_counted_as_lost():
    _, (client, lost) = _both(["ib_send_bw", "-s", "8", "-F"], 18600 + os.getpid() % 300, 2000)
    posts = len(re.findall(r" ibv_post_send\(", client))
    assert posts <= 2000 <= posts + lost, (posts, lost)
    assert lost or _completions(client, "IBV_WC_SUCCESS") >= 2000 // 100, client[-2000:]


def each_post_and_completion_of_a_spinning_ping_pong_is_there_or_counted_as_lost():
    sides = _both(["ibv_rc_pingpong", "-g", "0", "-s", "8"], 18900 + os.getpid() % 300, 1000)
    for text, lost in sides:
        posts, ends = len(re.findall(r" ibv_post_send\(", text)), _completions(text, "IBV_WC_SUCCESS")
        assert posts <= 1000 <= posts + lost, (posts, lost)
        assert lost or ends == 2000, (ends, text[-2000:])


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
