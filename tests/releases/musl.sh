#!/bin/bash
# In a system of releases.sh with musl-tools and libibverbs-dev: the tarball of `make dist` for musl, as an ordinary user: musl.sh DIRECTORY
# The demonstration, and examples/lid_pingpong.c, beside the tarball, compiled by musl-gcc. Prints a line of result for each.
set -u
dist=$1 home=$(mktemp -d)
cp "$dist"/*-musl.tar.gz "$dist"/lid_pingpong.c "$home"
chmod 755 "$home" && chown -R 65534:65534 "$home"
mkdir "$home/include"
for each in infiniband rdma linux asm-generic; do ln -s "/usr/include/$each" "$home/include/$each"; done
ln -s "/usr/include/$(gcc -print-multiarch)/asm" "$home/include/asm"

as_user() { # as_user NAME COMMAND
    local name=$1 status
    shift
    setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$home" sh -euc "cd $home; $*" >"$home.log" 2>&1
    status=$?
    printf '%s\t%s\t%s\n' "$([ $status = 0 ] && echo ok || echo not ok)" "$name" "$(tail -n 1 "$home.log" | cut -c1-150)"
}

as_user "musl: demo" 'tar xzf softverbs-*-musl.tar.gz; softverbs-*/bin/softverbs demo'
as_user "musl: demo --all" 'softverbs-*/bin/softverbs demo --all >all; grep "RC SEND_ONLY" all'
as_user "musl: a program of musl-gcc" 'musl-gcc -O2 -Iinclude lid_pingpong.c -o lid_pingpong "$(echo softverbs-*-musl/lib/softverbs/libibverbs.so.1)"
    readelf -l lid_pingpong | grep -q ld-musl
    run="$(echo softverbs-*-musl/bin/softverbs) run --link-layer ib -- ./lid_pingpong 25335"
    $run & server=$!
    until $run 127.0.0.1; do kill -0 $server; sleep 0.2; done
    wait $server'
as_user "musl: doctor names what loads too late" 'softverbs-*-musl/bin/softverbs doctor | grep "initial-exec TLS"'
