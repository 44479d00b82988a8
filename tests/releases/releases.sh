#!/bin/bash
# Builds softverbs on other releases of Debian and runs every client that each has: releases.sh [SUITE|BUILT:RUN|table]...
# A pair runs the clients of the second on what the first has built; deb-SUITE and tarball-SUITE try the packages there, and
# container-SUITE the steps of packaging/Containerfile on that release; arm64-SUITE builds there for arm64 and runs the suites
# that need no kernel's help, and the ping-pong, under qemu-user; `table` writes docs/evidence/releases.md of all results;
# without arguments everything of those. readme-SUITE runs the two commands of the README in a fresh system, `make check` whole,
# which takes as long again; dist-SUITE tries what `make dist` has made, image-SUITE the container image, rpm-SUITE
# the .rpm here, and install-SUITE the .deb of dist/ on that release. As root. The chroots, which debootstrap makes when they are absent, and the results stay in
# $SOFTVERBS_RELEASES. QUICK=1 leaves out the test suites of the tree.
set -eu
cd "$(dirname "$0")/../.."
all="bullseye bookworm trixie sid"
packages="arm64-bookworm container-trixie deb-bookworm deb-trixie deb-sid tarball-bullseye tarball-bookworm tarball-trixie tarball-sid"
cross="bullseye:bookworm bullseye:trixie bullseye:sid bookworm:trixie bookworm:sid"
clients="ibverbs-utils ibverbs-providers perftest rdmacm-utils python3-pyverbs ucx-utils libfabric-bin iproute2 git make ca-certificates"
arm64="gcc-aarch64-linux-gnu qemu-user-static $(printf '%s:arm64 ' libc6-dev libibverbs-dev librdmacm-dev libdeflate-dev libjansson-dev libcmocka-dev ibverbs-utils)"
. tests/releases/chroots.sh

# The lines of packaging/Containerfile, each stage in a separate system, and at last its command.
follow_containerfile() {
    local suite=$1 word rest stage=0 entry='' program='' environment=''
    while read -r word rest; do
        case $word in
        FROM) stage=$((stage + 1)) && fresh "$suite" "container$stage" ;;
        RUN) NETWORK=1 enter "container$stage" sh -c "$rest" >"$cache/container.log" 2>&1 </dev/null ;;
        COPY)
            case $rest in
            --from=*) cp -a "$cache/container1${rest##* }" "$cache/container$stage$(dirname "${rest##* }")" ;;
            *) copy_of_tree "$cache/container$stage${rest##* }" ;;
            esac
            ;;
        ENV) environment="$environment export $rest;" ;;
        ENTRYPOINT) entry=$(echo "$rest" | tr -d '[]",') ;;
        CMD) program=$(echo "$rest" | tr -d '[]",') ;;
        *) continue ;;
        esac || { printf 'not ok\t%s %s\t%s\n' "$word" "${rest:0:40}" "$(tail -n 1 "$cache/container.log")" && return; }
        printf 'ok\t%s %s\t\n' "$word" "${rest:0:40}"
    done <packaging/Containerfile
    if enter "container$stage" sh -c "$environment $entry $program" >"$cache/container.log" 2>&1 && grep -q PORT_ACTIVE "$cache/container.log"; then
        printf 'ok\t%s\t\n' "$entry $program"
    else
        printf 'not ok\t%s\t%s\n' "$entry $program" "$(tail -n 1 "$cache/container.log")"
    fi
}

prepare() {
    local suite=$1 old=
    [ "$suite" != sid ] || old="-o Acquire::Check-Valid-Until=false"
    if [ ! -d "$cache/$suite/etc" ]; then
        echo "$suite: debootstrap"
        mkdir -p "$cache"
        debootstrap --variant=minbase "$suite" "$cache/$suite.new" "$mirror" >"$cache/$suite.log" 2>&1
        mv "$cache/$suite.new" "$cache/$suite"
    fi
    [ -n "$(find "$cache/$suite.prepared" -newer "$0" 2>/dev/null)" ] && return
    # shellcheck disable=SC2086
    NETWORK=1 enter "$suite" sh -c "apt-get $old -qq update && apt-get $old -qq install -y --no-install-recommends $clients && apt-get clean" >"$cache/$suite.log" 2>&1
    touch "$cache/$suite.prepared"
}

