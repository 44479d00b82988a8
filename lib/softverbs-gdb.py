"""gdb commands for programs on softverbs, stopped or in a core file: "softverbs objects", "softverbs story NUMBER",
"softverbs connection NUMBER" and "softverbs stories FILE", and what "print *qp" says of the verbs' own structs. The program does not run for it.

    gdb -batch -x softverbs-gdb.py -ex "softverbs story 0x12" PROGRAM core

The library needs no debug information: it has a table of the places of all members (src/report/layout.def). The
file of the library must be where it was, as for any core file, or where "set solib-search-path" says."""
import itertools
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
WORDS = ("states", "statuses", "opcodes", "fields", "subjects", "connections", "resolutions", "identifiers")
OBJECT_MOST = 1 << 20  # of a damaged list no more are read


class NotHere(gdb.GdbError):
    """The program has no softverbs, or softverbs nothing of that name."""


def _read(address, size):
    return bytes(gdb.selected_inferior().read_memory(address, size))


def _number(address, size):
    return int.from_bytes(_read(address, size), "little")


def _text(address, most=256):
    return gdb.Value(address).cast(gdb.lookup_type("char").pointer()).string(errors="replace", length=-1)[:most] if address else ""


def _pointer_size():
    return gdb.lookup_type("void").pointer().sizeof


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

    POINTERS = ("self", "process", "program", "directory", "members", "facts", *WORDS, "access_bits", "kept", "words", "with_sign", "events", "operations",
                "reasons", "devices", "connect", "resolve")
    COUNTS = ("members", "facts", *WORDS, "reasons")
    FORMS = ("NUMBER", "SIGNED", "ID", "QPN", "KEY", "ADDRESS", "ACCESS", "BYTES", "TIME", "SECONDS", "PID", "HEX", "FLAG")  # enum fact_form, in the order of it
    SOURCES = ("AT", "SOME", "states", "statuses", "opcodes", "subjects", "reason", "MADE")  # enum layout_source: from a member, or a table of words

    def __init__(self):
        at, size = _find_table() + 24, _pointer_size()
        letter = "Q" if size == 8 else "I"
        pointers = struct.unpack(f"<{len(self.POINTERS)}{letter}", _read(at, size * len(self.POINTERS)))
        self.at = dict(zip(self.POINTERS, pointers))
        if not self.at["process"]:
            raise NotHere("The program has no softverbs device open.")
        rest = f"<{len(self.COUNTS)}Ii2I"
        values = struct.unpack(rest, _read(at + size * len(self.POINTERS), struct.calcsize(rest)))
        self.counts = dict(zip(self.COUNTS, values))
        self.pid = values[-3]
        self.epoch = values[-2] | values[-1] << 32
        self.members = {}
        for name, where, length in struct.iter_unpack("<40sII", _read(self.at["members"], 48 * self.counts["members"])):
            self.members[name.rstrip(b"\0").decode()] = (where, length)
        self.facts = {}
        for kind, name, form, source, where, length in struct.iter_unpack("<12s28s4I", _read(self.at["facts"], 56 * self.counts["facts"])):
            form = self.FORMS[form] if form < len(self.FORMS) else "WORD"
            self.facts.setdefault(kind.rstrip(b"\0").decode(), []).append((name.rstrip(b"\0").decode(), form, self.SOURCES[source], where, length))
        self.program = _text(self.at["program"])
        self.directory = _text(self.at["directory"], 4096)

    def constant(self, name):
        return self.members[name][0]

    def length(self, kind):
        return self.members["#" + kind][1]

    def word(self, table, number):
        if number >= self.counts[table]:
            return "?"
        return _text(_number(self.at[table] + number * _pointer_size(), _pointer_size()))

    def access(self, mask):
        row = self.constant("WORDS_SIZE") // 8
        names = [_text(self.at["access_bits"] + row * bit) for bit in range(32) if mask >> bit & 1]
        return " | ".join(names) if names else _text(self.at["access_bits"] + row * 32)

    def reason(self, number):
        size = _pointer_size()
        for at in range(self.at["reasons"], self.at["reasons"] + self.counts["reasons"] * 2 * size, 2 * size):
            if _number(at + size, 4) == number:
                return _text(_number(at, size))
        return None

    def operation(self, opcode):
        where = self.at["operations"] + opcode * self.length("op") + self.members["op.name"][0]
        return _text(_number(where, _pointer_size()))


