# Functions for entries whose project has programs in pairs: pair NAME "SERVER" "CLIENT" runs both under `softverbs run`, the client again until the server listens,
# and prints "ok NAME" or "FAILED NAME: ..." as the format "lines" of formats.py reads it. PORT in both commands is a port of this pair.

next_port=$((20000 + $$ % 9000))

said() { tr -s '\n ' ' ' <"$1" | tail -c 200; }

pair() {
    local name=$1 server client end=$((SECONDS + 60)) status
    next_port=$((next_port + 1))
    server=${2//PORT/$next_port} client=${3//PORT/$next_port}
    # shellcheck disable=SC2086
    softverbs run -- $server >server.log 2>&1 &
    local serves=$!
    sleep 1
    # shellcheck disable=SC2086
    until timeout 60 softverbs run -- $client >client.log 2>&1; do
        if ! kill -0 $serves 2>/dev/null || [ $SECONDS -gt $end ]; then
            kill -9 $serves 2>/dev/null || true
            echo "FAILED $name: the client: $(said client.log), the server: $(said server.log)"
            return
        fi
        sleep 0.3
    done
    end=$((SECONDS + 60)) status=0
    while kill -0 $serves 2>/dev/null && [ $SECONDS -le $end ]; do sleep 0.1; done
    kill -9 $serves 2>/dev/null && { echo "FAILED $name: the server does not end: $(said server.log)"; return; }
    wait $serves || status=$?
    if [ $status = 0 ]; then echo "ok $name"; else echo "FAILED $name: the server ended with $status: $(said server.log)"; fi
}
