#!/bin/bash
# run.sh [DIRECTORY]: memory of a real GPU, for a machine with one, in at most eight minutes. The directory (standard: this script's)
# is what tests/gpu/pack.sh has made. Logs go to $OUT, by default the working directory. docs/evidence/gpu.md has results.
dist=$(cd "${1:-$(dirname "$0")}" && pwd)
out=${OUT:-$PWD}
echo "commit $(cat "$dist/commit" 2>/dev/null), $(uname -sr), $(nproc) processors, $(date -u +%F)"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
ldconfig -p | grep -q libcuda.so.1 || export LD_LIBRARY_PATH=$(dirname "$(find / -name libcuda.so.1 -not -path "$dist/*" 2>/dev/null | head -n 1)")

# cases PROGRAM LABEL SETTING: the cases of device_memory_test.c or device_pipeline_test.c, on the driver of this machine.
cases() {
    env "$3" timeout -s KILL 35 "$dist/gpu_device_$1" >"$out/$1-$2.log" 2>&1
    echo "== device $1, $2: status $?, $(grep -c '^ok' "$out/$1-$2.log") of $(grep -cE '^(not )?ok' "$out/$1-$2.log") passed"
    grep -vE '^ok|^1\.\.' "$out/$1-$2.log" | head -n 12
}
cases memory plain A=1
cases memory pieces SOFTVERBS_NO_PULL=1
cases memory faults SOFTVERBS_FAULT=drop=1%,dup=1%,reorder=1%,seed=3
cases pipeline plain A=1
cases pipeline packets SOFTVERBS_DIRECT=0

echo "== ping-pong"
timeout -s KILL 40 "$dist/gpu_pingpong" 200 2>&1 | tee "$out/pingpong.log"

if nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null) && "$nvcc" -cubin -arch=native -o "$out/kernels.cubin" "$dist/kernels.cu"; then
    for loading in EAGER LAZY; do
        echo "== kernels, CUDA_MODULE_LOADING=$loading"
        CUDA_MODULE_LOADING=$loading timeout -s KILL 60 "$dist/gpu_kernels" "$out/kernels.cubin" 2>&1 | tee "$out/kernels-$loading.log"
    done
else
    echo "no nvcc here, so no kernels"
fi

# threads PID...: each thread's name, its wait in the kernel, its system call, and whether it runs.
threads() {
    local pid task
    for pid in $(pgrep -P "$(echo "$@" | tr ' ' ,)") "$@"; do
        for task in /proc/"$pid"/task/*; do
            echo "$pid ${task##*/} $(cat "$task/comm" "$task/wchan" 2>/dev/null | tr '\n' ' ')$(cut -d' ' -f3 "$task/stat") $(cat "$task/syscall" 2>/dev/null)"
        done
    done
}

# $mode is the argument of nccl.py. Two ranks on the one GPU take each other for another host's by NCCL_HOSTID, so all of it crosses the device.
ranks() {
    local label=$1 port=$((20000 + RANDOM % 20000)) rank a b
    shift
    for rank in 0 1; do
        RANK=$rank NCCL_HOSTID=host$rank MASTER_ADDR=127.0.0.1 MASTER_PORT=$port NCCL_SOCKET_IFNAME=lo NCCL_DEBUG=INFO \
            timeout -s KILL 45 env "$@" "$dist/softverbs" run -- python3 "$dist/nccl.py" $mode >"$out/nccl-$label-$rank.log" 2>&1 &
        pids[rank]=$!
    done
    # Ranks that hang leave nothing but the watchdog's line: what each of their queue pairs waits for is asked before, and where their
    # threads are. A helper that waits for the driver's lock answers nothing; nccl.py writes then where its own threads are.
    (sleep 25 && kill -0 "${pids[0]}" && threads "${pids[@]}" && timeout 5 "$dist/softverbs" why && timeout 5 "$dist/softverbs" show) \
        >"$out/nccl-$label-why.log" 2>&1 &
    wait "${pids[0]}"; a=$?
    wait "${pids[1]}"; b=$?
    echo "== NCCL, $label: status $a and $b"
    grep -hE '^torch|^all_reduce|^rank' "$out/nccl-$label-0.log" "$out/nccl-$label-1.log"
    grep -hoE 'NET/IB : Using.*|GPU Direct RDMA.*|GDRDMA|via NET/IB[^ ]*|WARN.*|softverbs:.*' "$out/nccl-$label-0.log" | sort | uniq -c | sort -rn | head -n 8
}
python3 -c 'import torch' 2>/dev/null || { echo "no PyTorch here"; exit; }
ranks host-buffers NCCL_NET_GDR_LEVEL=LOC
ranks gpu-memory-eager NCCL_NET_GDR_LEVEL=SYS CUDA_MODULE_LOADING=EAGER
ranks gpu-memory-simple NCCL_NET_GDR_LEVEL=SYS CUDA_MODULE_LOADING=EAGER NCCL_PROTO=Simple
ranks gpu-memory NCCL_NET_GDR_LEVEL=SYS
# PyTorch compiles the kernel that rank 1 launches then, so EAGER does not load it before: the ranks hang.
mode=late
ranks late NCCL_NET_GDR_LEVEL=SYS SOFTVERBS_LOG=warn
