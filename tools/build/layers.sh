#!/bin/sh
# Links each layer's sources into a separate include directory: layers.sh SOURCE BUILD VERSION. Prints for meson each
# layer of src/layers, followed by those that it or their headers may include. The version is a header beside the ground floor.
set -eu
sed -n 's/^\([a-z0-9]*\)\**:/\1/p' "$1/src/layers" | awk '{
    reach[$1] = " " $1
    for (i = 2; i <= NF; i++) {
        split(reach[$i], below, " ")
        for (j in below)
            if (index(reach[$1] " ", " " below[j] " ") == 0)
                reach[$1] = reach[$1] " " below[j]
    }
    print substr(reach[$1], 2)
}' | while read -r layer others; do
    mkdir -p "$2/include/$layer"
    ln -sfn "$1/src/$layer" "$2/include/$layer/$layer"
    echo "$layer${others:+ $others}"
done

header=$2/include/base/softverbs_version.h
line="#define SOFTVERBS_VERSION \"$3\""
[ "$(cat "$header" 2>/dev/null)" = "$line" ] || echo "$line" >"$header" # an unchanged header causes no new build
