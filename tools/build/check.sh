#!/bin/bash
# Builds and runs the tests, each kind of build in a separate directory: check.sh [plain] [asan] [tsan] [fuzz].
# Ends with one line, `N passed, N failed, N skipped`, over everything; the exit status is 0 when nothing failed.
set -u
cd "$(dirname "$0")/../.." || exit 1
export CMOCKA_MESSAGE_OUTPUT=TAP
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export TSAN_OPTIONS=second_deadlock_stack=1
unset CI GITHUB_ACTIONS GITLAB_CI # with these, programs under `softverbs run` write lines where tests expect silence

steps=$(mktemp) # results of the steps themselves, in TAP, and how long they took
trap 'rm -f "$steps"' EXIT
directories=()

timed() { # timed WHAT COMMAND...
    local what=$1 began=$SECONDS status
    shift
    "$@"
    status=$?
    echo "# $((SECONDS - began)) s $what" >>"$steps"
    return $status
}

timed "set-up" tools/build/setup.sh build check || exit 1

# Prints whether a program built with this sanitizer runs here, as some containers refuse what it needs: "plainly", "fixed" (only
# without address space randomisation), or "no".
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

# suites DIRECTORY PREFIX PROCESSES MESON-TEST-OPTION...
suites() {
    local directory=$1 prefix=$2 processes=$3
    shift 3
    $prefix meson test -C "$directory" --no-rebuild --num-processes "$processes" --print-errorlogs "$@" |
        grep --line-buffered -Ev '^(ninja:|$|Full log written|(Ok|Expected Fail|Fail|Unexpected Pass|Skipped|Timeout): )'
}

# run_suites DIRECTORY NAME PREFIX MESON-TEST-OPTION...: the suites of a finished build. Tests of the plain kind that mostly wait (tests/clients/meson.build,
# tests/tool/meson.build) run beside the rest, so that no processor is idle. So do the programs that want no other of their kind, and after them the
# `late` ones. At most twice as many tests as processors run at a time: with more, a process can wait a second for a processor, and peers of other tests
# give it up.
run_suites() {
    local directory=$1 name=$2 prefix=$3 beside= rest=()
    shift 3
    if ! meson test -C "$directory" --no-rebuild --list "$@" 2>/dev/null | grep -qv '^No tests defined'; then
        echo "ok - tests of the $name build # SKIP there are none yet" >>"$steps"
        return
    fi
    echo "== Tests of the $name build"
    rm -f "$directory"/meson-logs/*.json
    if [ "$name" = plain ]; then
        {
            suites "$directory" "$prefix" "$(nproc)" --suite waits --no-suite late --logbase waits
            # Otherwise one processor would be idle, as the rest takes some minutes longer.
            suites "$directory" "$prefix" "$(nproc)" --suite model --suite check --no-suite waits --no-suite alone --logbase after
        } &
        rest=(--no-suite model --no-suite check)
        {
            suites "$directory" "$prefix" 1 --suite alone --logbase alone
            suites "$directory" "$prefix" "$(nproc)" --suite late --logbase late
        } &
        beside=1
    fi
    suites "$directory" "$prefix" "${beside:-$(nproc)}" --no-suite waits --no-suite alone "${rest[@]}" "$@"
    wait
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
    if timed "build of the $name kind" tools/build/build.sh --again "$directory" "${options[@]}"; then
        timed "tests of the $name kind" run_suites "$directory" "$name" "$prefix" "$@"
    else
        echo "not ok - the $name build is made" >>"$steps"
    fi
}

# Sanitizers' builds take twice as long with -O2, and their tests hardly less; -g1 is what a stack of calls needs.
quick=(-Dwerror=true -Doptimization=1 -Dc_args=-g1)

sanitized() { # sanitized NAME SANITIZERS [MESON-OPTION...]
    local name=$1 sanitizers=$2 prefix
    shift 2
    case $(sanitizer_runs "$sanitizers") in
    plainly) prefix= ;;
    fixed) prefix="setarch --addr-no-randomize" ;;
    no)
        echo "ok - $name build # SKIP programs built with -fsanitize=$sanitizers do not run on this machine" >>"$steps"
        return
        ;;
    esac
    TEST_PATIENCE=4 check "$name" "build-$name" "$prefix" -Db_sanitize="$sanitizers" -Db_lundef=false -Dtests=true "${quick[@]}" "$@" -- --no-suite clients --timeout-multiplier 4
}

for build in "$@"; do
    case $build in
    # The plain kind runs several suites at once, which wait for processors; a longer limit costs a good run nothing.
    plain) TEST_PATIENCE=3 check plain build "" -Dtests=true -Dwerror=true -- --timeout-multiplier 3 ;;
    asan) sanitized asan address,undefined ;;
    tsan) sanitized tsan thread ;;
    fuzz) CC=clang check fuzz build-fuzz "" -Dfuzz=true -Dtests=false "${quick[@]}" -- --suite fuzz ;;
    *) echo "check.sh: there is no build called '$build'; it knows plain, asan, tsan and fuzz." >&2; exit 2 ;;
    esac
    [ "$build" = "${!#}" ] || tools/build/summary.py --so-far "$steps" "${directories[@]}"
done
tools/build/lines.py
tools/build/adverse.py . | sed -n 's/^.*ok 2 - \(.*\)/In src \1./p'
tools/build/ceilings.py
tools/build/summary.py "$steps" "${directories[@]}"
