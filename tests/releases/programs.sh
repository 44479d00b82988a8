#!/bin/sh
# The programs that a user runs under one softverbs command: programs.sh WHAT COMMAND PYTHON [MODULES]
# ibv_rc_pingpong and rping between two processes, and the first example of docs/how-to/testing.md (example.py beside this file, or of the tree) by PYTHON, which finds
# the package below MODULES. Each as an ordinary user. Prints a line of result for each, with WHAT in it. As root.
set -u
what=$1 tool=$2 python=$3 modules=${4:-}
example=$(dirname "$0")/example.py
home=$(mktemp -d)
[ -f "$example" ] || sed -n '/^```python/,/^```$/{/^```$/q;/^```/!p}' "$(dirname "$0")/../../docs/how-to/testing.md" >"$home/example.py"
[ ! -f "$example" ] || cp "$example" "$home/example.py"
chmod 755 "$home" && chown 65534:65534 "$home"
cd "$home" || exit 1

as_user() {
    setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$home" SOFTVERBS="$tool" PYTHONPATH="$modules" "$@"
}

say() { # say STATUS NAME
    if [ "$1" = 0 ]; then printf 'ok\t%s: %s\t\n' "$what" "$2"; else printf 'not ok\t%s: %s\t%s\n' "$what" "$2" "$(tail -n 1 "$home/log" | cut -c1-150)"; fi
}

# pair PROGRAM SERVER CLIENT: with these arguments; the client is tried until its server listens
pair() {
    # shellcheck disable=SC2086
    as_user "$tool" run -- "$1" $2 >"$home/server" 2>&1 &
    server=$! tries=0 status=1
    while [ $status != 0 ] && [ $tries -lt 150 ] && kill -0 $server 2>/dev/null; do
        # shellcheck disable=SC2086
        as_user timeout 120 "$tool" run -- "$1" $3 >"$home/log" 2>&1
        status=$? tries=$((tries + 1))
        [ $status = 0 ] || sleep 0.2
    done
    [ $status = 0 ] || kill $server 2>/dev/null
    wait $server || { status=1 && cat "$home/server" >>"$home/log"; }
    say $status "$1"
}

pair ibv_rc_pingpong "-c -g 0 -p 25333" "-c -g 0 -p 25333 127.0.0.1"
pair rping "-s -a 127.0.0.1 -p 25334 -C 10 -V" "-c -a 127.0.0.1 -p 25334 -C 10 -V"
as_user "$python" "$home/example.py" >"$home/log" 2>&1
say $? "the example in Python"
rm -rf "$home"