def _fact(layout, form, source, value):
    """The value of a fact by the number in its member; None: not known."""
    if source == "reason":
        return layout.reason(value)
    if source in WORDS:
        return layout.word(source, value)
    if source == "SOME" and not value:
        return None
    return bool(value) if form == "FLAG" else value + layout.epoch if form == "TIME" else value


def _facts(layout, kind, thing, **made):
    """The facts of an object, in the order of src/facts/facts.def. `made`: facts that no member has, or that are known only now and then (None: not now)."""
    said = {}
    for name, form, source, where, length in layout.facts[kind]:
        value = made.get(name)
        if name not in made and source != "MADE":
            value = _fact(layout, form, source, _number(thing.address + where, length))
        if value is not None:
            said[name] = value
    return said


class Thing:
    """A struct of the library at an address."""

    def __init__(self, layout, kind, address):
        self.layout, self.kind, self.address = layout, kind, address

    def where(self, member):
        return self.address + self.layout.members[f"{self.kind}.{member}"][0]

    def __getitem__(self, member):
        return _number(self.where(member), self.layout.members[f"{self.kind}.{member}"][1])

    def inner(self, member, kind):
        return Thing(self.layout, kind, self.where(member))

    def follow(self, member, kind):
        return Thing(self.layout, kind, self[member]) if self[member] else None

    def text(self, member):
        return _text(self[member])


def _list(layout, head, kind, link):
    """The structs of a list of <sys/queue.h>."""
    address = _number(head, _pointer_size())
    for _ in range(OBJECT_MOST):
        if not address:
            return
        yield Thing(layout, kind, address)
        address = _number(address + layout.members[f"{kind}.{link}"][0], _pointer_size())


def _contexts(layout):
    return _list(layout, Thing(layout, "process", layout.at["process"]).where("contexts"), "context", "siblings")


def _objects(layout, kind):
    """Pairs of context and object of a kind: "qp", "cq", "srq", "mr", "pd"."""
    for context in _contexts(layout):
        head = context.where("objects") + layout.constant(f"OBJECT_{kind.upper()}") * layout.length("object_list")
        for entry in _list(layout, head, "object", "siblings"):
            yield context, Thing(layout, kind, entry.address - layout.members[f"{kind}.object"][0])


def _device(context):
    return _text(context.follow("device", "device").where("name"))


def _real(qp):
    return qp.follow("xrc.shared", "qp") or qp


def _queue_pairs(layout):
    """The device's name and the queue pair, each queue pair once."""
    seen = set()
    for context, handle in _objects(layout, "qp"):
        qp = _real(handle)
        if qp.address not in seen:
            seen.add(qp.address)
            yield _device(context), qp


def _standins(layout):
    """The device's name and the queue pair of each XRC stand-in, which the program does not know, in place of another process's."""
    for guest in _list(layout, Thing(layout, "process", layout.at["process"]).where("loop.guests"), "guest", "siblings"):
        qp = Thing(layout, "qp", guest["endpoint"] - layout.members["qp_datapath.endpoint"][0])
        yield _text(_flow(layout, qp).follow("device", "device").where("name")), qp


# -- a story, in the form that src/verbs/ask/qp_story_report.c writes

def _without(*names):
    return dict.fromkeys(names)


def _report_memory(layout, memory):
    more = {"has": layout.access(memory["has"])} if memory["known"] else _without("base", "size")
    return _facts(layout, "refused", memory, access=layout.access(memory["access"]), **more)


def _report_error(layout, error, qp):
    subject = error["subject"]
    sends, packet = subject == layout.constant("STORY_SEND"), subject == layout.constant("STORY_PACKET")
    made = {"cause": _text(qp["told.known"], 512) or None} if sends else _without("wr_id", "posted", "opcode", "status")
    if packet:
        made["operation"] = layout.operation(error["opcode"]) or None
    elif not sends:
        made.update(_without("length", "psn", "address", "key"))
    if error["receive_status"]:
        made["receive"] = _facts(layout, "receive", error)
    elif error["reason"] == layout.constant("REASON_QP_PERMISSION"):
        made["flags"] = layout.access(error["limit"])
    elif error["limit"] or error["reason"] == layout.constant("REASON_TOO_MANY_READS"):
        made["process" if subject == layout.constant("STORY_NOTHING") else "limit"] = error["limit"]
    memory = error.inner("memory", "story_memory")
    if memory["refused"]:
        made["memory"] = _report_memory(layout, memory)
    return _facts(layout, "error", error, **made)


