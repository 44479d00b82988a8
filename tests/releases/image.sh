#!/bin/bash
# The container image of `make dist`: image.sh FILE. Its layers, unpacked, are the system of a chroot in which its own command runs, then the programs of programs.sh, with Python
# of the distribution. One of aarch64 runs under qemu-user. Prints a line of result for each. As root, at the top of the tree.
set -u
. tests/releases/chroots.sh
case $1 in *aarch64*) EMULATED=1 ;; esac
rm -rf "$cache/image-unpacked"
mkdir -p "$cache/image-unpacked"
word=$(packaging/dist/layers.py "$1" "$cache/image-unpacked" 2>"$cache/image.log" | paste -sd ' ' -)
path='PATH=/opt/softverbs/bin:$PATH;'

say() { # say STATUS NAME
    printf '%s\t%s\t%s\n' "$([ "$1" = 0 ] && echo ok || echo not ok)" "$2" "$([ "$1" = 0 ] || tail -n 1 "$cache/image.log")"
}

[ -n "$word" ]
say $? "image: layers and checksums"
enter image-unpacked sh -c "$path $word" >"$cache/image.log" 2>&1 && grep -q PORT_ACTIVE "$cache/image.log"
say $? "image: $word"
NETWORK=1 enter image-unpacked sh -c "apt-get -qq update && apt-get -qq install -y --no-install-recommends python3" >"$cache/image.log" 2>&1
say $? "image: installs python3"
cp tests/releases/programs.sh "$cache/image-unpacked/root/"
sed -n '/^```python/,/^```$/{/^```$/q;/^```/!p}' docs/how-to/testing.md >"$cache/image-unpacked/root/example.py"
enter image-unpacked /root/programs.sh image /opt/softverbs/bin/softverbs python3 /opt/softverbs/share/softverbs/python
