#!/bin/sh
# run.sh FUZZER CORPUS [OPTION...]: unpacks the kept corpus and runs each of its inputs; then inputs that are not kept: with
# options, which are libFuzzer's, those that it makes, else some from a seed (main.c). The exit status is 1 after any fault:
# libFuzzer's own is 77, which meson takes for a test that was skipped.
set -eu
fuzzer=$1 corpus=$2
shift 2
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
tar -xzf "$corpus" -C "$directory"
count=$(find "$directory" -type f | wc -l)
if [ "$count" -eq 0 ]; then
    echo "$corpus is empty"
    exit 1
fi
echo "$count inputs of $corpus"
if [ $# -gt 0 ]; then
    "$fuzzer" -max_len=1000 -len_control=20 -entropic=0 -timeout=60 -print_final_stats=1 "$@" "$directory" || exit 1
else
    find "$directory" -type f -exec "$fuzzer" {} + || exit 1
    "$fuzzer" "${FUZZ_RUNS:-20000}" 1 || exit 1
fi