def _event(layout, number):
    return Thing(layout, "event_line", layout.at["events"] + number * layout.length("event_line"))


def _report_record(layout, record):
    line = _event(layout, record["event"])
    said = {"time": record["time"] + layout.epoch, "event": line.text("name")}
    for field, value in ((line["a"], "a"), (line["b"], "b"), (_number(layout.at["kept"] + record["event"], 1), "more")):
        if field not in (layout.constant("EVENT_FIELD_NONE"), layout.constant("EVENT_FIELD_LEFT")):
            said[layout.word("fields", field).replace(" ", "_")] = _field(layout, field, record[value])
    return said


def _field(layout, field, value):
    if _number(layout.at["words"] + field, 1):
        return _text(value)
    return value - (value >> 63 << 64) if _number(layout.at["with_sign"] + field, 1) else value


def _records(layout, ring, flow=None):
    """The records of a story, whose last ones are apart in the flow, or the last events of another object: the oldest first."""
    recent = flow and flow.follow("recent", "story_recent")
    if not recent and (flow or not ring):
        return
    last = (flow["written"] if recent else ring["at"]) // (length := layout.length("story_record"))
    count = layout.constant("STORY_RECORDS" if recent else "LAST_EVENTS")
    block = layout.constant("STORY_RECENT") if recent else 1
    apart = last - last % block  # from here on
    for i in range(last, last + count):
        if recent and (i - apart) % count < last - apart:
            where = recent.where("records") + (i - apart) % count * length
        elif ring:
            where = ring.where("records") + i % count * length
        else:
            continue
        record = Thing(layout, "story_record", where)
        if record["time"] and record["event"] < layout.constant("EVENT_KINDS"):
            yield record


def _peer_pid(layout, qp, story):
    """The peer's process, also of a peer that has ended: its event is left; 0: not known."""
    peer = qp.follow("path.peer", "peer")
    if peer:
        return peer["pid"]
    ended = [record["a"] for record in _records(layout, story, _flow(layout, qp)) if record["event"] == layout.constant("EVENT_PEER_ENDED")]
    return ended[-1] if ended else 0


def _peer(layout, qp, story):
    connected = not qp["traits"] & layout.constant("QP_DATAGRAM")
    return {"peer_qp": connected and qp["attr.dest_qp_num"] or None, "peer_pid": _peer_pid(layout, qp, story) or None}


def _srq(qp):
    """The shared receive queue; of an XRC connection, the last message named it."""
    return qp.follow("uses.srq", "srq") or qp.follow("xrc.selected", "srq")


def _work(qp):
    """The numbers of posted work requests, and the shared receive queue."""
    srq = _srq(qp)
    queue = srq.inner("queue", "receive_queue") if srq else qp.follow("receives.queue", "receive_queue")
    return {"send_posted": (qp["sends.posted"] - qp["sends.retired"]) & 0xffffffff, "recv_posted": queue["count"] if queue else 0,
            "srq": srq.inner("object", "object")["handle"] if srq else None}


def _flow(layout, qp):
    return Thing(layout, "qp_datapath", qp.address).inner("flow", "traffic_flow")


def _report_counts(layout, qp):
    said, first = {}, layout.constant("EVENTS_OF_PACKETS")
    numbers = _flow(layout, qp).inner("counts", "counts").where("numbers")
    for event in range(first, layout.constant("EVENTS_BEFORE_REASONS")):
        line = _event(layout, event)
        if not line.text("part"):
            said[line.text("key")] = _number(numbers + 8 * (event - first), 8)
    return said


def _report_cq(layout, cq):
    last = cq.follow("told.events", "last_events")
    return _facts(layout, "cq", cq, waiting=(cq["ring.tail"] - cq["ring.head"]) & 0xffffffff,
                  solicited=cq["armed"] == layout.constant("CQ_ARMED_SOLICITED") or None,
                  event=bool(cq["events_waiting"]) if cq["channel"] else None,
                  events=[_report_record(layout, record) for record in _records(layout, last)] if last else [])


def _report_cqs(layout, qp):
    """The completion queue of sends, and the queue of receives if it is another."""
    both = {cq.address: cq for cq in (qp.follow("uses.send_cq", "cq"), qp.follow("uses.receive_cq", "cq")) if cq}
    return [_report_cq(layout, cq) for cq in both.values()]


