"""gdb commands for programs on softverbs, stopped or in a core file: "softverbs objects", "softverbs story NUMBER",
"softverbs connection NUMBER" and "softverbs stories FILE", and what "print *qp" says of the verbs' own structs. The program stays stopped meanwhile.

    gdb -batch -x softverbs-gdb.py -ex "softverbs story 0x12" PROGRAM core

The library needs no debug information: it has a table of the places of all members (src/report/layout.def). The
file of the library must be where it was, as for any core file, or where "set solib-search-path" says. The script reads
facts (src/facts/facts.def) and writes them as JSON; "softverbs why" makes the sentences."""
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import time

import gdb

HERE = os.path.abspath(os.path.expanduser(__file__))
MAGIC, VERSION = b"softverbs layout ", 3
OBJECT_MOST = 1 << 20  # the most objects of a list, which may be damaged and have no end
NEVER = (1 << 64) - 1


class NotHere(gdb.GdbError):
    """The command can't be done; gdb prints the sentence alone."""


def _read(address, size):
    return bytes(gdb.selected_inferior().read_memory(address, size))


def _number(address, size):
    return int.from_bytes(_read(address, size), "little")


def _pointer_size():
    return gdb.lookup_type("void").pointer().sizeof


def _text(address, most=512):
    return gdb.Value(address).cast(gdb.lookup_type("char").pointer()).string(errors="replace", length=-1)[:most] if address else ""


def _rows(form, address, count):
    """The structs of an array, as lists of numbers and texts."""
    for row in struct.iter_unpack(form, _read(address, count * struct.calcsize(form))):
        yield [value.rstrip(b"\0").decode() if isinstance(value, bytes) else value for value in row]


def _sections():
    """Where writable data of the program and of its libraries may be, libraries named "ibverbs" first; then all that a core file has."""
    found = re.findall(r"(0x[0-9a-f]+) - (0x[0-9a-f]+) is (\S+)(?: in (\S+))?", gdb.execute("info files", to_string=True))
    data = sorted((entry for entry in found if entry[2] in (".data", ".data.rel.ro")), key=lambda entry: "ibverbs" not in entry[3])
    for begin, end, _, _ in data + [entry for entry in found if entry[2].startswith("load")]:
        yield int(begin, 16), int(end, 16)


def _find_table():
    """The table's address: it begins with its mark and version, and its own address follows."""
    inferior = gdb.selected_inferior()
    for begin, end in _sections():
        while begin < end:
            try:
                found = inferior.search_memory(begin, end - begin, MAGIC)
            except gdb.MemoryError:
                break
            if found is None:
                break
            if _number(found + 24, _pointer_size()) == found:
                version = _text(found + len(MAGIC), 8)
                if version != str(VERSION):
                    raise NotHere(f"This library's table has version {version}, and this script reads {VERSION}: use the softverbs-gdb.py that came with the library.")
                return found
            begin = found + 1
    raise NotHere("There is no softverbs in this program, or it has no memory yet.")


