"""Clients of Amazon's EFA on the device of the profile efa: rdma-core's tests of it, perftest over SRD, libfabric's provider, Open MPI."""
from row import Row

from family_libfabric import FABRIC
from family_mpi import OPEN_MPI
from family_perftest import COMPARED, PACKAGES, moves
from programs import efa_clients as efa

BY_PROGRAM = "the program compares (-c); its packets are counted"


def on_efa(place):
    place.options = (*place.options, *efa.PROFILE)
    return place


def perftests():
    for program in efa.PROGRAMS:
        size = efa.LONGEST if "send" in program else 65536
        common = ["-c", "SRD", "-x", "0"]
        for options in ([], ["-q", "4"]) if program.endswith("bw") else ([],):
            yield Row("EFA", " ".join([f"{program} -c SRD", *options]), PACKAGES, COMPARED,
                      lambda place, program=program, options=options, size=size: moves(on_efa(place), program, [*common, *options], size),
                      short=program == "ib_read_lat")
    for program in efa.PROGRAMS:
        yield Row("EFA", f"{program} -c SRD, two hosts", PACKAGES, COMPARED,
                  lambda place, program=program: moves(on_efa(place), program, ["-c", "SRD", "-x", "0"], 4096))


def rows():
    yield Row("EFA", "rdma-core's tests of EFA", ("python3-pyverbs", "rdma-core"), "the tests compare", lambda place: efa.passes_its_tests(on_efa(place)))
    yield Row("EFA", "fi_info -p efa", FABRIC, "moves no data; what it shows is right", lambda place: efa.lists_both_endpoints(on_efa(place)))
    for endpoint in efa.MESSAGE:
        for hosts in ("", ", two hosts"):
            yield Row("EFA", f"fi_pingpong -c -p efa -e {endpoint}{hosts}", FABRIC, BY_PROGRAM,
                      lambda place, endpoint=endpoint: efa.bounces(on_efa(place), endpoint, "all", 50, 250), seconds=280)
    yield from perftests()
    yield Row("EFA", "Open MPI, mtl ofi, efa", OPEN_MPI, "our program (mpi.c) compares on 4 ranks; its packets are counted",
              lambda place: efa.passes_messages(on_efa(place)))
