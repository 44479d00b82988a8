"""For clients.py: two queue pairs of a process, a thread that waits for one, and one that sends from the other."""
import threading
import time

import pyverbs.enums as e
import pytest
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context, get_device_list
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

SIZE = 64


class End:
    """A queue pair with a completion queue and a region."""

    def __init__(self, context):
        self.pd = PD(context)
        self.memory = MR(self.pd, SIZE, e.IBV_ACCESS_LOCAL_WRITE)
        self.cq = CQ(context, 16)
        self.qp = QP(self.pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=QPCap(max_send_wr=8, max_recv_wr=8)))

    def connect(self, context, peer):
        route = GlobalRoute(dgid=context.query_gid(1, 0), sgid_index=0)
        attr = QPAttr(port_num=1)
        attr.dest_qp_num, attr.path_mtu, attr.max_dest_rd_atomic, attr.min_rnr_timer = peer.qp.qp_num, e.IBV_MTU_1024, 1, 12
        attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.max_rd_atomic = 14, 7, 7, 1
        attr.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
        self.qp.to_rts(attr)

    def elements(self):
        return [SGE(self.memory.buf, SIZE, self.memory.lkey)]

    def wait(self, count):
        """The identifiers of so many completions. pyverbs' own call that waits for events lets no other thread of Python run."""
        came = []
        while len(came) < count:
            got, entries = self.cq.poll(count - len(came))
            assert all(entry.status == e.IBV_WC_SUCCESS for entry in entries)
            came += [entry.wr_id for entry in entries]
            if not got:
                time.sleep(0.001)
        return came


@pytest.mark.parametrize("messages", [1, 6])
def test_what_is_sent_arrives(messages):
    context = Context(name=get_device_list()[0].name.decode())
    one, other = End(context), End(context)
    one.connect(context, other)
    other.connect(context, one)
    for each in range(messages):
        other.qp.post_recv(RecvWR(wr_id=each, sg=other.elements(), num_sge=1))
    one.memory.write(b"softverbs", 9)
    came = []
    waiter = threading.Thread(target=lambda: came.extend(other.wait(messages)))
    waiter.start()
    for each in range(messages):
        one.qp.post_send(SendWR(wr_id=each, sg=one.elements(), num_sge=1, send_flags=e.IBV_SEND_SIGNALED))
    assert one.wait(messages) == list(range(messages))
    waiter.join()
    assert came == list(range(messages)) and other.memory.read(9, 0) == b"softverbs"