prepare_arm64() { # a system of SUITE with the compiler, the libraries and the emulator of the other processor
    if [ ! -x "$cache/arm64/usr/bin/qemu-aarch64-static" ]; then
        fresh "$1" arm64
        NETWORK=1 enter arm64 sh -c "dpkg --add-architecture arm64 && apt-get -qq update && apt-get -qq install -y --no-install-recommends iproute2 $arm64" >"$cache/arm64.log" 2>&1
    fi
    copy_tree arm64
    NETWORK=1 in_tree arm64 "tools/build/setup.sh build tests" >>"$cache/arm64.log" 2>&1
}

note() { # note LIBRARY CLIENTS: from standard input, to the results
    tee "$cache/result.$1.$2" | grep --line-buffered -v "^why" || true
}

# The README's first command, then a separate installation for the programs of this release and of others.
build() {
    local suite=$1
    copy_tree "$suite"
    NETWORK=1 in_tree "$suite" "tools/build/setup.sh build demo tests" >"$cache/$suite.log" 2>&1
    if in_tree "$suite" "make demo" >"$cache/$suite.demo" 2>&1; then
        printf 'ok\tmake demo\t\n'
    else
        printf 'not ok\tmake demo\t%s\n' "$(tail -n 1 "$cache/$suite.demo")"
    fi
    in_tree "$suite" "rm -rf /opt/softverbs && make install PREFIX=/opt/softverbs" >>"$cache/$suite.log" 2>&1
}

run_suites() { # without link-time optimization, which hundreds of programs would wait for; what `make demo` has built has it
    local log=$cache/$1.suites failed
    in_tree "$1" "tools/build/build.sh build-tests -Dtests=true -Db_lto=false && meson test -C build-tests --no-rebuild --num-processes 2 --timeout-multiplier 4 --no-suite clients --no-suite house" >"$log" 2>&1 || true
    failed=$(sed -n 's/^ *[0-9]*\/[0-9]* \(.*[^ ]\)  *\(FAIL\|TIMEOUT\|ERROR\) .*/\1/p' "$log" | sed 's/.* \/ //' | paste -sd , -)
    counts=$(sed -n 's/^\(Ok\|Fail\|Skipped\|Timeout\): *\([0-9]*\) *$/\1 \2/p' "$log" | paste -sd , -)
    printf '%s\tsuites of the tree\t%s\n' "$([ -z "$failed" ] && [ -n "$counts" ] && echo ok || echo not ok)" "${counts:-$(tail -n 1 "$log")}${failed:+: $failed}"
}

# The README's two commands, on what debootstrap makes and with git and make, as the README wants; they install the rest.
run_readme() {
    local name=$1.readme command network=1 status
    fresh "$1" "$name"
    NETWORK=1 enter "$name" sh -c "apt-get -qq update && apt-get -qq install -y --no-install-recommends git make ca-certificates" >"$cache/$name.log" 2>&1
    git clone -q --no-hardlinks . "$cache/$name/root/softverbs"
    for command in demo check; do
        if NETWORK=$network in_tree "$name" "make $command" >"$cache/$name.$command" 2>&1; then status=ok; else status='not ok'; fi
        printf '%s\tmake %s\t%s\n' "$status" "$command" "$(tail -n 1 "$cache/$name.$command")"
        NETWORK=1 in_tree "$name" "tools/build/setup.sh build check" >>"$cache/$name.log" 2>&1
        network= # the tests are among themselves
    done
}

