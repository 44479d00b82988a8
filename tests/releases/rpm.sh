#!/bin/bash
# The .rpm files of `make dist`: rpm.sh DIRECTORY. Installed with `rpm --root` into an empty tree, their requirements compared with what the binaries need and with each other, and
# the demonstration and the programs of programs.sh run from there. Prints a line of result for each. Needs rpm.
set -u
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
files=("$1"/softverbs-[0-9]*.rpm "$1"/softverbs-libs-*.rpm)

say() { # say STATUS NAME [TEXT]
    printf '%s\t%s\t%s\n' "$([ "$1" = 0 ] && echo ok || echo not ok)" "$2" "${3:-}"
}

list() { # list requires|provides: of all files, without rpm's own
    rpm -qp "--$1" "${files[@]}" | grep -v '^rpmlib(' | sort -u
}

rpm --root "$root" --dbpath /var/lib/rpm --nodeps -i "${files[@]}" 2>"$root.log"
[ -x "$root/usr/bin/softverbs" ]
say $? ".rpm: installs into an empty tree" "$(tail -n 1 "$root.log")"
needed=$(find "$root/usr" -type f -exec readelf -d {} + 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u | grep -v '^libibverbs\|^ld-linux')
missing=$(for each in $needed; do list requires | grep -q "^$each(" || echo "$each"; done)
[ -n "$needed" ] && [ -z "$missing" ]
say $? ".rpm: requires what its binaries need" "${missing:-$(echo "$needed" | paste -sd ' ' -)}"
! list requires | grep -q '^libibverbs' && ! list provides | grep -q '^lib'
say $? ".rpm: neither wants nor offers a libibverbs"
own=$(list requires | grep '^softverbs')
list provides | grep -qxF "$own"
say $? ".rpm: the command wants its own libraries" "$own"
"$root/usr/bin/softverbs" demo >"$root.log" 2>&1
say $? ".rpm: demo" "$(tail -n 1 "$root.log" | cut -c1-100)"
chmod 755 "$root"
tests/releases/programs.sh .rpm "$root/usr/bin/softverbs" python3 "$root/usr/share/softverbs/python"
rm -f "$root.log"