class Layout:
    """The table of the library (src/report/layout.c)."""

    def __init__(self):
        at, letter = _find_table() + 24, "Q" if _pointer_size() == 8 else "I"
        _, process, program, directory, self.devices, parts, count, self.pid, low, high = next(_rows(f"<6{letter}Ii2I", at, 1))
        if not process:
            raise NotHere("The program has no softverbs device open.")
        self.epoch, self.program, self.directory = low | high << 32, _text(program), _text(directory, 4096)
        self.parts = {name: (at, size) for name, size, at in _rows(f"<12sI{letter}", parts, count)}
        self.members = {name: place for name, *place in _rows("<40s16s2I", *self.parts["members"])}
        self.facts = {}
        for kind, *fact in _rows("<12s28s40s3I", *self.parts["facts"]):
            self.facts.setdefault(kind, []).append(fact)
        self.reasons = dict(reversed(row) for row in _rows(f"<{letter}I{'4x' * (letter == 'Q')}", *self.parts["reasons"]))
        self.process, self.objects = Thing(self, "process", process), Thing(self, "process_objects", process)

    def constant(self, name):
        return self.members[name][1]

    def element(self, kind, array, i):
        """The i-th struct of an array, which is given by its address or name."""
        return Thing(self, kind, self.parts.get(array, (array,))[0] + i * self.members["#" + kind][2])

    def word(self, table, number):
        at, count = self.parts[table]
        return _text(_number(at + number * _pointer_size(), _pointer_size())) if number < count else "?"

    def byte(self, table, i):
        return _number(self.parts[table][0] + i, 1)

    def access(self, mask):
        row = self.constant("WORDS_SIZE") // 8
        return " | ".join(_text(self.parts["access_bits"][0] + row * bit) for bit in range(33) if (mask or 1 << 32) >> bit & 1)

    def value(self, form, source, number):
        """A fact by the number in its member; None: not known."""
        if source == "REASON":
            return _text(self.reasons[number]) if number in self.reasons else None
        if source in self.parts:
            return self.word(source, number)
        if source == "SOME" and not number:
            return None
        return bool(number) if form == self.constant("FACT_FLAG") else number + self.epoch if source == "WHEN" else number


class Thing:
    """A struct of the library at an address, whose members are numbers, texts and other structs (None: there is none)."""

    def __init__(self, layout, kind, address):
        self.layout, self.kind, self.address = layout, kind, address

    def where(self, member):
        return self.address + self.layout.members[f"{self.kind}.{member}"][1]

    def __getitem__(self, member):
        what, _, size = self.layout.members[f"{self.kind}.{member}"]
        at = self.where(member)
        if not what:
            return _number(at, size)
        if what == "*char":
            return _text(_number(at, size) if size <= 8 else at)
        at = _number(at, size) if what[0] == "*" else at
        return Thing(self.layout, what.lstrip("*"), at) if at else None

    def facts(self, kind, **made):
        """The facts of the struct, in the order of src/facts/facts.def. `made`: facts that no member has, or that are known only now and then (None: not now)."""
        known = {}
        for name, source, form, at, size in self.layout.facts[kind]:
            source = source.partition("(")[0]
            if name in made or source == "MADE":
                known[name] = made.get(name)
            else:
                known[name] = self.layout.value(form, source, _number(self.address + at, size))
        return {name: value for name, value in known.items() if value is not None}


def _list(layout, head, kind):
    """The structs of a list of <sys/queue.h>."""
    address = _number(head, _pointer_size())
    for _ in range(OBJECT_MOST):
        if not address:
            return
        yield Thing(layout, kind, address)
        address = _number(Thing(layout, kind, address).where("siblings"), _pointer_size())


def _objects(layout, kind):
    """Pairs of the device's name and the object of a kind: "qp", "cq", "srq", "mr", "pd"."""
    for context in _list(layout, layout.objects.where("contexts"), "context"):
        head = layout.element("object_list", context.where("objects"), layout.constant(f"OBJECT_{kind.upper()}")).address
        for entry in _list(layout, head, "object"):
            yield context["device"]["name"], Thing(layout, kind, entry.address - layout.members[f"{kind}.object"][1])


def _queue_pairs(layout):
    """Pairs of the device's name and the queue pair, each queue pair once."""
    found = [(device, handle["xrc.shared"] or handle) for device, handle in _objects(layout, "qp")]
    return list({qp.address: (device, qp) for device, qp in found}.values())


def _substitutes(layout):
    """Pairs of the device's name and each XRC substitute, a queue pair that the program does not know, in place of another process's."""
    for guest in _list(layout, layout.process.where("loop.guests"), "guest"):
        qp = Thing(layout, "qp", guest["endpoint"] - layout.members["qp_datapath.endpoint"][1])
        yield _flow(qp)["device"]["name"], qp


