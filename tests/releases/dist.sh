#!/bin/bash
# In a fresh system of releases.sh: the files of `make dist`, as an ordinary user gets them and without a package of RDMA: dist.sh DIRECTORY
# The time is from the tarball to the last line of the demonstration.
set -u
dist=$1 home=$(mktemp -d)
cp "$dist"/*.tar.gz "$dist"/*.whl "$home"
chown -R 65534:65534 "$home"

as_user() { # as_user NAME COMMAND: its last line is shown when it fails
    local name=$1 status
    shift
    setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$home" sh -euc "cd $home; $*" >"$home.log" 2>&1
    status=$?
    if [ $status = 0 ]; then printf 'ok\t%s\t%s\n' "$name" "$(sed -n 's/^took: //p' "$home.log")"; else printf 'not ok\t%s\t%s\n' "$name" "$(tail -n 1 "$home.log")"; fi
}

as_user "tarball, demo" 'begin=$(date +%s%N); tar xzf softverbs-*.tar.gz; softverbs-*/bin/softverbs demo; echo "took: $(( ($(date +%s%N) - begin) / 1000000 )) ms"'
as_user "tarball, demo --all" 'softverbs-*/bin/softverbs demo --all | grep "RC SEND_ONLY"'
if ! command -v python3 >/dev/null || ! python3 -c 'import ensurepip' 2>/dev/null; then
    printf 'skip\twheel\tpython3-venv is not installed\n'
    exit
fi
as_user "wheel, demo in a virtual environment" 'python3 -m venv v; v/bin/pip install --quiet --no-index *.whl; v/bin/softverbs demo --all; v/bin/python -c "import softverbs"; v/bin/pip uninstall --quiet --yes softverbs; [ ! -e v/lib/softverbs ]'
