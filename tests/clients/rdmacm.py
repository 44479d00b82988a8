#!/usr/bin/env python3
"""Programs that connect through librdmacm: those of package rdmacm-utils, unmodified, on one host."""
import random
import sys
import time

from clients import Failure, Suite, need

REFUSED = ("REJECTED", "rejected", "UNREACHABLE")


def exchange(suite, server_command, client_command, timeout=60, extra=None):
    """Runs a server and a client of it, which is tried again while nobody listens yet; both must end well."""
    deadline = time.monotonic() + timeout
    server = suite.start(server_command, extra)
    try:
        while True:
            client = suite.start(client_command, extra).finish(deadline)
            early = any(word in client.out + client.err for word in REFUSED) and server.process.poll() is None
            if not client.status or not early:
                break
            time.sleep(0.1)
        answer = server.finish(min(deadline, time.monotonic() + 10))
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
    suite.add("who connects where nobody listens is rejected at once", lambda: nobody_listens(suite))
    suite.add_tidiness()
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
