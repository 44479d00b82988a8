#!/usr/bin/env python3
"""Each fault of a script acts on an unmodified program, and does not where its condition does not hold: the rows of docs/evidence/faults.md."""
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import BUILD, SOFTVERBS, TEMPORARY, TREE, Skip
from patience import patience, until

PAGE = f"{TREE}/docs/evidence/faults.md"
NEVER = "when rdma_bind_addr, nth 99: error EIO"
FILES = {name: f"{TEMPORARY}/fault-{name}" for name in ("counters", "capture")}


def _table(title):
    """The rows below a heading, each a list of texts."""
    with open(PAGE, encoding="utf-8") as file:
        part = file.read().split(f"\n## {title}\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in part.splitlines() if line.startswith("| ")][1:]
    assert rows and all(len(row) == 5 for row in rows), rows
    return [[cell.strip("`") for cell in row] for row in rows]


def _with(rule, other):
    """The rule under another condition, or another rule."""
    return other if other.startswith(("when ", "event ")) else rule.replace(":", f", {other}:", 1)


def _options(rule):
    for path in FILES.values():
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)
    return [SOFTVERBS, "run", "--log", "warn", "--counters", FILES["counters"], "--capture", FILES["capture"], "--inject", rule]


def _finish(text, status):
    """All that is known of the program with the rule, and what the rule did."""
    text = [text, f"\nexit {status}\n"]
    counted = {}
    if os.path.exists(FILES["counters"]):
        with open(FILES["counters"], encoding="utf-8") as file:
            reports = [json.loads(line) for line in file]
        text += [json.dumps(report) for report in reports]
        counted = {kind: count for report in reports for kind, count in report["calls"]["scripted"].items()}
    if os.path.exists(FILES["capture"]):
        with open(FILES["capture"], encoding="latin-1") as file:
            text.append(file.read())
    return "".join(text), counted


def _alone(rule, program, *arguments):
    if program == "scripted":
        program = f"{BUILD}/tests/tool/scripted"
    elif not shutil.which(program):
        raise Skip(f"{program} is not installed")
    done = subprocess.run([*_options(rule), "--", program, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          timeout=patience(60), env=cases.environment())
    return _finish(done.stdout.decode(), done.returncode)


def _client(command):
    """The client has ended, and there was a listener."""
    end = until(30)
    while True:
        done = subprocess.run([*command, "-c", "-C", "1"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=patience(60), env=cases.environment())
        if not re.search(rb"(status|error) 8\b", done.stdout) or time.monotonic() > end:
            return done
        time.sleep(0.05)


def _rping(rule, side):
    """A server and a client; one has the rule."""
    if not shutil.which("rping"):
        raise Skip("rping is not installed")
    rules, options = {"server": NEVER, "client": NEVER, side: rule}, {}
    for each, given in rules.items():
        options[each] = _options(given) if each == side else [SOFTVERBS, "run", "--log", "warn", "--inject", given]
        options[each] += ["--time-scale", "0.01", "--", "rping", "-a", "127.0.0.1", "-p", str(23000 + os.getpid() % 10000)]
    with subprocess.Popen([*options["server"], "-s"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=cases.environment()) as server:
        try:
            client = _client(options["client"])
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(0 if client.returncode else patience(20))
        finally:
            server.kill()
        said = server.communicate()[0]
    return _finish((said + client.stdout).decode(), client.returncode)


def _run(rule, program):
    name, *arguments = program.split()
    return _rping(rule, *arguments) if name == "rping" else _alone(rule, name, *arguments)


def _is_tested_there(program, titles):
    with open(f"{TREE}/tests/{program}", encoding="utf-8") as file:
        text = file.read()
    return all(f'"{title}"' in text for title in titles)


def _check(row):
    fault, rule, program, seen, other = row
    if program.startswith("clients/"):
        assert _is_tested_there(program, (seen, other)), fault
        return
    text, _ = _run(rule, program)
    assert re.search(seen, text, re.M), (fault, rule, text[:1500])
    assert "by line 1 of the script (reason 700)" in text, (fault, rule, text[:1500])
    text, counted = _run(_with(rule, other), program)
    assert not re.search(seen, text, re.M) and not counted and "reason 700" not in text, (fault, other, counted, text[:1500])


def _check_all(title):
    missing, wrong = [], []
    for row in _table(title):
        try:
            _check(row)
        except Skip as reason:
            missing.append(str(reason))
        except AssertionError as error:
            wrong.append(str(error))
    assert not wrong, "\n".join(wrong)
    if missing:
        raise Skip(", ".join(sorted(set(missing))))


def conditions_choose_what_a_rule_meets():
    _check_all("Which calls, packets and events")


def packets_go_wrong():
    _check_all("Packets")


def calls_go_wrong():
    _check_all("Calls")


def completions_go_wrong():
    _check_all("Completions")


def objects_and_devices_go_wrong():
    _check_all("Objects and devices")


def connections_go_wrong():
    _check_all("Connections")


def processes_go_wrong():
    _check_all("Processes")


def _words(pattern):
    with open(f"{TREE}/src/script/words.def", encoding="utf-8") as file:
        return re.findall(pattern, file.read(), re.M)


def work_ends_in_each_status():
    names = _words(r"^STATUS\((\w+)\)")
    assert len(names) > 20
    for name in names:
        text, counted = _alone(f"when work, nth 4: complete {name}", "scripted", "work" if name != "SUCCESS" else "datagrams")
        status = int(re.search(r"^wr_id 4 status (\d+) ", text, re.M)[1])
        assert counted == {"complete": 1} and (status > 0) == (name != "SUCCESS"), (name, text[:2000])
        assert f"ends in {name} by line 1" in text, (name, text[:2000])
    text, counted = _alone("; ".join(f"when work, nth 9: complete {name}" for name in names), "scripted", "work")
    assert not counted and len(re.findall(r"^wr_id \d+ status 0 ", text, re.M)) == 8, text[:2000]


def each_asynchronous_event_comes_to_its_object_alone():
    events = _words(r'^RAISED\("([^"]+)", \w+, "(\w*)"\)')
    calls = {"qp": "ibv_query_qp", "cq": "ibv_poll_cq", "srq": "ibv_query_srq", "": "ibv_query_qp"}
    for name, of in events:
        mode = "srq" if of == "srq" else "asyncs"
        text, counted = _alone(f"when {calls[of]}, once: raise {name}", "scripted", mode)
        assert counted == {"raise": 1} and ("\nasync " in text or text.startswith("async ") or name == "port-up"), (name, text[:2000])
        elsewhere = "ibv_query_port" if not of else "ibv_query_qp" if of != "qp" else "ibv_poll_cq"
        text, counted = _alone(f"when {elsewhere}, once: raise {name}", "scripted", mode)
        assert not counted and "async " not in text.partition("exit ")[0], (name, text[:2000])


def the_page_has_each_action():
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    for action in _words(r'^ACTION\("(\w+)"'):
        assert re.search(rf"`[^`]*[:,] {action}\b", page) or action in ("note", "places", "data", "vendor"), action
    for kind in _words(r"^FORGED\((\w+),"):
        assert f"forge {kind}" in page, kind


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
