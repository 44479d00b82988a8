#!/usr/bin/env python3
"""softverbs around --story: why queue pairs fail, as the program's calls in front of a libibverbs show, here softverbs' own; both ends joined."""
import json
import os
import re
import stat
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, SOFTVERBS, TEMPORARY, expect, softverbs
from stories import CAUSES, compare, failed, plain

# Lines that only the story of an adapter has.
MORE = ("Counters of the port of", "The vendor_err of soft is", "C posted it at", "S posted it at")
# Where the calls show the very cause that softverbs' own devices know, the sentences are the same.
SAME = ("remote-range", "remote-key", "remote-gone", "remote-permission", "qp-permission", "reads-refused", "send-key", "send-range", "send-gone",
        "receive-key", "receive-permission", "short-receive")
CONNECTED = "Queue pair c of C is RC in ERR, connected with s of S."
ALONE = "Queue pair c of C is RC in ERR, connected with s."
SENT = "T C posted IBV_WR_SEND of 8 bytes, wr_id 7."
WRITTEN = "T C posted IBV_WR_RDMA_WRITE of 8 bytes, wr_id 7, to address A with rkey K."
UNANSWERED = "No answer came (timeout is 10, retry_cnt 2)."
SILENT = ["T C completed it with IBV_WC_RETRY_EXC_ERR (reason 105).", "\"softverbs explain 105\" has causes and cures."]
NO_FILE = "No file has a story of a queue pair s that is connected with this one: its process was killed, still runs, has written 1,000 others, or ran without \"softverbs " \
          "around --story\"; or no process has a queue pair of this number."
OTHERS = {
    "no-receive": [CONNECTED, SENT, "Its peer answered that it has no receive posted (ibv_post_recv) until rnr_retry was used up, which is 2.",
                   "Queue pair s of S has no receive posted (ibv_post_recv).", "T C completed it with IBV_WC_RNR_RETRY_EXC_ERR (reason 106).",
                   "\"softverbs explain 106\" has causes and cures."],
    "first-psn": [CONNECTED, SENT, UNANSWERED, "Queue pair s of S has rq_psn 0 and this one sq_psn 1000: the peer's rq_psn must be this sq_psn.", *SILENT],
    "deaf": [CONNECTED, SENT, UNANSWERED, "Queue pair s of S was in INIT, where it took nothing: ibv_modify_qp to RTR is missing.", *SILENT],
    "dead": [ALONE, SENT, UNANSWERED, NO_FILE, *SILENT],
    "nobody": [ALONE.replace("with s", "with 0xabcdef"), SENT, UNANSWERED, NO_FILE.replace("queue pair s", "queue pair 0xabcdef"), *SILENT],
    "strange": [ALONE, WRITTEN, UNANSWERED, "Queue pair s of S is connected with another, and not with c: its answers go there.", *SILENT],
    "destroyed": [CONNECTED, WRITTEN, UNANSWERED, "T S destroyed queue pair s before that, or ended.", *SILENT],
    "exited": [CONNECTED, WRITTEN, UNANSWERED, "T S destroyed queue pair s before that, or ended.", *SILENT],
    "peer-moved": [CONNECTED, WRITTEN, UNANSWERED,
                   "T S itself moved queue pair s to ERR (ibv_modify_qp, or librdmacm when it disconnects or is rejected), where it takes nothing.", *SILENT],
}


def _stories(cause):
    """The file of the stories, and the numbers of the processes and queue pairs."""
    path = tempfile.mktemp(prefix=cause, dir=TEMPORARY)
    with failed(cause, "--log", "none", front=(SOFTVERBS, "around", "--log", "none", "--story", path, "--")) as (numbers, end):
        end()
    return path, numbers


def _why(*words):
    """Of files alone: softverbs' own stories of the same queue pairs are in the directory."""
    return softverbs("why", *words, env={"SOFTVERBS_DIR": None})


def _sentences(numbers, *files):
    return plain(expect(_why("--join" if len(files) > 1 else "--from", *files, "--qp", f"{numbers[1]:#x}")).stdout.decode(), numbers)


def _cause(lines):
    return [line for line in lines if not line.startswith(MORE)]


def the_last_lines_stay():
    with tempfile.TemporaryDirectory(dir=TEMPORARY) as directory:
        path = f"{directory}/stories"
        with failed("remote-key", "--log", "none", front=("env", f"SOFTVERBS_DIR={directory}", SOFTVERBS, "around", "--log", "none", "--story", path, "--")) as (numbers, end):
            end()
        lines = expect(softverbs("why", "--last", env={"SOFTVERBS_DIR": directory})).stdout.decode()
    ended = f"qp {numbers[1]:#x}: work of the send queue with wr_id 7 ended with IBV_WC_REM_ACCESS_ERR, vendor_err "
    assert ended in " ".join(lines.split()) and " (ended)" in lines, (lines, ended)


def what_calls_show_is_told_as_of_own_devices():
    for name in SAME:
        path, numbers = _stories(name)
        compare(name, _cause(_sentences(numbers, path)), CAUSES[name])


def what_only_an_adapter_knows_is_told_as_far_as_calls_show_it():
    for name, lines in OTHERS.items():
        path, numbers = _stories(name)
        compare(name, _cause(_sentences(numbers, path)), lines)


def the_place_the_vendor_and_the_port_are_told():
    path, numbers = _stories("remote-range")
    said = _sentences(numbers, path)
    assert "C posted it at post_sends (stories.c:" in "\n".join(said), said
    assert "The vendor_err of soft is 108: no source says what that means." in said, said
    assert any(re.match(r"Counters of the port of S that moved since [\d:.]+, for all of its queue pairs: .*rcvd_nak \+1", line) for line in said), said


