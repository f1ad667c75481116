#!/bin/sh
# The page of `verde provide`: who may ask, what is escaped, and that it shows jobs, losses, clients and disk.
. tests/support/system
if ! command -v python3 > /dev/null || ! python3 -c 'import ssl' 2> /dev/null || ! command -v openssl > /dev/null; then
    echo "no python3 with ssl, or no openssl: there is no other client"
    exit 77
fi
client=tests/system/provide_client.py
"$verde" keygen "$work/client" > /dev/null
"$verde" run models/jobs/toy.yaml --out "$work/toy" --threads 1 > "$work/out" 2> "$work/err"
provide daemon 127.0.0.1:0 --page 0 --client-bytes 50M
port=$(sed -n 's|^page for people: http://127.0.0.1:\([0-9]*\)/$|\1|p' "$work/daemon.log")
[ -n "$port" ] || fail "the page's address is not told"
job=$(python3 "$client" "$daemon" "$work/client" submit "$work/toy" --name "<img src=x onerror=alert(1)> & \"a\" 'b' ü.yaml")
python3 "$client" "$daemon" "$work/client" wait "$job" done failed > "$work/out"
metrics=$(python3 "$client" "$daemon" "$work/client" request GET /v1/metrics --unsigned)
python3 tests/system/page_client.py "$port" "$job" "$(cat "$work/client/key.pub")" "$metrics" || fail "the page is not what it must be"
# The page is only on the loopback address; a port in use is reported before anything else.
grep -q "^ *[0-9]*: 0100007F:$(printf '%04X' "$port") 00000000:0000 0A" /proc/net/tcp || fail "the page is not on 127.0.0.1"
expect 1 "cannot listen on 127.0.0.1:$port" "$verde" provide --dir "$work/second" --listen 127.0.0.1:0 --client "$(cat "$work/client/key.pub")" --page "$port"
expect 2 'page must be' "$verde" provide --dir "$work/second" --listen 127.0.0.1:0 --client "$(cat "$work/client/key.pub")" --page 70000
kill "$pid"
wait "$pid" || fail "the daemon did not end well"
echo "a page for people on this machine alone"
