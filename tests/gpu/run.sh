#!/bin/bash
# run.sh [DIRECTORY]: memory of a real GPU, for a machine with one, in at most four minutes. The directory (standard: where this
# script lies) is what tests/gpu/pack.sh has made. Logs go to $OUT, by default the working directory. docs/evidence/gpu.md has results.
dist=$(cd "${1:-$(dirname "$0")}" && pwd)
out=${OUT:-$PWD}
echo "commit $(cat "$dist/commit" 2>/dev/null), $(uname -sr), $(nproc) processors, $(date -u +%F)"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
ldconfig -p | grep -q libcuda.so.1 || export LD_LIBRARY_PATH=$(dirname "$(find / -name libcuda.so.1 -not -path "$dist/*" 2>/dev/null | head -n 1)")

# The cases of device_memory_test.c, on the driver of this machine.
cases() {
    env "$2" timeout -s KILL 40 "$dist/gpu_device_memory" >"$out/memory-$1.log" 2>&1
    echo "== device memory, $1: status $?, $(grep -c '^ok' "$out/memory-$1.log") of $(grep -cE '^(not )?ok' "$out/memory-$1.log") passed"
    grep -vE '^ok|^1\.\.' "$out/memory-$1.log" | head -n 12
}
cases plain A=1
cases pieces SOFTVERBS_NO_PULL=1
cases faults SOFTVERBS_FAULT=drop=1%,dup=1%,reorder=1%,seed=3

echo "== ping-pong"
timeout -s KILL 40 "$dist/gpu_pingpong" 200 2>&1 | tee "$out/pingpong.log"

# Two ranks on the one GPU take each other for another host's by NCCL_HOSTID, so all of it goes over the device.
ranks() {
    local label=$1 port=$((20000 + RANDOM % 20000)) rank a b
    shift
    for rank in 0 1; do
        RANK=$rank NCCL_HOSTID=host$rank MASTER_ADDR=127.0.0.1 MASTER_PORT=$port NCCL_SOCKET_IFNAME=lo NCCL_DEBUG=INFO \
            timeout -s KILL 50 env "$@" "$dist/softverbs" run -- python3 "$dist/nccl.py" >"$out/nccl-$label-$rank.log" 2>&1 &
        pids[rank]=$!
    done
    # Ranks that hang leave nothing but the watchdog's line: what each of their queue pairs waits for is asked before.
    (sleep 25 && kill -0 "${pids[0]}" && "$dist/softverbs" why && "$dist/softverbs" show) >"$out/nccl-$label-why.log" 2>&1 &
    wait "${pids[0]}"; a=$?
    wait "${pids[1]}"; b=$?
    echo "== NCCL, $label: status $a and $b"
    grep -hE '^torch|^all_reduce|^rank' "$out/nccl-$label-0.log" "$out/nccl-$label-1.log"
    grep -hoE 'NET/IB : Using.*|GPU Direct RDMA.*|GDRDMA|via NET/IB[^ ]*|WARN.*|softverbs:.*' "$out/nccl-$label-0.log" | sort | uniq -c | sort -rn | head -n 8
}
python3 -c 'import torch' 2>/dev/null || { echo "no PyTorch here"; exit; }
ranks host-buffers NCCL_NET_GDR_LEVEL=LOC
ranks gpu-memory NCCL_NET_GDR_LEVEL=SYS
