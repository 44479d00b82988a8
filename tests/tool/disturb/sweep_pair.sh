#!/bin/sh
# sweep_pair.sh SERVER -- CLIENT: a server and half a second later its client, for `softverbs sweep`. Ends with 0 if both do. When one has ended
# otherwise, the other gets three seconds, and the pair has its status, of two the one of a signal. A hang is a pair that never ends.
server= client= rest=
for word; do
    if [ "$word" = -- ]; then rest=1; elif [ "$rest" ]; then client="$client $word"; else server="$server $word"; fi
done
$server & first=$!
sleep 0.5
$client & second=$!

ended() { ! kill -0 "$1" 2>/dev/null; }
end_other() { # $1 has ended, $2 not yet
    wait "$1" && return 0
    status=$? tries=30
    while [ $tries -gt 0 ] && ! ended "$2"; do sleep 0.1; tries=$((tries - 1)); done
    if ended "$2"; then
        wait "$2"
        other=$?
        [ $other -le 128 ] || status=$other
    else
        kill "$2"
    fi
    exit $status
}
while ! ended $first && ! ended $second; do sleep 0.05; done
if ended $first; then end_other $first $second; else end_other $second $first; fi
wait $first && wait $second
