#!/usr/bin/python3
"""exchange.py DEVICE GID-INDEX MTU PORT SERVICE OPERATION [SERVER]: one side of an exchange whose data is checked; the other
side may have another implementation of verbs. Without SERVER it is the server. Exit status 0: everything arrived as it was
sent. Needs pyverbs and nothing else."""
import hashlib
import json
import socket
import sys
import time

import pyverbs.enums as e
from pyverbs.addr import GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

MIB = 1 << 20
SIZES = (1, 2, 3, 4, 1000, 1023, 1024, 1025, 4095, 4096, 4097, 65535, 65536, MIB - 1, MIB)
GUARD = 8  # bytes after the message that must stay as they were
IMMEDIATE = 0x44332211
WITHIN, UNNOTIFIED = 60, 10  # seconds
ACCESS = (e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC)
SERVICES = {"RC": e.IBV_QPT_RC, "UC": e.IBV_QPT_UC}
MTUS = {1024: e.IBV_MTU_1024, 4096: e.IBV_MTU_4096}


def pattern(seed, length):
    return hashlib.shake_128(str(seed).encode()).digest(length)


class Side:
    """A queue pair connected to the other side's, and a region of memory that both know."""

    def __init__(self, control, device, gid_index, mtu, service):
        self.reader, self.writer = control.makefile("r"), control.makefile("w")
        self.context = Context(name=device)
        self.domain = PD(self.context)
        self.queue = CQ(self.context, 16)
        self.memory = MR(self.domain, MIB + GUARD, ACCESS)
        self._connect(gid_index, MTUS[mtu], SERVICES[service])

    def _connect(self, gid_index, mtu, service):
        attributes = QPAttr(port_num=1)
        attributes.qp_access_flags = ACCESS if service == e.IBV_QPT_RC else e.IBV_ACCESS_REMOTE_WRITE
        create = QPInitAttr(qp_type=service, scq=self.queue, rcq=self.queue, cap=QPCap(max_send_wr=8, max_recv_wr=8))
        self.pair = QP(self.domain, create, attributes)
        self.peer = self.agree({"qpn": self.pair.qp_num, "gid": self.context.query_gid(1, gid_index).gid,
                                "address": self.memory.buf, "rkey": self.memory.rkey})
        route = GlobalRoute(dgid=GID(self.peer["gid"]), sgid_index=gid_index)
        route.hop_limit = 64
        attributes.path_mtu, attributes.dest_qp_num = mtu, self.peer["qpn"]
        attributes.ah_attr = AHAttr(port_num=1, is_global=1, gr=route)
        attributes.rq_psn = attributes.sq_psn = 0xfffff0  # the numbers wrap around early
        attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 4
        attributes.min_rnr_timer, attributes.timeout, attributes.retry_cnt, attributes.rnr_retry = 12, 17, 7, 7
        self.pair.to_rts(attributes)

    def agree(self, value=None):
        """Gives the other side a value and gets its own; also where they wait for each other."""
        self.writer.write(json.dumps(value) + "\n")
        self.writer.flush()
        return json.loads(self.reader.readline())

    def receive(self, length):
        self.pair.post_recv(RecvWR(num_sge=1, sg=[SGE(self.memory.buf, length, self.memory.lkey)]))

    def post(self, opcode, length, **atomic):
        work = SendWR(opcode=opcode, num_sge=1, sg=[SGE(self.memory.buf, length, self.memory.lkey)],
                      imm_data=IMMEDIATE, send_flags=e.IBV_SEND_SIGNALED)
        if atomic:
            work.set_wr_atomic(self.peer["rkey"], self.peer["address"], atomic["compare"], atomic["swap"])
        else:
            work.set_wr_rdma(self.peer["rkey"], self.peer["address"])
        self.pair.post_send(work)

    def complete(self):
        """The next completion, a good one."""
        end = time.monotonic() + WITHIN
        while time.monotonic() < end:
            _, completions = self.queue.poll(1)
            if completions:
                if completions[0].status:
                    sys.exit(f"completion with status {completions[0].status}")
                return completions[0]
            time.sleep(0.001)
        sys.exit("no completion")

    def fill(self, data):
        self.memory.write(data, len(data), 0)

    def check(self, data, what, seconds=0):
        end = time.monotonic() + seconds
        found = self.memory.read(len(data), 0)
        while found != data and time.monotonic() < end:
            time.sleep(0.01)
            found = self.memory.read(len(data), 0)
        if found != data:
            at = next(i for i, (one, other) in enumerate(zip(found, data)) if one != other)
            sys.exit(f"{what}: byte {at} of {len(data)} is wrong")