# -- a story, in the form that src/verbs/ask/qp_story_report.c writes

def _wrong_address(address, base, size):
    """The facts that wrong_address_find (src/link/wrong_address.h) finds."""
    swapped, halves = int.from_bytes(address.to_bytes(8, "little"), "big"), (0, 2**32 - 1)
    if (address - base) % 2**64 < size:
        return {}
    if (swapped - base) % 2**64 < size:
        return {"swapped": True}
    certain = address >> 32 in halves and base >= 2**32 and size <= 2**28 and address >= size
    return {"cut": True} if certain and (address - base) % 2**32 < size else {}


def _report_memory(memory):
    access = memory.layout.access
    more = {"has": access(memory["has"])} if memory["known"] else dict.fromkeys(("base", "size"))
    if memory["known"] and "story_memory.base" in memory.layout.members:
        more |= _wrong_address(memory["address"], memory["base"], memory["size"])
    if not memory["gone"]:
        more["gone"] = None
    return memory.facts("refused", access=access(memory["access"]), **more)


def _report_error(qp, error):
    layout, subject, limit, memory = error.layout, error["subject"], error["limit"], error["memory"]
    sends = subject == layout.constant("STORY_SEND")
    made = {"cause": qp["told.known"] or None} if sends else dict.fromkeys(("wr_id", "posted", "opcode", "status"))
    if subject == layout.constant("STORY_PACKET"):
        made["operation"] = layout.element("op", "operations", error["opcode"])["name"] or None
    elif not sends:
        made.update(dict.fromkeys(("length", "psn", "address", "key")))
    if error["receive_status"]:
        made["receive"] = error.facts("receive")
    elif error["reason"] == layout.constant("REASON_QP_PERMISSION"):
        made["flags"] = layout.access(limit)
    elif limit or error["reason"] == layout.constant("REASON_TOO_MANY_READS"):
        made["process" if subject == layout.constant("STORY_NOTHING") else "limit"] = limit
    return error.facts("error", **made, memory=_report_memory(memory) if memory["refused"] else None)


def _report_record(record):
    layout, event = record.layout, record["event"]
    line = layout.element("event_line", "events", event)
    said = {"time": record["time"] + layout.epoch, "event": line["name"]}
    for field, value in (line["a"], record["a"]), (line["b"], record["b"]), (layout.byte("kept", event), record["more"]):
        form, name = layout.byte("forms", field), layout.word("FIELD", field).replace(" ", "_")
        if name:
            said[name] = _text(value) if form == 1 else value - (value >> 63 << 64) if form == 2 else value
    return said


def _report_records(ring, count, written, recent=None):
    """The records of a story, whose last ones are in `recent`, or of the last events of another object: the oldest first."""
    layout = (ring or recent).layout
    last, where = written // layout.members["#story_record"][2], {}
    for source, size, first in (ring, count, last - count), (recent, block := layout.constant("STORY_RECENT"), last - last % block):
        where.update({i: layout.element("story_record", source.where("records"), i % size) for i in range(first, last) if source})
    return [_report_record(where[i]) for i in sorted(where) if where[i]["time"] and where[i]["event"] < layout.constant("EVENT_KINDS")]


def _last_events(last):
    return _report_records(last, last.layout.constant("LAST_EVENTS"), last["at"]) if last else []


def _flow(qp):
    return Thing(qp.layout, "qp_datapath", qp.address)["flow"]


def _story_events(qp):
    flow = _flow(qp)
    return _report_records(flow["story"], qp.layout.constant("STORY_RECORDS"), flow["written"], flow["recent"]) if flow["recent"] else []


