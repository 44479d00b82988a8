#!/usr/bin/env python3
"""softverbs demo: shows that it works, with the distribution's ping-pong or its own, and says so where it does not."""
import os
import re
import shutil
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, SOFTVERBS, TEMPORARY, Skip, expect, softverbs

PINGPONG = f"{BUILD}/lib/softverbs-pingpong"


def _only(name):
    """A $PATH that has one program, or None if that is not installed."""
    directory = f"{TEMPORARY}/path-{name}"
    os.makedirs(directory, exist_ok=True)
    program = shutil.which(name)
    if program and not os.path.lexists(f"{directory}/{name}"):
        os.symlink(program, f"{directory}/{name}")
    return directory if program else None


def _place(name):
    """A directory of one demonstration, so that the files of another test's are not counted."""
    os.makedirs(f"{TEMPORARY}/{name}")
    return f"{TEMPORARY}/{name}"


def two_processes_exchange_messages_by_the_distributions_program():
    path = _only("ibv_rc_pingpong")
    if not path:
        raise Skip("ibv_rc_pingpong is not installed")
    shown = expect(softverbs("demo", env={"PATH": path}), 0, None, b"").stdout.decode()
    assert "as the distribution installed it" in shown and re.search(r"^ +1000 iters in ", shown, re.M), shown
    assert "It worked: two processes sent 1000 messages of 65536 bytes" in shown and "demo --all" in shown, shown


def where_there_is_none_they_take_the_one_that_comes_along():
    shown = expect(softverbs("demo", env={"PATH": _only("true")}), 0, None, b"").stdout.decode()
    assert "a ping-pong that comes with softverbs" in shown and "1000 messages of 65536 bytes went each way. Every byte is right." in shown, shown


def the_tour_explains_a_wrong_key_counts_losses_and_decodes():
    shown = expect(softverbs("demo", "--all"), 0, None, b"").stdout.decode()
    titles = re.findall(r"^(\d) of 4: ", shown, re.M)
    assert titles == ["1", "2", "3", "4"], shown
    assert "remote access error" in shown and "(reason 205)" in shown and "completed it with IBV_WC_REM_ACCESS_ERR" in shown, shown
    lost, again = map(int, re.search(r"(\d+) frames of the client were lost, and it sent (\d+) frames again", shown).groups())
    assert lost > 0 and again > 0, shown
    assert re.search(r"RC SEND_ONLY qp 0x\w+ psn 0 ack 4096 bytes \| (?:sent|received) \| class 0x00, hop limit 64, UDP port \d+$", shown, re.M) and re.search(r"\.\.\. and \d+ lines more", shown), shown


def its_files_are_removed_and_the_commands_can_be_copied():
    place = _place("own")
    shown = expect(softverbs("demo", env={"PATH": _only("true"), "TMPDIR": place})).stdout.decode()
    assert not os.listdir(place)
    commands = re.findall(r"^  \$ (.*)$", shown, re.M)
    assert len(commands) == 2 and commands[1] == commands[0] + " 127.0.0.1" and commands[0].startswith("softverbs run -- softverbs-pingpong -p "), commands


def it_runs_under_an_emulator_from_a_relative_path():
    """qemu-user resolves the path anew at each readlink of /proc/self/exe, so it is lost when the command has changed its directory."""
    emulator = shutil.which(f"qemu-{os.uname().machine}-static") or shutil.which(f"qemu-{os.uname().machine}")
    if not emulator:
        raise Skip("qemu-user for this processor is not installed")
    done = subprocess.run([emulator, f"./{os.path.basename(SOFTVERBS)}", "demo"], cwd=os.path.dirname(SOFTVERBS), env=cases.environment(PATH=_only("true")), capture_output=True,
                          check=False, timeout=cases.patience(60))
    assert done.returncode == 0 and b"Every byte is right." in done.stdout, cases.told(done)


def a_failure_is_shown_with_its_outputs():
    done = expect(softverbs("demo", env={"SOFTVERBS_LOG": "nonsense"}), 1, None, None)
    assert b"The demonstration failed: The server ended before it listened." in b" ".join(done.stderr.split()), done
    assert b'"softverbs doctor"' in done.stderr and b"nonsense" in done.stdout, done
    place = _place("failed")
    expect(softverbs("demo", env={"PATH": _broken(), "TMPDIR": place}), 1, None, [b"The demonstration failed: The client ended with the status 3."])
    assert not os.listdir(place)
    expect(softverbs("demo", "now"), 2, b"", [b'"now" is not an argument'])


def a_place_that_does_not_exist_is_named():
    expect(softverbs("demo", env={"TMPDIR": f"{TEMPORARY}/nowhere"}), 1, None, [b"have no place", b"/nowhere/softverbs-demo-", b"No such file or directory"])


def _broken():
    """A $PATH whose ibv_rc_pingpong listens and whose client fails."""
    directory = f"{TEMPORARY}/broken"
    os.makedirs(directory, exist_ok=True)
    program = f"{directory}/ibv_rc_pingpong"
    with open(program, "w", encoding="utf-8") as file:
        file.write(f"#!{sys.executable}\nimport socket, sys\nport = int(sys.argv[2])\n"
                   "if sys.argv[-1] == '127.0.0.1':\n    socket.create_connection(('127.0.0.1', port)).close()\n    sys.exit(3)\n"
                   "socket.create_server(('127.0.0.1', port)).accept()\n")
    os.chmod(program, 0o755)
    return directory


def the_program_refuses_wrong_arguments():
    for words in (["-s", "0"], ["-n", "x"], ["-p", "70000"], ["-w"], ["a", "b"], ["-z"]):
        done = subprocess.run([SOFTVERBS, "run", "--", PINGPONG, *words], env=cases.environment(), capture_output=True, check=False, timeout=cases.patience(30))
        assert done.returncode == 2 and b"Usage: pingpong" in done.stderr, (words, done)


def the_program_compares_every_byte():
    """The client's messages are shorter, so the rest of the server's buffer is not the message's."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    start = [SOFTVERBS, "run", "--", PINGPONG, "-p", port, "-n", "1", "-s"]
    with subprocess.Popen([*start, "64"], env=cases.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
        deadline = cases.until(20)
        while time.monotonic() < deadline:
            done = subprocess.run([*start, "32", "127.0.0.1"], env=cases.environment(), capture_output=True, check=False, timeout=cases.patience(30))
            if b"connect: Connection refused" not in done.stderr:
                break
        out, err = server.communicate(timeout=cases.patience(30))
        assert server.returncode == 1 and not out and b"message 0: byte 32 is 0x00 instead of 0xe0" in err, (out, err, done)
    assert done.returncode == 1 and b"The other end has ended." in done.stderr, done


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
