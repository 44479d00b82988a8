#!/bin/bash
# Builds softverbs on other releases of Debian and runs every client that each has: releases.sh [SUITE|BUILT:RUN|table]...
# A pair runs the clients of the second on what the first has built; deb-SUITE and tarball-SUITE try the packages there, and
# container-SUITE the steps of packaging/Containerfile on that release; arm64-SUITE builds there for arm64 and runs the suites
# that need no kernel's help, and the ping-pong, under qemu-user; `table` writes docs/evidence/releases.md of all results;
# without arguments everything of those and of the files of a release. readme-SUITE runs the two commands of the README in a fresh system,
# `make check` whole, which takes as long again. twice-SUITE runs `make dist` in a fresh system, two times, compares the checksums, and leaves the files in dist/;
# of these dist-SUITE tries tarball and wheel, dist_aarch64-SUITE those for that processor, musl-SUITE the tarball for musl, image-SUITE and image_aarch64-SUITE the container
# images, rpm-SUITE the .rpm here, and install-SUITE the .deb files of that release and of the one before. As root. The chroots, which debootstrap makes when they are absent, and the results stay in
# $SOFTVERBS_RELEASES. QUICK=1 leaves out the test suites of the tree.
set -eu
cd "$(dirname "$0")/../.."
all="bullseye bookworm trixie sid"
packages="arm64-bookworm container-trixie deb-bookworm deb-trixie deb-sid tarball-bullseye tarball-bookworm tarball-trixie tarball-sid"
files="twice-bookworm dist-bullseye dist-bookworm dist-trixie dist-sid dist_aarch64-trixie musl-bookworm image-trixie image_aarch64-trixie rpm-bookworm install-bullseye
    install-bookworm install-trixie install-sid"
before_sid=trixie before_trixie=bookworm before_bookworm=bullseye before_bullseye=
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
    local suite=$1
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

with_packages() { # with_packages SYSTEM PACKAGE...
    local system=$1
    shift
    NETWORK=1 enter "$system" sh -c "apt-get $old -qq update && apt-get $old -qq install -y --no-install-recommends $*" >"$cache/$system.log" 2>&1
}

put_programs() { # put_programs SYSTEM: programs.sh and its example, in /root/dist
    mkdir -p "$cache/$1/root/dist"
    cp tests/releases/programs.sh "$cache/$1/root/dist/"
    sed -n '/^```python/,/^```$/{/^```$/q;/^```/!p}' docs/how-to/testing.md >"$cache/$1/root/dist/example.py"
}

# Runs as in CONTRIBUTING, on what debootstrap makes and with git and make; each run in a new checkout.
run_dist_twice() { # run_dist_twice SYSTEM SUITE
    local run
    fresh "$2" "$1"
    with_packages "$1" git make ca-certificates
    for run in 1 2; do
        rm -rf "$cache/$1/root/softverbs"
        git clone -q --no-hardlinks . "$cache/$1/root/softverbs"
        if NETWORK=1 in_tree "$1" "make dist" >"$cache/$1.make$run" 2>&1; then
            printf 'ok\tmake dist, run %s\t%s files\n' $run "$(wc -l <"$cache/$1/root/softverbs/dist/SHA256SUMS")"
        else
            printf 'not ok\tmake dist, run %s\t%s\n' $run "$(tail -n 1 "$cache/$1.make$run")"
        fi
        cp "$cache/$1/root/softverbs/dist/SHA256SUMS" "$cache/$1.sums$run"
        rm -rf dist && cp -a "$cache/$1/root/softverbs/dist" dist # other cases need not wait for the second run
    done
    printf '%s\tthe checksums are the same\t%s\n' "$(cmp -s "$cache/$1.sums1" "$cache/$1.sums2" && echo ok || echo not ok)" \
        "$(diff "$cache/$1.sums1" "$cache/$1.sums2" | sed -n 's/^>.* //p' | paste -sd ' ')"
}

