#!/usr/bin/env python3
"""Programs that connect through librdmacm: those of package rdmacm-utils, unmodified, on one host."""
import random
import sys
import time

from clients import Failure, Suite, need

REFUSED = ("REJECTED", "UNREACHABLE", "refused", "rpoll: Operation now in progress")


def exchange(suite, server_command, client_command, timeout=60, extra=None):
    """Runs a server and a client of it, which is tried again while nobody listens yet; both must end well."""
    deadline = time.monotonic() + timeout
    server = suite.start(server_command, extra)
    try:
        while True:
            client = suite.start(client_command, extra).finish(deadline)
            early = any(word in client.out + client.err for word in REFUSED) and server.process.poll() is None
            if not early:
                break
            time.sleep(0.1)
        try:
            answer = server.finish(min(deadline, time.monotonic() + 10))
        except Failure as late:
            raise Failure(f"{late}while the client says\n{client}") from late
    finally:
        server.kill()
    if client.status or answer.status:
        raise Failure(f"{client}{answer}")
    return answer, client


def choose_port():
    return str(random.randrange(20000, 30000))


def pings(suite, address, *options):
    port = choose_port()
    common = ["rping", "-p", port, "-C", "10", "-v", *options]
    _, client = exchange(suite, [*common, "-s", "-a", address], [*common, "-c", "-a", address])
    for number in range(10):
        client.find(rf"ping data: rdma-ping-{number}: ")


def matches(suite, program, *options):
    """Programs of one name whose server takes -b ADDRESS or any, and whose client takes -s ADDRESS."""
    port = [] if program == "udaddy" else ["-p", choose_port()]
    for side in exchange(suite, [program, *port, *options], [program, *port, "-s", "127.0.0.1", *options]):
        side.find(r"return status 0|^custom ")


def groups(suite, group, *options):
    common = ["stdbuf", "-oL", "mckey", "-m", group, "-C", "10", *options]
    receiver = suite.start(common)
    try:
        receiver.wait_for("joined dgid")
        sender = suite.start([*common, "-s"]).finish(time.monotonic() + 30)
        received = receiver.finish(time.monotonic() + 10)
    finally:
        receiver.kill()
    for side in (received, sender):
        side.find(r"joined dgid: \S+")
        side.find("return status 0")


def nobody_listens(suite):
    client = suite.start(["rping", "-c", "-a", "127.0.0.1", "-p", choose_port(), "-C", "1"]).finish(time.monotonic() + 20)
    if client.status == 0 or "RDMA_CM_EVENT_REJECTED, error 8" not in client.out + client.err:
        raise Failure(str(client))


def main():
    suite = Suite()
    need("rping")
    for address in ("127.0.0.1", "127.0.0.7", "::1"):
        suite.add(f"rping on {address}", lambda address=address: pings(suite, address))
    suite.add("rping with messages of 64 KiB", lambda: pings(suite, "127.0.0.1", "-S", "65536"))
    suite.add("ucmatose transfers both ways over ten connections",
              lambda: matches(suite, "ucmatose", "-c", "10", "-C", "50", "-S", "4000"))
    suite.add("ucmatose migrates its identifiers to other channels", lambda: matches(suite, "ucmatose", "-m"))
    suite.add("udaddy resolves and transfers datagrams", lambda: matches(suite, "udaddy", "-c", "5", "-C", "20"))
    suite.add("rdma_server and rdma_client use endpoints",
              lambda: exchange(suite, ["rdma_server", "-p", (port := choose_port())],
                               ["rdma_client", "-s", "127.0.0.1", "-p", port]))
    for group, address in (("239.1.2.3", "127.0.0.1"), ("ff0e::1234", "::1")):
        suite.add(f"mckey receives what is sent to {group}", lambda group=group, address=address: groups(suite, group, "-b", address))
    suite.add("rstream streams over rsockets", lambda: matches(suite, "rstream", "-S", "65536", "-C", "100"))
    suite.add("who connects where nobody listens is rejected at once", lambda: nobody_listens(suite))
    suite.add_tidiness()
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
