#!/bin/sh
# Installs the packages that are missing for each purpose: setup.sh [build] [tests] [demo] [packages] [check] [bench] [clients] [lab] [look] [site] [dist] [+PACKAGE].
# Silent and quick when nothing is missing. Without root, or sudo without a password, it names the packages instead. Knows apt,
# dnf, zypper, apk and pacman; SOFTVERBS_SETUP=show only says what it would run.
set -eu

# The packages of each purpose in Debian; below, the packages of other systems, which lack some purposes.
wanted_of_debian() {
    case $1 in
    build) echo gcc libc6-dev make meson ninja-build pkg-config libibverbs-dev librdmacm-dev libdeflate-dev libjansson-dev python3 systemtap-sdt-dev ;;
    tests) echo libcmocka-dev ;;
    demo) echo ibverbs-utils ;;
    packages) echo debhelper dpkg-dev ;;
    dist) echo debootstrap iproute2 python3 xz-utils binutils ;; # and what packaging/dist/dist.sh adds for a kind
    check) echo "libcmocka-dev ibverbs-utils rdmacm-utils perftest ucx-utils libmpich-dev mpich iproute2 python3-pyverbs python3-pytest pyflakes3 mypy g++ fio qperf libfabric-bin libucx-dev libiscsi-bin iperf busybox qemu-system-x86 qemu-utils qemu-block-extra clang $(fuzzer_runtime) tshark valgrind groff-base gdb tmux prometheus prometheus-node-exporter $(wanted_of_debian site)" ;;
    bench) echo perftest ucx-utils libfabric-bin iproute2 iperf3 valgrind gnuplot-nox ;;
    look) echo chromium ibverbs-utils ;;
    site) echo mkdocs mkdocs-material mandoc ;;
    clients) echo openmpi-bin libopenmpi-dev dapl2-utils infiniband-diags hwloc-nox libgloo-dev g++ ceph-mon ceph-osd ceph-common tgt ;;
    lab) echo openmpi-bin libopenmpi-dev mpich libmpich-dev slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge pdsh docker-compose python3-yaml python3-kubernetes ;;
    esac
}

fuzzer_runtime() { # the runtime of the default clang; before Debian 12 it was in another package
    if apt-cache show libclang-rt-dev >/dev/null 2>&1 || [ "$manager" != apt ]; then echo libclang-rt-dev; else echo libclang-common-11-dev; fi
}

wanted_of_fedora() {
    case $1 in
    build) echo gcc make meson ninja-build pkgconf-pkg-config rdma-core-devel libdeflate-devel jansson-devel python3 systemtap-sdt-devel ;;
    tests) echo libcmocka-devel ;;
    demo) echo libibverbs-utils ;;
    check) echo libcmocka-devel libibverbs-utils perftest ucx iproute python3-pyverbs clang compiler-rt wireshark-cli valgrind gdb ;;
    bench) echo perftest ucx libfabric iproute iperf3 valgrind gnuplot-minimal ;;
    look) echo chromium libibverbs-utils ;;
    esac
}

wanted_of_suse() {
    case $1 in
    build) echo gcc make meson ninja pkg-config rdma-core-devel libdeflate-devel libjansson-devel python3 systemtap-sdt-devel ;;
    tests) echo libcmocka-devel ;;
    demo) echo libibverbs-utils ;;
    check) echo libcmocka-devel libibverbs-utils perftest iproute2 python3-pyverbs clang wireshark valgrind gdb ;;
    bench) echo perftest ucx-tools libfabric iproute2 iperf valgrind gnuplot ;;
    look) echo chromium libibverbs-utils ;;
    esac
}

