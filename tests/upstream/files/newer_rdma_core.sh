# Builds libibverbs, librdmacm and libefa of the checkout of rdma-core in $PWD/rdma-core/build, for entries whose project wants newer headers than Debian's. Programs are only
# compiled and linked with these: they run with softverbs' own libraries.

newer_rdma_core() {
    mkdir rdma-core
    git -C "$CHECKOUTS/rdma-core" archive HEAD | tar -x -C rdma-core
    cmake -GNinja -S rdma-core -B rdma-core/build -DIN_PLACE=1 -DNO_MAN_PAGES=1 -DNO_PYVERBS=1
    ninja -C rdma-core/build -j "$JOBS" lib/libibverbs.so lib/librdmacm.so lib/libefa.so
}
