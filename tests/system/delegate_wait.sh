#!/bin/sh
# Waits are bounded, and silence is reported: providers that accept a job and never run it, beside two that finish; with a
# deadline; some that accept requests without answering; an address where nobody listens.
. tests/support/system
python3 -c 'import ssl' 2> /dev/null || { echo "no python3 with ssl: there is no provider that stalls"; exit 77; }
job=models/jobs/toy.yaml
"$verde" keygen "$work/client" > /dev/null
provide a 127.0.0.1:0
provide b 127.0.0.1:0

# stall NAME HOW: starts a provider that stalls as described in stalling_provider.py; $NAME is its URL.
stall() {
    "$verde" keygen "$work/$1-keys" > /dev/null
    start "$1" python3 tests/system/stalling_provider.py "$work/$1-keys" "$2"
}

stall runs running
stall waits queued
stall silent silent
stall odd dreaming
stall huge huge
# An address where nobody listens.
nobody="https://127.0.0.1:1#$(cat "$work/client/key.pub")"
delegate="$verde delegate $job --key $work/client --provider $a --provider $b"

# given_up WHAT: provider 3 is late, the result is that of the others, and a line at the end says so.
given_up() {
    [ "$(sed -n 's/^provider 3 *\(not waited for\): not done after .*, and two others were after .*/\1/p' "$work/out")" = 'not waited for' ] ||
        fail "$1: standard output does not say that it was not waited for"
    grep -q '^provider 3  not waited for' "$work/err" || fail "$1: no line when it was given up"
    grep -q 'every byte checked' "$work/out" || fail "$1: no result"
}
expect 0 'provider 4 *not waited for' $delegate --timeout 2 --provider "$runs" --provider "$waits" --out "$work/text"
given_up 3
expect 0 '"late":true' $delegate --timeout 2 --provider "$runs" --out "$work/json" --json
python3 - "$work/out" << 'PYTHON' || fail "another JSON"
import json
import sys
providers = json.load(open(sys.argv[1]))["providers"]
assert [one["late"] for one in providers] == [False, False, True], providers
assert [one["done"] for one in providers] == [True, True, False], providers
assert providers[2]["error"].startswith("not waited for: "), providers
PYTHON
# However fast two providers are, a third one gets the time of a slow machine: here 1,000 steps of at least 0.05 s. It sleeps
# until four times the others' time is over.
cat > "$work/small.yaml" << YAML
verde: 1
model: {kind: gpt2, vocab: 256, context: 4, layers: 1, heads: 1, channels: 4, dropout: 0}
data: {kind: text, file: $PWD/models/data/project.txt, sha256: $(sum_of models/data/project.txt)}
seed: 3
batch: 1
sequence: 4
steps: 1000
checkpoint_interval: 500
optimizer: {kind: sgd, lr: 1e-2, momentum: 0, nesterov: false, weight_decay: 0, clip_norm: 1.0}
schedule: {kind: constant, warmup: 0}
YAML
provide slow 127.0.0.1:0
slow_pid=$pid
kill -STOP "$slow_pid"
began=$(date +%s)
in_background "$verde" delegate "$work/small.yaml" --key "$work/client" --provider "$a" --provider "$b" --provider "$slow" --timeout 1 \
    --out "$work/small" --json
until [ "$(grep -c '^provider [12]  done' "$work/err")" -eq 2 ]; do sleep 0.1; done
took=$(($(date +%s) - began + 1))
sleep $((3 * took + 2))
kill -CONT "$slow_pid"
wait $client || fail "beside a slow provider: exit code $?"
grep -q '"late":false},{[^}]*"late":false},{[^}]*"late":false}' "$work/out" || fail "a slow provider was not waited for"
# A senseless answer fails at once.
expect 0 'provider 3 .*does not say how the job is' $delegate --provider "$odd" --out "$work/odd"
expect 0 'provider 3 .*says that the job has 9007199254740992 steps, expected 12' $delegate --provider "$huge" --out "$work/huge"
# For a provider that accepts requests without answering, and for an address where nobody listens, the lines say how long and why.
expect 0 'provider 3  no answer for [0-9]* s; 150.1 kB to send' $delegate --timeout 6 --provider "$silent" --provider "$nobody" --out "$work/silent"
given_up silent
grep -q 'provider 4  no answer for [0-9]* s: Connection refused; given up after 6 s; 150.1 kB to send' "$work/err" || fail "nobody is not told of"
grep -q 'provider 4  .*127.0.0.1:1.*: Connection refused' "$work/err" || fail "it is not said why nobody has failed"
if grep -q '^provider [34] .* left$' "$work/err"; then fail "a time left for a provider that is silent"; fi
# With two providers and one of them late, nothing can be accepted: only a deadline ends the wait. Unchanged lines are not
# repeated.
expect 5 'provider 2: not waited for: not done after 11 s (--deadline)' "$verde" delegate $job --key "$work/client" --provider "$a" \
    --provider "$runs" --deadline 11 --out "$work/deadline"
[ "$(grep -c '^provider 2  step 1/12  1e-300 steps/s$' "$work/err")" -eq 1 ] || fail "not one line of a provider that says the same for 11 s"
[ ! -e "$work/deadline" ] || fail "a deadline left a folder"
expect 2 'deadline must be 1' $delegate --deadline 0 --out "$work/no"

# Downloads and disputes report silence, too.
"$verde" run $job --out "$work/run" > "$work/out" 2> "$work/err"
run_root=$(root)
"$verde" fetch --run-root "$run_root" --provider "$nobody" --timeout 7 --out "$work/fetched" > /dev/null 2> "$work/fetch.err" &
fetch=$!
serve run
code=0
"$verde" arbitrate $job --key "$work/client" --timeout 7 --verdict "$work/verdict.json" --provider "$(cat "$work/run.url")" \
    --provider "$silent" > "$work/out" 2> "$work/err" || code=$?
[ "$code" -eq 4 ] || fail "a provider that answers nothing: exit code $code, expected 4"
grep -q 'Provider 2: no answer for [0-9]* s' "$work/err" || fail "arbitrate does not say who is silent"
code=0
wait $fetch || code=$?
[ $code -eq 1 ] || fail "fetch from nobody: exit code $code, expected 1"
cp "$work/fetch.err" "$work/err"
grep -q "provider 1 ($nobody): no answer for [0-9]* s: Connection refused" "$work/err" ||
    grep -q "provider 1 (${nobody%%#*}): no answer for [0-9]* s: Connection refused" "$work/err" || fail "fetch does not say who is silent"
echo "$count commands beside providers that stall or are silent"
