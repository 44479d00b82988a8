#!/usr/bin/env python3
"""The text on the screen when a program makes one of the usual mistakes: the line must name what to change."""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, SOFTVERBS, TEMPORARY

MISTAKES = f"{BUILD}/tests/clients/mistakes"


def _screen(*arguments, options=(), env=None):
    """All that a terminal shows of the program; it must end well."""
    return _screen_of([SOFTVERBS, "run", *options, "--", *arguments], env)


def _screen_of(command, env):
    status, text = cases.at_terminal(command, cases.environment(**(env or {})))
    assert status == 0, text
    return text


def _lines(name, **options):
    """Ours among the screen's lines; the program's own are returned after them."""
    screen = _screen(MISTAKES, name, **options).splitlines()
    ours = [line for line in screen if line.startswith("softverbs: ")]
    return ours, [line for line in screen if line not in ours]


def _one(lines, *parts):
    found = [line for line in lines if all(part in line for part in parts)]
    assert len(found) == 1, f"{parts} in {len(found)} of {lines}"
    return found[0]


def a_program_without_mistakes_shows_its_own_words_only():
    ours, own = _lines("none")
    assert not ours and own == ["success, vendor_err 0"], (ours, own)


def each_line_names_program_process_object_and_call():
    ours, own = _lines("short-mask")
    assert own == ["EINVAL from ibv_modify_qp"] and len(ours) == 1, (ours, own)
    assert re.fullmatch(r"softverbs: mistakes\[\d+\] qp 0x[0-9a-f]+: ibv_modify_qp INIT to RTR: attr_mask lacks "
                        r"IBV_QP_MIN_RNR_TIMER \(reason 302\)", ours[0]), ours


def the_element_that_is_refused_is_named():
    ours, _ = _lines("second-lkey")
    _one(ours, "ends in IBV_WC_LOC_PROT_ERR, element 1: 64 bytes at 0x", "(reason 101)")


def lines_that_are_left_out_are_counted():
    ours = [line for line in _screen(f"{BUILD}/tests/tool/hangs", "refusals").splitlines() if line.startswith("softverbs: ")]
    shown = [line for line in ours if "(reason 318)" in line]
    omitted = sum(int(number) for number in re.findall(r"(\d+) more lines of reason 318 were left out", "\n".join(ours)))
    assert 5 <= len(shown) <= 10 and len(shown) + omitted == 92, ours


def who_ignores_a_refused_ibv_modify_qp_is_told_of_it_again():
    ours, own = _lines("careless")
    assert own == ["EINVAL from ibv_post_send"] and len(ours) == 3, (ours, own)
    _one(ours, "INIT to RTR: attr_mask lacks", "(reason 302)")
    _one(ours, "ibv_modify_qp INIT to RTS, after an ibv_modify_qp that was refused (reason 302)", "(reason 301)")
    _one(ours, "ibv_post_send of wr_id 42, after an ibv_modify_qp that was refused (reason 301)", "(reason 329)")


def a_queue_of_another_context_is_said_to_be_one():
    ours, own = _lines("two-contexts")
    assert own == ["No such file or directory from ibv_create_qp"], own
    assert len(ours) == 1, ours
    _one(ours, "completion queue with handle", "another context", "(reason 356)")


def an_event_that_is_not_acknowledged_is_named_where_it_is_waited_for():
    ours, own = _lines("no-acknowledgement")
    assert own == ["ibv_destroy_cq waits"], own
    _one(ours, "destroying the completion queue with handle", "waits for 1 event: ", "(reason 357)")


def more_acknowledgements_than_events_are_said_to_be_too_many():
    ours, own = _lines("two-acknowledgements")
    assert own == ["ibv_destroy_cq waits"], own
    _one(ours, "destroying the completion queue with handle", "waits for ever: 1 more event was acknowledged than fetched",
         "called too often, or for another object", "(reason 466)")


def an_address_without_a_grh_says_which_field_to_set():
    for name in ("no-grh", "lid"):
        ours, _ = _lines(name)
        _one(ours, "ibv_modify_qp INIT to RTR: ", "is_global", "(reason 322)")
        assert len(ours) == 1, ours


