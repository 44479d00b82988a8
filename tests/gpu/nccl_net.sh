#!/bin/sh
# nccl_net.sh NCCL CUDA BUILD DIRECTORY: builds the InfiniBand transport of an NCCL checkout with nccl_net.cc, by the host's compiler alone, and runs it
# on the devices of BUILD with memory of the GPU that tests/gpu/fake_cuda.c imitates. CUDA is the directory of CUDA's headers and
# libcudart_static.a. Nothing of NCCL is in this tree; docs/evidence/gpu.md has the results and the commit.
set -e
nccl=$(realpath "$1") cuda=$(realpath "$2") build=$(realpath "$3") out=$(realpath -m "$4") here=$(dirname "$(realpath "$0")")
mkdir -p "$out/include"
version() { sed -n "s/^$1 *:= *//p" "$nccl/makefiles/version.mk"; }
major=$(version NCCL_MAJOR) minor=$(version NCCL_MINOR) patch=$(version NCCL_PATCH)
sed -e "s/\${nccl:Major}/$major/g; s/\${nccl:Minor}/$minor/g; s/\${nccl:Patch}/$patch/g; s/\${nccl:Suffix}//g" \
    -e "s/\${nccl:Version}/$((major * 10000 + minor * 100 + patch))/g" "$nccl/src/nccl.h.in" >"$out/include/nccl.h"
flags="-std=c++17 -O1 -g -fPIC -pthread -w -DPROFAPI -DNCCL_OS_LINUX=1 -DCUDA_MAJOR=13 -DCUDA_MINOR=0 -I$out/include -I$nccl/src/include
 -I$nccl/src/include/plugin -I$cuda/include -I$cuda/include/cccl -I$nccl/src/transport/net_ib -I$nccl/src/transport/net_ib/gdaki/doca-gpunetio/include"
cd "$nccl/src"
objects=
for source in transport/net_ib/*.cc misc/ibv*.cc misc/mlx5*.cc misc/socket.cc misc/utils.cc misc/cudawrap.cc misc/nvmlwrap.cc misc/param.cc \
    param/c_api.cc param/param.cc param/param_registry.cc debug.cc os/linux*.cc "$here/nccl_net.cc"; do
    object="$out/$(basename "$(dirname "$source")")_$(basename "$source").o"
    objects="$objects $object"
    [ "$object" -nt "$source" ] || g++ $flags -c "$source" -o "$object"
done
# A symbol that only NCCL's own launches of kernels need has address 0.
absent=$(nm -u $objects | grep -o '_Z[0-9]*ncclGinGdaki[A-Za-z0-9_]*' | sort -u | sed 's/.*/-Wl,--defsym=&=0/')
g++ -pthread -o "$out/nccl_net" $objects $absent -L"$cuda/lib64" -lcudart_static -ldl -lrt
[ "$build" = /none ] && exit
export LD_LIBRARY_PATH=$build/tests/gpu NCCL_SOCKET_IFNAME=lo
run() {
    echo "== $*"
    env $1 "$build/softverbs" run -- timeout -s KILL 120 "$out/nccl_net" "$2"
}
for kind in host device to-device from-device; do run A=1 $kind; done
for kind in device to-device; do
    run SOFTVERBS_NO_PULL=1 $kind
    run SOFTVERBS_DIRECT=0 $kind
    run "NCCL_IB_TIMEOUT=12 SOFTVERBS_FAULT=drop=1%,dup=1%,reorder=1%,seed=3" $kind # 17 ms instead of 4 s
    run NCCL_IB_QPS_PER_CONNECTION=4 $kind
done
