#!/bin/bash
# In a system of releases.sh: the tarball and the wheel of `make dist`, as an ordinary user gets them: dist.sh DIRECTORY demo|programs
# demo: without a package of RDMA; the time is from the tarball to the last line of the demonstration. programs: of the system's packages, by programs.sh.
set -u
dist=$1 home=/home/user
mkdir -p "$home"
cp "$dist"/*.tar.gz "$dist"/*.whl "$home"
chown -R 65534:65534 "$home"

as_user() { # as_user NAME COMMAND: its last line is shown when it fails
    local name=$1 status
    shift
    setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$home" sh -euc "cd $home; $*" >"$home.log" 2>&1
    status=$?
    if [ $status = 0 ]; then printf 'ok\t%s\t%s\n' "$name" "$(sed -n 's/^took: //p' "$home.log")"; else printf 'not ok\t%s\t%s\n' "$name" "$(tail -n 1 "$home.log")"; fi
}

show_demos() {
    as_user "tarball, demo" 'begin=$(date +%s%N); tar xzf softverbs-*.tar.gz; softverbs-*/bin/softverbs demo; echo "took: $(( ($(date +%s%N) - begin) / 1000000 )) ms"'
    as_user "tarball, demo --all" 'begin=$(date +%s%N); softverbs-*/bin/softverbs demo --all >all; grep "RC SEND_ONLY" all; echo "took: $(( ($(date +%s%N) - begin) / 1000000 )) ms"'
    as_user "wheel, demo in a virtual environment" 'python3 -m venv v; v/bin/pip install --quiet --no-index *.whl; v/bin/softverbs demo --all; v/bin/python -c "import softverbs"; v/bin/pip uninstall --quiet --yes softverbs; [ ! -e v/lib/softverbs ]'
}

run_programs() {
    local unpacked
    unpacked=$(echo "$home"/softverbs-*/bin/softverbs)
    "$dist/programs.sh" tarball "$unpacked" python3 "${unpacked%/bin/softverbs}/share/softverbs/python"
    as_user "wheel, installs again" 'v/bin/pip install --quiet --no-index *.whl'
    "$dist/programs.sh" wheel "$home/v/bin/softverbs" "$home/v/bin/python"
}

case $2 in demo) show_demos ;; programs) run_programs ;; esac