def moves(side, server, opcode, size):
    """SEND and WRITE, with or without immediate: from the client to the server."""
    background, data = pattern("before", size + GUARD), pattern(f"data {size}", size)
    notified = opcode != e.IBV_WR_RDMA_WRITE
    if server:
        side.fill(background)
        if notified:
            side.receive(size)
    side.agree()
    if server and notified:
        completion = side.complete()
        if opcode != e.IBV_WR_SEND and completion.imm_data != IMMEDIATE:
            sys.exit(f"immediate {completion.imm_data:#x}")
        if completion.byte_len != size:
            sys.exit(f"{completion.byte_len} bytes instead of {size}")
    elif not server:
        side.fill(data)
        side.post(opcode, size)
        side.complete()
    side.agree()
    if server:  # a WRITE over UC may arrive after the sender has said that it has left
        side.check(data + background[size:], f"{size} bytes", 0 if notified else UNNOTIFIED)


def reads(side, server, opcode, size):
    data, background = pattern(f"data {size}", size), pattern("before", size + GUARD)
    side.fill(data if server else background)
    side.agree()
    if not server:
        side.post(opcode, size)
        side.complete()
        side.check(data + background[size:], f"{size} bytes")
    side.agree()


def counts(side, server):
    """Atomics: each says what was there before, and is executed once."""
    start = 0x1122334455667788
    steps = [(e.IBV_WR_ATOMIC_FETCH_AND_ADD, number, 0) for number in range(1, 21)]
    expected = start + sum(number for _, number, _ in steps)
    steps += [(e.IBV_WR_ATOMIC_CMP_AND_SWP, expected, 0xa1b2c3d4e5f60718), (e.IBV_WR_ATOMIC_CMP_AND_SWP, 5, 6)]
    side.fill(start.to_bytes(8, "little"))
    side.agree()
    value = start
    for opcode, compare, swap in [] if server else steps:
        side.post(opcode, 8, compare=compare, swap=swap)
        side.complete()
        side.check(value.to_bytes(8, "little"), "what was there before")
        if opcode == e.IBV_WR_ATOMIC_FETCH_AND_ADD:
            value += compare
        elif value == compare:
            value = swap
    side.agree()
    if server:
        side.check((0xa1b2c3d4e5f60718).to_bytes(8, "little"), "the end")


OPERATIONS = {"send": e.IBV_WR_SEND, "send_imm": e.IBV_WR_SEND_WITH_IMM, "write": e.IBV_WR_RDMA_WRITE,
              "write_imm": e.IBV_WR_RDMA_WRITE_WITH_IMM, "read": e.IBV_WR_RDMA_READ, "atomic": None}


def meet(port, server):
    if server:
        return socket.create_connection((server, port), timeout=WITHIN)
    with socket.create_server(("", port)) as listening:
        listening.settimeout(WITHIN)
        connection = listening.accept()[0]
    connection.settimeout(WITHIN)
    return connection


def main(device, gid_index, mtu, port, service, operation, server=None):
    control = meet(int(port), server)
    side = Side(control, device, int(gid_index), int(mtu), service)
    side.agree()
    opcode = OPERATIONS[operation]
    if operation == "atomic":
        counts(side, not server)
    for size in () if operation == "atomic" else SIZES:
        (reads if operation == "read" else moves)(side, not server, opcode, size)
    side.agree()
    print("all data is right")


if __name__ == "__main__":
    main(*sys.argv[1:])
