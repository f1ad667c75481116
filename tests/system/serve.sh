#!/bin/sh
# `verde serve` with slow and strange clients, and some that do not read: those who may ask are answered.
set -eu
build=$1
verde=$build/bin/verde
job=models/jobs/toy.yaml
work=$build/tests/serve
rm -rf "$work"
mkdir -p "$work"
pids=
cleanup() {
    for pid in $pids; do kill "$pid" 2> /dev/null || true; done
    wait 2> /dev/null || true
    pids=
}
trap cleanup EXIT

# serve NAME LOG: starts a provider that answers only $referee; its URL is in NAME.url.
serve() {
    "$verde" serve "$work/run" --key "$work/keys-$1" --threads 1 --referee "$referee" > "$work/$1.url" 2> "$2" &
    pids="$pids $!"
    tries=0
    while ! [ -s "$work/$1.url" ]; do
        tries=$((tries + 1))
        [ $tries -lt 12000 ] || { echo "$1 does not serve"; exit 1; }
        sleep 0.05
    done
}

# settle LABEL EXIT_CODE WORDS KEY [OPTIONS]: holds a dispute.
settle() {
    label=$1 want=$2 words=$3 key=$4
    shift 4
    code=0
    "$verde" arbitrate $job --key "$key" --verdict "$work/$label.json" --json "$@" \
        --provider "$(cat "$work/one.url")" --provider "$(cat "$work/two.url")" > "$work/$label.out" 2> "$work/$label.log" || code=$?
    [ $code -eq "$want" ] && grep -q "$words" "$work/$label.out" "$work/$label.log" ||
        { echo "$label: exit code $code, expected $want and $words"; cat "$work/$label.out" "$work/$label.log"; exit 1; }
}

referee=$("$verde" keygen "$work/referee")
"$verde" run $job --out "$work/run" --threads 1 > /dev/null 2>&1

# A full pipe that nobody reads: log lines about questions are dropped.
mkfifo "$work/pipe"
sleep 1000 < "$work/pipe" &
pids="$pids $!"
exec 3> "$work/pipe"
dd if=/dev/zero of=/dev/fd/3 bs=4096 count=1000 oflag=nonblock 2> /dev/null && { echo "the pipe is not full"; exit 1; }
serve one "$work/pipe"
first=$!
serve two "$work/two.log"
settle unread 0 '"accepted":true' "$work/referee"
grep -q 'answered in' "$work/two.log" || { echo "no lines where somebody reads"; exit 1; }

# A referee other than the one served gets no answer, and both sides say so.
settle stranger 2 'another referee than the one served' "$work/stranger"

