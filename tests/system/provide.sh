#!/bin/sh
# A provider's daemon over TLS, with a client written from PROTOCOL.md alone: who may ask, uploads and jobs, limits, and kill -9
# in the middle of each.
set -eu
build=$1
verde=$build/bin/verde
work=$build/tests/provide
client=tests/system/provide_client.py
if ! command -v python3 > /dev/null || ! python3 -c 'import ssl' 2> /dev/null || ! command -v openssl > /dev/null; then
    echo "no python3 with ssl, or no openssl: there is no other client"
    exit 77
fi
rm -rf "$work"
mkdir -p "$work"
pid=
cleanup() {
    [ -z "$pid" ] || kill "$pid" 2> /dev/null || true
    wait 2> /dev/null || true
}
trap cleanup EXIT
count=0

fail() {
    echo "$1"
    tail -n 20 "$work/out" "$work/daemon.log" 2> /dev/null
    exit 1
}

# start OPTIONS: starts the daemon; $url is its URL.
start() {
    : > "$work/url"
    "$verde" provide --dir "$work/data" --listen 127.0.0.1:0 --threads 1 --client "$(cat "$work/alice/key.pub")" \
        --client "$(cat "$work/bob/key.pub")" "$@" > "$work/url" 2>> "$work/daemon.log" &
    pid=$!
    tries=0
    while [ ! -s "$work/url" ]; do
        tries=$((tries + 1))
        [ $tries -lt 12000 ] || fail "the daemon does not start"
        sleep 0.05
    done
    url=$(cat "$work/url")
}

crash() {
    kill -9 "$pid"
    wait "$pid" 2> /dev/null || true
    pid=
}

# as WHO ARGUMENTS: runs the other client; its output is in $work/out.
as() {
    who=$1
    shift
    timeout 1200 python3 "$client" "$url" "$work/$who" "$@" > "$work/out" 2>&1 || true
}

# expect WORDS WHO ARGUMENTS: the other client's output has the WORDS.
expect() {
    words=$1
    shift
    as "$@"
    grep -q -e "$words" "$work/out" || fail "$*: not \"$words\""
    count=$((count + 1))
}

for name in alice bob stranger; do
    "$verde" keygen "$work/$name" > /dev/null
done
"$verde" run models/jobs/toy.yaml --out "$work/toy" --threads 1 --json > "$work/toy.json" 2> /dev/null
root=$(sed -n 's/.*"run_root":"\([0-9a-f]*\)".*/\1/p' "$work/toy.json")
sed -e 's/^steps: .*/steps: 2000/' -e 's/^checkpoint_interval: .*/checkpoint_interval: 100/' -e 's|\.\./data|'"$PWD"'/models/data|' \
    models/jobs/toy.yaml > "$work/long.yaml"
"$verde" run "$work/long.yaml" --out "$work/long" --threads 1 --json > "$work/long.json" 2> /dev/null
long_root=$(sed -n 's/.*"run_root":"\([0-9a-f]*\)".*/\1/p' "$work/long.json")
head -c 3000000 /dev/urandom > "$work/blob"
head -c 9000000 /dev/zero > "$work/large"
blob=$(sha256sum "$work/blob" | cut -d' ' -f1)
empty=$(printf %064d 0)

# Who may ask.
start
expect '^200 {"confined":[a-z]*,"status":"ok"}' alice request GET /v1/health --unsigned
expect '^200 .*"key":"'"${url#*#}" alice request GET /v1/provider --unsigned
expect '"speaks":{"assignment":\[1,2\],"program":\[1\],"spec":\[1\]}' alice request GET /v1/provider --unsigned
expect '^200 {"jobs":\[\]}' alice request GET /v1/jobs
expect '^401 .*no header Verde-Request' alice request GET /v1/jobs --unsigned
expect '^403 .*the key [0-9a-f]* is not enrolled' stranger request GET /v1/jobs
expect '^401 .*your clock is 3[56][0-9][0-9] s ahead of' alice request GET /v1/jobs --skew 3600
expect '^401 .*your clock is 3[56][0-9][0-9] s behind' alice request GET /v1/jobs --skew -3600
expect '^401 .*signed for another provider' alice request GET /v1/jobs --signed-for "$(cat "$work/bob/key.pub")"
nonce=0123456789abcdef0123456789abcdef
expect '^200 ' alice request GET /v1/jobs --nonce $nonce
expect '^401 .*it was sent before' alice request GET /v1/jobs --nonce $nonce
expect '^200 ' bob request GET /v1/jobs --nonce $nonce
crash
start
expect '^401 .*it was sent before' alice request GET /v1/jobs --nonce $nonce

