#!/bin/sh
# pack.sh DIRECTORY: builds what tests/gpu/run.sh needs on a machine with a GPU, which has no verbs headers and no network, and puts
# it into that directory. The programs need only libc and libcuda, and find the driver's there.
set -eu
[ $# -eq 1 ] || { echo "usage: pack.sh DIRECTORY" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/lib"
dist=$(cd "$1" && pwd)
cd "$here/../.."
[ -f build-gpu/build.ninja ] || meson setup build-gpu -Dtests=true -Dportable=true >/dev/null
ninja -C build-gpu softverbs $(ninja -C build-gpu -t targets all | sed -n 's/^\(lib\/[^/:]*\): .*/\1/p' | grep -v '\.symbols$') \
    tests/gpu/gpu_device_memory tests/gpu/gpu_device_pipeline tests/gpu/gpu_pingpong tests/gpu/gpu_kernels >/dev/null
cp -a build-gpu/softverbs "$dist/"
find build-gpu/lib -maxdepth 1 \( -type f -o -type l \) ! -name '*.a' -exec cp -a {} "$dist/lib/" \;
cp build-gpu/tests/gpu/gpu_device_memory build-gpu/tests/gpu/gpu_device_pipeline build-gpu/tests/gpu/gpu_pingpong build-gpu/tests/gpu/gpu_kernels tests/gpu/kernels.cu tests/gpu/run.sh tests/gpu/nccl.py "$dist/"
strip --strip-debug "$dist/softverbs" "$dist"/gpu_* "$dist"/lib/*.so.* 2>/dev/null || true
git rev-parse --short HEAD >"$dist/commit"
