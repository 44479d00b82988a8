#!/usr/bin/env python3
"""The tests of tag matching in rdma-core's own suite, as the distribution ships it with pyverbs, each as one test here."""
import gzip
import os
import re
import shutil
import sys
import tempfile

from clients import Failure, Skip, Suite

SHIPPED = "/usr/share/doc/rdma-core/tests"
TESTS = ("test_tm_traffic", "test_tm_unexpected_tag", "test_tm_no_tag", "test_tm_rndv")


def unpack(directory):
    """The suite where Python can read it; the distribution compresses most of it."""
    if not os.path.exists(SHIPPED):
        raise Skip("rdma-core's tests are not installed (package python3-pyverbs)")
    for name in os.listdir(SHIPPED):
        source, target = os.path.join(SHIPPED, name), os.path.join(directory, name.removesuffix(".gz"))
        with (gzip.open if name.endswith(".gz") else open)(source, "rb") as packed, open(target, "wb") as plain:
            shutil.copyfileobj(packed, plain)


def run(suite, name):
    with tempfile.TemporaryDirectory() as directory:
        unpack(directory)
        device = suite.run_one(["ibv_devices"]).find(r"^\s+(\w+)\s+[0-9a-f]{16}").group(1)
        done = suite.run_one(["/usr/bin/python3", os.path.join(directory, "run_tests.py"), "-v", "--dev", device, "--port", "1",
                              "--gid", "0", "-k", name])
        if not re.search(r"^Ran 1 test in .*\n\nOK$", done.err, re.MULTILINE):
            raise Failure(f"not one test that passed: {done}")


def main():
    suite = Suite()
    for name in TESTS:
        suite.add(f"rdma-core: {name}", lambda name=name: run(suite, name))
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