wanted_of_alpine() {
    case $1 in
    build) echo build-base linux-headers bsd-compat-headers meson samurai pkgconf rdma-core-dev libdeflate-dev jansson-dev python3 ;;
    tests) echo cmocka-dev ;;
    demo) echo rdma-core ;;
    check) echo cmocka-dev rdma-core iproute2 clang compiler-rt tshark valgrind gdb ;;
    bench) echo iproute2 iperf3 valgrind gnuplot ;;
    look) echo chromium rdma-core ;;
    esac
}

wanted_of_arch() {
    case $1 in
    build) echo gcc make meson ninja pkgconf rdma-core libdeflate jansson python ;;
    tests) echo cmocka ;;
    demo) echo rdma-core ;;
    check) echo cmocka rdma-core iproute2 clang compiler-rt wireshark-cli valgrind gdb ;;
    bench) echo iproute2 iperf3 valgrind gnuplot ;;
    look) echo chromium rdma-core ;;
    esac
}

# Finds the package manager, and the system whose names of packages count.
manager=
for candidate in apt-get:apt:debian dnf:dnf:fedora zypper:zypper:suse apk:apk:alpine pacman:pacman:arch; do
    if command -v "${candidate%%:*}" >/dev/null 2>&1; then
        names=${candidate##*:} manager=${candidate#*:}
        manager=${manager%:*}
        break
    fi
done

is_present() {
    case $manager in
    apt) dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q '^install ok installed' ;;
    dnf | zypper) rpm -q --whatprovides "$1" >/dev/null 2>&1 ;;
    apk) apk info -e "$1" >/dev/null 2>&1 ;;
    pacman) pacman -Qi "$1" >/dev/null 2>&1 ;;
    esac
}

command_to_install() {
    case $manager in
    apt) echo "apt-get install --no-install-recommends -y" ;;
    dnf) echo "dnf install -y --setopt=install_weak_deps=False" ;;
    zypper) echo "zypper --non-interactive install --no-recommends" ;;
    apk) echo "apk add" ;;
    pacman) echo "pacman -S --needed --noconfirm" ;;
    esac
}

wanted=
for purpose in "$@"; do
    case $purpose in
    build | tests | demo | packages | check | bench | clients | lab | look | site | dist) wanted="$wanted $("wanted_of_${names:-debian}" "$purpose")" ;;
    +*) wanted="$wanted ${purpose#+}" ;;
    *) echo "setup.sh: there is nothing called '$purpose'; it knows build, tests, demo, packages, check, bench, clients, lab, look, site and dist." >&2; exit 2 ;;
    esac
done

if [ -z "$manager" ]; then
    command -v meson >/dev/null && command -v ninja >/dev/null && exit 0
    echo "No package manager is known here (apt, dnf, zypper, apk, pacman); please install what these Debian packages hold:$wanted" >&2
    exit 1
fi

missing= needed=
for package in $wanted; do
    case " $missing " in *" $package "*) continue ;; esac
    is_present "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

install=$(command_to_install)
if [ "${SOFTVERBS_SETUP:-}" = show ]; then
    echo "$install$missing"
    exit 0
elif [ "$(id -u)" = 0 ]; then
    root=
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    root="sudo -n"
else
    for package in $missing; do # systemtap-sdt-dev is not needed: without it the library has no probes
        case $package in systemtap-sdt-dev*) ;; *) needed=yes ;; esac
    done
    [ -n "$needed" ] || exit 0
    echo "Missing packages; please run: sudo $install$missing" >&2
    exit 1
fi

refresh() {
    case $manager in
    apt) $root apt-get update -qq ;;
    apk) $root apk update -q ;;
    pacman) $root pacman -Sy ;;
    *) false ;;
    esac
}

install_missing() {
    # shellcheck disable=SC2086
    $root env DEBIAN_FRONTEND=noninteractive $install $missing
}

echo "Installing (this once):$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! install_missing >"$log" 2>&1 && ! { refresh && install_missing; } >>"$log" 2>&1; then
    tail -n 15 "$log" >&2
    echo "The packages could not be installed; please install them and try again:$missing" >&2
    exit 1
fi
