# Systems of Debian's releases to build and try things in; releases.sh and packaging/dist/dist.sh read this file at the top of the tree.
# The chroots stay in $SOFTVERBS_RELEASES; debootstrap fetches them from $SOFTVERBS_MIRROR when they are absent.
cache=${SOFTVERBS_RELEASES:-/var/tmp/softverbs-releases}
mirror=${SOFTVERBS_MIRROR:-http://deb.debian.org/debian}
old=-oAcquire::Check-Valid-Until=false # for apt-get: of sid a mirror may be weeks behind
[ "$(id -u)" = 0 ] || { echo "${0##*/}: a chroot needs root." >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "${0##*/}: please install debootstrap." >&2; exit 1; }
mkdir -p "$cache"

# Programs of aarch64 are run by this; the emulator's file is opened when it is named ("F"), so a chroot has no need.
emulator=/usr/bin/qemu-aarch64-static
handler=":softverbs-aarch64:M::\\x7fELF\\x02\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\xb7\\x00:\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xfe\\xff\\xff\\xff:$emulator:F"

# in_user_namespace COMMAND...: with all users of this system. Handlers of binary formats that the command names are its own (Linux 6.7).
in_user_namespace() {
    local go child status=0
    go=$(mktemp -d)
    mkfifo "$go/mapped"
    unshare --user bash -c 'read -r <"$0"; exec "$@"' "$go/mapped" "$@" <&0 &
    child=$!
    until [ "$(readlink "/proc/$child/ns/user")" != "$(readlink /proc/self/ns/user)" ]; do kill -0 $child && sleep 0.05; done
    echo "0 0 65536" >"/proc/$child/uid_map"
    echo "0 0 65536" >"/proc/$child/gid_map"
    echo >"$go/mapped"
    wait $child || status=$?
    rm -r "$go"
    return $status
}

# enter SUITE COMMAND...: in the chroot, with devices, /proc and a new network namespace; NETWORK=1: with the host's. EMULATED=1: its programs are of aarch64.
# BINDS=/ONE:/TWO: directories of the host that it sees at the same paths.
# The chroot becomes the root of its mount namespace, without which it could make no user namespace.
enter() {
    local root=$cache/$1 net=--net before=
    shift
    [ -z "${NETWORK:-}" ] || net=
    [ -z "${EMULATED:-}" ] || before=in_user_namespace
    $before unshare --mount $net --pid --fork --kill-child bash -c '
        set -e
        root=$1 net=$2 handler=$3 binds=$4; shift 4
        if [ -n "$handler" ]; then
            mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
            printf %s "$handler" >/proc/sys/fs/binfmt_misc/register
        fi
        mount --bind "$root" "$root"
        mount -t proc proc "$root/proc"
        mount -t sysfs -o ro sysfs "$root/sys" 2>/dev/null || mount --rbind /sys "$root/sys" # sysfs belongs to the network namespace
        mount -t tmpfs tmpfs "$root/tmp"
        mount -t tmpfs tmpfs "$root/dev"
        for device in null zero full random urandom tty; do touch "$root/dev/$device"; mount --bind "/dev/$device" "$root/dev/$device"; done
        mkdir -p "$root/dev/shm" "$root/dev/pts"
        mount -t tmpfs tmpfs "$root/dev/shm"
        ln -s /proc/self/fd "$root/dev/fd"
        for stream in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${stream%:*}" "$root/dev/${stream#*:}"; done
        [ -e "$root/etc/hosts" ] || printf "127.0.0.1 localhost\n::1 localhost\n" >"$root/etc/hosts" # as each installation has it
        mount -t devpts devpts "$root/dev/pts" -o newinstance,ptmxmode=666
        ln -s pts/ptmx "$root/dev/ptmx"
        for place in ${binds//:/ }; do mkdir -p "$root$place"; mount --rbind "$place" "$root$place"; done
        cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
        [ -z "$net" ] || ip link set lo up
        cd "$root"
        mount --move "$root" /
        exec nice -n "${SOFTVERBS_NICE:-10}" chroot . env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"' \
        - "$root" "$net" "${EMULATED:+$handler}" "${BINDS:-}" "$@"
}

debootstrapped() { # debootstrapped SUITE ARCHITECTURE DIRECTORY; the second half of another architecture's runs its programs
    local suite=$1 architecture=$2 name=$3
    if [ "$architecture" = "$(dpkg --print-architecture)" ]; then
        debootstrap --variant=minbase "$suite" "$cache/$name" "$mirror"
    else
        debootstrap --variant=minbase --foreign --arch="$architecture" "$suite" "$cache/$name" "$mirror" &&
            EMULATED=1 enter "$name" env container=lxc sh -c 'rm /dev/fd; touch /dev/console; exec /debootstrap/debootstrap --second-stage' # which then makes no devices
    fi
}

fresh() { # fresh SUITE NAME [ARCHITECTURE]: the system that debootstrap makes, as NAME
    local made=$1${3:+-$3}.fresh
    if [ ! -d "$cache/$made" ]; then
        rm -rf "$cache/$made.new"
        debootstrapped "$1" "${3:-$(dpkg --print-architecture)}" "$made.new" >"$cache/$made.log" 2>&1 || { tail -n 20 "$cache/$made.log"; return 1; }
        mv "$cache/$made.new" "$cache/$made"
    fi
    rm -rf "${cache:?}/$2"
    cp -a "$cache/$made" "$cache/$2"
    chmod 755 "$cache/$2/root" # tests become other users, and the tree is there
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