def _connected(qp, events):
    """The posted work, the shared receive queue, and the peer; a peer that has ended is known from its event."""
    srq = qp["uses.srq"] or qp["xrc.selected"]  # the last message of an XRC connection named it
    queue, peer = srq["queue"] if srq else qp["receives.queue"], qp["path.peer"]
    pids = [peer["pid"]] if peer else [record["peer"] for record in events if record["event"] == "PEER_ENDED"]
    return {"send_posted": (qp["sends.posted"] - qp["sends.retired"]) & 0xffffffff, "recv_posted": queue["count"] if queue else 0,
            "srq": srq["object"]["handle"] if srq else None, "peer_pid": pids and pids[-1] or None,
            "peer_qp": not qp["traits"] & qp.layout.constant("QP_DATAGRAM") and qp["attr.dest_qp_num"] or None}


def _counts(qp):
    layout, numbers = qp.layout, _flow(qp)["counts"].where("numbers")
    first, end = layout.constant("EVENTS_OF_PACKETS"), layout.constant("EVENTS_BEFORE_REASONS")
    lines = ((event, layout.element("event_line", "events", event)) for event in range(first, end))
    return {line["key"]: _number(numbers + 8 * (event - first), 8) for event, line in lines if not line["part"]}


def _report_cq(cq):
    return cq.facts("cq", waiting=(cq["ring.tail"] - cq["ring.head"]) & 0xffffffff, events=_last_events(cq["told.events"]),
                    solicited=cq["armed"] == cq.layout.constant("CQ_ARMED_SOLICITED") or None,
                    event=bool(cq["events.waiting"]) if cq["channel"] else None)


def _report(device, qp):
    """All that is known of a queue pair and of its first error."""
    layout, story, events = qp.layout, _flow(qp)["story"], _story_events(qp)
    cqs = {cq.address: cq for cq in (qp["uses.send_cq"], qp["uses.receive_cq"]) if cq}
    made = {"pid": layout.pid, "program": layout.program, "type": qp["kind"]["name"], "device": device, "ended": False,
            "time": events[-1]["time"] if events else layout.epoch, "cqs": [_report_cq(cq) for cq in cqs.values()], "events": events or None}
    if not qp["traits"] & layout.constant("QP_RELIABLE"):
        made.update(dict.fromkeys(("timeout", "retry_cnt", "rnr_retry")))
    if story or events:
        made.update(flushed_sends=story["error"]["flushed_sends"] if story else 0, flushed_receives=story["error"]["flushed_receives"] if story else 0)
    if story and story["too_short"]["known"]:
        made["too_short"] = story["too_short"].facts("short")
    if story and story["error"]["reason"]:
        made["error"] = _report_error(qp, story["error"])
    return qp.facts("story", **made, **_connected(qp, events)) | _counts(qp)


# -- a story of an identifier of librdmacm, in the form that src/gsi/cm/cm_report.c writes

def _identifiers(layout):
    """All identifiers that the program has, of several sessions as well."""
    cm, size = layout.objects["cm"], _pointer_size()
    table = [_number(cm["manager.identifiers.buckets"] + i * size, size) for i in range(cm["manager.identifiers.mask"] + 1)] if cm else []
    for first in filter(None, table):
        entry = Thing(layout, "hash_entry", first)
        for _ in range(OBJECT_MOST):
            if entry and not entry["key"] >> 32:  # others are memberships of multicast groups
                yield Thing(layout, "identifier", entry.address - layout.members["identifier.by_number"][1])
            entry = entry and entry["next"]


def _session(identifier, operations, kind):
    """The identifier's "connection" or "resolution"; None: its session is for something else, or it has no session."""
    layout, session = identifier.layout, identifier["session"]
    if not session or session["operations"] != layout.parts[operations][0]:
        return None
    return Thing(layout, operations + "_session", session.address)[kind]


def _place(address):
    """"10.0.0.1:7174", "[fd00::1]:7174"; None: no address."""
    gid = _read(address.where("gid"), 16)
    if not address["family"]:
        return None
    if gid[:12] == bytes(10) + b"\xff\xff":
        return f"{socket.inet_ntop(socket.AF_INET, gid[12:])}:{address['port']}"
    return f"[{socket.inet_ntop(socket.AF_INET6, gid)}]:{address['port']}"


