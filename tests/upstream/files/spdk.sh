# For SPDK's test/nvmf/common.sh, which the entry appends this to: the scripts find the devices of softverbs without PCI cards and kernel modules, and programs that want
# more processors than the machine has get them all, each several times. SPDK's own switches do the rest (SPDK_TEST_NO_HUGE, SPDK_TEST_SKIP_NVMF_KERNEL_TESTS).

prepare_net_devs() { :; }
get_available_rdma_ips() { ip -4 -o address show | awk '{ sub("/.*", "", $4); print $4 }'; }
modprobe() { :; }

# "-m 0xE" and "-c 0xE" become the literal words of DPDK for the cores 1, 2 and 3, on the processors that there are.
on_cores() {
    local words=() word last="" cores core
    for word in "$@"; do
        if [[ $last == -[mc] && $word == 0x* ]]; then
            cores=""
            for ((core = 0; core < 64; core++)); do
                (((word >> core) & 1)) && cores+=",$core@$((core % $(nproc)))"
            done
            word="--lcores=${cores#,}"
        fi
        words+=("$word") last=$word
    done
    exec "${words[@]}"
}

run_app() { (on_cores "$1" "${NO_HUGE[@]}" "${@:2}"); }
run_app_bg() { on_cores "$1" "${NO_HUGE[@]}" "${@:2}" & }
export -f on_cores
NVMF_APP=(bash -c 'on_cores "$@"' on_cores "${NVMF_APP[@]}")
