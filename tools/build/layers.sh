#!/bin/sh
# Links each layer's sources into an include directory of its own: layers.sh SOURCE BUILD VERSION. The version
# is a header beside the ground floor.
set -eu
for layer in base wire diag cm transport link fabric config runtime verbs gsi report abi; do # those that meson.build names, also before they exist
    mkdir -p "$2/include/$layer"
    ln -sfn "$1/src/$layer" "$2/include/$layer/$layer"
done

header=$2/include/base/softverbs_version.h
line="#define SOFTVERBS_VERSION \"$3\""
[ "$(cat "$header" 2>/dev/null)" = "$line" ] || echo "$line" >"$header" # unchanged, it makes nothing be built again
