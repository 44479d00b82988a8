#!/usr/bin/python3
"""destroy_after_receive.py GID-INDEX PORT [SERVER]: one side of many short connections between two hosts. The server destroys its
queue pair as soon as the only message has completed; the client must still see that message acknowledged, as from an adapter,
which acknowledges before it completes the receive. Exit status 0: it was, each time. Needs pyverbs."""
import json
import socket
import sys

import pyverbs.enums as e
from pyverbs.addr import GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

ROUNDS, LENGTH = 300, 64


def agree(control, value=None):
    """Gives the other side a value and gets its own."""
    reader, writer = control
    writer.write(json.dumps(value) + "\n")
    writer.flush()
    return json.loads(reader.readline())


def connected(context, domain, queue, control, gid_index):
    attributes = QPAttr(port_num=1)
    pair = QP(domain, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=queue, rcq=queue, cap=QPCap(max_send_wr=1, max_recv_wr=1)), attributes)
    peer = agree(control, {"qpn": pair.qp_num, "gid": context.query_gid(1, gid_index).gid})
    route = GlobalRoute(dgid=GID(peer["gid"]), sgid_index=gid_index)
    route.hop_limit = 64
    attributes.path_mtu, attributes.dest_qp_num = e.IBV_MTU_1024, peer["qpn"]
    attributes.ah_attr = AHAttr(port_num=1, is_global=1, gr=route)
    attributes.min_rnr_timer, attributes.timeout, attributes.retry_cnt, attributes.rnr_retry = 12, 12, 2, 7
    pair.to_rts(attributes)
    return pair


def completion(queue):
    while True:
        count, completions = queue.poll(1)
        if count:
            return completions[0]


def part(context, domain, queue, memory, control, gid_index, server):
    pair = connected(context, domain, queue, control, gid_index)
    pieces = [SGE(memory.buf, LENGTH, memory.lkey)]
    if server:
        pair.post_recv(RecvWR(num_sge=1, sg=pieces))
    agree(control)
    if not server:
        pair.post_send(SendWR(num_sge=1, sg=pieces, send_flags=e.IBV_SEND_SIGNALED))
    status = completion(queue).status
    pair.close()
    agree(control)
    return status


def main(gid_index, port, server=None):
    if server:
        connection = socket.create_connection((server, int(port)))
    else:
        with socket.create_server(("", int(port))) as listening:
            connection = listening.accept()[0]
    control = connection.makefile("r"), connection.makefile("w")
    context = Context(name="soft0")
    domain = PD(context)
    queue = CQ(context, 4)
    memory = MR(domain, LENGTH, e.IBV_ACCESS_LOCAL_WRITE)
    bad = [number for number in range(ROUNDS)
           if part(context, domain, queue, memory, control, int(gid_index), not server)]
    if bad:
        sys.exit(f"not acknowledged: {len(bad)} of {ROUNDS} messages")


if __name__ == "__main__":
    main(*sys.argv[1:])