def _now(layout):
    """The time on the clock of the process; of a core file, the time of the last event of an identifier."""
    connection = getattr(gdb.selected_inferior(), "connection", None)
    if connection and connection.type == "native":
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return max((record["time"] - layout.epoch for identifier in _identifiers(layout) for record in _last_events(identifier["told"])), default=0)


def _neighbor_pid(identifier):
    """The process at the identifier's other end; None: no session, or the process is on another host or has ended."""
    session, cm = identifier["session"], identifier.layout.objects["cm"]
    for i in range(cm["neighbors.count"] if session else 0):
        neighbor = identifier.layout.element("cm_neighbor", cm["neighbors.list"], i)
        if neighbor["number"] == session["route.neighbor"]:
            return neighbor["peer"]["pid"]
    return None


def _connection(connection, now):
    """Further facts of an identifier with a connection."""
    waits = connection["deadline"] != NEVER and connection["state"] != connection.layout.constant("CONNECTION_TIMEWAIT")
    state, known = connection.layout.word("CONNECTION", connection["state"]), "connection.peers_reason" in connection.layout.members
    return {"qp": connection["local.qpn"] or None, "peer_qp": connection["remote.qpn"] or None, "state": state,
            "over": known and state in ("idle", "timewait") or None, "rejected": known and connection["peers_reason"] or None,
            "repeats": connection["max_retries"] - connection["retries"] if waits else 0, "seconds": max(0, now - connection["since"]) // 10**9}


def _report_identifier(identifier, now):
    layout, connection, resolution = identifier.layout, _session(identifier, "connect", "connection"), _session(identifier, "resolve", "resolution")
    spaces = {layout.constant(f"CM_SPACE_{name}"): name for name in ("TCP", "UDP", "IB")}
    made = {"id": identifier["by_number"]["key"], "space": spaces.get(identifier["space"], "IPOIB"), "local": _place(identifier["source"]),
            "peer": _place(identifier["destination"]), "peer_pid": _neighbor_pid(identifier),
            "state": layout.word("RESOLUTION", resolution["state"]) if resolution else layout.word("IDENTIFIER", identifier["state"])}
    if identifier["has_port"]:
        made["device"] = layout.element("device", layout.devices, identifier["port.device"])["name"]
    if identifier["state"] == layout.constant("IDENTIFIER_LISTEN"):
        made["seconds"] = max(0, now - identifier["listening_since"]) // 10**9
    else:
        made.update(dict.fromkeys(("requests", "backlog")))
    return identifier.facts("identifier", **made | (_connection(connection, now) if connection else {}))


def _report_connection(identifier, now):
    layout, connection, about = identifier.layout, _session(identifier, "connect", "connection"), _report_identifier(identifier, now)
    said = {"number": about["id"], "time": now + layout.epoch, "identifier": about, "events": _last_events(identifier["told"])}
    if connection:
        said.update(communication_id=connection["local.communication_id"], peer_communication_id=connection["remote.communication_id"])
    return {"pid": layout.pid, "program": layout.program, "ended": False, "id": said}


def _write(layout, file):
    now = _now(layout)
    reports = [_report(device, qp) for device, qp in _queue_pairs(layout) + list(_substitutes(layout))]
    reports += [_report_connection(identifier, now) for identifier in _identifiers(layout)]
    file.writelines(json.dumps(report) + "\n" for report in reports)


# -- objects

DESCRIBE = {  # each kind's parts of a line, each after the fact that the part needs; "": the part is always there
    "qp": (("", "queue pair 0x{number:x}, {type} in {state}"), ("peer_qp", ", connected with 0x{peer_qp:x}"), ("peer_pid", " of process {peer_pid}"),
           ("", ", {send_posted} sends and {recv_posted} receives posted"), ("send_cq", ", send CQ {send_cq}"), ("recv_cq", ", receive CQ {recv_cq}"),
           ("srq", ", SRQ {srq}"), ("first_error", ", first error {first_error} {first_error_name}")),
    "cq": (("", "completion queue with handle {handle}, {waiting} of {size} entries wait"), ("armed", ", armed"), ("overrun", ", overrun")),
    "srq": (("", "shared receive queue with handle {handle}, {posted} of {size} receives posted"), ("limit", ", limit {limit}")),
    "mr": (("", "memory region 0x{key:x}, {length} bytes at 0x{address:x}, {access}"),),
    "pd": (("", "protection domain with handle {handle}, {users} objects use it"),),
    "id": (("", "identifier {id}, {space} in {state}"), ("local", ", at {local}"), ("peer", ", to {peer}"), ("qp", ", queue pair 0x{qp:x}"),
           ("", ", {events} events wait")),
}


def _facts_of(kind, thing):
    if kind == "id":
        return _report_identifier(thing, _now(thing.layout))
    if kind == "cq":
        return _report_cq(thing)
    if kind == "mr":
        known = thing.facts("mr")
        return known | {"access": thing.layout.access(known["access"])}
    if kind != "qp":
        return thing.facts(kind)
    thing = thing["xrc.shared"] or thing
    queues = {key: thing[member]["object"]["handle"] for key, member in (("send_cq", "uses.send_cq"), ("recv_cq", "uses.receive_cq")) if thing[member]}
    return thing.facts("qp", type=thing["kind"]["name"], **_connected(thing, _story_events(thing)), **queues)


def _describe(kind, thing):
    known = _facts_of(kind, thing)
    return "".join(part.format_map(known) for fact, part in DESCRIBE[kind] if not fact or known.get(fact) not in (None, False))


def _things(layout, kind):
    """Pairs of the device's name and the object of a kind of DESCRIBE."""
    if kind != "id":
        return _objects(layout, kind)
    return ((_report_identifier(identifier, 0).get("device", "no device"), identifier) for identifier in _identifiers(layout))


# -- the commands

class Softverbs(gdb.Command):
    """Objects and stories of softverbs, of a stopped program or a core file."""

    def __init__(self):
        super().__init__("softverbs", gdb.COMMAND_DATA, prefix=True)


class Command(gdb.Command):
    """A command, which is a function of its argument, with its help."""

    def __init__(self, run, completed=()):
        self.__doc__, self.run, self.completed = run.__doc__, run, completed
        super().__init__(f"softverbs {run.__name__}", gdb.COMMAND_DATA)

    def complete(self, text, _word):
        return self.completed if isinstance(self.completed, int) else [word for word in self.completed if word.startswith(text)]

    def invoke(self, argument, _from_tty):
        self.run(argument)


def objects(argument):
    """softverbs objects [qp|cq|srq|mr|pd|id]: the program's objects, and its identifiers of librdmacm."""
    if argument and argument not in DESCRIBE:
        raise NotHere(f"There are no objects \"{argument}\", but {', '.join(DESCRIBE)}.")
    layout = Layout()
    print(f"{layout.program} ({layout.pid})")
    for context in _list(layout, layout.objects.where("contexts"), "context"):
        print(f"context of {context['device']['name']} at 0x{context.address:x}")
    for kind in [argument] if argument else DESCRIBE:
        for device, thing in _things(layout, kind):
            print(f"{device} {_describe(kind, thing)}, at 0x{thing.address:x}")


def stories(argument):
    """softverbs stories FILE: appends what is known of each queue pair and connection to a file, for "softverbs why --from FILE"."""
    names = gdb.string_to_argv(argument)
    if len(names) != 1:
        raise NotHere("It takes the name of a file.")
    try:
        with open(os.path.expanduser(names[0]), "a", encoding="utf-8") as file:
            _write(Layout(), file)
    except OSError as error:
        raise NotHere(f"{names[0]} can't be written: {error.strerror}.") from error


def _tool():
    """The command beside the library: PREFIX/bin/softverbs, build/softverbs; or the one in $PATH."""
    above = [HERE.rsplit("/", up)[0] for up in range(2, 6)]
    beside = [folder + part for folder in above for part in ("/bin", "") if folder]
    return shutil.which("softverbs", path=os.pathsep.join(beside)) or shutil.which("softverbs")


def _why(layout, option, number):
    """Prints what "softverbs why" says of a queue pair or identifier, with its other end from the program's directory if that is there."""
    tool = _tool()
    if not tool:
        raise NotHere("There is no softverbs in $PATH; \"softverbs stories FILE\" keeps the story for where there is one.")
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="softverbs-") as file:
        _write(layout, file)
        file.flush()
        command = [tool, "why", "--from", file.name, option, str(number)]
        if os.path.isdir(layout.directory):
            command += ["--dir", layout.directory]
        done = subprocess.run([*command, str(layout.pid)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    print(done.stdout.decode(errors="replace"), end="")


def story(argument):
    """softverbs story NUMBER: why the queue pair with this number failed, in the sentences of "softverbs why --qp"."""
    number, layout = _number_of(argument, "a queue pair"), Layout()
    if number not in {qp["number"] for _, qp in _queue_pairs(layout)}:
        raise NotHere(f"{layout.program} ({layout.pid}) has no queue pair 0x{number:x}.")
    _why(layout, "--qp", number)


def connection(argument):
    """softverbs connection NUMBER: what happened to this identifier of librdmacm and its connection, as "softverbs why --id" says."""
    number, layout = _number_of(argument, "an identifier"), Layout()
    if number not in {identifier["by_number"]["key"] for identifier in _identifiers(layout)}:
        raise NotHere(f"{layout.program} ({layout.pid}) has no identifier {number}; \"softverbs objects id\" lists them.")
    _why(layout, "--id", number)


def _number_of(argument, what):
    try:
        return int(argument, 0)
    except ValueError:
        raise NotHere(f"It takes the number of {what}.") from None


# -- print *qp, of a struct of <infiniband/verbs.h> whose debug information the program has

class Printer:
    """Facts of softverbs about an object, before the members that the program sees."""

    def __init__(self, value, kind):
        self.value, self.kind = value, kind

    def to_string(self):
        try:
            found = (thing for _, thing in _objects(Layout(), self.kind) if thing.address == int(self.value.address))
            return next((_describe(self.kind, thing) for thing in found), None)
        except (NotHere, gdb.MemoryError):
            return None

    def children(self):
        for field in self.value.type.strip_typedefs().fields():
            yield field.name or "", self.value[field]


def _printer_for(value):
    """The printer of a struct of the verbs that is in memory; None: another value."""
    kind = value.type.strip_typedefs()
    found = re.fullmatch(r"ibv_(qp|cq|srq|mr|pd)", kind.tag or "") if kind.code == gdb.TYPE_CODE_STRUCT else None
    return Printer(value, found[1]) if found and value.address is not None else None


# -- softverbs sim

def _pass_signals(event):
    """In a simulated run system calls, reads of the time stamp counter and the ends of loops are signals to the program's library. The faults
    of programs have other codes than SI_KERNEL, 128."""
    if not os.path.basename(event.new_objfile.filename or "").startswith("libsoftverbs-sim."):
        return
    gdb.execute("handle SIGSYS SIGSEGV SIG63 nostop noprint pass", to_string=True)
    if "si_code != 128" not in gdb.execute("info breakpoints", to_string=True):
        gdb.execute("catch signal SIGSEGV", to_string=True)
        gdb.execute("condition $bpnum $_siginfo.si_code != 128", to_string=True)


gdb.events.new_objfile.connect(_pass_signals)
Softverbs()
Command(objects, tuple(DESCRIBE))
Command(stories, gdb.COMPLETE_FILENAME)
Command(story)
Command(connection)
gdb.pretty_printers.append(_printer_for)
