#!/usr/bin/python3
"""attacked_server.py GID-INDEX PORT [SERVER]: one side of two that talk over RC, UC and UD while an attacker sends to the server.
The server prints its numbers as JSON. The client then reads commands, "NUMBER LENGTH SERVICE...": sends NUMBER messages of that
length over each service, and prints "fine" when the server got them whole and in order, nothing else has arrived, its queue pairs
are in RTS, and the memory that its peers could write to is as it was; else what is wrong. Needs pyverbs."""
import json
import socket
import sys
import time

import pyverbs.enums as e
from pyverbs.addr import AH, GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context, get_device_list
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

BATCH, ROOM, GRH, QKEY, VAULT, SPARES = 32, 8192, 40, 0x11111111, 4096, 8
ACCESS = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC
TYPES = {"rc": e.IBV_QPT_RC, "uc": e.IBV_QPT_UC, "ud": e.IBV_QPT_UD}


def content(number, length):
    return bytes((number * 7 + i) & 0xff for i in range(256)) * (length // 256 + 1)


class Side:
    def __init__(self, gid_index, control):
        self.reader, self.writer = control.makefile("r"), control.makefile("w")
        self.gid_index, self.sent = gid_index, 0
        self.context = Context(name="soft0")
        self.others = [Context(name=device.name.decode()) for device in get_device_list() if device.name != b"soft0"]
        self.domain, self.queue = PD(self.context), CQ(self.context, 4096)
        self.memory = MR(self.domain, BATCH * ROOM, e.IBV_ACCESS_LOCAL_WRITE)
        self.vault = MR(self.domain, VAULT, ACCESS)
        self.vault.write(b"\x5a" * VAULT, VAULT)
        self.pairs = {name: self.create(TYPES[name]) for name in TYPES}
        self.spares = [self.create(e.IBV_QPT_RC) for _ in range(SPARES)]
        self.connect()

    def agree(self, value=None):
        """Gives the other side a value and gets its own."""
        self.writer.write(json.dumps(value) + "\n")
        self.writer.flush()
        return json.loads(self.reader.readline())

    def create(self, kind):
        attributes = QPAttr(port_num=1)
        attributes.qkey, attributes.qp_access_flags = QKEY, ACCESS
        cap = QPCap(max_send_wr=BATCH, max_recv_wr=BATCH)
        return QP(self.domain, QPInitAttr(qp_type=kind, scq=self.queue, rcq=self.queue, cap=cap), attributes)

    def numbers(self):
        numbers = {name: pair.qp_num for name, pair in self.pairs.items()}
        return {**numbers, "spares": [pair.qp_num for pair in self.spares], "vault": self.vault.buf, "rkey": self.vault.rkey,
                "gid": self.context.query_gid(1, self.gid_index).gid}

    def connect(self):
        self.peer = self.agree(self.numbers())
        route = GlobalRoute(dgid=GID(self.peer["gid"]), sgid_index=self.gid_index)
        route.hop_limit = 64
        self.way = AHAttr(port_num=1, is_global=1, gr=route)
        self.handle = AH(self.domain, attr=self.way)
        for pair, number in [(self.pairs["rc"], self.peer["rc"]), (self.pairs["uc"], self.peer["uc"]),
                             *zip(self.spares, self.peer["spares"])]:
            attributes = QPAttr(port_num=1)
            attributes.qp_access_flags, attributes.path_mtu, attributes.dest_qp_num = ACCESS, e.IBV_MTU_1024, number
            attributes.ah_attr, attributes.max_rd_atomic, attributes.max_dest_rd_atomic = self.way, 4, 4
            attributes.min_rnr_timer, attributes.timeout, attributes.retry_cnt, attributes.rnr_retry = 12, 14, 7, 7
            pair.to_rts(attributes)
        self.agree()

    def completions(self, count):
        """Waits for this number of completions; what is wrong with them, or None."""
        deadline = time.monotonic() + 30
        while count:
            found, completions = self.queue.poll(1)
            count -= found
            if found and completions[0].status:
                return f"a completion with status {completions[0].status}"
            if time.monotonic() > deadline:
                return f"{count} completions are missing"
        return None

    def piece(self, slot, length):
        return [SGE(self.memory.buf + slot * ROOM, length, self.memory.lkey)]

    def post_receives(self, service, count, length):
        for slot in range(count):
            self.memory.write(b"\0" * (length + GRH), length + GRH, slot * ROOM)
            self.pairs[service].post_recv(RecvWR(num_sge=1, sg=self.piece(slot, length + GRH)))

    def check_receives(self, service, count, length, first):
        wrong, skip = self.completions(count), GRH if service == "ud" else 0
        for slot in range(count):
            if not wrong and self.memory.read(length, slot * ROOM + skip) != content(first + slot, length)[:length]:
                wrong = f"message {slot} over {service} is not what was sent"
        return wrong

    def send(self, service, count, length, first):
        for slot in range(count):
            self.memory.write(content(first + slot, length)[:length], length, slot * ROOM)
            message = SendWR(num_sge=1, sg=self.piece(slot, length), send_flags=e.IBV_SEND_SIGNALED)
            if service == "ud":
                message.set_wr_ud(self.handle, self.peer["ud"], QKEY)
            self.pairs[service].post_send(message)
        return self.completions(count)

    def calm(self):
        """Returns None if everything is as it was, in spite of the attack, else what differs."""
        if self.queue.poll(1)[0]:
            return "a completion that nobody expected"
        if self.vault.read(VAULT, 0) != b"\x5a" * VAULT:
            return "somebody has written to the vault"
        states = [pair.query(e.IBV_QP_STATE)[0].qp_state for pair in self.pairs.values()]
        return None if states == [e.IBV_QPS_RTS] * 3 else f"states {states}"

    def exchange(self, sends, count, length, services):
        wrong = None
        for service in services:
            for first in range(0, count, BATCH):
                part = min(BATCH, count - first)
                if not sends:
                    self.post_receives(service, part, length)
                self.agree()
                wrong = wrong or (self.send(service, part, length, first) if sends
                                  else self.check_receives(service, part, length, first))
                wrong = wrong or self.agree(wrong)
        return wrong or self.calm()


def serve(side):
    print(json.dumps(side.numbers()), flush=True)
    while (request := side.agree()):
        wrong = side.exchange(False, *request)
        side.agree(wrong)
        if wrong:
            break


def command(side):
    for line in sys.stdin:
        count, length, *services = line.split()
        side.agree([int(count), int(length), services])
        wrong = side.exchange(True, int(count), int(length), services)
        print(side.agree(wrong) or wrong or "fine", flush=True)
    side.agree()


def main(gid_index, port, server=None):
    if server:
        command(Side(int(gid_index), socket.create_connection((server, int(port)))))
    else:
        with socket.create_server(("", int(port))) as listening:
            serve(Side(int(gid_index), listening.accept()[0]))


if __name__ == "__main__":
    main(*sys.argv[1:])
