#!/bin/sh
# own_directory.sh COMMAND...: runs a test whose processes meet in a new directory, which is then removed. meson.build makes it the
# wrapper of all tests, so that no test meets processes of another test or of the user's own directory, perhaps of another layout.
# Settings of Python that the caller has set for itself change the order of what a test and its children write: they are unset.
unset PYTHONUNBUFFERED PYTHONPATH PYTHONSTARTUP PYTHONOPTIMIZE
SOFTVERBS_DIR=$(mktemp -d /dev/shm/softverbs-test-XXXXXX 2>/dev/null) || SOFTVERBS_DIR=$(mktemp -d) || exit 99
export SOFTVERBS_DIR
trap 'rm -rf "$SOFTVERBS_DIR"' EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
"$@"
