#!/bin/sh
# Makes what softverbs is built of with musl-gcc, in /opt/musl: musl.sh
# libdeflate and jansson of Debian's sources, and the headers of the kernel, of rdma-core, of the BSD lists (Alpine: bsd-compat-headers) and of
# the probes, none of which need a C library of their own. As root, with network, in a system of dist.sh.
set -eu
place=/opt/musl here=/usr/include/$(gcc -print-multiarch)
apt-get -qq install -y --no-install-recommends musl-tools dpkg-dev autoconf automake libtool >/dev/null
work=$(mktemp -d)
cd "$work"
sed 's/^deb /deb-src /' /etc/apt/sources.list >/etc/apt/sources.list.d/sources.list
apt-get -qq update
apt-get -qq source libdeflate jansson >/dev/null
mkdir -p "$place/include/sys" "$place/lib/pkgconfig"

(cd libdeflate-*/ && make -s CC=musl-gcc CFLAGS="-O2 -fPIC -fstack-protector-strong" libdeflate.a && cp libdeflate.a "$place/lib" && cp libdeflate.h "$place/include")
(cd jansson-*/ && autoreconf --install >/dev/null 2>&1 && ./configure --quiet --disable-shared --with-pic --prefix="$place" CC=musl-gcc CFLAGS="-O2 -fstack-protector-strong" && make -s -C src install)

for each in infiniband rdma linux asm-generic; do ln -sfn "/usr/include/$each" "$place/include/$each"; done
ln -sfn "$here/asm" "$place/include/asm"
cp "$here/sys/queue.h" "$place/include/sys"
for each in sdt.h sdt-config.h; do cp "$here/sys/$each" "$place/include/sys"; done
describe() { # describe NAME VERSION [LIBRARY]
    printf 'Name: %s\nDescription: for musl\nVersion: %s\nCflags: -I%s\nLibs: %s\n' "$1" "$2" "$place/include" "${3:+-L$place/lib -l$3}" >"$place/lib/pkgconfig/$1.pc"
}
describe libibverbs "$(pkg-config --modversion libibverbs)"
describe libdeflate "$(dpkg-parsechangelog -l libdeflate-*/debian/changelog -S Version | sed 's/-.*//')" deflate
describe jansson "$(dpkg-parsechangelog -l jansson-*/debian/changelog -S Version | sed 's/-.*//')" jansson
rm -rf "$work"
