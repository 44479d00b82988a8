#!/bin/sh
# Configures when needed and builds, quietly: build.sh [DIRECTORY [MESON-OPTION...]], by default build/.
set -eu
cd "$(dirname "$0")/../.."
tools/build/setup.sh build
directory=${1:-build}
[ $# -eq 0 ] || shift

log=$(mktemp)
trap 'rm -f "$log"' EXIT
if [ ! -f "$directory/build.ninja" ]; then
    echo "Configuring $directory"
    meson setup "$directory" "$@" >"$log" 2>&1 || { cat "$log"; exit 1; }
fi
ninja -C "$directory" -n 2>/dev/null | grep -q 'no work to do' && exit 0
echo "Building $directory"
ninja -C "$directory" --quiet >"$log" 2>&1 || { cat "$log"; echo "The build in $directory failed."; exit 1; }
