#!/bin/sh
# two_hosts.sh PROGRAM: runs the program with a process on each of two hosts, network namespaces that are joined
# by a veth pair.
set -eu
if [ "${GPU_INSIDE:-}" != 1 ]; then
    for option in "" "--user --map-root-user"; do
        # shellcheck disable=SC2086
        if unshare $option --net --mount sh -c 'mount -t tmpfs none /run && ip netns add trial' 2>/dev/null; then
            # shellcheck disable=SC2086
            GPU_INSIDE=1 exec unshare $option --net --mount "$0" "$@"
        fi
    done
    echo "1..0 # SKIP this machine allows no network namespaces"
    exit 0
fi
mount -t tmpfs none /run
mount -t tmpfs none /dev/shm
mkdir -m 700 /dev/shm/gpu-first /dev/shm/gpu-second
for host in first second; do
    ip netns add "$host"
    ip -n "$host" link set lo up
done
ip link add eth0 netns first type veth peer name eth0 netns second
ip -n first address add 10.91.0.1/24 dev eth0
ip -n second address add 10.91.0.2/24 dev eth0
for host in first second; do
    ip -n "$host" link set eth0 up
done
GPU_PAIR_HOSTS="first second" SOFTVERBS_NET=eth0 exec "$@"
