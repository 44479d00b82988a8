#!/bin/sh
# A test's processes meet in a new directory that no other test has: tools/build/own_directory.sh, by the default set-up of meson.build. Prints TAP.
echo 1..3
wrapper=$(dirname "$0")/../tools/build/own_directory.sh
if [ -d "$SOFTVERBS_DIR" ] && [ -O "$SOFTVERBS_DIR" ] && [ -z "$(ls -A "$SOFTVERBS_DIR")" ]; then
    echo "ok 1 - the directory is there, empty and this user's"
else
    echo "not ok 1 - the directory is there, empty and this user's: \"$SOFTVERBS_DIR\""
fi
left=$("$wrapper" sh -c 'touch "$SOFTVERBS_DIR/table"; echo "$SOFTVERBS_DIR"; exit 7')
if [ $? = 7 ] && [ "$left" != "$SOFTVERBS_DIR" ] && [ ! -e "$left" ]; then
    echo "ok 2 - it goes with its test, whose status stays"
else
    echo "not ok 2 - it goes with its test, whose status stays: $left"
fi
started=$(mktemp)
child='echo $$ >"$0"; exec sleep 600' # in a session of its own, which the signal does not reach
setsid "$wrapper" sh -c 'setsid sh -c "$1" "$0" & wait' "$started" "$child" &
until [ -s "$started" ]; do sleep 0.05; done # wait for the test's child
kill -TERM "-$!"
wait $!
status=$?
tries=0 # the signal that ends a process is not waited for
while grep -qs '^State:[[:space:]]*[RSDTt]' "/proc/$(cat "$started")/status" && [ $tries -lt 100 ]; do
    sleep 0.05 # wait for the child's end
    tries=$((tries + 1))
done
if [ $status = 143 ] && [ $tries -lt 100 ]; then
    echo "ok 3 - a test that is ended before its time leaves no process"
else
    echo "not ok 3 - a test that is ended before its time leaves no process: $status"
fi
rm -f "$started"