# Paths that do not exist, and bodies over their limits.
for path in /v1/blobs/../../keys/key.pem /v1/jobs/..%2f..%2fkeys /v1/jobs/$empty/../../ledger.db /v1/jobs/$empty/run /etc/passwd \
    //v1/jobs "/v1/blobs/$empty?size=1"; do
    expect '^404 {"error":"no such path' alice request GET "$path"
done
expect '^405 ' alice request DELETE /v1/jobs
expect '^404 {"error":"this client has no job' alice request GET /v1/jobs/$empty
expect '^413 .*at most 8388608 are allowed' alice request PUT "/v1/blobs/$blob?size=9000000&from=0" --body "$work/large"
expect '^413 .*at most 0 are allowed' alice request POST /v1/jobs/$empty/cancel --body "$work/blob"
expect '^403 ' stranger request PUT "/v1/blobs/$blob?size=3000000&from=0" --body "$work/blob"
expect '^404 ' alice request PUT "/v1/blobs/$blob?size=3000000&from=-1" --body "$work/blob"

# Uploads: killed midway, wrong bytes, another client's.
expect '"have":2000000' alice upload "$work/blob" --chunk 1000000 --chunks 2
crash
echo old > "$work/data/uploads/$empty-$empty"
start
[ ! -e "$work/data/uploads/$empty-$empty" ] || fail "a file that the ledger does not know was not collected"
expect '"have":2000000' alice request GET "/v1/blobs/$blob"
expect '^409 .*"have":2000000' alice request PUT "/v1/blobs/$blob?size=3000000&from=0" --body "$work/blob"
expect '^409 .*"error":"the size of a blob stays.*"have":2000000,"size":3000000' \
    alice request PUT "/v1/blobs/$blob?size=2500000&from=2000000" --body "$work/blob"
expect '^200 {"complete":true,"have":3000000' alice upload "$work/blob"
expect '^200 {"complete":true' alice request GET "/v1/blobs/$blob"
expect '^200 {"complete":false,"have":0,"size":null}' bob request GET "/v1/blobs/$blob"
expect '^422 .*all of them are dropped' bob upload "$work/blob" --chunk 1000000 --name $empty
expect '^200 {"complete":false,"have":0,"size":null}' bob request GET "/v1/blobs/$empty"
[ "$(sha256sum < "$work/data/blobs/$blob" | cut -d' ' -f1)" = "$blob" ] || fail "the blob's bytes have changed"
[ -z "$(ls "$work/data/uploads")" ] || fail "an upload was left behind"

