"""The rows that connect through librdmacm: rdmacm-utils, fio, qperf, rsockets, iSER, QEMU's migration. The tests are in
rdmacm.py and applications.py."""

from row import Row, TwoHosts, on_infiniband
from librdmacm import applications
from programs import infiniband
from librdmacm import rdmacm
from librdmacm.rdmacm import choose_port, exchange
from network.wire import ADDRESSES, CLIENT

UTILS, ISER = ("rdmacm-utils", "librdmacm1"), ("tgt", "libiscsi-bin", "librdmacm1")
COUNTED = "the program counts all messages"
BY_LID = ("rc_bw", "rc_lat", "uc_bw", "ud_lat")
QPERF = ("rc_bw", "rc_bi_bw", "rc_lat", "rc_rdma_read_bw", "rc_rdma_read_lat", "rc_rdma_write_bw", "rc_rdma_write_lat",
         "rc_rdma_write_poll_lat", "rc_compare_swap_mr", "rc_fetch_add_mr")


def pings(place):
    """-V: the program compares."""
    rdmacm.pings(place, place.address, "-V", "-S", "10000")


def serves(place, program, *options):
    port, client = choose_port(), program.replace("server", "client")
    exchange(place, [program, *options, "-p", port], [client, *options, "-s", place.address, "-p", port])


def makes_connections(place):
    port = choose_port()
    rdmacm.serves_on(place, ["cmtime", "-c", "500", "-p", port], ["cmtime", "-c", "500", "-p", port, "-s", place.address], rdmacm.TIMES)


def joins_a_group(place):
    two = isinstance(place, TwoHosts)
    rdmacm.groups(place, "239.1.2.3", place.address, ADDRESSES[CLIENT][0] if two else place.address)


def utils():
    yield "rping -V", "the program compares (-V)", pings
    yield "ucmatose", COUNTED, lambda place: rdmacm.matches(place, "ucmatose", "-c", "10", "-C", "50", "-S", "4000")
    yield "udaddy", COUNTED, lambda place: rdmacm.matches(place, "udaddy", "-c", "5", "-C", "20")
    yield "mckey", COUNTED, joins_a_group
    yield "cmtime", "moves no data; 500 connections are made", makes_connections
    yield "rdma_server and rdma_client", COUNTED, lambda place: serves(place, "rdma_server")
    yield "rdma_xserver and rdma_xclient, XRC", COUNTED, lambda place: serves(place, "rdma_xserver", "-c", "x")
    yield "rcopy", "the file that arrives is the same", lambda place: rdmacm.copies_a_file(place, 10_000_000)
    for program in ("rstream", "riostream"):
        yield f"{program} -T v", "the program compares (-T v)", lambda place, program=program: rdmacm.matches(
            place, program, "-T", "v", "-S", "65536", "-C", "100")


def rows():
    for name, verified, run in utils():
        for hosts in ("", ", two hosts"):
            yield Row("rdmacm-utils", name + hosts, UTILS, verified, run)
    for verb in ("write", "read", "send"):
        yield Row("fio", f"ioengine=rdma, verb={verb}", ("fio", "librdmacm1"), "compares nothing; both jobs end with err= 0",
                  lambda place, verb=verb: applications.moves_data(place, verb))
    for test in QPERF:
        yield Row("qperf", f"-cm 1 {test}", ("qperf", "librdmacm1"), "compares nothing; ends well", lambda place, test=test: applications.measures_rc(place, test))
    yield Row("qperf", f"{' '.join(BY_LID)}, --link-layer ib", ("qperf",), "compares nothing; ends well",
              lambda place: infiniband.qperf(on_infiniband(place), *BY_LID))
    yield Row("rsockets", "busybox nc under librspreload", ("busybox", "librdmacm1"), "the file that arrives is the same", applications.carries_a_file)
    yield Row("rsockets", "iperf under librspreload", ("iperf", "librdmacm1"), "compares nothing; no TCP socket listens", applications.measures_streams)
    yield Row("iSER", "iscsi-inq at tgtd", ISER, "the disk answers", applications.inquires)
    yield Row("iSER", "qemu-io at tgtd", (*ISER, "qemu-block-extra"), "what is written stands in the disk's file", applications.stores_blocks)
    for pin in (False, True):
        yield Row("QEMU", f"migration rdma:{' pinned' if pin else ''}", ("qemu-system-x86", "librdmacm1"), "the memory of both machines is the same",
                  lambda place, pin=pin: applications.migrates(place, pin), seconds=200)
