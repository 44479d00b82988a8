#!/bin/sh
# Configures when needed and builds: build.sh [--again] [DIRECTORY [MESON-OPTION...]], by default build/. The options count
# when DIRECTORY is configured for the first time, with --again also when it was configured with others.
set -eu
cd "$(dirname "$0")/../.."
again=
[ "${1:-}" != --again ] || { again=yes; shift; }
directory=${1:-build}
[ $# -eq 0 ] || shift
case " $* " in
*" -Dtests=false "*) tools/build/setup.sh build ;;
*) tools/build/setup.sh build tests ;;
esac

# GCC's link-time optimization takes a tenth of the instructions away, and -O3 a twelfth (docs/evidence/budget.md). Sanitizers, coverage and the fuzzers are
# better off without; clang wants a linker for it that may not be there.
case " $* " in
*b_lto=* | *b_sanitize=* | *b_coverage=* | *fuzz=true*) ;;
*) if ${CC:-cc} --version 2>/dev/null | grep -q 'Free Software Foundation'; then set -- "$@" -Db_lto=true -Doptimization=3; fi ;;
esac

log=$(mktemp)
trap 'rm -f "$log"' EXIT
configure() {
    echo "Configuring $directory"
    "$@" >"$log" 2>&1 || { cat "$log"; exit 1; }
}

if [ ! -f "$directory/build.ninja" ]; then
    configure meson setup "$directory" "$@"
    echo "$*" >"$directory/configured-with"
elif [ -n "$again" ] && [ "$(cat "$directory/configured-with" 2>/dev/null)" != "$*" ]; then
    configure meson setup --reconfigure "$directory" "$@" # and not "meson configure", which does not know new options
    echo "$*" >"$directory/configured-with"
fi
target=all
case " $* " in *b_sanitize=* | *fuzz=true*) target=meson-test-prereq ;; esac # which has nothing to install
steps=$(ninja -C "$directory" -n "$target" 2>/dev/null | sed -n 's/^\[[0-9]*\/\([0-9]*\)\].*/\1/p' | tail -n 1)
[ -n "$steps" ] || exit 0
[ "$steps" = 1 ] || echo "Building $directory: $steps steps (ninja -C $directory $target shows them)" # one: the version is looked at
ninja -C "$directory" "$target" >"$log" 2>&1 || { grep -v "^\[[0-9]*/[0-9]*\] " "$log"; echo "The build in $directory failed."; exit 1; }