# A job's result is that of `verde run`.
job=$(python3 "$client" "$url" "$work/alice" submit "$work/toy") || fail "the job was not accepted: $job"
expect '"run_root": "'"$root"'".*"state": "done"' alice wait "$job" done failed
expect '^200 {"jobs":\[{.*"name":"toy"' alice request GET /v1/jobs
expect '^404 ' bob request GET "/v1/jobs/$job"
expect '^404 ' bob request DELETE "/v1/jobs/$job"
expect '^200 {"step":1,' alice request GET "/v1/jobs/$job/losses"
expect '"run_root": "'"$root" alice request GET "/v1/jobs/$job/state"
expect '^404 ' bob request GET "/v1/jobs/$job/state"
expect '^401 ' alice request GET "/v1/jobs/$job/state" --unsigned
expect '^404 ' alice request GET "/v1/jobs/$job/state/0/blocks/99"
expect 'verde_jobs{state="done"} 1' alice request GET /v1/metrics --unsigned
if grep -q "$job" "$work/out"; then fail "the metrics name a job"; fi
again=$(python3 "$client" "$url" "$work/alice" submit "$work/toy")
[ "$again" = "$job" ] || fail "the same job has another name"
printf '{"data":[],"name":"x","program":"%s","referees":[],"verde":1}' "$blob" > "$work/no-program.json"
expect '^422 {"error":"program: ' alice request POST /v1/jobs --body "$work/no-program.json"
printf '{"data":[],"name":"x","program":"%s","referees":[],"verde":1}' $empty > "$work/missing.json"
expect '^409 .*"missing":\["'$empty alice request POST /v1/jobs --body "$work/missing.json"
printf '{"data":[],"name":"x","program":"%s","referees":["%s"],"verde":1}' $empty $empty > "$work/no-key.json"
expect '^400 .*referee 0 is no public key' alice request POST /v1/jobs --body "$work/no-key.json"
printf '{"data":[], "name":"x","program":"%s","referees":[],"verde":1}' $empty > "$work/spelling.json"
expect '^400 .*canonical JSON' alice request POST /v1/jobs --body "$work/spelling.json"

# kill -9 while a job runs: it continues from its last checkpoint, and its child ends with the daemon.
long=$(python3 "$client" "$url" "$work/bob" submit "$work/long" --name long --keep 4) || fail "the job was not accepted: $long"
expect '"state": "running"' bob wait "$long" running
tries=0
while ! grep -q '"step": 200' "$work/data/jobs/$long/run/run.json" 2> /dev/null; do
    tries=$((tries + 1))
    [ $tries -lt 12000 ] || fail "the long job does not come to step 200"
    sleep 0.05
done
child=$(pgrep -P "$pid" || true)
# test_provide_confine.c tests what a child may do.
if as alice request GET /v1/health --unsigned && grep -q '"confined":true' "$work/out"; then
    [ "$(sed -n 's/^Seccomp:[^0-9]*//p;s/^NoNewPrivs:[^0-9]*//p' "/proc/$child/status" | tr '\n' ' ')" = "1 2 " ] || fail "the child is not confined"
    if ls -l "/proc/$child/fd" | grep -q -e ledger -e socket -e keys; then fail "the child has files of the daemon"; fi
fi
crash
tries=0
while [ -n "$child" ] && kill -0 "$child" 2> /dev/null; do
    tries=$((tries + 1))
    [ $tries -lt 12000 ] || fail "the child has outlived the daemon"
    sleep 0.05
done
start
expect '^404 .*has no result' bob request GET "/v1/jobs/$long/state"
expect '^409 .*cancel it first' bob request DELETE "/v1/jobs/$long"
expect '"run_root": "'"$long_root"'".*"state": "done"' bob wait "$long" done failed
resumed=$(cut -d' ' -f4 "$work/data/jobs/$long/told/progress")
[ "$resumed" -ge 200 ] || fail "the job began anew, at step $resumed"

# A job whose process dies is reported as failed, and harms nothing else. Submitted again, it continues.
dies=$(python3 "$client" "$url" "$work/bob" submit "$work/long" --name dies --keep 4) || fail "the job was not accepted: $dies"
expect '"state": "running"' bob wait "$dies" running
child=$(pgrep -P "$pid")
kill -9 "$child"
expect '"error": "ended by signal 9 .*"state": "failed"' bob wait "$dies" failed done
expect '^200 .*"state":"done"' alice request GET "/v1/jobs/$job"
again=$(python3 "$client" "$url" "$work/bob" submit "$work/long" --name dies --keep 4)
[ "$again" = "$dies" ] || fail "the failed job has another name"
expect '"run_root": "'"$long_root"'".*"state": "done"' bob wait "$dies" done failed