try_dist() { # try_dist SYSTEM SUITE MACHINE [ARCHITECTURE]: tarball and wheel, first without a package of RDMA
    fresh "$2" "$1" "${@:4}"
    with_packages "$1" python3-venv
    put_programs "$1"
    cp dist/*-"$3".tar.gz dist/*_"$3".whl tests/releases/dist.sh "$cache/$1/root/dist/"
    enter "$1" /root/dist/dist.sh /root/dist demo
    with_packages "$1" ibverbs-utils rdmacm-utils
    enter "$1" /root/dist/dist.sh /root/dist programs
}

previous_of() {
    local name=before_$1
    echo "${!name}"
}

# install_debs SYSTEM SUITE BUILT: the .deb files of the release BUILT on SUITE; on its own they are linted, too.
install_debs() {
    local name end
    case $3 in bullseye) end=deb11 ;; bookworm) end=deb12 ;; trixie) end=deb13 ;; *) end=$3 ;; esac
    name=".deb of $end"
    fresh "$2" "$1"
    put_programs "$1"
    cp dist/*softverbs*+"$end"_*.deb "$cache/$1/root/dist/"
    rm -f "$cache/$1"/root/dist/*-dbgsym_*
    if with_packages "$1" "/root/dist/*.deb" ibverbs-utils rdmacm-utils && enter "$1" softverbs demo >>"$cache/$1.log" 2>&1; then
        printf 'ok\t%s: installs, demo\t\n' "$name"
    else
        printf 'not ok\t%s: installs, demo\t%s\n' "$name" "$(tail -n 1 "$cache/$1.log")"
    fi
    enter "$1" /root/dist/programs.sh "$name" /usr/bin/softverbs python3
    if [ "$2" = "$3" ]; then
        with_packages "$1" lintian
        if enter "$1" sh -c "lintian --fail-on warning --tag-display-limit 0 /root/dist/*.deb" >"$cache/$1.log" 2>&1; then
            printf 'ok\t%s: lintian\t\n' "$name"
        else
            printf 'not ok\t%s: lintian\t%s\n' "$name" "$(paste -sd ';' "$cache/$1.log" | cut -c1-300)"
        fi
    fi
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

[ $# -gt 0 ] || set -- $all $cross $packages $files table # shellcheck disable=SC2086
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
    twice-*) run_dist_twice "$each" "${each#twice-}" | tee "$cache/package.$each" ;;
    dist-*) try_dist "$each" "${each#dist-}" "$(uname -m)" | tee "$cache/package.$each" ;;
    dist_aarch64-*) EMULATED=1 try_dist "$each" "${each#dist_aarch64-}" aarch64 arm64 | tee "$cache/package.$each" ;;
    musl-*)
        fresh "${each#musl-}" "$each"
        with_packages "$each" musl-tools libibverbs-dev linux-libc-dev binutils
        mkdir -p "$cache/$each/root/dist"
        cp dist/*-musl.tar.gz tests/releases/musl.sh examples/lid_pingpong.c "$cache/$each/root/dist/"
        enter "$each" /root/dist/musl.sh /root/dist | tee "$cache/package.$each"
        ;;
    image-*) tests/releases/image.sh dist/softverbs-*-"$(uname -m)".oci.tar | tee "$cache/package.$each" ;;
    image_aarch64-*) tests/releases/image.sh dist/softverbs-*-aarch64.oci.tar | tee "$cache/package.$each" ;;
    rpm-*) tests/releases/rpm.sh dist | tee "$cache/package.$each" ;;
    install-*) for of in $(previous_of "${each#install-}") "${each#install-}"; do install_debs "$each" "${each#install-}" "$of"; done | tee "$cache/package.$each" ;;
    readme-*) run_readme "${each#readme-}" | tee "$cache/package.$each" ;;
    table) tests/releases/table.py "$cache" docs/evidence/releases.md ;;
    *:*) run_clients "${each%:*}" "${each#*:}" | note "${each%:*}" "${each#*:}" ;;
    *)
        prepare "$each"
        { build "$each"; [ -n "${QUICK:-}" ] || run_suites "$each"; run_clients "$each" "$each"; } | note "$each" "$each"
        ;;
    esac
done
