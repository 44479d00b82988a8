"""All programs of perftest, over each service that it allows; it compares nothing, so the memory of both sides is looked at."""
import re

from memory import Memory
from row import Row

from programs import raw_ethernet
from programs.perftest import SERVICES
from librdmacm.rdmacm import choose_port, exchange
from clients import Failure, rounds

PACKAGES = ("perftest",)
HEADERS = 64  # of a frame; the rest of it is zeros
ENDS, COMPARED, COUNTED, AWAITED = "compares nothing; ends well", "memory", "memory: what was fetched last, and what stands there", "zeros; the program waits for the count in the last byte of each message"


def moves(place, program, options, size):
    memory = Memory(place)
    command = [program, "-F", "-n", str(rounds(500)), *options, *([] if size == 8 else ["-s", str(size)])]
    if "-R" in options:
        sides = exchange(place, [*command, "-p", (port := choose_port())], [*command, "-p", port, place.address], extra=memory.environment())
    else:
        sides = place.pair(command, extra=memory.environment())
    for side in sides:
        if re.search("Couldn't|Failed|Unable", side.out + side.err):
            raise Failure(str(side))
    if program == "ib_atomic_bw":
        memory.must_have_counted()
    elif how_compared(program) == COMPARED:
        memory.must_share(size)


def how_compared(program):
    return {"ib_atomic_bw": COUNTED, "ib_atomic_lat": ENDS, "ib_write_lat": AWAITED}.get(program, COMPARED)


def sends_frames(place, program):
    memory = Memory(place)
    found = place.environment
    place.environment = lambda extra=None: found({**memory.environment(), **(extra or {})})
    raw_ethernet.exchanges(place, program, [])
    memory.must_share(HEADERS)


def rows():
    for verb, services in SERVICES.items():
        for service in services:
            size = {"atomic": 8}.get(verb, 1024 if service == "UD" else 65536)
            for measure in ("bw", "lat"):
                program = f"ib_{verb}_{measure}"
                yield Row("perftest", f"{program} -c {service}", PACKAGES, how_compared(program),
                          lambda place, program=program, service=service, size=size: moves(place, program, ["-c", service], size),
                          short=(program, service) == ("ib_write_bw", "RC"))
    for verb in SERVICES:
        program, size = f"ib_{verb}_bw", 8 if verb == "atomic" else 65536
        yield Row("perftest", f"{program} -R", PACKAGES, how_compared(program),
                  lambda place, program=program, size=size: moves(place, program, ["-R"], size))
    for program in ("raw_ethernet_bw", "raw_ethernet_lat"):
        yield Row("perftest", program, PACKAGES, COMPARED, lambda place, program=program: sends_frames(place, program))
    yield Row("perftest", "raw_ethernet_burst_lat", PACKAGES, "the program counts all frames", lambda place: raw_ethernet.answers_bursts(place, []))
    yield Row("perftest", "raw_ethernet_fs_rate", PACKAGES, "moves no data; all rules are made", raw_ethernet.makes_rules)