# Cancelling, deleting, and collecting unneeded data.
long=$(python3 "$client" "$url" "$work/alice" submit "$work/long" --name longer)
expect '"state": "running"' alice wait "$long" running
expect '^404 ' bob request POST "/v1/jobs/$long/cancel"
expect '^200 ' alice request POST "/v1/jobs/$long/cancel"
expect '"state": "cancelled"' alice wait "$long" cancelled
expect '^409 .*cancelled already' alice request POST "/v1/jobs/$long/cancel"
expect '^200 {"deleted":true}' alice request DELETE "/v1/jobs/$long"
[ ! -e "$work/data/jobs/$long" ] || fail "the deleted job's folder is still there"
kill "$pid"
wait "$pid" || fail "the daemon did not end well"
start --keep-seconds 0
tries=0
while [ -e "$work/data/blobs/$blob" ]; do
    tries=$((tries + 1))
    [ $tries -lt 12000 ] || fail "a blob that no job needs was not collected"
    sleep 0.05
done
program=$(sha256sum "$work/toy/program" | cut -d' ' -f1)
[ -e "$work/data/blobs/$program" ] || fail "the program of a job was collected"

# Limits.
crash
start --client-bytes 4000000
expect '^413 .*the limit of a client is 4000000 bytes' alice upload "$work/blob"
crash
start --memory 100k
expect '^413 .*bytes of memory, and the limit is 100000' alice submit "$work/toy" --name small
crash
start --job-seconds 1
sed -e 's/^steps: .*/steps: 100000/' -e 's/^checkpoint_interval: .*/checkpoint_interval: 1000/' "$work/long.yaml" > "$work/endless.yaml"
"$verde" run "$work/endless.yaml" --out "$work/endless" --threads 1 2> /dev/null > /dev/null &
runner=$!
tries=0
while [ ! -s "$work/endless/program" ] && [ $tries -lt 12000 ]; do
    tries=$((tries + 1))
    sleep 0.05
done
kill $runner
wait $runner 2> /dev/null || true
cp "$work/long/data" "$work/long/data.json" "$work/endless"
expect '^413 .*s by an estimate from its program, and the limit is 1 (--job-seconds)' alice submit "$work/endless" --keep 2
crash
start --job-seconds 0
endless=$(python3 "$client" "$url" "$work/alice" submit "$work/endless" --keep 2) || fail "the job was not accepted: $endless"
crash
start --job-seconds 1
expect '"error": "stopped: its limit of seconds.*"state": "failed"' alice wait "$endless" done failed

# What already counts for the client is not counted twice when the job is submitted again.
crash
start --client-bytes 16000000
expect '^413 .* bytes, with all that this client has here, and the limit is 16000000' alice submit "$work/endless" --keep 2 --name fourth
bytes=$(sed 's/.*the job takes \([0-9]*\) bytes.*/\1/' "$work/out")
crash
start --client-bytes $((bytes - 1))
expect '^413 ' alice submit "$work/endless" --keep 2 --name fourth
expect "^$endless" alice submit "$work/endless" --keep 2
expect '^200 ' alice request POST "/v1/jobs/$endless/cancel"
expect '"state": "cancelled"' alice wait "$endless" cancelled
crash
start --client-jobs 1
endless=$(python3 "$client" "$url" "$work/alice" submit "$work/endless" --keep 2 --name second)
expect '^429 .*the limit of a client is 1 jobs at a time' alice submit "$work/endless" --keep 2 --name third
expect '^200 ' alice request POST "/v1/jobs/$endless/cancel"
expect '"state": "cancelled"' alice wait "$endless" cancelled

# Two daemons do not share a folder.
if "$verde" provide --dir "$work/data" --listen 127.0.0.1:0 --client "$(cat "$work/alice/key.pub")" > "$work/out" 2>&1; then
    fail "a second daemon started in the same folder"
fi
grep -q 'another daemon has it open' "$work/out" || fail "the second daemon does not say why it does not start"
echo "$count answers of a provider's daemon"
