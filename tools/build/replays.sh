#!/bin/sh
# Runs the recordings of tests/golden, which a build of gcc made, again in builds of gcc, of clang, and of gcc with
# AddressSanitizer and UBSan: replays.sh. Each must do what was recorded, and fail with the same words. Only the command is built.
set -eu
cd "$(dirname "$0")/../.."
top=build-replays failed=0
mkdir -p "$top"

build() { # NAME COMPILER [MESON-OPTION...]
    name=$1 compiler=$2
    shift 2
    [ -f "$top/$name/build.ninja" ] || CC=$compiler meson setup "$top/$name" -Dtests=false "$@" >"$top/$name.log" 2>&1 || { cat "$top/$name.log"; exit 1; }
    ninja -j "${JOBS:-2}" -C "$top/$name" softverbs >"$top/$name.log" 2>&1 || { tail -n 30 "$top/$name.log"; exit 1; }
}

build gcc gcc
build clang clang
build asan gcc -Db_sanitize=address,undefined -Db_lundef=false

for recording in tests/golden/*.rec; do
    for name in gcc clang asan; do
        said=$("$top/$name/softverbs" replay "$recording" 2>"$top/$name.err") || { cat "$top/$name.err"; failed=1; }
        [ ! -s "$top/$name.err" ] || failed=1 # of a sanitizer
        echo "$said" >"$top/$name.said"
        cmp -s "$top/gcc.said" "$top/$name.said" || { echo "$recording: $name does not say what gcc says"; failed=1; }
    done
    reason=$("$top/gcc/softverbs" replay --ends "$recording" | tr '\n' ' ' | sed -n 's/.* with \([A-Z_]*_ERR\): .*(\([0-9]*\)).*/\1 (\2)/p')
    echo "$(basename "$recording" .rec): gcc, clang, asan alike: $reason"
done
exit $failed
