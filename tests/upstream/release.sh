#!/bin/bash
# Runs upstream.py in a chroot of another release of Debian, whose packages an entry needs: release.sh RELEASE DIRECTORIES WORDS...
# DIRECTORIES, with colons between them, are seen in it at their paths; WORDS go to upstream.py. The chroot stays, with what has been installed in it. As root.
set -euo pipefail
release=$1 directories=$2
shift 2
here=$(dirname "$(realpath "$0")")
. "$here/../releases/chroots.sh"
export BINDS=$directories NETWORK=1
name=upstream-$release
needs="python3 git util-linux procps libjansson4 libdeflate0"
if [ ! -e "$cache/$name/prepared" ]; then
    echo "Preparing $cache/$name"
    log=$(mktemp)
    { fresh "$release" "$name" && echo 'DPkg::Lock::Timeout "600";' >"$cache/$name/etc/apt/apt.conf.d/lock" && # entries of one release may be built at the same time
        enter "$name" sh -c "apt-get update && apt-get install -y --no-install-recommends $needs && touch /prepared"; } >"$log" 2>&1 || { tail -n 5 "$log"; exit 1; }
    rm "$log"
fi
enter "$name" env ${SOFTVERBS_BUILD:+SOFTVERBS_BUILD="$SOFTVERBS_BUILD"} JOBS="${JOBS:-$(nproc)}" PYTHONDONTWRITEBYTECODE=1 python3 "$here/upstream.py" "$@"
