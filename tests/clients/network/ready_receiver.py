#!/usr/bin/python3
"""ready_receiver.py GID-INDEX ADDRESS: has a reliable queue pair that is ready to receive from the peer at this address; prints
its number and stays until there is a line on its standard input. Needs pyverbs."""
import socket
import sys

import pyverbs.enums as e
from pyverbs.addr import GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr


def gid_of(address):
    """The GID as pyverbs wants it: ipaddress writes the last four bytes in decimal since Python 3.13."""
    return "0000:" * 5 + "ffff:" + socket.inet_aton(address).hex(":", 2)


def main(gid_index, address):
    context = Context(name="soft0")
    domain, queue = PD(context), CQ(context, 4)
    attributes = QPAttr(port_num=1)
    pair = QP(domain, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=queue, rcq=queue, cap=QPCap(max_send_wr=1, max_recv_wr=1)), attributes)
    route = GlobalRoute(dgid=GID(gid_of(address)), sgid_index=int(gid_index))
    attributes.path_mtu, attributes.dest_qp_num, attributes.min_rnr_timer = e.IBV_MTU_1024, 1, 12
    attributes.ah_attr = AHAttr(port_num=1, is_global=1, gr=route)
    pair.to_rtr(attributes)
    print(pair.qp_num, flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main(*sys.argv[1:])
