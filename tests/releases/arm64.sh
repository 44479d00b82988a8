#!/bin/bash
# In a chroot with the cross compiler and the libraries of arm64, in the tree: builds for arm64, and runs what runs under
# qemu-user: the suites without a kernel's help, and the ping-pong with data. Prints a line of result for each.
set -u
cd "$(dirname "$0")/../.."
cat >/tmp/arm64.ini <<'END'
[binaries]
c = 'aarch64-linux-gnu-gcc'
ar = 'aarch64-linux-gnu-ar'
strip = 'aarch64-linux-gnu-strip'
pkgconfig = 'pkg-config'
exe_wrapper = 'qemu-aarch64-static'
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
[properties]
pkg_config_libdir = '/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig'
END
say() { # say STATUS NAME [TEXT]
    printf '%s\t%s\t%s\n' "$([ "$1" = 0 ] && echo ok || echo not ok)" "$2" "${3:-}"
}

build=build-arm64
[ -f $build/build.ninja ] || meson setup $build --cross-file /tmp/arm64.ini -Dtests="${TESTS:-true}" >/tmp/log 2>&1 || { say 1 "arm64: configures" "$(tail -n 2 /tmp/log | paste -sd ' ')"; exit 1; }
ninja -C $build ${JOBS:-} >/tmp/log 2>&1
say $? "arm64: builds" "$(grep -m 1 error /tmp/log | cut -c1-200)"
symbols=$(aarch64-linux-gnu-nm -D --defined-only --with-symbol-versions $build/lib/libibverbs.so.1 | grep -c '@')
say "$([ "$symbols" -gt 630 ]; echo $?)" "arm64: symbols" "$symbols"
for suite in base diag runtime wire cm transport tap verbs link ipc abi; do
    [ "${TESTS:-true}" = true ] || break
    timeout 300 meson test -C $build --no-rebuild --timeout-multiplier 5 --suite $suite >/tmp/log 2>&1
    say $? "arm64: suite $suite" "$(sed -n 's/^\(Ok\|Fail\|Timeout\): *\([0-9]*\) *$/\1 \2/p' /tmp/log | paste -sd , -) $(sed -n 's/.* \/ \([^ ].*[^ ]\)  *\(FAIL\|TIMEOUT\|ERROR\) .*/\1/p' /tmp/log | sort -u | paste -sd , -)"
done
run() {
    qemu-aarch64-static -E LD_LIBRARY_PATH=$PWD/$build/lib "$@"
}
pingpong=/usr/bin/ibv_rc_pingpong
for size in 4096 80000; do
    run $pingpong -c -g 0 -s $size -n 100 -p 25444 >/tmp/server 2>&1 &
    sleep 4
    timeout 60 qemu-aarch64-static -E LD_LIBRARY_PATH=$PWD/$build/lib $pingpong -c -g 0 -s $size -n 100 -p 25444 127.0.0.1 >/tmp/client 2>&1
    status=$?
    wait $!
    [ $status = 0 ] && ! grep -q 'invalid data' /tmp/server
    say $? "arm64: ping-pong of $size bytes, data checked" "$(tail -n 1 /tmp/client)"
done