def _flushed_and_error(layout, story, qp):
    error, short = story.inner("error", "story_error"), story.inner("too_short", "story_short")
    return {"flushed_sends": error["flushed_sends"], "flushed_receives": error["flushed_receives"],
            "too_short": _facts(layout, "short", short) if short["known"] else None,
            "error": _report_error(layout, error, qp) if error["reason"] else None}


def _report(layout, device, qp):
    """All that is known of a queue pair and of its first error."""
    story = _flow(layout, qp).follow("story", "story")
    records = [_report_record(layout, record) for record in _records(layout, story, _flow(layout, qp))]
    made = {"pid": layout.pid, "program": layout.program, "type": qp.follow("kind", "qp_kind").text("name"),
            "time": records[-1]["time"] if records else layout.epoch, "device": device, "ended": False}
    made.update(_peer(layout, qp, story) | _work(qp))
    if not qp["traits"] & layout.constant("QP_RELIABLE"):
        made.update(_without("timeout", "retry_cnt", "rnr_retry"))
    if story:
        made.update(_flushed_and_error(layout, story, qp))
    elif records:
        made.update(flushed_sends=0, flushed_receives=0)
    made["cqs"] = _report_cqs(layout, qp)
    made["events"] = records or None
    return _facts(layout, "story", qp, **made) | _report_counts(layout, qp)


# -- a story of an identifier of librdmacm, in the form that src/gsi/cm_report.c writes

NEVER = (1 << 64) - 1


def _identifiers(layout):
    """All identifiers that the program has, of several sessions as well."""
    cm = Thing(layout, "process", layout.at["process"]).follow("cm", "cm")
    size = _pointer_size()
    table = _read(cm["manager.identifiers.buckets"], (cm["manager.identifiers.mask"] + 1) * size) if cm else b""
    for at in range(0, len(table), size):
        entry = int.from_bytes(table[at:at + size], "little")
        for _ in range(OBJECT_MOST):
            if not entry:
                break
            if not Thing(layout, "hash_entry", entry)["key"] >> 32:  # others are memberships of multicast groups
                yield Thing(layout, "identifier", entry - layout.members["identifier.by_number"][0])
            entry = Thing(layout, "hash_entry", entry)["next"]


def _identifier_number(identifier):
    return identifier.inner("by_number", "hash_entry")["key"]


def _session(layout, identifier, operations, kind):
    """The identifier's "connection" or "resolution"; None: its session is for something else, or it has no session."""
    session = identifier.follow("session", "session")
    if not session or session["operations"] != layout.at[operations]:
        return None
    return Thing(layout, kind, session.address + layout.members[f"{operations}_session.{kind}"][0])


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
    return max((record["time"] for identifier in _identifiers(layout) for record in _events_of(layout, identifier)), default=0)


def _events_of(layout, identifier):
    last = identifier.follow("told", "last_events")
    return _records(layout, last) if last else []


def _state_of(layout, identifier):
    connection, resolution = _session(layout, identifier, "connect", "connection"), _session(layout, identifier, "resolve", "resolution")
    if connection:
        return layout.word("connections", connection["state"])
    return layout.word("resolutions", resolution["state"]) if resolution else layout.word("identifiers", identifier["state"])


def _space(layout, identifier):
    names = {layout.constant(f"CM_SPACE_{name}"): name for name in ("TCP", "UDP", "IB")}
    return names.get(identifier["space"], "IPOIB")


def _neighbor_pid(layout, identifier):
    """0: it is of another host, or has ended."""
    session, cm = identifier.follow("session", "session"), Thing(layout, "process", layout.at["process"]).follow("cm", "cm")
    for i in range(cm["neighbors.count"] if session else 0):
        neighbor = Thing(layout, "cm_neighbor", cm["neighbors.list"] + i * layout.length("cm_neighbor"))
        if neighbor["number"] == session["route.neighbor"]:
            return neighbor.follow("peer", "peer")["pid"]
    return 0