run_clients() { # run_clients LIBRARY CLIENTS: the library that LIBRARY built, under the programs of CLIENTS
    if [ "$1" != "$2" ]; then
        rm -rf "$cache/$2/opt/softverbs-$1"
        cp -a "$cache/$1/opt/softverbs" "$cache/$2/opt/softverbs-$1"
        enter "$2" python3 /root/softverbs/tests/releases/clients.py "/opt/softverbs-$1/bin/softverbs" || true
    else
        enter "$2" python3 /root/softverbs/tests/releases/clients.py /opt/softverbs/bin/softverbs || true
    fi
}

[ $# -gt 0 ] || set -- $all $cross $packages table # shellcheck disable=SC2086
for each; do
    echo "== $each"
    case $each in
    arm64-*)
        prepare_arm64 "${each#arm64-}"
        in_tree arm64 tests/releases/arm64.sh | tee "$cache/package.$each"
        ;;
    container-*) follow_containerfile "${each#container-}" | tee "$cache/package.$each" ;;
    deb-*)
        NETWORK=1 enter "${each#deb-}" apt-get -qq install -y --no-install-recommends debhelper lintian >"$cache/${each#deb-}.log" 2>&1
        copy_tree "${each#deb-}"
        in_tree "${each#deb-}" tests/releases/deb.sh | tee "$cache/package.$each"
        ;;
    tarball-*)
        copy_tree bullseye
        in_tree bullseye "[ -f /opt/tarball ] && [ /opt/tarball -nt meson.build ] || { rm -rf dist && tools/build/packages.sh tarball && mv dist/*.tar.gz /opt/tarball; }" >"$cache/bullseye.log" 2>&1
        [ "${each#tarball-}" = bullseye ] || cp "$cache/bullseye/opt/tarball" "$cache/${each#tarball-}/opt/tarball"
        copy_tree "${each#tarball-}"
        in_tree "${each#tarball-}" "tests/releases/tarball.sh /opt/tarball" | tee "$cache/package.$each"
        ;;
    dist-*) # on what debootstrap makes; the wheel wants Python
        fresh "${each#dist-}" "$each"
        old=-oAcquire::Check-Valid-Until=false # of sid a mirror may be weeks behind
        NETWORK=1 enter "$each" sh -c "apt-get $old -qq update && apt-get $old -qq install -y --no-install-recommends python3-venv" >"$cache/$each.log" 2>&1
        mkdir -p "$cache/$each/root/dist"
        cp dist/*.tar.gz dist/*.whl tests/releases/dist.sh "$cache/$each/root/dist/"
        enter "$each" /root/dist/dist.sh /root/dist | tee "$cache/package.$each"
        ;;
    image-*) tests/releases/image.sh dist/softverbs-*.oci.tar | tee "$cache/package.$each" ;;
    rpm-*) tests/releases/rpm.sh dist | tee "$cache/package.$each" ;;
    install-*) # the .deb files of another release of Debian
        fresh "${each#install-}" "$each"
        cp dist/softverbs_*.deb dist/softverbs-libs_*.deb dist/python3-softverbs_*.deb "$cache/$each/root/"
        if NETWORK=1 enter "$each" sh -c "apt-get -qq update && apt-get -qq install -y --no-install-recommends /root/*.deb && softverbs demo && python3 -c 'import softverbs'" >"$cache/$each.log" 2>&1; then
            printf 'ok\t.deb of dist: installs and runs\t\n'
        else
            printf 'not ok\t.deb of dist: installs and runs\t%s\n' "$(tail -n 1 "$cache/$each.log")"
        fi | tee "$cache/package.$each"
        ;;
    readme-*) run_readme "${each#readme-}" | tee "$cache/package.$each" ;;
    table) tests/releases/table.py "$cache" docs/evidence/releases.md ;;
    *:*) run_clients "${each%:*}" "${each#*:}" | note "${each%:*}" "${each#*:}" ;;
    *)
        prepare "$each"
        { build "$each"; [ -n "${QUICK:-}" ] || run_suites "$each"; run_clients "$each" "$each"; } | note "$each" "$each"
        ;;
    esac
done
