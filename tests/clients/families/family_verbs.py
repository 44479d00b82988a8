"""ibverbs-utils, rdma-core's own tests, and programs that only look: lstopo, ibstat, ibstatus, rdma."""
from row import Row

from programs import rdma_core
from programs.pingpong import exchanges, exchanges_among_processes, exchanges_over_xrc, lists_the_device, shows_the_device

UTILS, DIAGS, NOTHING = ("ibverbs-utils",), ("infiniband-diags",), "moves no data; what it shows is right"


def says(place, command, *patterns):
    done = place.run_one(command)
    for pattern in patterns:
        done.find(pattern)


def hears_of_events(place):
    program = place.start(["stdbuf", "-oL", "ibv_asyncwatch", "-d", "soft0"])
    try:
        program.wait_for("async event FD")
        for event, text in (("port-down", "PORT_ERR"), ("port-up", "PORT_ACTIVE")):
            place.run_one([f"{place.root}/softverbs", "event", event, "soft0"])
            program.wait_for(text)
    finally:
        program.kill()


def passes_its_tests(place):
    done, tests = rdma_core.run(place)
    for what, floors in rdma_core.FLOORS.items():
        rdma_core.keeps_the_floor([test for test in tests if rdma_core.kind(test) == what], floors)
    return rdma_core.ends_well(done, tests)


def rows():
    yield Row("ibverbs-utils", "ibv_devices", UTILS, NOTHING, lists_the_device)
    yield Row("ibverbs-utils", "ibv_devinfo -v", UTILS, NOTHING, shows_the_device, short=True)
    for program in ("rc", "uc", "ud", "srq"):
        for size in (1, 1000) if program == "ud" else (4096, 1 << 20):
            yield Row("ibverbs-utils", f"ibv_{program}_pingpong -c -s {size}", UTILS, "the program compares (-c)",
                      lambda place, program=program, size=size: exchanges(place, program, size, 1000, "-c"))
    for options in ("-e", "-t", "-o", "-j", "-N"):
        yield Row("ibverbs-utils", f"ibv_rc_pingpong -c {options}", UTILS, "the program compares (-c)",
                  lambda place, options=options: exchanges(place, "rc", 4096, 500, "-c", options))
    yield Row("ibverbs-utils", "ibv_xsrq_pingpong", UTILS, "sends zeros; the program counts all messages", lambda place: exchanges_over_xrc(place, 4096))
    yield Row("ibverbs-utils", "ibv_xsrq_pingpong -c 2", UTILS, "sends zeros; the three programs count all messages",
              lambda place: exchanges_among_processes(place, 2, 4096))
    yield Row("ibverbs-utils", "ibv_asyncwatch", UTILS, "moves no data; prints the events of `softverbs event`", hears_of_events)
    yield Row("rdma-core", "its own tests", ("python3-pyverbs", "rdma-core"), "the tests compare", passes_its_tests, seconds=300)
    yield Row("looking", "lstopo", ("hwloc-nox",), NOTHING, lambda place: says(place, ["lstopo-no-graphics"], r'OpenFabrics "soft0"'))
    yield Row("looking", "ibstat", DIAGS, NOTHING, lambda place: says(place, ["ibstat"], r"^CA 'soft0'", "State: Active", "Link layer: Ethernet"))
    yield Row("looking", "ibstatus", DIAGS, NOTHING, lambda place: says(place, ["ibstatus"], "'soft0' port 1", r"4: ACTIVE"))
    yield Row("looking", "rdma link", ("iproute2",), NOTHING, lambda place: says(place, ["sh", "-c", "rdma link"], "^link soft0/1 state ACTIVE"))
