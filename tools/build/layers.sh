#!/bin/sh
# Links each layer's sources into an include directory of its own: layers.sh SOURCE BUILD.
set -eu
for layer in base wire diag cm transport link fabric verbs abi; do # those that meson.build names, also before they exist
    mkdir -p "$2/include/$layer"
    ln -sfn "$1/src/$layer" "$2/include/$layer/$layer"
done
