#!/bin/bash
# Two unmodified programs of the distribution exchange data through softverbs: demo.sh SOFTVERBS
set -u
softverbs=$1
program=$(command -v ibv_rc_pingpong) || { echo "ibv_rc_pingpong is missing: it is in the package ibverbs-utils." >&2; exit 1; }
size=65536 count=1000 directory=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$directory"' EXIT

listening() { # listening PORT: does a socket of this machine listen there?
    cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -q "$(printf ':%04X [0-9A-F]*:0000 0A' "$1")"
}

fail() {
    echo
    echo "The demonstration failed: $1"
    sed 's/^/  server: /' "$directory/server"
    [ ! -f "$directory/client" ] || sed 's/^/  client: /' "$directory/client"
    echo "Try: $softverbs doctor"
    exit 1
}

port=$((20000 + RANDOM % 10000))
while listening $port; do port=$((port + 1)); done
options=(-c -g 0 -s $size -n $count -p $port)

devices() { find /sys/class/infiniband -mindepth 1 -maxdepth 1 2>/dev/null | wc -l; }
cat <<E2
softverbs: RDMA verbs without RDMA hardware.

  This machine: $(devices) RDMA devices known to the kernel; you are $(id -un); no kernel module is loaded for this.
  The program:  $program, as package ibverbs-utils installed it, unmodified.

  Starting a server:  $softverbs run -- ibv_rc_pingpong ${options[*]}
E2
"$softverbs" run -- "$program" "${options[@]}" >"$directory/server" 2>&1 &
server=$!
for _ in $(seq 100); do
    listening $port && break
    kill -0 $server 2>/dev/null || fail "the server ended before it listened."
    sleep 0.05
done
echo "  Starting a client:  $softverbs run -- ibv_rc_pingpong ${options[*]} 127.0.0.1"
timeout 30 "$softverbs" run -- "$program" "${options[@]}" 127.0.0.1 >"$directory/client" 2>&1 ||
    fail "the client ended with status $?."
for _ in $(seq 100); do kill -0 $server 2>/dev/null || break; sleep 0.05; done
kill -0 $server 2>/dev/null && fail "the server did not end."
wait $server || fail "the server ended with status $?."
server=

grep -q 'invalid data' "$directory/server" && fail "the server received wrong data."
grep -q "^$count iters in" "$directory/server" || fail "the server did not count $count exchanges."
grep -q "^$count iters in" "$directory/client" || fail "the client did not count $count exchanges."
cat <<E2

  The client says:
$(sed 's/^/    /' "$directory/client")

It worked: two processes sent $count messages of $size bytes to each other and back over a reliable connection,
and the server found the right data in its buffer. No RDMA device and no kernel module was involved; root is not needed.

Next: put "$softverbs run --" in front of your own program, for example
  $softverbs run -- ibv_devinfo
  $softverbs run -- ib_write_bw -F          and in another terminal: $softverbs run -- ib_write_bw -F 127.0.0.1
E2