def a_wrong_gid_index_says_which_there_are():
    ours, _ = _lines("gid-index")
    _one(ours, "sgid_index is 7, the indices that are used are 0 to 1", "(reason 323)")


def a_gid_that_was_never_copied_is_refused():
    ours, own = _lines("zero-gid")
    assert own == ["EINVAL from ibv_modify_qp"], own
    _one(ours, "grh.dgid is all zero", "(reason 395)")


def what_an_address_vector_held_before_is_no_rate():
    ours, own = _lines("left-over-rate")
    assert own == ["EINVAL from ibv_modify_qp"], own
    _one(ours, "INIT to RTR: static_rate is 205: ", "not set to zero", "(reason 379)")


def a_number_of_more_than_24_bits_is_no_queue_pairs():
    ours, own = _lines("wide-qpn")
    assert own == ["EINVAL from ibv_modify_qp"], own
    _one(ours, "INIT to RTR: dest_qp_num is 0x1", "24 bits", "(reason 394)")


def an_iova_elsewhere_in_its_page_says_where_both_lie():
    ours, own = _lines("skewed-iova")
    assert own == ["EINVAL from ibv_reg_mr"], own
    _one(ours, "ibv_reg_mr_iova of 8192 bytes", "iova 0x40001: 0x", "the same place within its page", "(reason 378)")


def memory_that_the_kernel_does_not_copy_is_said_to_be_such():
    ours, own = _lines("secret-memory")
    if own[0].endswith("from memfd_secret"):
        return  # no memfd_secret here
    assert own == ["Bad address from ibv_reg_mr"] or own == ["EFAULT from ibv_reg_mr"], own
    _one(ours, "ibv_reg_mr of 8192 bytes", "only the processor reaches it", "(reason 460)")


def a_region_without_local_write_names_the_flag():
    ours, _ = _lines("no-local-write")
    _one(ours, "ibv_reg_mr of 8192 bytes", "IBV_ACCESS_REMOTE_WRITE: ", "need IBV_ACCESS_LOCAL_WRITE", "(reason 315)")


def a_forgotten_receive_is_told_once_on_both_sides():
    ours, own = _lines("no-receive")
    assert own == ["nothing"], own
    _one(ours, "RC SEND_ONLY from qp 0x", "no receive is posted (ibv_post_recv)", "(reason 216)")
    _one(ours, "rnr_retry is 7 (for ever): The peer has no receive posted (ibv_post_recv)", "(reason 118)")
    assert len(ours) == 2, ours


def an_address_of_another_host_without_a_network_names_the_option():
    ours, own = _lines("foreign-gid")
    _one(ours, "ibv_modify_qp INIT to RTR: dgid 10.9.8.7: ", "softverbs run --net INTERFACE", "(reason 396)")
    assert own == ["Network is unreachable from ibv_modify_qp"], own


def a_key_that_is_not_the_peers_is_shown_where_it_was_refused():
    for name in ("wrong-rkey", "own-rkey"):
        ours, own = _lines(name)
        _one(ours, "asks for IBV_ACCESS_REMOTE_WRITE to 64 bytes at 0x", "with rkey 0x",
             "remote key that does not exist here", "(reason 205)")
        _one(ours, "send of wr_id 42 ends in IBV_WC_REM_ACCESS_ERR", ": process ", "(mistakes) refused it: qp 0x", "with rkey 0x",
             "(its reason 205) (reason 108)")
        assert own == ["remote access error, vendor_err 108"] and len(ours) == 2, (ours, own)


def an_access_out_of_bounds_says_which_they_are():
    ours, _ = _lines("out-of-bounds")
    line = _one(ours, "64 bytes at 0x", "the region is 0x", "outside the memory region", "(reason 207)")
    _one(ours, "refused it: qp 0x", "64 bytes at 0x", "the region is 0x", "(its reason 207) (reason 108)")
    address, base, end = (int(number, 16) for number in re.search(r"at 0x(\w+) .* is 0x(\w+) to 0x(\w+)", line).groups())
    assert end - base == 8192 and address == end - 4, line


