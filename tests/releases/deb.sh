#!/bin/bash
# Runs in a chroot of releases.sh, in the tree: builds the .deb, lints it, installs it, runs its autopkgtest, purges it, and
# looks for what is left. Prints a line of result for each. Needs debhelper and lintian.
set -u
cd "$(dirname "$0")/../.."
list_files() {
    find / -xdev \( -path /root/softverbs -o -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path '/var/lib/dpkg/*' -o -path '/var/cache/*' \
        -o -path /var/log \) -prune -o -print | sort
}

say() { # say STATUS NAME [TEXT]
    printf '%s\t%s\t%s\n' "$([ "$1" = 0 ] && echo ok || echo not ok)" "$2" "${3:-}"
}

rm -rf dist
packages() { # but for those of debug information
    find dist -name '*.deb' ! -name '*-dbgsym_*'
}

tools/build/packages.sh deb >/tmp/log 2>&1
say $? ".deb: builds" "$(tail -n 1 /tmp/log | cut -c1-150)"
complaints=$(lintian --fail-on warning --tag-display-limit 0 $(packages) 2>&1)
say $? ".deb: lintian" "$(echo "$complaints" | paste -sd ';' - | cut -c1-300)"
list_files >/tmp/before
ldconfig -p >/tmp/libraries
dpkg -i $(packages) >/tmp/log 2>&1
say $? ".deb: installs" "$(tail -n 1 /tmp/log | cut -c1-150)"
ldconfig && ldconfig -p | cmp -s - /tmp/libraries
say $? ".deb: the linker's cache is as before"
(cd /tmp && sh /root/softverbs/debian/tests/pingpong) >/tmp/log 2>&1
say $? ".deb: autopkgtest" "$(tail -n 1 /tmp/log | cut -c1-150)"
man softverbs >/dev/null 2>&1 || [ -f /usr/share/man/man1/softverbs.1.gz ] || grep -q path-exclude /etc/dpkg/dpkg.cfg.d/* 2>/dev/null
say $? ".deb: manual page"
! find /usr/share/doc/softverbs -name '*.md.gz' | grep -q .
say $? ".deb: pages have the names by which others lead to them"
dpkg --purge python3-softverbs softverbs softverbs-libs >/tmp/log 2>&1
say $? ".deb: purges" "$(tail -n 1 /tmp/log | cut -c1-150)"
list_files | comm -3 - /tmp/before >/tmp/left
[ ! -s /tmp/left ]
say $? ".deb: leaves no trace" "$(paste -sd ' ' /tmp/left | cut -c1-200)"
