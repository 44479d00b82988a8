"""How races.py builds brpc with our programs in front of it: its static library, with RDMA and with Debian's libraries."""
import os
import subprocess

import sources

NAME, TITLE = "brpc", "brpc"
HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = ["cmake", "ninja-build", "g++", "libibverbs-dev", "libprotobuf-dev", "libprotoc-dev", "protobuf-compiler", "libgflags-dev", "libleveldb-dev",
            "libssl-dev"]
LATER = "later"
# The library's own definitions that its headers ask.
FLAGS = ("-std=c++14 -O0 -w -DBRPC_WITH_RDMA=1 -DBRPC_WITH_GLOG=0 -DBRPC_WITH_UBRING=0 -DBRPC_DEBUG_BTHREAD_SCHE_SAFETY=0 -DBRPC_DEBUG_LOCK=0 "
         "-DBTHREAD_USE_FAST_PTHREAD_MUTEX -D__const__=__unused__ -DNDEBUG")
LIBRARIES = "-lgflags -lprotobuf -lprotoc -lleveldb -lssl -lcrypto -libverbs -lpthread -ldl -lz"
# With -O2 it takes most of an hour of two processors.
QUICK = ("CMakeLists.txt", "    -O2\n", "    -O0\n")
# Where no checkout has a mend of #3505, this one has its third step: the completion queue is not read before the thread that did the handshake
# has returned.
EDITS = {"": [QUICK], LATER: [QUICK, ("src/brpc/rdma/rdma_endpoint.cpp", "    bool send = false;\n    ibv_cq* cq = ep->_resource->recv_cq;\n",
                                      "    while (s->_nevent.load() || ep->_state.load() < ESTABLISHED) bthread_usleep(100);\n"
                                      "    bool send = false;\n    ibv_cq* cq = ep->_resource->recv_cq;\n")]}


def build(checkout, commit, mend, work, target):
    place = f"{work}/brpc"
    sources.bring(checkout, commit, [], place, EDITS[mend])
    if not os.path.exists(f"{place}/build/build.ninja"):
        subprocess.run(["cmake", "-G", "Ninja", "-S", place, "-B", f"{place}/build", "-DWITH_RDMA=ON", "-DBUILD_BRPC_TOOLS=OFF",
                        "-DWITH_DEBUG_SYMBOLS=OFF", "-DCMAKE_CXX_FLAGS=-w"], check=True)
    subprocess.run(["ninja", "-C", f"{place}/build", "brpc-static"], check=True)
    subprocess.run(["protoc", f"--proto_path={HERE}", f"--cpp_out={place}/build", f"{HERE}/calls.proto"], check=True)
    subprocess.run(["g++", *FLAGS.split(), f"-I{place}/build", f"-I{place}/build/output/include", f"{HERE}/calls.cc", f"{place}/build/calls.pb.cc",
                    f"{place}/build/output/lib/libbrpc.a", "-o", f"{target}/calls", *LIBRARIES.split()], check=True)
