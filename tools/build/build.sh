#!/bin/sh
# Configures when needed and builds: build.sh [--again] [--quick] [--target TARGET] [DIRECTORY [MESON-OPTION...]], by default all of build/. The
# options count when DIRECTORY is configured for the first time, with --again also when it was configured with others. --quick: with little
# optimization, for half of the processor time; the next build without --quick configures such a directory anew.
set -eu
cd "$(dirname "$0")/../.."
again= quick= target=
while :; do
    case ${1:-} in
    --again) again=yes ;;
    --quick) quick=yes ;;
    --target) target=$2; shift ;;
    *) break ;;
    esac
    shift
done
directory=${1:-build}
[ $# -eq 0 ] || shift
case " $* " in
*" -Dtests=false "*) tools/build/setup.sh build ;;
*) tools/build/setup.sh build tests ;;
esac

# GCC's link-time optimization takes a tenth of the instructions away, and -O3 a twelfth (docs/evidence/budget.md). Sanitizers, coverage and the fuzzers are
# better off without; clang's needs a linker that may not be there.
case " $* " in
*b_lto=* | *b_sanitize=* | *b_coverage=* | *fuzz=true*) quick= ;;
*)
    if [ -n "$quick" ]; then
        set -- "$@" -Db_lto=false -Doptimization=1 -Ddebug=false
    elif ${CC:-cc} --version 2>/dev/null | grep -q 'Free Software Foundation'; then
        set -- "$@" -Db_lto=true -Doptimization=3
    fi
    ;;
esac

log=$(mktemp)
counter=
trap 'rm -f "$log"; [ -z "$counter" ] || kill "$counter" 2>/dev/null || true' EXIT
configure() {
    echo "Configuring $directory"
    "$@" >"$log" 2>&1 || { cat "$log"; exit 1; }
    echo "$options" >"$directory/configured-with"
}

options="${quick:+--quick }$*"
before=$(cat "$directory/configured-with" 2>/dev/null || true)
case $before in "--quick "*) [ -n "$quick" ] || { again=yes; set -- "$@" -Ddebug=true; } ;; esac
if [ ! -f "$directory/build.ninja" ]; then
    configure meson setup "$directory" "$@"
elif [ -n "$again" ] && [ "$before" != "$options" ]; then
    # "meson setup" of a configured directory leaves options of the compiler as they are (b_lto), and "meson configure" knows no new options.
    compilers=$(printf '%s\n' "$@" | grep '^-Db_' || true)
    # shellcheck disable=SC2086
    [ -z "$compilers" ] || meson configure "$directory" $compilers >"$log" 2>&1 || { cat "$log"; exit 1; }
    configure meson setup --reconfigure "$directory" "$@"
fi
if [ -z "$target" ]; then
    case " $* " in *b_sanitize=* | *fuzz=true*) target=meson-test-prereq ;; *) target=all ;; esac # the first builds install nothing
fi
steps=$(ninja -C "$directory" -n "$target" 2>/dev/null | sed -n 's/^\[[0-9]*\/\([0-9]*\)\].*/\1/p' | tail -n 1)
[ -n "$steps" ] || exit 0
[ "$steps" = 1 ] || echo "Building $directory: $steps steps (ninja -C $directory $target shows them)" # one step is always there: it looks at the version

# Shows how far ninja is whenever that has changed: at a terminal in one line, elsewhere in a new line every 30 seconds at most.
count_steps() {
    seconds=$1 form=$2 shown=
    while sleep "$seconds" >/dev/null 2>&1; do
        done=$(sed -n 's/^\[\([0-9]*\)\/.*/\1/p' "$log" | tail -n 1)
        # shellcheck disable=SC2059
        [ "$done" = "$shown" ] || printf "$form" "$done" "$steps"
        shown=$done
    done
}
wipe=
if [ -t 1 ]; then
    wipe='\r\033[K'
    count_steps 1 '\r  %s of %s' &
else
    count_steps 30 '  %s of %s\n' &
fi
counter=$!
status=0
ninja -C "$directory" "$target" >"$log" 2>&1 || status=$?
kill "$counter" 2>/dev/null || true
wait "$counter" 2>/dev/null || true # the counter may be in the middle of a line
counter=
# shellcheck disable=SC2059
printf "$wipe"
[ "$status" = 0 ] || { grep -v "^\[[0-9]*/[0-9]*\] " "$log"; echo "The build in $directory failed."; exit 1; }