def _connection(layout, identifier, now):
    """Further facts of an identifier with a connection."""
    connection = _session(layout, identifier, "connect", "connection")
    if not connection:
        return {}
    waits = connection["deadline"] != NEVER and connection["state"] != layout.constant("CONNECTION_TIMEWAIT")
    return {"qp": connection["local.qpn"] or None, "peer_qp": connection["remote.qpn"] or None,
            "repeats": connection["max_retries"] - connection["retries"] if waits else 0, "seconds": max(0, now - connection["since"]) // 10**9}


def _report_identifier(layout, identifier, now):
    made = {"id": _identifier_number(identifier), "state": _state_of(layout, identifier), "space": _space(layout, identifier),
            "local": _place(identifier.inner("source", "cm_address")), "peer": _place(identifier.inner("destination", "cm_address")),
            "peer_pid": _neighbor_pid(layout, identifier) or None}
    if identifier["has_port"]:
        device = Thing(layout, "device", layout.at["devices"] + identifier["port.device"] * layout.length("device"))
        made["device"] = _text(device.where("name"))
    if identifier["state"] == layout.constant("IDENTIFIER_LISTEN"):
        made["seconds"] = max(0, now - identifier["listening_since"]) // 10**9
    else:
        made.update(_without("requests", "backlog"))
    return _facts(layout, "identifier", identifier, **made | _connection(layout, identifier, now))


def _report_connection(layout, identifier, now):
    connection = _session(layout, identifier, "connect", "connection")
    said = {"number": _identifier_number(identifier), "time": now + layout.epoch, "identifier": _report_identifier(layout, identifier, now)}
    if connection:
        said.update(communication_id=connection["local.communication_id"], peer_communication_id=connection["remote.communication_id"])
    said["events"] = [_report_record(layout, record) for record in _events_of(layout, identifier)]
    return {"pid": layout.pid, "program": layout.program, "ended": False, "id": said}


def _write(layout, file):
    now = _now(layout)
    for device, qp in itertools.chain(_queue_pairs(layout), _standins(layout)):
        file.write(json.dumps(_report(layout, device, qp)) + "\n")
    for identifier in _identifiers(layout):
        file.write(json.dumps(_report_connection(layout, identifier, now)) + "\n")


# -- objects

def _describe_qp(layout, qp):
    qp = _real(qp)
    peer = _peer(layout, qp, _flow(layout, qp).follow("story", "story"))
    error = qp["told.first_error"]
    said = [f"queue pair 0x{qp['number']:x}", f"{qp.follow('kind', 'qp_kind').text('name')} in {layout.word('states', qp['state'])}"]
    if peer["peer_qp"]:
        said.append(f"connected with 0x{peer['peer_qp']:x}" + (f" of process {peer['peer_pid']}" if peer["peer_pid"] else ""))
    work = _work(qp)
    said.append(f"{work['send_posted']} sends and {work['recv_posted']} receives posted")
    for word, member in (("send", "uses.send_cq"), ("receive", "uses.receive_cq")):
        cq = qp.follow(member, "cq")
        if cq:
            said.append(f"{word} CQ {cq.inner('object', 'object')['handle']}")
    if work["srq"] is not None:
        said.append(f"SRQ {work['srq']}")
    if error:
        said.append(f"first error {error} {layout.reason(error)}")
    return ", ".join(said)


def _describe_cq(layout, cq):
    said = _report_cq(layout, cq)
    return (f"completion queue {said['handle']}, {said['waiting']} of {said['size']} entries wait"
            f"{', armed' if said['armed'] else ''}{', overrun' if said['overrun'] else ''}")


def _describe_srq(layout, srq):
    said = _facts(layout, "srq", srq)
    return (f"shared receive queue {said['handle']}, {said['posted']} of {said['size']} receives posted"
            f"{', limit %d' % said['limit'] if said['limit'] else ''}")


def _describe_mr(layout, mr):
    said = _facts(layout, "mr", mr)
    return f"memory region 0x{said['key']:x}, {said['length']} bytes at 0x{said['address']:x}, {layout.access(said['access'])}"


def _describe_pd(layout, pd):
    said = _facts(layout, "pd", pd)
    return f"protection domain {said['handle']}, {said['users']} objects use it"


def _describe_identifier(layout, identifier):
    said = _report_identifier(layout, identifier, _now(layout))
    places = [f"{word} {said[key]}" for word, key in (("at", "local"), ("to", "peer")) if key in said]
    queue = [f"queue pair 0x{said['qp']:x}"] if "qp" in said else []
    return ", ".join([f"identifier {said['id']}", f"{said['space']} in {said['state']}", *places, *queue, f"{said['events']} events wait"])


DESCRIBE = {"qp": _describe_qp, "cq": _describe_cq, "srq": _describe_srq, "mr": _describe_mr, "pd": _describe_pd, "id": _describe_identifier}


def _things(layout, kind):
    """Pairs of the device's name and the object of a kind of DESCRIBE."""
    if kind == "id":
        for identifier in _identifiers(layout):
            yield _report_identifier(layout, identifier, 0).get("device", "no device"), identifier
    else:
        for context, thing in _objects(layout, kind):
            yield _device(context), thing


class Softverbs(gdb.Command):
    """Objects and stories of softverbs, of a stopped program or a core file."""

    def __init__(self):
        super().__init__("softverbs", gdb.COMMAND_DATA, prefix=True)


class Objects(gdb.Command):
    """softverbs objects [qp|cq|srq|mr|pd|id]: the program's objects, and its identifiers of librdmacm."""

    def __init__(self):
        super().__init__("softverbs objects", gdb.COMMAND_DATA)

    def complete(self, text, _word):
        return [kind for kind in DESCRIBE if kind.startswith(text)]

    def invoke(self, argument, _from_tty):
        if argument and argument not in DESCRIBE:
            raise NotHere(f"There are no objects \"{argument}\", but {', '.join(DESCRIBE)}.")
        layout = Layout()
        print(f"{layout.program} ({layout.pid})")
        for context in _contexts(layout):
            print(f"context of {_device(context)} at 0x{context.address:x}")
        for kind in [argument] if argument else DESCRIBE:
            for device, thing in _things(layout, kind):
                print(f"{device} {DESCRIBE[kind](layout, thing)}, at 0x{thing.address:x}")


class Stories(gdb.Command):
    """softverbs stories FILE: appends what is known of each queue pair and connection to a file, for "softverbs why --from FILE"."""

    def __init__(self):
        super().__init__("softverbs stories", gdb.COMMAND_DATA, gdb.COMPLETE_FILENAME)

    def invoke(self, argument, _from_tty):
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
    above = os.path.dirname(HERE)
    for _ in range(4):
        above = os.path.dirname(above)
        for name in (f"{above}/bin/softverbs", f"{above}/softverbs"):
            if os.path.isfile(name) and os.access(name, os.X_OK):
                return name
    return shutil.which("softverbs")


def _tell(layout, option, number):
    """Prints what "softverbs why" says of it: the other end may be in the program's directory."""
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


def _number_of(argument, what):
    try:
        return int(argument, 0)
    except ValueError:
        raise NotHere(f"It takes the number of {what}.") from None


class Story(gdb.Command):
    """softverbs story NUMBER: why the queue pair with this number failed, in the sentences of "softverbs why --qp"."""

    def __init__(self):
        super().__init__("softverbs story", gdb.COMMAND_DATA)

    def invoke(self, argument, _from_tty):
        number, layout = _number_of(argument, "a queue pair"), Layout()
        if not any(qp["number"] == number for _, qp in _queue_pairs(layout)):
            raise NotHere(f"{layout.program} ({layout.pid}) has no queue pair 0x{number:x}.")
        _tell(layout, "--qp", number)


class Connection(gdb.Command):
    """softverbs connection NUMBER: what happened to this identifier of librdmacm and its connection, as "softverbs why --id" says."""

    def __init__(self):
        super().__init__("softverbs connection", gdb.COMMAND_DATA)

    def invoke(self, argument, _from_tty):
        number, layout = _number_of(argument, "an identifier"), Layout()
        if not any(_identifier_number(identifier) == number for identifier in _identifiers(layout)):
            raise NotHere(f"{layout.program} ({layout.pid}) has no identifier {number}; \"softverbs objects id\" lists them.")
        _tell(layout, "--id", number)


# -- print *qp, of a struct of <infiniband/verbs.h> whose debug information the program has

class Printer:
    """Facts of softverbs about an object, before the members that the program sees."""

    def __init__(self, value, kind):
        self.value, self.kind = value, kind

    def to_string(self):
        try:
            layout = Layout()
            for _, thing in _objects(layout, self.kind):
                if thing.address == int(self.value.address):
                    return DESCRIBE[self.kind](layout, thing)
        except (NotHere, gdb.MemoryError):
            pass
        return None

    def children(self):
        for field in self.value.type.strip_typedefs().fields():
            yield field.name or "", self.value[field]


def _printer_for(value):
    """The printer of a struct of the verbs that is in memory; None: another value."""
    kind = value.type.strip_typedefs()
    found = re.fullmatch(r"ibv_(qp|cq|srq|mr|pd)", kind.tag or "") if kind.code == gdb.TYPE_CODE_STRUCT else None
    return Printer(value, found[1]) if found and value.address is not None else None


Softverbs()
Objects()
Stories()
Story()
Connection()
gdb.pretty_printers.append(_printer_for)