def an_address_that_was_cut_or_turned_is_named():
    ours, _ = _lines("cut-address")
    _one(ours, "qp 0x", "asks for", "; the address was cut to 32 bits: it has the lower half of one in the region", "(reason 207)")
    ours, _ = _lines("swapped-address")
    _one(ours, "qp 0x", "asks for", "; with its bytes in the other order the address is in the region (be64toh)", "(reason 207)")


def an_access_flag_that_is_missing_is_seen_beside_what_there_is():
    ours, _ = _lines("no-remote-read")
    _one(ours, "asks for IBV_ACCESS_REMOTE_READ", "with IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE: ", "(reason 208)")
    ours, _ = _lines("no-qp-access")
    _one(ours, "RC READ_REQUEST from qp 0x", "qp_access_flags are no access: ", "(reason 209)")
    _one(ours, "ends in IBV_WC_REM_INV_REQ_ERR: process ", "qp_access_flags are no access: ", "(its reason 209) (reason 107)")


def a_completion_queue_that_is_too_small_says_its_size():
    ours, _ = _lines("small-cq")
    assert [line for line in ours if " of 1 entries: " in line and "(reason 312)" in line], ours


def sequence_numbers_that_do_not_fit_are_shown_both():
    for name, number in (("psn-behind", 500), ("psn-ahead", 1500)):
        ours, own = _lines(name)
        _one(ours, f"psn 1000, rq_psn is {number}: ", "one side's rq_psn must be the other's sq_psn", "(reason 31)")
        assert own == ["transport retry counter exceeded, vendor_err 105"], own


SILENT = "send of wr_id 42 ends in IBV_WC_RETRY_EXC_ERR: "


def a_silent_peer_is_said_to_be_in_which_state():
    ours, own = _lines("never-rtr")
    _one(ours, SILENT + "queue pair 0x", " of process ", "(mistakes) is in INIT, where it takes nothing: ibv_modify_qp to RTR is missing (reason 105)")
    assert own == ["transport retry counter exceeded, vendor_err 105"], own


def a_number_that_the_process_no_longer_has_is_named():
    ours, _ = _lines("destroyed")
    _one(ours, SILENT + "process ", "(mistakes) lives and has no queue pair 0x", ": it was destroyed (ibv_destroy_qp), or never made; it has none (reason 105)")


def the_own_number_is_said_to_be_the_own():
    ours, _ = _lines("own-qpn")
    _one(ours, SILENT + "dest_qp_num is 0x", "the queue pair's own number", "(reason 105)")


def processes_of_another_directory_are_said_to_be_there():
    ours, _ = _lines("other-directory")
    _one(ours, SILENT + f"no process of {cases.DIRECTORY} has queue pair 0x", f"meet in {cases.DIRECTORY}-2, too, ", "(reason 105)")


def sequence_numbers_are_shown_to_the_sender_too():
    ours, _ = _lines("psn-ahead")
    _one(ours, SILENT, "has rq_psn 1500 and this one sq_psn 1000: ", "(reason 105)")


def two_processes_ask_each_other_at_once():
    ours, own = _lines("psn-ahead-of-both")
    told = [line for line in ours if "has rq_psn 1500 and this one sq_psn 1000: " in line and "(reason 105)" in line]
    assert len(told) == 2 and len({line.split("]")[0] for line in told}) == 2, ours
    assert own == 2 * ["transport retry counter exceeded, vendor_err 105"], own


def a_port_that_is_down_is_said_to_be_so():
    cases.expect(cases.softverbs("event", "port-down", "soft0"), out=None)
    try:
        ours, _ = _lines("none")
    finally:
        cases.expect(cases.softverbs("event", "port-up", "soft0"), out=None)
    _one(ours, SILENT + "queue pair 0x", " is on a port that is down: softverbs event port-up soft0", "(reason 105)")