def a_status_whose_cause_no_call_shows_says_so():
    path, numbers = _stories("reads-disabled")
    with open(path, encoding="utf-8") as file:
        error = json.loads(file.readline())["error"]
    assert error["status"] == "IBV_WC_LOC_QP_OP_ERR" and error["name"] == "ADAPTER_STATUS", error
    assert any("IBV_WC_LOC_QP_OP_ERR: The adapter ended the work request" in line for line in _sentences(numbers, path))


def the_files_of_both_ends_are_joined():
    path, numbers = _stories("remote-key")
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    for number, name in ((numbers[0], "client"), (numbers[2], "server")):
        with open(f"{TEMPORARY}/{name}", "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines if line["pid"] == number)
    compare("joined", _cause(_sentences(numbers, f"{TEMPORARY}/client", f"{TEMPORARY}/server")), CAUSES["remote-key"])
    alone = _sentences(numbers, f"{TEMPORARY}/client")
    assert any(line.startswith("The part of the other end is not known: no file has a story") for line in alone), alone
    expect(_why("--join", f"{TEMPORARY}/client"), 2, b"", [b"--join needs the files of both ends."])
    expect(_why("--join", f"{TEMPORARY}/client", "/nowhere/file"), 2, b"", [b"/nowhere/file\" can't be read"])


def adapters_of_two_hosts_may_give_the_same_numbers():
    path, numbers = _stories("remote-key")
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    for line in lines:
        line.update(qp=17, peer_qp=17, host="client" if line["pid"] == numbers[0] else "server")
    with open(f"{TEMPORARY}/same", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    said = expect(_why("--from", f"{TEMPORARY}/same")).stdout.decode()
    assert f"stories ({numbers[2]}) refused it" in " ".join(said.split()), said


def no_region_is_judged_that_may_be_another():
    """The key may be of a memory window, and that of another device is another key."""
    for name, change in (("remote-key", {"other_keys": True}), ("remote-permission", {"other_keys": True, "regions": "of another device"})):
        path, numbers = _stories(name)
        with open(path, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        for line in lines:
            line["other_keys"] = change["other_keys"]
            for region in line["regions"] if "regions" in change else []:
                region["device"] = "soft7"
        with open(f"{TEMPORARY}/{name}-changed", "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        said = _sentences(numbers, f"{TEMPORARY}/{name}-changed")
        assert not any("refused it" in line for line in said) and any("IBV_WC_REM_ACCESS_ERR: The peer refused access" in line for line in said), said


def the_meaning_of_a_vendors_code_is_told_with_its_source():
    path, numbers = _stories("dead")
    with open(path, encoding="utf-8") as file:
        story = json.loads(file.readline())
    story["driver"], story["error"]["vendor_err"] = "mlx5", 129
    with open(f"{TEMPORARY}/mlx5", "w", encoding="utf-8") as file:
        file.write(json.dumps(story) + "\n")
    said = " ".join(_sentences(numbers, f"{TEMPORARY}/mlx5"))
    assert "The vendor_err of mlx5 is 129: No ACK came within the timeout of the last try" in said and "observed by users: NVIDIA/nccl#214" in said, said


def a_port_that_is_down_is_named():
    path, numbers = _stories("strange")
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    for down, whose in (0, "c was down when the story"), (2, "s of S was down when its story"):
        for line in lines:
            line.pop("port_down", None)
            line.update({"port_down": True} if line["pid"] == numbers[down] else {}, peer_qp=numbers[3] if line["pid"] == numbers[0] else numbers[1])
        with open(f"{TEMPORARY}/down", "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        said = _sentences(numbers, f"{TEMPORARY}/down")
        assert any(f"ort of queue pair {whose} was written: its cable, the switch, or the network interface" in line for line in said), said
    for line in lines:
        if line["pid"] == numbers[0] and "error" in line:  # as rxe ends it
            line.update(port_down=True, error={**line["error"], "reason": 123, "name": "ADAPTER_STATUS", "status": "IBV_WC_LOC_QP_OP_ERR"})
    with open(f"{TEMPORARY}/down", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    said = _sentences(numbers, f"{TEMPORARY}/down")
    assert any("ort of queue pair c was down when the story was written" in line for line in said), said


def a_program_without_an_error_has_no_story_to_tell():
    path, _ = _stories("fine")
    said = expect(_why("--from", path)).stdout.decode()
    assert said == "No queue pair has left a story.\n", said


def a_dash_prints_them_after_the_program():
    done = softverbs("run", "-q", "--", SOFTVERBS, "around", "-q", "--story", "-", "--", f"{BUILD}/tests/tool/stories", "remote-range")
    said = " ".join(done.stderr.decode().split())
    assert done.returncode == 0 and "512 bytes at offset 768 do not fit (reason 207)." in said, done
    assert not [name for name in os.listdir(os.environ.get("TMPDIR", "/tmp")) if name.startswith("softverbs-story-")]
    assert softverbs("around", "--story", "-", "--", "sh", "-c", "exit 7").returncode == 7


def only_its_user_reads_the_file():
    path, _ = _stories("send-key")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def a_file_that_cannot_be_written_is_said_once():
    done = softverbs("run", "-q", "--", SOFTVERBS, "around", "--log", "error", "--story", "/nowhere/file", "--", f"{BUILD}/tests/tool/stories", "remote-range")
    said = done.stderr.decode()
    assert done.returncode == 0 and 1 <= said.count("can't be written to \"/nowhere/file\": No such file or directory") <= 2, done  # one of each process


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
