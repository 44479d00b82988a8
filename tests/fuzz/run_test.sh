#!/bin/sh
# A fault that a fuzzer finds fails its test, although libFuzzer's exit status 77 is meson's for a test that was skipped.
set -eu
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
printf '#!/bin/sh\nexit 77\n' >"$directory/fuzzer"
chmod +x "$directory/fuzzer"
mkdir "$directory/kept"
echo input >"$directory/kept/input"
tar -czf "$directory/corpus.tar.gz" -C "$directory/kept" input
for options in "" "-runs=1 -seed=1"; do
    status=0
    # shellcheck disable=SC2086 # several options
    "$(dirname "$0")/run.sh" "$directory/fuzzer" "$directory/corpus.tar.gz" $options >/dev/null || status=$?
    [ "$status" -eq 1 ] || { echo "run.sh with \"$options\" ends with $status, and not with 1"; exit 1; }
done
