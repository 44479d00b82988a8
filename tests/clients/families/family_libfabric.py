"""libfabric and DAPL."""
import re
import subprocess
import time

from row import Fault, Row

from librdmacm.applications import bounces
from clients import Failure, read_all
from network.wire import ip
from patience import tries, until

FABRIC, DAPL = ("libfabric-bin", "libfabric1"), ("dapl2-utils", "libdapl2")
BY_PROGRAM = "the program compares"
MOST, TOO_EARLY = 8, "DAT_SUB_INTERRUPTED|!conn established: 0x4003"  # what the client then says
EARLY = Fault(TOO_EARLY, "dtestx's server tells where it listens before it does, and DAPL's second request to a port that refused the first has two bytes more "
              "(154) than the server reads by the length in it (148 and 4); where the server was quick enough all is right", "dapl/openib_scm/cm.c")
HOST = "10.93.0.1"  # of a separate card: DAPL's scm takes no address of the loopback
ADAPTERS = '''softverbs-scm u2.0 nonthreadsafe default libdaploscm.so.2 dapl.2.0 "soft0 1" ""
softverbs-cma u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "127.0.0.1 0" ""
'''


def make_adapters(place):
    path = f"{place.directory}/dat.conf"
    with open(path, "w", encoding="utf-8") as file:
        file.write(ADAPTERS)
    subprocess.run(["mount", "--bind", path, "/etc/dat.conf"], check=True)
    ip("link", "add", "eth0", "type", "veth", "peer", "name", "eth1")
    ip("address", "add", f"{HOST}/24", "dev", "eth0")
    for each in ("eth0", "eth1"):
        ip("link", "set", each, "up")


class TooEarly(Failure):
    """The client connected before the server listened."""


def passes(place, adapter, program):
    """dtestx's server sends its client an address before it listens there. DAPL tries again then, but its second request has two
    bytes more than it says (154 sent, 148 and 4 read), which the server takes for the next message."""
    make_adapters(place)
    def once():
        client, answer = exchange(place, adapter, program)
        if program == "dtestx" and client.status and re.search(TOO_EARLY, client.out + client.err):
            raise TooEarly(str(client))
        return client, answer

    client, answer = tries(program, MOST, "its client may come before its server listens", once, TooEarly)
    client.check().find("PASSED")
    if "PASSED" not in answer:
        raise Failure(answer)


def exchange(place, adapter, program):
    server = place.start([program, "-P", adapter])
    try:
        time.sleep(2)  # a client that finds no server gives up
        client = place.start([program, "-P", adapter, "-h", "127.0.0.1" if adapter.endswith("cma") else HOST]).finish(until(60))
        if not client.status:
            server.process.wait(30)
        server.kill()
        return client, read_all(server.out)
    finally:
        server.kill()


def rows():
    for provider, endpoint in (("verbs", "msg"), ("verbs;ofi_rxm", "rdm"), ("verbs;ofi_rxd", "rdm"), ("verbs", "dgram")):
        name = f"fi_pingpong -c -p {provider} -e {endpoint}"
        for hosts in ("", ", two hosts"):
            yield Row("libfabric", name + hosts, FABRIC, "the program compares (-c)",
                      lambda place, provider=provider, endpoint=endpoint: bounces(place, provider, endpoint, 250), seconds=280)
    yield Row("libfabric", "fabtests", ("fabtests",), BY_PROGRAM, lambda place: None)
    for adapter in ("scm", "cma"):
        for program in ("dtest", "dtestx"):
            yield Row("DAPL", f"{program} over {adapter}", DAPL, BY_PROGRAM, lambda place, adapter=adapter, program=program: passes(
                place, f"softverbs-{adapter}", program), EARLY if program == "dtestx" else None, seconds=400)
