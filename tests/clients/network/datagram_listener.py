#!/usr/bin/python3
"""datagram_listener.py GID-INDEX [ADDRESS QP...]: without an address it listens for datagrams: prints its queue pair's number, waits for
a line on its standard input, and prints how many datagrams have arrived. With one it sends a datagram to each of the queue
pairs there. Needs pyverbs."""
import socket
import sys
import time

import pyverbs.enums as e
from pyverbs.addr import AH, GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

GRH, LENGTH, QKEY = 40, 64, 0x11111111


def count(queue, seconds):
    """The number of completions that arrive in `seconds`."""
    found, deadline = 0, time.monotonic() + seconds
    while time.monotonic() < deadline:
        found += queue.poll(1)[0]
    return found


def gid_of(address):
    """The GID as pyverbs wants it: ipaddress writes the last four bytes in decimal since Python 3.13."""
    return "0000:" * 5 + "ffff:" + socket.inet_aton(address).hex(":", 2)


def main(gid_index, address=None, *numbers):
    context = Context(name="soft0")
    domain, queue = PD(context), CQ(context, 16)
    memory = MR(domain, GRH + LENGTH, e.IBV_ACCESS_LOCAL_WRITE)
    cap = QPCap(max_send_wr=8, max_recv_wr=1)
    attributes = QPAttr(port_num=1)
    attributes.qkey = QKEY
    pair = QP(domain, QPInitAttr(qp_type=e.IBV_QPT_UD, scq=queue, rcq=queue, cap=cap), attributes)  # enters RTS with them
    if not address:
        pair.post_recv(RecvWR(num_sge=1, sg=[SGE(memory.buf, GRH + LENGTH, memory.lkey)]))
        print(pair.qp_num, flush=True)
        sys.stdin.readline()
        print(count(queue, 0.5))
        return
    route = GlobalRoute(dgid=GID(gid_of(address)), sgid_index=int(gid_index))
    handle = AH(domain, attr=AHAttr(port_num=1, is_global=1, gr=route))
    for number in numbers:
        message = SendWR(num_sge=1, sg=[SGE(memory.buf, LENGTH, memory.lkey)], send_flags=e.IBV_SEND_SIGNALED)
        message.set_wr_ud(handle, int(number), QKEY)
        pair.post_send(message)
    if count(queue, 0.5) != len(numbers):
        sys.exit("not all datagrams were sent")


if __name__ == "__main__":
    main(*sys.argv[1:])
