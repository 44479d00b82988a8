#!/bin/sh
# Runs the recordings of tests/golden, which a build of gcc made, again in builds of gcc, of clang, and of gcc with
# AddressSanitizer and UBSan: replays.sh. Each must do what was recorded, and fail with the same words. Only the command is built.
# replays.sh --compare DIRECTORY RECORDING... builds nothing: DIRECTORY has the commands gcc/softverbs, clang/softverbs and asan/softverbs.
set -eu
cd "$(dirname "$0")/../.."
top=build-replays failed=0

build() { # NAME COMPILER [MESON-OPTION...]
    name=$1 compiler=$2
    shift 2
    [ -f "$top/$name/build.ninja" ] || CC=$compiler meson setup "$top/$name" -Dtests=false "$@" >"$top/$name.log" 2>&1 || { cat "$top/$name.log"; exit 1; }
    ninja -j "${JOBS:-2}" -C "$top/$name" softverbs >"$top/$name.log" 2>&1 || { tail -n 30 "$top/$name.log"; exit 1; }
}

# True if the build replays the recording, without a message of a sanitizer, and prints the same as the build of gcc.
says_the_same() { # NAME RECORDING
    "$top/$1/softverbs" replay "$2" >"$top/$1.said" 2>"$top/$1.err" || { echo "$2: $1 does not replay it"; cat "$top/$1.err"; return 1; }
    [ ! -s "$top/$1.err" ] || { echo "$2: $1 writes to standard error"; cat "$top/$1.err"; return 1; }
    cmp -s "$top/gcc.said" "$top/$1.said" || { echo "$2: $1 does not say what gcc says"; return 1; }
}

compare() { # RECORDING
    alike=true
    for name in gcc clang asan; do
        says_the_same "$name" "$1" || alike=false
    done
    $alike || { failed=1; return; }
    reason=$("$top/gcc/softverbs" replay --ends "$1" | tr '\n' ' ' | sed -n 's/.* with \([A-Z_]*_ERR\): .*(\([0-9]*\)).*/\1 (\2)/p')
    echo "$(basename "$1" .rec): gcc, clang, asan alike: $reason"
}

if [ "${1:-}" = --compare ]; then
    top=$2
    shift 2
else
    mkdir -p "$top"
    build gcc gcc
    build clang clang
    build asan gcc -Db_sanitize=address,undefined -Db_lundef=false
    set -- tests/golden/*.rec
fi
for recording; do
    compare "$recording"
done
exit $failed
