#!/bin/bash
# Runs in a chroot with the cross compiler and the libraries of arm64, in the tree: builds for arm64, and runs what runs
# under qemu-user: the suites without a kernel's help, and the ping-pong with data. Prints a line of result for each.
set -u
cd "$(dirname "$0")/../.."
printf "[binaries]\nexe_wrapper = 'qemu-aarch64-static'\n" >/tmp/emulator.ini
say() { # say STATUS NAME [TEXT]
    printf '%s\t%s\t%s\n' "$([ "$1" = 0 ] && echo ok || echo not ok)" "$2" "${3:-}"
}

# Tests that fail, and what they need that emulator.c shows to be another here than natively.
needs="a_group_is_heard_while_it_is_joined:multicast
two_processes_exchange_references:memory
memory_is_read_where_the_message_came_from:memory
without_a_handler_the_signal_ends_the_process:signal
what_is_ignored_is_ignored_but_for_faults:signal
one_that_asked_to_be_called_once_is_called_once:signal
nobody_vouches_for_the_dead:robust
nobody_vouches_after_exec:robust
who_waits_in_the_call_is_not_elsewhere:call"

# explain STATUS: of the suite that has run; 0 when each failed test is explained; `explained` then names them.
explain() {
    local failed name need unexplained=
    explained=
    [ "$1" != 0 ] || return 0
    failed=$(sed -n 's/^\[  FAILED  \] \([a-z_0-9]*\)$/\1/pI' $build/meson-logs/testlog.txt | sort -u)
    for name in $failed; do
        need=$(echo "$needs" | sed -n "s/^$name://p")
        if [ -n "$need" ] && [ "$(grep "^$need " /tmp/natively)" != "$(grep "^$need " /tmp/emulated)" ]; then
            explained="$explained$name ($(grep "^$need " /tmp/emulated)), "
        else
            unexplained="$unexplained $name"
        fi
    done
    grep -qE 'TIMEOUT|killed by signal' /tmp/log && unexplained="$unexplained, and what did not end"
    explained="${explained:+the emulator: $explained}${unexplained:+unexplained:$unexplained; }"
    [ -n "$failed" ] && [ -z "$unexplained" ]
}

gcc -pthread -o /tmp/emulator tests/releases/emulator.c && /tmp/emulator >/tmp/natively
aarch64-linux-gnu-gcc -pthread -o /tmp/emulator tests/releases/emulator.c && qemu-aarch64-static /tmp/emulator 2>/dev/null | grep -v '^Bail' >/tmp/emulated

build=build-arm64
[ -f $build/build.ninja ] || meson setup $build --cross-file packaging/cross/aarch64.ini --cross-file /tmp/emulator.ini -Dtests="${TESTS:-true}" >/tmp/log 2>&1 || { say 1 "arm64: configures" "$(tail -n 2 /tmp/log | paste -sd ' ')"; exit 1; }
ninja -C $build ${JOBS:-} >/tmp/log 2>&1
say $? "arm64: builds" "$(grep -m 1 'error:' /tmp/log | cut -c1-200)"
symbols=$(aarch64-linux-gnu-nm -D --defined-only --with-symbol-versions $build/lib/libibverbs.so.1 | grep -c '@')
say "$([ "$symbols" -gt 630 ]; echo $?)" "arm64: symbols" "$symbols"
for suite in base diag runtime wire cm transport tap verbs link ipc abi; do
    [ "${TESTS:-true}" = true ] || break
    SOFTVERBS_PING_PONGS=3000 timeout 600 meson test -C $build --no-rebuild --timeout-multiplier 5 --suite $suite >/tmp/log 2>&1
    explain $?
    say $? "arm64: suite $suite" "$explained$(sed -n 's/^\(Ok\|Fail\|Timeout\): *\([0-9]*\) *$/\1 \2/p' /tmp/log | paste -sd , -) $(sed -n 's/.* \/ \([^ ].*[^ ]\)  *\(FAIL\|TIMEOUT\|ERROR\) .*/\1/p' /tmp/log | sort -u | paste -sd , -)"
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
