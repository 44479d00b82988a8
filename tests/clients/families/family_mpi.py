"""Message passing: MPICH, Open MPI, OpenSHMEM, gloo. Programs of ours compare all that they get, on 4 ranks."""
import os

from row import Fault, Row, on_infiniband

from programs import ucx
from clients import Failure
from network.wire import ADDRESSES
from patience import until

MPICH, OPEN_MPI = ("mpich", "libmpich-dev", "libucx0"), ("openmpi-bin", "libopenmpi-dev", "libucx0", "libfabric1")
BY_PROGRAM = "our program (mpi.c) compares on 4 ranks"
OPEN_MPI_OPTIONS = {"by default": [], "pml ucx": ["--mca", "pml", "ucx"], "mtl ofi": ["--mca", "pml", "cm", "--mca", "mtl", "ofi"]}
OPENIB = ["--mca", "pml", "ob1", "--mca", "btl", "openib,self", "--mca", "btl_openib_allow_ib", "1"]
ROCE = Fault("no cpcs for port|CPCs attempted: +udcm", "Debian builds openib without rdmacm, and its other way to connect, udcm, is for InfiniBand ports only",
             "opal/mca/btl/openib/connect/btl_openib_connect_udcm.c, udcm_component_query")
PROVIDERS = ("verbs;ofi_rxd", "verbs;ofi_rxm")
FINALIZE = Fault("data was right on all PEs, then: .*Segmentation fault",
                 "the data was right on all PEs; then shmem_finalize of Open MPI 4.1.4 crashes, without softverbs as well",
                 "https://github.com/open-mpi/ompi/issues/11604")


def must_be_fine(done, ranks=ucx.RANKS):
    done.check()
    if done.out.count("fine") != ranks:
        raise Failure(str(done))


def launcher(ranks=ucx.RANKS):
    """Open MPI refuses root and more ranks than processors unless an option allows them."""
    return ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks)]


def passes_messages(place, options, extra=None):
    program = place.compile("mpicc.openmpi", os.path.abspath(ucx.SOURCE))
    must_be_fine(place.start([*launcher(), *options, program], extra).finish(until(100)))


def shares_memory(place, extra=None):
    program = place.compile("oshcc", "shmem.c")
    command = ["oshrun", *launcher()[1:], program]
    done = place.start(command, extra).finish(until(60))
    if done.out.count("fine") == ucx.RANKS and "Segmentation fault" in done.out + done.err:
        raise Failure("the data was right on all PEs, then: Segmentation fault")
    must_be_fine(done)


def between_hosts(place, compiler, command, extra=None):
    """Both launchers start the ranks of a host through a replacement of ssh: it gets a host and a command."""
    program = place.compile(compiler, os.path.abspath(ucx.SOURCE))
    shell = os.path.join(place.directory, "enter")
    run = " ".join(place.softverbs("run", "--"))
    with open(shell, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\ncase $1 in\n" + "".join(
            f"{address[0]}) host={host} ;;\n" for host, address in ADDRESSES.items()) + f"esac\nshift\nexec ip netns exec $host {run} sh -c \"$*\"\n")
    os.chmod(shell, 0o755)
    words = [word.replace("SHELL", shell).replace("PROGRAM", program) for word in command]
    must_be_fine(place.start_server(words, extra).finish(until(100)))


def rings(place, ranks=3):
    program = place.compile("g++", "gloo.cc", "-lgloo", "-libverbs", "-lpthread")
    store = f"{place.directory}/store"
    os.makedirs(store)
    programs = [place.start([program, str(rank), str(ranks), store]) for rank in range(ranks)]
    try:
        for each in programs:
            must_be_fine(each.finish(until(60)), 1)
    finally:
        for each in programs:
            each.kill()


def rows():
    addresses = [address[0] for address in ADDRESSES.values()]
    for name, environment in ucx.TRANSPORTS.items():
        yield Row("MPI", f"MPICH, {name}", MPICH, BY_PROGRAM, lambda place, environment=environment: ucx.message_passing(place, environment))
    for name, options in OPEN_MPI_OPTIONS.items():
        for transports in ucx.TRANSPORTS if name == "pml ucx" else [None]:
            yield Row("MPI", f"Open MPI, {name}{f', {transports}' if transports else ''}", OPEN_MPI, BY_PROGRAM,
                      lambda place, options=options, transports=transports: passes_messages(place, options, ucx.TRANSPORTS.get(transports)))
    for provider in PROVIDERS:
        yield Row("MPI", f"Open MPI, mtl ofi, {provider}", OPEN_MPI, BY_PROGRAM, lambda place, provider=provider: passes_messages(
            place, [*OPEN_MPI_OPTIONS["mtl ofi"], "--mca", "mtl_ofi_provider_include", provider]))
    yield Row("MPI", "MPICH, two hosts", MPICH, BY_PROGRAM, lambda place: between_hosts(
        place, "mpicc.mpich", ["mpiexec.mpich", "-launcher", "ssh", "-launcher-exec", "SHELL", "-hosts", ",".join(addresses), "-n", "4", "PROGRAM"],
        ucx.TRANSPORTS["rc_v"]))
    yield Row("MPI", "Open MPI, btl openib", OPEN_MPI, BY_PROGRAM, lambda place: passes_messages(place, OPENIB), ROCE)
    yield Row("MPI", "Open MPI, btl openib, --link-layer ib", OPEN_MPI, BY_PROGRAM, lambda place: passes_messages(on_infiniband(place), OPENIB))
    for name, options in {"pml ucx": [*OPEN_MPI_OPTIONS["pml ucx"], "--mca", "osc", "ucx"], "mtl ofi": [*OPEN_MPI_OPTIONS["mtl ofi"], "--mca", "osc", "pt2pt",
                                                                                                            "--mca", "mtl_ofi_provider_include", PROVIDERS[0]]}.items():
            yield Row("MPI", f"Open MPI, {name}, two hosts", OPEN_MPI, BY_PROGRAM, lambda place, options=options: between_hosts(
                place, "mpicc.openmpi", [*launcher(), "--host", ",".join(f"{address}:2" for address in addresses), "--mca", "plm_rsh_agent", "SHELL",
                                         "--mca", "plm", "rsh", *options, "PROGRAM"], ucx.TRANSPORTS["rc_v"]))
    for name, environment in ucx.TRANSPORTS.items():
        yield Row("OpenSHMEM", f"oshrun, {name}", OPEN_MPI, "our program (shmem.c) compares on 4 PEs: put, get, fetch and add",
                  lambda place, environment=environment: shares_memory(place, environment), FINALIZE)
    yield Row("gloo", "chunked ring allreduce on 3 ranks", ("libgloo-dev", "g++"), "our program (gloo.cc) compares all sums", rings)
