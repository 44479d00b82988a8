#!/bin/bash
# The container image of `make dist`: image.sh FILE. Its layers, unpacked, are the system of a chroot in which its own command runs, then the two sides of a transfer.
# Prints a line of result for each. As root, at the top of the tree.
set -u
. tests/releases/chroots.sh
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
enter image-unpacked sh -c "$path softverbs run -- ibv_rc_pingpong -c -g 0 -p 25333 & i=0
    until softverbs run -- ibv_rc_pingpong -c -g 0 -p 25333 127.0.0.1; do i=\$((i + 1)); [ \$i -lt 50 ] || exit 1; sleep 0.2; done; wait" >"$cache/image.log" 2>&1 && grep -q '^1000 iters' "$cache/image.log"
say $? "image: ibv_rc_pingpong"
