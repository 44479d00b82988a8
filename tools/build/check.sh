#!/bin/bash
# Builds and runs the tests, each kind of build in a directory of its own: check.sh [plain] [asan] [tsan] [fuzz].
# Ends with one line, `N passed, N failed, N skipped`, over everything; the exit status is 0 when nothing failed.
set -u
cd "$(dirname "$0")/../.." || exit 1
tools/build/setup.sh build check || exit 1

export CMOCKA_MESSAGE_OUTPUT=TAP
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export TSAN_OPTIONS=second_deadlock_stack=1

steps=$(mktemp) # results of the steps themselves, in TAP
trap 'rm -f "$steps"' EXIT
directories=()

# Does a program built with this sanitizer run here? Some containers refuse what it needs. "plainly", "fixed" (only without
# address space randomisation), or "no".
sanitizer_runs() {
    local probe
    probe=$(mktemp -d)
    echo 'int main(void) { return 0; }' >"$probe/probe.c"
    if ! cc -fsanitize="$1" "$probe/probe.c" -o "$probe/probe" 2>/dev/null; then
        echo no
    elif "$probe/probe" 2>/dev/null; then
        echo plainly
    elif setarch --addr-no-randomize "$probe/probe" 2>/dev/null; then
        echo fixed
    else
        echo no
    fi
    rm -rf "$probe"
}

# run_suites DIRECTORY NAME PREFIX MESON-TEST-OPTION...: the suites of a finished build
run_suites() {
    local directory=$1 name=$2 prefix=$3
    shift 3
    if ! meson test -C "$directory" --no-rebuild --list "$@" 2>/dev/null | grep -qv '^No tests defined'; then
        echo "ok - tests of the $name build # SKIP there are none yet" >>"$steps"
        return
    fi
    echo "== Tests of the $name build"
    rm -f "$directory/meson-logs/testlog.json"
    $prefix meson test -C "$directory" --no-rebuild --num-processes "$(nproc)" --print-errorlogs "$@" |
        grep --line-buffered -Ev '^(ninja:|$|Full log written|(Ok|Expected Fail|Fail|Unexpected Pass|Skipped|Timeout): )'
    directories+=("$directory")
}

# check NAME DIRECTORY PREFIX [MESON-OPTION...] -- [MESON-TEST-OPTION...]
check() {
    local name=$1 directory=$2 prefix=$3 options=()
    shift 3
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    if tools/build/build.sh --again "$directory" "${options[@]}"; then
        run_suites "$directory" "$name" "$prefix" "$@"
    else
        echo "not ok - the $name build is made" >>"$steps"
    fi
}

sanitized() { # sanitized NAME SANITIZERS
    local prefix
    case $(sanitizer_runs "$2") in
    plainly) prefix= ;;
    fixed) prefix="setarch --addr-no-randomize" ;;
    no)
        echo "ok - $1 build # SKIP programs built with -fsanitize=$2 do not run on this machine" >>"$steps"
        return
        ;;
    esac
    check "$1" "build-$1" "$prefix" -Db_sanitize="$2" -Db_lundef=false -Dtests=true -Dwerror=true -- --no-suite clients --timeout-multiplier 4
}

for build in "$@"; do
    case $build in
    plain) check plain build "" -Dtests=true -Dwerror=true -- ;;
    asan) sanitized asan address,undefined ;;
    tsan) sanitized tsan thread ;;
    fuzz) CC=clang check fuzz build-fuzz "" -Dfuzz=true -Dtests=false -Dwerror=true -- --suite fuzz ;;
    *) echo "check.sh: there is no build called '$build'; it knows plain, asan, tsan and fuzz." >&2; exit 2 ;;
    esac
done
tools/build/summary.py "$steps" "${directories[@]}"
