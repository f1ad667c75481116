#!/bin/sh
# `verde delegate` hands a job to daemons over TLS and comes back with a model, each byte checked: beside a dishonest provider, one
# that refuses, one that is killed; killed itself in every phase and started again.
set -eu
build=$1
verde=$build/bin/verde
work=$build/tests/delegate
rm -rf "$work"
mkdir -p "$work"
pids=
cleanup() {
    for pid in $pids; do kill "$pid" 2> /dev/null || true; done
    wait 2> /dev/null || true
}
trap cleanup EXIT
count=0

fail() {
    echo "$1"
    cat "$work/out" "$work/err"
    tail -n 5 "$work"/*.log
    exit 1
}

# expect EXIT_CODE WORDS COMMAND...: the words stand in what it says.
expect() {
    want=$1 words=$2
    shift 2
    code=0
    timeout 200 "$@" > "$work/out" 2> "$work/err" || code=$?
    [ $code -eq "$want" ] || fail "$*: exit code $code, expected $want"
    grep -q -- "$words" "$work/out" "$work/err" || fail "$*: not \"$words\""
    count=$((count + 1))
}

# provide NAME LISTEN [OPTIONS]: a daemon; its URL is then $NAME, its process $pid.
provide() {
    name=$1 listen=$2
    shift 2
    : > "$work/$name.url"
    "$verde" provide --dir "$work/$name" --listen "$listen" --threads 1 --client "$(cat "$work/client/key.pub")" "$@" \
        > "$work/$name.url" 2>> "$work/$name.log" &
    pid=$!
    pids="$pids $pid"
    tries=0
    while ! [ -s "$work/$name.url" ]; do
        tries=$((tries + 1))
        [ $tries -lt 400 ] || { echo "$name does not start"; cat "$work/$name.log"; exit 1; }
        sleep 0.05
    done
    eval "$name=\$(cat \"\$work/\$name.url\")"
}

# same RESULT EXPORTED: it is what `verde export` writes of an honest run.
same() {
    for file in model.safetensors config.json proof.json; do
        cmp "$2/$file" "$1/$file" || fail "$1/$file is not the honest run's"
    done
    [ ! -e "$1/partial" ] || fail "$1/partial is left"
}

# honest NAME JOB: what a result must be.
honest() {
    "$verde" run "$2" --out "$work/run-$1" --threads 1 > "$work/out" 2> "$work/err" || fail "$2 does not run"
    "$verde" export "$work/run-$1" --out "$work/honest-$1" > /dev/null
}

job=models/jobs/toy.yaml
"$verde" keygen "$work/client" > /dev/null
"$verde" keygen "$work/stranger" > /dev/null
honest toy $job
provide a 127.0.0.1:0
provide b 127.0.0.1:0
b_pid=$pid
provide wrong 127.0.0.1:0 --fault element@7
provide other 127.0.0.1:0 --fault element@9
provide small 127.0.0.1:0 --memory 10000
delegate="$verde delegate $job --key $work/client"

# ---- who agrees, and who does not ----

expect 0 'every byte checked' $delegate --provider "$a" --provider "$b" --out "$work/agreed"
same "$work/agreed" "$work/honest-toy"
grep -q '^provider 2  done; it says run root' "$work/err" || fail "no line of provider 2"
expect 0 'accepts this run' "$verde" check "$work/agreed" --verdict "$work/agreed/verdict.json" --job $job
expect 2 'exists already' $delegate --provider "$a" --provider "$b" --out "$work/agreed"
expect 3 'CONVICTED' $delegate --provider "$wrong" --provider "$a" --out "$work/convicted"
same "$work/convicted" "$work/honest-toy"
expect 0 'accepts this run' "$verde" check "$work/convicted" --verdict "$work/convicted/verdict.json"
expect 3 '"exit_code":3' $delegate --provider "$wrong" --provider "$a" --provider "$b" --out "$work/three" --json
same "$work/three" "$work/honest-toy"
[ "$(wc -l < "$work/out")" -eq 1 ] || fail "--json: not one line"
# The honest one comes last, after two that are wrong in one way.
provide also 127.0.0.1:0 --fault element@7
expect 3 'every byte checked' $delegate --provider "$wrong" --provider "$also" --provider "$a" --out "$work/last"
same "$work/last" "$work/honest-toy"
[ -s "$work/last/verdict-2.json" ] || fail "no second verdict"
# Two that are wrong in two ways convict each other.
expect 3 'no result is accepted' $delegate --provider "$wrong" --provider "$other" --out "$work/both"
[ ! -e "$work/both/model.safetensors" ] || fail "a wrong model is delivered"

# ---- who takes no part ----

expect 5 'is not enrolled' "$verde" delegate $job --key "$work/stranger" --provider "$a" --provider "$b" --out "$work/no"
expect 5 '1 of 2 providers have finished.*HTTP status 413: the job takes' $delegate --provider "$a" --provider "$small" --out "$work/no"
expect 0 'every byte checked' $delegate --provider "$small" --provider "$a" --provider "$b" --out "$work/without"
same "$work/without" "$work/honest-toy"
expect 5 'another key answers' $delegate --provider "$a" --provider "${b%%#*}#$(cat "$work/stranger/key.pub")" --out "$work/no"
expect 2 'have the same key' $delegate --provider "$a" --provider "$a" --out "$work/no"
expect 2 'KEY. is missing' $delegate --provider "$a" --provider "${b%%#*}" --out "$work/no"
expect 2 'delegate takes' $delegate --provider "$a" --out "$work/no"
expect 2 'takes no jobs with .rounding\|take no jobs with .rounding' "$verde" delegate models/jobs/toy-log.yaml --key "$work/client" \
    --provider "$a" --provider "$b" --out "$work/no"
[ ! -e "$work/no/model.safetensors" ] || fail "a model came of nothing"

# Sanitizers take these seconds many times over.
[ -z "${SANITIZED:-}" ] || { echo "$count results and refusals of daemons"; exit 0; }

# ---- killed, and started again: the client in every phase, a provider while it runs ----

# Seconds of steps, and data of several chunks.
head -c 9000000 /dev/urandom | od -An -v -tx1 | tr -d '\n' | head -c 11000000 > "$work/text"
sed -e 's/^steps: .*/steps: 3000/' -e 's/^checkpoint_interval: .*/checkpoint_interval: 250/' -e "s|file: .*|file: $PWD/$work/text|" \
    -e "s/sha256: .*/sha256: $(sha256sum "$work/text" | cut -d' ' -f1)/" $job > "$work/long.yaml"
honest long "$work/long.yaml"
long="$verde delegate $work/long.yaml --key $work/client --provider $a --provider $b --out $work/killed"
for after in 0.05 0.15 0.3 1 2; do
    $long > "$work/out" 2> "$work/err" &
    client=$!
    sleep $after
    kill -9 $client 2> /dev/null || true
    wait $client 2> /dev/null || true
done
kill -9 "$b_pid"
$long > "$work/out" 2> "$work/err" &
client=$!
sleep 1
provide b "$(echo "$b" | sed 's|https://\(.*\)#.*|\1|')"
wait $client || fail "a provider that was killed and started again: exit code $?"
same "$work/killed" "$work/honest-long"
# Killed while it downloads, after the verdict: the verdict is not made again.
rm "$work/killed/model.safetensors" "$work/killed/proof.json"
before=$(sha256sum < "$work/killed/verdict.json")
expect 0 'every byte checked' $long
same "$work/killed" "$work/honest-long"
[ "$before" = "$(sha256sum < "$work/killed/verdict.json")" ] || fail "the verdict was made again"
echo "$count results and refusals of daemons; the client killed 5 times, a provider once"
