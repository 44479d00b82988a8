#!/bin/sh
# Installs the Debian packages that are missing for each purpose: setup.sh [build] [demo] [check] [bench].
# Silent and quick when nothing is missing. Without root, or sudo without a password, it names them instead.
set -eu

wanted=
for purpose in "$@"; do
    case $purpose in
    build) wanted="$wanted libc6-dev meson ninja-build pkg-config libibverbs-dev librdmacm-dev libcmocka-dev libdeflate-dev libjansson-dev" ;;
    demo) wanted="$wanted ibverbs-utils" ;;
    check) wanted="$wanted ibverbs-utils perftest iproute2 python3 python3-pyverbs clang libclang-rt-14-dev tshark valgrind" ;;
    bench) wanted="$wanted perftest python3 ucx-utils libfabric-bin iproute2 iperf3 valgrind" ;;
    *) echo "setup.sh: there is nothing called '$purpose'; it knows build, demo, check and bench." >&2; exit 2 ;;
    esac
done

if ! command -v dpkg-query >/dev/null; then
    command -v meson >/dev/null && command -v ninja >/dev/null && exit 0
    echo "This is not Debian: please install what these Debian packages hold:$wanted" >&2
    exit 1
fi

# shellcheck disable=SC2086
present=$(dpkg-query -W -f '${Status} ${Package}\n' $wanted 2>/dev/null | sed -n 's/^install ok installed //p') || true
missing=
for package in $wanted; do
    printf '%s\n' "$present" | grep -qxF "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then
    root=
elif sudo -n true 2>/dev/null; then
    root="sudo -n"
else
    echo "Missing packages; please run: sudo apt-get install --no-install-recommends$missing" >&2
    exit 1
fi

install() {
    # shellcheck disable=SC2086
    $root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $missing
}

echo "Installing (this once):$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! install >"$log" 2>&1 && ! { $root apt-get update -qq && install; } >>"$log" 2>&1; then
    tail -n 15 "$log" >&2
    echo "The packages could not be installed; please install them and try again:$missing" >&2
    exit 1
fi