# A restarted provider hashes its files first, and meanwhile says that it works, for longer than the referee's patience. Reading a
# state waits while a file exists, and creates another file that says so.
if [ -z "${SANITIZED:-}" ] && command -v curl > /dev/null; then
    cat > "$work/hold.c" << 'C'
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
ssize_t pread(int fd, void *to, size_t size, off_t at) {
    char waits[4096];
    snprintf(waits, sizeof waits, "%s.waits", getenv("HOLD"));
    while (access(getenv("HOLD"), F_OK) == 0) {
        close(open(waits, O_CREAT | O_WRONLY, 0600));
        usleep(10000);
    }
    return syscall(SYS_pread64, fd, to, size, at);
}
ssize_t pread64(int fd, void *to, size_t size, off_t at) { return pread(fd, to, size, at); }
C
    ${CC:-cc} -w -shared -fPIC -o "$work/hold.so" "$work/hold.c"
    port=$(sed 's/.*:\([0-9]*\)#.*/\1/' "$work/one.url")
    kill "$first"
    wait "$first" 2> /dev/null || true
    pids=$(echo "$pids" | sed "s/ $first / /; s/ $first\$//")
    touch "$work/hold"
    HOLD=$work/hold LD_PRELOAD=$work/hold.so "$verde" serve "$work/run" --key "$work/keys-one" --threads 1 --referee "$referee" \
        --listen "127.0.0.1:$port" > "$work/again.url" 2> "$work/again.log" &
    pids="$pids $!"
    tries=0
    until curl -sk "https://127.0.0.1:$port/v1/health" | grep -qx '{"confined":false,"status":"hashing"}'; do
        tries=$((tries + 1))
        [ $tries -lt 6000 ] || { echo "its health does not say that it hashes"; exit 1; }
        sleep 0.02
    done
    (sleep 8; [ -s "$work/again.url" ] && echo early > "$work/early"; rm "$work/hold") &
    settle hashing 0 '"accepted":true' "$work/referee" --timeout 4
    [ ! -e "$work/early" ] || { echo "the URL was said before the files were hashed"; exit 1; }
    cmp "$work/one.url" "$work/again.url"
    # Stopped while hashing, it exits normally; a run that does not fit is still not served.
    rm -f "$work/hold.waits"
    touch "$work/hold"
    HOLD=$work/hold LD_PRELOAD=$work/hold.so "$verde" serve "$work/run" --key "$work/keys-two" > /dev/null 2> "$work/stopped.log" &
    tries=0
    until [ -e "$work/hold.waits" ]; do
        tries=$((tries + 1))
        [ $tries -lt 6000 ] || { echo "it does not hash"; cat "$work/stopped.log"; exit 1; }
        sleep 0.02
    done
    kill $!
    rm "$work/hold"
    wait $! || { echo "stopped while it hashed: exit code $?"; cat "$work/stopped.log"; exit 1; }
fi

# Strange requests, by curl and Python. status EXPECTED ARGUMENTS...: curl's request gets this status.
one=$(sed 's/#.*//' "$work/one.url")
if command -v curl > /dev/null; then
    head -c 100000 /dev/zero > "$work/hundred-kb"
    head -c 20000000 /dev/zero > "$work/twenty-mb"
    status() {
        want=$1
        shift
        got=$(curl -sk -m 600 -o "$work/curl.out" -w '%{http_code}' "$@" || true)
        [ "$got" = "$want" ] || { echo "curl $*: status $got, expected $want"; cat "$work/curl.out"; exit 1; }
        [ "$want" -eq 200 ] || [ "$want" -eq 413 ] || [ -z "${said:=}" ] || grep -q "$said" "$work/curl.out" ||
            { echo "curl $*: no $said"; cat "$work/curl.out"; exit 1; }
    }
    said=
    status 200 "$one/v1/provider"
    grep -q '"speaks":{"assignment":\[1,2\],"program":\[1\],"spec":\[1\]}' "$work/curl.out" || { cat "$work/curl.out"; exit 1; }
    status 200 -0 "$one/v1/provider"
    status 405 -I "$one/v1/provider"
    status 200 "$one/v1/health"
    grep -qx '{"confined":false,"status":"ok"}' "$work/curl.out" || { cat "$work/curl.out"; exit 1; }
    status 404 -d x "$one/v1/health"
    status 400 -d x "$one/v1/ask"
    status 200 "$one/v1/metrics"
    for name in verde_disk_free_bytes verde_requests_total verde_refused_total verde_up_seconds verde_memory_peak_bytes; do
        grep -qE "^$name [0-9]+\$" "$work/curl.out" || { echo "no $name"; cat "$work/curl.out"; exit 1; }
    done
    requests=$(sed -n 's/^verde_requests_total //p' "$work/curl.out") refused=$(sed -n 's/^verde_refused_total //p' "$work/curl.out")
    status 400 -d x "$one/v1/ask"
    status 200 "$one/v1/metrics"
    [ "$(sed -n 's/^verde_requests_total //p' "$work/curl.out")" -eq $((requests + 2)) ] || { echo "requests are not counted"; exit 1; }
    [ "$(sed -n 's/^verde_refused_total //p' "$work/curl.out")" -eq $((refused + 1)) ] || { echo "refusals are not counted"; exit 1; }
    status 413 --data-binary "@$work/twenty-mb" "$one/v1/ask"
    said='{"error":"'
    status 404 "$one/elsewhere"
    status 405 -X PUT -d x "$one/v1/ask"
    status 400 -d x "$one/v1/ask"
    status 400 -0 -d x "$one/v1/ask"
    status 400 -H "Expect: 100-continue" --data-binary "@$work/hundred-kb" "$one/v1/ask" # curl waits for a word
    status 400 -H 'content-length: 1' -d x "$one/v1/ask"
    status 400 -H 'Content-Length: 1' -H 'Content-Length: 2' -d x "$one/v1/ask"
    status 411 -H 'Transfer-Encoding: chunked' -d x "$one/v1/ask"
