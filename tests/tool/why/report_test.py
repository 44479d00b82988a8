#!/usr/bin/env python3
"""`softverbs report` has what a bug report needs, and nothing of what is its user's own."""
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, SOFTVERBS, TEMPORARY, expect, softverbs, told

MISTAKES = f"{BUILD}/tests/clients/mistakes"
GOLDEN = f"{cases.TREE}/tests/golden/rc_pingpong_v6.pcap"
HOME = f"{TEMPORARY}/homes/karla-secretova"
PARTS = {"made", "version", "machine", "settings", "doctor", "show", "stat", "why", "last"}


def _report(*options, **env):
    path = f"{TEMPORARY}/report.json"
    if os.path.exists(path):
        os.unlink(path)
    done = expect(softverbs("report", "--output", path, *options, env=env), out=None)
    assert path.encode() in done.stdout and os.stat(path).st_mode & 0o777 == 0o600, told(done)
    with open(path, encoding="utf-8") as file:
        return file.read()


def it_has_what_stands_in_no_other_place():
    pid = subprocess.Popen([SOFTVERBS, "run", "--", MISTAKES, "short-mask"], stdout=subprocess.DEVNULL, env=cases.environment())  # pylint: disable=consider-using-with
    assert pid.wait(60) == 0
    with subprocess.Popen([SOFTVERBS, "run", "--", f"{BUILD}/tests/tool/hangs", "unsignalled"], stdout=subprocess.PIPE, env=cases.environment()) as process:
        try:
            process.stdout.readline()
            report = json.loads(_report(SOFTVERBS_DEVICES="soft0"))
        finally:
            process.kill()
    assert set(report) == PARTS and report["settings"]["SOFTVERBS_DEVICES"] == "soft0", report["settings"]
    assert report["version"]["version"] and report["machine"]["kernel"] == os.uname().release and report["doctor"], report["machine"]
    assert any("(reason 302)" in line["text"] for each in report["last"] for line in each["lines"]), report["last"]
    assert any("not signalled" in line for each in report["why"] for line in each["waits"]), report["why"]
    shown, = (each for each in report["show"] if each["program"] == "hangs")
    assert shown["qps"] and all(region["address"] == 0 and region["key"] == 0 for region in shown["mrs"]), shown["mrs"]


SECRETS = {"HOME": HOME, "USER": "karla-secretova", "LOGNAME": "karla-secretova", "TOKEN": "ghp_topsecret", "SOFTVERBS_SEED": "seed-topsecret",
           "SOFTVERBS_LOG_FILE": f"{HOME}/logs/of-her", "SOFTVERBS_COUNTERS": f"{TEMPORARY}/at-10.77.88.99/fe80::77:88ff:fe99:1234",
           "SOFTVERBS_CONFIG": f"{HOME}/softverbs.conf"}


def the_name_of_the_host_is_not_in_it():
    """Planted: `unshare --uts` gives this command a separate host name."""
    script = f"hostname planted-host.example && exec {SOFTVERBS} report --json"
    options = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    done = subprocess.run(["unshare", *options, "--uts", "sh", "-c", script], capture_output=True, check=False,
                          env=cases.environment(SOFTVERBS_COUNTERS=f"{TEMPORARY}/planted-host/of-planted-host.example"))
    if done.returncode:
        raise cases.Skip("this machine gives no host names of their own")
    assert b"planted-host" not in done.stdout and b"/HOST/of-HOST" in done.stdout, told(done)


def nothing_that_was_planted_is_in_it():
    os.makedirs(f"{HOME}/logs")
    os.makedirs(os.path.dirname(SECRETS["SOFTVERBS_COUNTERS"]))
    with open(SECRETS["SOFTVERBS_CONFIG"], "w", encoding="utf-8") as file:
        file.write("# topsecret\nmax_qp = 128\n")
    text = _report("--capture", GOLDEN, **SECRETS)
    planted = ["topsecret", "secretova", HOME, "10.77.88.99", "fe80::77"]
    assert not [secret for secret in planted if secret in text], [secret for secret in planted if secret in text]
    report = json.loads(text)
    assert report["settings"]["SOFTVERBS_LOG_FILE"] == "~/logs/of-her" and report["settings"]["SOFTVERBS_SEED"] == "(left out)", report["settings"]
    assert report["settings"]["SOFTVERBS_COUNTERS"].endswith("/at-address-1/address-2"), report["settings"]
    with open(GOLDEN, "rb") as file:
        packets = json.dumps(report["packets"])
        assert len(report["packets"]["packets"]) > 10 and "address-" in packets and "fd" not in packets.replace("address", ""), packets[:2000]
        assert file.read(4)


def an_address_has_the_same_number_everywhere():
    report = json.loads(_report("--capture", GOLDEN))
    ends = {(packet.get("source"), packet.get("destination")) for packet in report["packets"]["packets"]}
    assert len(ends) == 2 and {end[::-1] for end in ends} == ends, ends


def it_replaces_no_file_and_says_what_it_can_t_do():
    path = f"{TEMPORARY}/there.json"
    with open(path, "w", encoding="utf-8") as file:
        file.write("kept")
    expect(softverbs("report", "--output", path), 1, b"", [b"can't be written: File exists"])
    with open(path, encoding="utf-8") as file:
        assert file.read() == "kept"
    expect(softverbs("report", "--capture", "/no/such/file"), 1, b"", [b'"/no/such/file" can\'t be read'])
    expect(softverbs("report", "now"), 2, b"", [b"no argument"])
    place = f"{TEMPORARY}/place"
    os.mkdir(place)
    done = expect(softverbs("report", cwd=place), out=None)
    assert b"softverbs-report.json has the report" in done.stdout and os.listdir(place) == ["softverbs-report.json"], told(done)
    shutil.rmtree(place)


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