def a_peer_that_was_killed_is_said_to_have_ended():
    ours, own = _lines("killed-peer")
    assert own == ["success, vendor_err 0", "transport retry counter exceeded, vendor_err 113"], own
    _one(ours, "ends in IBV_WC_RETRY_EXC_ERR: The peer's process has ended. (reason 113)")


def a_peer_that_was_killed_before_the_first_message_is_said_to_have_ended():
    ours, own = _lines("killed-before")
    assert own == ["transport retry counter exceeded, vendor_err 113"], own
    _one(ours, "ends in IBV_WC_RETRY_EXC_ERR: The peer's process has ended. (reason 113)")


def a_peer_that_is_stopped_is_said_to_be_so():
    for _ in range(10):  # on a busy machine the stop is too early or too late
        ours, own = _lines("stopped-late")
        if "which is stopped" in str(ours):
            break
    _one(ours, SILENT + "the number of the peer's queue pair belongs to process ", "which is stopped (SIGSTOP, or a debugger)", "(reason 105)")
    assert own == ["transport retry counter exceeded, vendor_err 105"], own


def a_queue_pair_that_is_reset_while_its_peer_is_asked_begins_anew():
    for _ in range(10):  # on a busy machine the answer is given up first
        ours, own = _lines("reset-while-asked")
        assert own == ["transport retry counter exceeded, vendor_err 105"], own
        if len(ours) == 1:
            break
    _one(ours, SILENT + f"no process of {cases.DIRECTORY} has queue pair 0xabcdef", "(reason 105)")


def path_mtus_that_differ_are_shown_on_a_network():
    hosts = ("set -e; mount -t tmpfs none /run; ip netns add server; ip netns add client;"
             "ip link add eth0 netns server type veth peer name eth0 netns client;"
             "for host in server client; do ip -n $host link set eth0 up; ip -n $host link set lo up; done;"
             "ip -n server address add 10.91.0.1/24 dev eth0; ip -n client address add 10.91.0.2/24 dev eth0")
    unshare = next((command for command in (["unshare", "--net", "--mount"], ["unshare", "--user", "--map-root-user", "--net", "--mount"])
                    if subprocess.run([*command, "sh", "-c", hosts], capture_output=True, check=False).returncode == 0), None)
    if not unshare:
        raise cases.Skip("this machine allows no network namespaces joined by a veth pair")
    screen = _screen_of([*unshare, "sh", "-c", f"{hosts}; exec {SOFTVERBS} run -- {MISTAKES} mtu"], {"ENDPOINT_GID": "1"})
    _one(screen.splitlines(), "RC SEND_FIRST from qp 0x", "a packet of 512 bytes, path_mtu is 1024", "another path_mtu", "(reason 212)")
    _one(screen.splitlines(), "ends in IBV_WC_REM_INV_REQ_ERR, an IBV_WR_SEND of ", " bytes, path_mtu 512; the log of the other host says why")
    assert "remote invalid request error, vendor_err 107" in screen, screen


def the_first_error_of_a_queue_pair_is_shown():
    screen = _screen(MISTAKES, "wrong-rkey", options=["--quiet"], env={"MISTAKES_THEN": f"{SOFTVERBS} show qps", "COLUMNS": "200"})
    rows = [re.split("  +", line) for line in screen.splitlines() if "  " in line]
    told = [dict(zip(rows[0], row)) for row in rows[1:]]
    assert sorted(row["FIRST ERROR"] for row in told) == ["REMOTE_ACCESS", "REMOTE_KEY_UNKNOWN"], screen
    assert all(row["STATE"] == "ERR" and row["QP"].startswith("0x") and row["PEER QP"].startswith("0x") for row in told)
    assert {row["QP"] for row in told} == {row["PEER QP"] for row in told}, screen


def why_says_what_the_peer_was_found_in():
    screen = _screen(MISTAKES, "never-rtr", env={"MISTAKES_THEN": f"{SOFTVERBS} why", "COLUMNS": "400"})
    _one(screen.splitlines(), "is in ERR since its first error, RETRY_EXCEEDED: queue pair 0x", "is in INIT, where it takes nothing: ibv_modify_qp to RTR is missing",
         "softverbs explain 105")


