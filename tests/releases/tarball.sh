#!/bin/bash
# In a chroot of releases.sh: the tarball, unpacked by an ordinary user, runs the distribution's ping-pong: tarball.sh FILE
set -u
home=$(mktemp -d)
chmod 755 "$home"
cp "$1" "$home/tarball.tar.gz"
mkdir "$home/place"
chown 65534:65534 "$home/place"
setpriv --reuid=65534 --regid=65534 --clear-groups sh -eu >"$home/log" 2>&1 <<END
cd "$home/place"
tar xzf ../tarball.tar.gz
PATH="\$(echo \$PWD/softverbs-*)/bin:\$PATH"
softverbs run -- ibv_rc_pingpong -c -g 0 -p 25333 &
sleep 2
softverbs run -- ibv_rc_pingpong -c -g 0 -p 25333 127.0.0.1
wait \$!
softverbs doctor
END
status=$?
needs=$(ldd "$home"/place/softverbs-*/lib/softverbs/libibverbs.so.1 | grep -vE 'linux-vdso|lib(c|dl|pthread)\.so|ld-linux')
[ $status = 0 ] && [ -z "$needs" ] && grep -q '^1000 iters' "$home/log" && echo "ok	the tarball, as an ordinary user	$(stat -c %s "$1") bytes" ||
    echo "not ok	the tarball, as an ordinary user	$(tail -n 1 "$home/log") $needs"
