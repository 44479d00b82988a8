#!/bin/sh
# purity.sh ARCHIVE...: fails when an object of the archives calls anything but memory functions and snprintf.
# Functions that the archives define for one another are fine, so pass a layer together with the pure layers below it.
set -eu
if [ $# -eq 0 ]; then
    echo "usage: purity.sh ARCHIVE..." >&2
    exit 2
fi
defined=$(mktemp)
wanted=$(mktemp)
trap 'rm -f "$defined" "$wanted"' EXIT
for archive; do
    nm -A --defined-only "$archive" | awk '{print $NF}'
done | sort -u >"$defined"
for archive; do
    nm -A -u "$archive" | awk '{print $NF " " $1}'
done | sort -u >"$wanted"
if ! [ -s "$defined" ]; then
    echo "no symbols in $*: nothing was checked" >&2
    exit 1
fi

# Functions for memory, descriptions, assert, the CRC and the processor's features; then what compilers and sanitizers add by themselves, and what guarded.c needs for them.
allowed='mem(chr|cpy|set|cmp|move)|strlen|snprintf|__assert_fail|libdeflate_crc32|__cpu_(model|features2)'
fortified='__(mem(cpy|set|move)|snprintf)_chk'
compiler='bcmp|__(start|stop)_guarded_table|_?_?sigsetjmp|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_|__(start|stop)_?_?sancov_[a-z0-9_]*|__gcov[a-z0-9_]*'
sanitizers='__errno_location|__(asan|ubsan|tsan|msan|sanitizer|sancov|lsan)[a-zA-Z0-9_]*'
impure=$(join -v 1 "$wanted" "$defined" | grep -Ev "^($allowed|$fortified|$compiler|$sanitizers) " || true)
if [ -n "$impure" ]; then
    echo "not pure:"
    echo "$impure"
    exit 1
fi
echo "pure: $*"
