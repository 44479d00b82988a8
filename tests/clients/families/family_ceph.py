"""Ceph's messenger async+rdma: a monitor and an object store, and a client reads back what it has put there."""
import filecmp
import os
import random
import time

from row import Row

from clients import Failure
from patience import until

FSID, OSD = "2f0b0b3c-6f2b-4d21-9d1b-0c5d7f5f1a01", "3f0b0b3c-6f2b-4d21-9d1b-0c5d7f5f1a02"
MONITOR = "[v2:127.0.0.1:3300,v1:127.0.0.1:6789]"
PACKAGES = ("ceph-mon", "ceph-osd", "ceph-common")
SIZE = 20_000_000
CONFIGURATION = """[global]
fsid = {fsid}
mon host = {monitor}
ms type = async+rdma
ms async rdma device name = soft0
auth cluster required = none
auth service required = none
auth client required = none
osd objectstore = memstore
memstore device bytes = 536870912
osd pool default size = 1
osd pool default min size = 1
mon allow pool size one = true
osd crush chooseleaf type = 0
mon data = {directory}/mon
osd data = {directory}/osd
run dir = {directory}
admin socket = {directory}/$name.asok
log file = {directory}/$name.log
"""


class Cluster:
    def __init__(self, place):
        self.place, self.directory, self.daemons = place, f"{place.directory}/ceph", []
        for folder in ("mon", "osd"):
            os.makedirs(f"{self.directory}/{folder}")
        with open(f"{self.directory}/conf", "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(fsid=FSID, monitor=MONITOR, directory=self.directory))

    def ask(self, program, *arguments, seconds=60):
        options = ["--connect-timeout", "50"] if program == "ceph" else []
        return self.place.start([program, "-c", f"{self.directory}/conf", *options, *arguments]).finish(until(seconds)).check()

    def serve(self, program, name):
        self.daemons.append(self.place.start([program, "-c", f"{self.directory}/conf", "-i", name, "-f"]))

    def begin(self):
        table = f"{self.directory}/monmap"
        self.place.run_one(["monmaptool", "--create", "--fsid", FSID, "--addv", "a", MONITOR, table])
        self.ask("ceph-mon", "--mkfs", "-i", "a", "--monmap", table)
        self.serve("ceph-mon", "a")
        self.ask("ceph", "osd", "new", OSD)
        self.ask("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", OSD)
        self.serve("ceph-osd", "0")
        deadline = until(60)
        while " 1 up" not in self.ask("ceph", "osd", "stat").out:
            if time.monotonic() > deadline:
                raise Failure("the object store does not come up")
            time.sleep(0.5)

    def end(self):
        for daemon in self.daemons:
            daemon.kill()


def stores(place):
    cluster = Cluster(place)
    one, other = f"{cluster.directory}/one", f"{cluster.directory}/other"
    with open(one, "wb") as file:
        file.write(random.randbytes(SIZE))
    try:
        cluster.begin()
        cluster.ask("ceph", "osd", "pool", "create", "pool", "8")
        cluster.ask("rados", "-p", "pool", "put", "object", one)
        cluster.ask("rados", "-p", "pool", "get", "object", other)
    finally:
        cluster.end()
    if not filecmp.cmp(one, other, shallow=False):
        raise Failure("what comes back is not what was put there")


def rows():
    yield Row("Ceph", "ceph-mon, ceph-osd, rados put and get", PACKAGES, "20 MB that come back are the same", stores, seconds=240)
