#!/bin/bash
# The step of action.yml: installs softverbs into $RUNNER_TEMP, asks the doctor, and hands the environment to later steps.
set -eu
target=$RUNNER_TEMP/softverbs
mkdir -p "$target"
case ${SOFTVERBS_INPUT_TARBALL:-} in
'') make -C "$GITHUB_ACTION_PATH" install PREFIX="$target" ;;
*://*) curl -fsSL "$SOFTVERBS_INPUT_TARBALL" | tar xz -C "$target" --strip-components=1 ;;
*) tar xzf "$SOFTVERBS_INPUT_TARBALL" -C "$target" --strip-components=1 ;;
esac
echo "$target/bin" >>"$GITHUB_PATH"
"$target/bin/softverbs" doctor
# shellcheck disable=SC2086 # the options are words
[ "${SOFTVERBS_INPUT_GLOBAL:-true}" != true ] || "$target/bin/softverbs" env --github ${SOFTVERBS_INPUT_OPTIONS:-}
