#!/bin/sh
# own_directory.sh COMMAND...: runs a test whose processes meet in a new directory, which is then removed. meson.build makes it the
# wrapper of all tests, so that no test meets processes of another test or of the user's own directory, perhaps of another layout.
# Settings of Python that the caller has set for itself change the order of what a test and its children write: they are unset.
unset PYTHONUNBUFFERED PYTHONPATH PYTHONSTARTUP PYTHONOPTIMIZE
SOFTVERBS_DIR=$(mktemp -d /dev/shm/softverbs-test-XXXXXX 2>/dev/null) || SOFTVERBS_DIR=$(mktemp -d) || exit 99
TEST_OF=$SOFTVERBS_DIR # marks all processes of the test
export SOFTVERBS_DIR TEST_OF
trap 'rm -rf "$SOFTVERBS_DIR"' EXIT
# A test that is ended before its time leaves processes that poll, some of another user or session, and later tests would lack the processor.
end_all() {
    # shellcheck disable=SC2046 # numbers of processes
    set -- $(grep -lszx "TEST_OF=$TEST_OF" /proc/[0-9]*/environ | sed 's|/proc/\([0-9]*\)/.*|\1|' | grep -vx $$)
    [ $# = 0 ] || kill -9 "$@" 2>/dev/null
}
trap 'end_all; exit 143' TERM
trap 'end_all; exit 130' INT
"$@"
