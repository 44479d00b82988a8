# Systems of Debian's releases to build and try things in; releases.sh and packaging/dist/dist.sh read this file at the top of the tree.
# The chroots stay in $SOFTVERBS_RELEASES; debootstrap fetches them from $SOFTVERBS_MIRROR when they are absent.
cache=${SOFTVERBS_RELEASES:-/var/tmp/softverbs-releases}
mirror=${SOFTVERBS_MIRROR:-http://deb.debian.org/debian}
[ "$(id -u)" = 0 ] || { echo "${0##*/}: a chroot needs root." >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "${0##*/}: please install debootstrap." >&2; exit 1; }
mkdir -p "$cache"

# enter SUITE COMMAND...: in the chroot, with devices, /proc and a new network namespace; NETWORK=1: with the host's.
enter() {
    local root=$cache/$1 net=--net
    shift
    [ -z "${NETWORK:-}" ] || net=
    unshare --mount $net --pid --fork --kill-child bash -c '
        set -e
        root=$1; shift
        mount --bind "$root" "$root"
        mount -t proc proc "$root/proc"
        mount -t sysfs -o ro sysfs "$root/sys"
        mount -t tmpfs tmpfs "$root/tmp"
        mount -t tmpfs tmpfs "$root/dev"
        for device in null zero full random urandom tty; do touch "$root/dev/$device"; mount --bind "/dev/$device" "$root/dev/$device"; done
        mkdir -p "$root/dev/shm" "$root/dev/pts"
        mount -t tmpfs tmpfs "$root/dev/shm"
        ln -s /proc/self/fd "$root/dev/fd"
        mount -t devpts devpts "$root/dev/pts" -o newinstance,ptmxmode=666
        ln -s pts/ptmx "$root/dev/ptmx"
        cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
        ip link set lo up
        exec nice -n 10 chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"' \
        - "$root" "$@"
}

fresh() { # fresh SUITE NAME: the system that debootstrap makes, as NAME
    if [ ! -d "$cache/$1.fresh" ]; then
        debootstrap --variant=minbase "$1" "$cache/$1.new" "$mirror" >"$cache/$1.log" 2>&1
        mv "$cache/$1.new" "$cache/$1.fresh"
    fi
    rm -rf "${cache:?}/$2"
    cp -a "$cache/$1.fresh" "$cache/$2"
}

copy_of_tree() { # copy_of_tree DIRECTORY
    mkdir -p "$1"
    git ls-files -co --exclude-standard | tar c --verbatim-files-from -T - | tar x -C "$1"
}

copy_tree() { # files that have not changed keep their times, so that only the others are built again
    copy_of_tree "$cache/$1/root/softverbs"
}

in_tree() { # in_tree SUITE COMMAND
    enter "$1" sh -c "cd /root/softverbs && $2"
}
