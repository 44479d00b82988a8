"""Clients of mlx5's own calls on the device of the profile connectx-7-roce with its word mlx5: rdma-core's tests of it, perftest over DC, and
UCX and MPI over queues in memory."""
from row import Fault, Row

from clients import Failure
from family_mpi import BY_PROGRAM, MPICH, OPEN_MPI, OPEN_MPI_OPTIONS, passes_messages
from family_perftest import PACKAGES, how_compared, moves
from family_ucx import PERFTEST
from programs import rdma_core, ucx

PROFILE = ("--profile", "connectx-7-roce,mlx5")
# UCX's transports that write into queues in memory.
IN_MEMORY = {name: {"UCX_TLS": f"{name},self", "UCX_IB_MLX5_DEVX": "n"} for name in ("rc_x", "dc_x", "ud_x")}
IN_MEMORY["rc_x, tags in hardware"] = {**IN_MEMORY["rc_x"], "UCX_RC_MLX5_TM_ENABLE": "y", "UCX_TM_THRESH": "0"}
VERBS = ("send", "write", "read", "atomic")
DEVLINK = Fault("'devlink', 'dev', 'param'", "newer releases of the suite ask devlink of the adapter's PCI function, and end with an error where it knows none", "tests/utils.py, is_roce_enabled")
LEAST = 38  # tests that pass; the others skip: DevX, steering, crypto, signatures, groups of ports


def on_mlx5(place):
    place.options = (*place.options, *PROFILE)
    return place


def passes_its_tests(place):
    tests, done = rdma_core.run_those_of(place, "mlx5")
    passed = [test for test in tests if test.outcome == "ok"]
    failed = [test for test in tests if test.outcome not in ("ok", "skipped")]
    if failed or len(passed) < LEAST:
        raise Failure(f"{len(passed)} of {len(tests)} pass:\n{done.err}")
    return f"{len(passed)} pass, {len(tests) - len(passed)} skip"


def rows():
    yield Row("mlx5", "rdma-core's tests of mlx5", ("python3-pyverbs", "rdma-core"), "the tests compare", lambda place: passes_its_tests(on_mlx5(place)), fault=DEVLINK)
    for verb in VERBS:
        for measure in ("bw", "lat"):
            program, size = f"ib_{verb}_{measure}", 8 if verb == "atomic" else 4096
            for hosts in ("", ", two hosts") if measure == "bw" else ("",):
                yield Row("mlx5", f"{program} -c DC{hosts}", PACKAGES, how_compared(program),
                          lambda place, program=program, size=size: moves(on_mlx5(place), program, ["-c", "DC", "-x", "0"], size),
                          short=program == "ib_send_bw" and not hosts)
    for name, environment in IN_MEMORY.items():
        for test, sizes in ucx.TESTS.items():
            for size in sizes:
                yield Row("mlx5", f"ucx_perftest -t {test} -s {size}, {name}", PERFTEST, "compares nothing; ends well",
                          lambda place, test=test, size=size, environment=environment: ucx.measures(on_mlx5(place), test, size, environment),
                          short=(test, size, name) == ("tag_lat", "65536", "rc_x"))
        yield Row("mlx5", f"MPICH, {name}", MPICH, BY_PROGRAM, lambda place, environment=environment: ucx.message_passing(on_mlx5(place), environment))
        yield Row("mlx5", f"Open MPI, pml ucx, {name}", OPEN_MPI, BY_PROGRAM,
                  lambda place, environment=environment: passes_messages(on_mlx5(place), OPEN_MPI_OPTIONS["pml ucx"], environment))
