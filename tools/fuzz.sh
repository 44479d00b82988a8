#!/bin/bash
# Fuzzes for long: fuzz.sh [--keep] [MINUTES [FUZZER...]], by default all fuzzers for 30 minutes of processor time each, as many at a
# time as there are processors. Says for each how often it ran, what it reached and what it found; exits with 1 when one found
# something. Its working files in build-fuzz/fuzzing count the time of each fuzzer: the next call continues a run that was interrupted,
# and begins anew after a complete one. --keep: the corpus, merged, becomes the one in tests/corpus.
set -u
cd "$(dirname "$0")/.." || exit 1
keep=
if [ "${1:-}" = --keep ]; then
    keep=yes
    shift
fi
minutes=${1:-30}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- cm cm_engine control decode engine facts forms pcap profile raw replay ring script settings srd table tags
tools/build/setup.sh build check || exit 1
CC=clang tools/build/build.sh build-fuzz -Dfuzz=true -Dtests=false || exit 1
top=$PWD/build-fuzz/fuzzing

SLICE=240 # seconds by the clock between two counts, which a run that is killed loses at most
TIMEFORMAT='%U %S'

# The sum of a number that a fuzzer's runs have counted so far.
spent() { # NAME COUNT
    cat "$top/$1/$2" 2>/dev/null || echo 0
}

complete() { # NAME
    [ "$(spent "$1" seconds)" -ge $((minutes * 60)) ]
}

begin() { # NAME
    local place=$top/$1
    rm -rf "$place"
    mkdir -p "$place/corpus" "$place/found"
    tar -xzf "tests/corpus/$1.tar.gz" -C "$place/corpus"
    git describe --always --dirty >"$place/commit"
}

slice() { # NAME SECONDS
    local place=$top/$1 words=
    [ "$1" = settings ] && words=-dict=build-fuzz/tests/fuzz/settings.dictionary
    "build-fuzz/tests/fuzz/$1_fuzz" -max_total_time="$2" -max_len=1000 -len_control=20 -entropic=0 \
        -timeout=600 -rss_limit_mb=2048 -print_final_stats=1 ${words:+"$words"} -artifact_prefix="$place/found/" "$place/corpus" >"$place/log" 2>&1
}

fuzz() { # NAME
    local place=$top/$1 left
    [ -d "$place" ] || begin "$1"
    while left=$((minutes * 60 - $(spent "$1" seconds))) && [ "$left" -gt 0 ]; do
        { time slice "$1" $((left < SLICE ? left : SLICE)); } 2>"$place/time"
        grep -q '^stat::' "$place/log" || return
        awk -v had="$(spent "$1" seconds)" '{ print had + int($1 + $2 + 1) }' "$place/time" >"$place/sum" && mv "$place/sum" "$place/seconds"
        awk -v had="$(spent "$1" runs)" '/^stat::number_of_executed_units/ { print had + $2 }' "$place/log" >"$place/sum" && mv "$place/sum" "$place/runs"
    done
}

# Packs the corpus without inputs that reach nothing new, into an archive that is the same for the same inputs.
pack() { # NAME
    local place=$top/$1
    mkdir -p "$place/merged"
    "build-fuzz/tests/fuzz/$1_fuzz" -merge=1 "$place/merged" "$place/corpus" >"$place/merge.log" 2>&1
    tar -C "$place/merged" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 --mode=0644 -cf - . |
        gzip -9n >"tests/corpus/$1.tar.gz"
}

report() { # NAME
    local place=$top/$1 last found
    last=$(grep -E '^#[0-9]+.*cov: ' "$place/log" | tail -n 1)
    found=$(find "$place/found" -type f | wc -l)
    printf '%-9s %10s runs %8s/s %6s edges %7s features %5s inputs kept %3s findings, since %s\n' "$1" \
        "$(spent "$1" runs)" "$(($(spent "$1" runs) / ($(spent "$1" seconds) + 1)))" \
        "$(sed -n 's/.* cov: \([0-9]*\).*/\1/p' <<<"$last")" "$(sed -n 's/.* ft: \([0-9]*\).*/\1/p' <<<"$last")" \
        "$(tar -tzf "tests/corpus/$1.tar.gz" | grep -cv '/$')" "$found" "$(cat "$place/commit")"
    [ "$found" -eq 0 ] || echo "    $place/found, $place/log"
    [ "$found" -eq 0 ] && grep -q '^stat::' "$place/log" # a fuzzer that ended in any other way has found something, too
}

unfinished=
for name; do
    complete "$name" || unfinished=yes
done
for name; do
    [ -n "$unfinished" ] || rm -rf "${top:?}/$name"
done
echo "$minutes minutes each, at $(git describe --always --dirty), from $(date -u '+%Y-%m-%d %H:%M') UTC"
for name; do
    while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do
        wait -n
    done
    fuzz "$name" &
done
wait
failed=0
for name; do
    [ -z "$keep" ] || pack "$name"
    report "$name" || failed=1
done
exit $failed