else
    echo "SKIP: no curl"
fi

# A referee's request is valid for one provider, once.
if command -v python3 > /dev/null && python3 -c 'import ssl' 2> /dev/null && command -v openssl > /dev/null; then
    program=$("$verde" inspect "$work/run" 2> /dev/null | sed -n 's/^program  *//p')
    asks() {
        wanted=$1
        shift
        python3 tests/system/provide_client.py "$(cat "$work/one.url")" "$work/referee" ask "$program" "$(sed 's/.*#//' "$work/two.url")" "$@" \
            > "$work/asked"
        grep -q "^$wanted" "$work/asked" || { echo "ask $*: $(cat "$work/asked"), expected $wanted"; exit 1; }
    }
    late=$(($(date +%s) + 1000))000000 # after all that verde arbitrate has asked
    asks '401 .*no header Verde-Request' --unsigned --count "$late"
    asks '401 .*signed for another provider' --signed-for "$(sed 's/.*#//' "$work/two.url")" --count "$late"
    asks '409 .*"have":' --count 1
    asks 200 --count "$late"
    asks '409 .*"have":'"$late" --count "$late"
    settle behind 0 '"accepted":true' "$work/referee" # it counts on from what the provider has
    grep -q 'HTTP status 409' "$work/behind.log" || { echo "no count was too small"; cat "$work/behind.log"; exit 1; }
else
    echo "SKIP: no python3 with ssl, or no openssl: nobody sends a request again"
fi

if ! command -v python3 > /dev/null || ! python3 -c 'import ssl' 2> /dev/null; then
    echo "SKIP: no python3 with ssl: nobody is slow"
    exit 0
fi
python3 - "$one" << 'PY'
import http.client
import ssl
import sys

context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
host = sys.argv[1].removeprefix("https://")
connection = http.client.HTTPSConnection(host, context=context, timeout=600)


def ask(status, *arguments, **named):
    connection.request(*arguments, **named)
    response = connection.getresponse()
    body = response.read()
    assert response.status == status, (arguments[:2], response.status, body)
    assert status == 200 or b'{"error"' in body, body


ask(200, "GET", "/v1/provider")
ask(400, "POST", "/v1/ask", body=b"x" * 120000)  # on the same connection
ask(411, "POST", "/v1/ask", body=iter([b"x", b"y"]))  # http.client sends what has no length in chunks
ask(200, "GET", "/v1/provider")
PY

# 800 slow connections to each of two providers that can answer; fewer if the limit on open files is low.
open=$(ulimit -n)
slow=800
[ "$open" -gt 900 ] || slow=$((open - 100))
for name in one two; do
    port=$(sed 's/.*:\([0-9]*\)#.*/\1/' "$work/$name.url")
    python3 tests/system/slow_connections.py "$port" $slow > "$work/slow-$name.txt" 2>&1 &
    pids="$pids $!"
done
until grep -q dialled "$work/slow-one.txt" && grep -q dialled "$work/slow-two.txt"; do sleep 0.1; done
sleep 1
settle flooded 0 '"accepted":true' "$work/referee"
for pid in $pids; do kill -0 "$pid" 2> /dev/null || { echo "a process has ended early"; cat "$work"/slow-*.txt; exit 1; }; done
echo "a referee is answered amid $slow slow connections to each provider"