def reasons_are_counted_by_their_names_on_both_sides():
    path = f"{TEMPORARY}/reasons"
    _screen(MISTAKES, "wrong-rkey", options=["--counters", path])
    with open(path, encoding="utf-8") as lines:
        reasons = [json.loads(line)["traffic"][0]["reasons"] for line in lines]
    for name in ("REMOTE_KEY_UNKNOWN", "REMOTE_ACCESS"):  # on a busy machine repeated packets are too late, besides
        assert [each[name] for each in reasons if name in each] == [1], reasons


def quiet_shows_nothing():
    for options in (["--quiet"], ["-q"]):
        ours, own = _lines("short-mask", options=options)
        assert not ours and own, (ours, own)


def what_the_user_asked_for_counts():
    assert not _lines("short-mask", env={"SOFTVERBS_LOG": "error"})[0]
    assert not _lines("short-mask", options=["--log", "none"])[0]


def where_stderr_is_no_terminal_nothing_is_added():
    done = cases.run(MISTAKES, "short-mask")
    cases.expect(done, out=b"EINVAL from ibv_modify_qp\n", err=b"")
    assert "softverbs:" not in _screen("sh", "-c", f"{MISTAKES} short-mask 2>{TEMPORARY}/errors")
    with open(f"{TEMPORARY}/errors", encoding="ascii") as errors:
        assert errors.read() == ""


def in_a_job_the_log_has_them():
    """A job of continuous integration has no terminal; unless the user has asked for something else."""
    for job in ({"CI": "true"}, {"CI": "1"}, {"GITHUB_ACTIONS": "true"}, {"GITLAB_CI": "true"}):
        done = cases.run(MISTAKES, "short-mask", env=job)
        cases.expect(done, out=b"EINVAL from ibv_modify_qp\n", err=[b"attr_mask lacks IBV_QP_MIN_RNR_TIMER (reason 302)"])
    for job in ({"CI": "false"}, {"CI": ""}, {"GITLAB_CI": "0"}, {"CI": "true", "SOFTVERBS_LOG": "none"}, {"CI": "true", "SOFTVERBS_LOG": "terminal"}):
        cases.expect(cases.run(MISTAKES, "short-mask", env=job), out=b"EINVAL from ibv_modify_qp\n", err=b"")
    cases.expect(cases.softverbs("run", "--quiet", "--", MISTAKES, "short-mask", env={"CI": "true"}), out=None, err=b"")
    for job, level in (({}, b"terminal"), ({"CI": "true"}, b"warn")):
        assert b"export SOFTVERBS_LOG='" + level + b"'\n" in cases.softverbs("env", env=job).stdout, job


def a_line_is_broken_between_words_at_the_windows_edge():
    command = [SOFTVERBS, "run", "--", MISTAKES, "short-mask"]
    wide, narrow = (cases.at_terminal(command, cases.environment(), columns)[1].splitlines() for columns in (1000, 72))
    told = [line for line in wide if "IBV_QP_MIN_RNR_TIMER" in line]
    assert len(told) == 1 and len(told[0]) > 72, wide
    assert all(len(line) <= 72 for line in narrow) and len(narrow) > len(wide), narrow
    mend = lambda lines: [re.sub(r"\[\d+\]|0x\w+", "N", line) for line in "\n".join(lines).replace("\n    ", " ").split("\n")]
    assert mend(narrow) == mend(wide), (narrow, wide)


def a_flood_is_held_back():
    source = ("import ctypes, os; v = ctypes.CDLL('libibverbs.so.1', use_errno=True);"
              "v.ibv_get_device_list.restype = v.ibv_open_device.restype = ctypes.c_void_p;"
              "d = v.ibv_get_device_list(None); c = v.ibv_open_device(ctypes.c_void_p(ctypes.c_void_p.from_address(d).value));"
              "v.ibv_create_cq.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int];"
              "[v.ibv_create_cq(c, 0, None, None, 0) for _ in range(1000)]")
    screen = _screen(cases.PYTHON, "-c", source)
    assert 1 <= screen.count("ibv_create_cq") <= 15, screen


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
