#!/bin/sh
# `verde audit JOB --provider URL`: honest providers pass, even if killed or cut off meanwhile; liars leave a proof of fraud, on
# which two verifiers agree; silence fails without a proof.
. "$(dirname "$0")/../support/system"
job=models/jobs/toy.yaml

# audit EXIT_CODE WORDS URL [OPTION...]: its output is in $work/out.
audit() {
    want=$1 words=$2 url=$3
    shift 3
    expect "$want" "$words" "$verde" audit $job --provider "$url" --key "$work/checker" --proof "$work/fraud.json" "$@"
}
port_of() { echo "$1" | sed 's/.*:\([0-9]*\)#.*/\1/'; }
at_port() { echo "$1" | sed "s/:[0-9]*#/:$2#/"; }

"$verde" run $job --out "$work/honest" --threads 1 > /dev/null 2>&1
start honest "$verde" serve "$work/honest" --key "$work/keys-honest" --threads 1
honest_pid=$pid
listen=127.0.0.1:$(port_of "$honest")

# All places are right; the report says what was not examined, and how likely a cheat is found.
audit 0 'not checked' "$honest" --crumbs 60 --steps 3
grep -q '^checked *60 drawn elements' "$work/out" || fail "not 60 elements"
grep -q 'no beacon was named' "$work/out" || fail "whose draw it was is not said"
audit 0 '"result":"passed"' "$honest" --crumbs 40 --steps 2 --json
python3 - "$work/out" << 'END_PYTHON' || fail "the report"
import json
import sys
report = json.load(open(sys.argv[1]))
assert report["checked"]["crumbs"] == 40 and len(report["steps"]) == 2, report
assert report["cost"]["cpu_seconds_of_crumb"] < 0.1 and report["cost"]["peak_bytes"] < 64 << 20, report["cost"]
costs = {c["operator"]: c for c in report["costs_of_crumbs"]}
assert "state" in costs and len(costs) > 5 and all(0 < c["bytes"] <= c["crumbs"] * c["most_bytes"] for c in costs.values()), costs
assert sum(c["crumbs"] for c in costs.values()) >= report["checked"]["crumbs"] + report["checked"]["whole"], costs
odds = {o["cheat"]: o["found"] for o in report["odds"]}
assert abs(odds["in 1 of 1,000"] - (1 - 0.999**40)) < 1e-6, odds
END_PYTHON
[ ! -e "$work/fraud.json" ] || fail "a proof against an honest provider"

# The audit waits for the beacon's value only once the claim is signed. The same value and root draw the same intervals.
in_background "$verde" audit $job --provider "$honest" --key "$work/checker" --proof "$work/fraud.json" --crumbs 20 --steps 2 \
    --beacon "$work/value" --beacon-source 'drand quicknet' --beacon-round 4711 --json
until grep -q 'drand quicknet, round 4711, is wanted' "$work/err"; do
    kill -0 "$client" || fail "the audit has ended"
    sleep 0.1
done
echo 'b5f0c1d2' > "$work/value"
wait "$client" || fail "with a beacon"
grep -q '"beacon":{"source":"drand quicknet","round":4711,"value":"b5f0c1d2"}' "$work/out" || fail "the beacon is not told"
audit 2 'belong together' "$honest" --beacon "$work/value"
: > "$work/empty"
audit 2 'must be a line' "$honest" --beacon "$work/empty" --beacon-source x --beacon-round 1 --crumbs 5 --steps 1
echo 1 > "$work/empty"
audit 0 'Going on with' "$honest" --beacon "$work/empty" --beacon-source x --beacon-round 1 --crumbs 5 --steps 1

# The provider is killed and restarted meanwhile, and a proxy cuts answers off.
start proxy python3 tests/system/dropping_proxy.py "$(port_of "$honest")" 9
proxy_pid=$pid
in_background "$verde" audit $job --provider "$(at_port "$honest" "$proxy")" --key "$work/checker" --proof "$work/fraud.json" \
    --crumbs 60 --steps 3 --intervals 2 --work "$work/again-cut"
for time in 1 2; do
    sleep 1.5
    kill -9 "$honest_pid"
    wait "$honest_pid" 2> /dev/null || true
    start honest "$verde" serve "$work/honest" --key "$work/keys-honest" --threads 1 --listen "$listen"
    honest_pid=$pid
done
wait "$client" || fail "an honest provider that was killed"
grep -q '^result *passed' "$work/out" && grep -q '2 of 4 intervals again: 2 have' "$work/out" ||
    fail "an honest provider that was killed does not pass"
kill "$proxy_pid"
wait "$proxy_pid" 2> /dev/null || true
[ "$(tail -n 1 "$work/proxy.url")" -ge 3 ] || fail "nothing was cut off"

# The provider is slow: each answer takes longer than its computing, and for some seconds it is silent.
start proxy python3 tests/system/dropping_proxy.py "$(port_of "$honest")" 40 0.1
proxy_pid=$pid
in_background "$verde" audit $job --provider "$(at_port "$honest" "$proxy")" --key "$work/checker" --proof "$work/fraud.json" \
    --crumbs 5 --steps 1 --intervals 1 --work "$work/again-slow" --timeout 30
sleep 2
kill -STOP "$honest_pid"
sleep 4
kill -CONT "$honest_pid"
wait "$client" || fail "an honest provider that was slow"
grep -q '^result *passed' "$work/out" || fail "an honest provider that was slow does not pass"
kill "$proxy_pid"
wait "$proxy_pid" 2> /dev/null || true

# A wrong step, where all steps are examined: convicted by its own signatures, as both verifiers decide.
# convict FAULT GRADE
convict() {
    "$verde" run $job --out "$work/liar" --threads 1 --fault "$1" > /dev/null 2>&1
    start liar "$verde" serve "$work/liar" --key "$work/keys-liar" --threads 1
    audit 3 "$2" "$liar" --crumbs 13 --steps 13
    expect 0 'decided again' "$verde" verify "$work/fraud.json" --job $job
    verify_independently "$work/fraud.json" "holds: convicted, $2"
    expect 2 'exists' "$verde" audit $job --provider "$liar" --key "$work/checker" --proof "$work/fraud.json"
    kill "$pid"
    rm -rf "$work/liar" "$work/fraud.json"
}
convict poison@7 wrong-output
convict lr@3 wrong-graph
convict skip@5 contradiction

# One wrong element of one step, which crumbs find only by chance: executing intervals again finds it and leads to a proof.
"$verde" run $job --out "$work/liar" --threads 1 --fault element@7 > /dev/null 2>&1
start liar "$verde" serve "$work/liar" --key "$work/keys-liar" --threads 1
audit 3 wrong-output "$liar" --steps 0 --intervals 4 --work "$work/again"
grep -q '^executed *4 of 4 intervals again: 2 have' "$work/out" || fail "which interval it was is not said"
expect 0 'node 193 m1.h.0.attn.qkv.matmul' "$verde" verify "$work/fraud.json" --job $job
verify_independently "$work/fraud.json" "holds: convicted, wrong-output"
rm "$work/fraud.json"
audit 3 wrong-output "$liar" --steps 0 --all --work "$work/whole"
expect 0 'node 193 m1.h.0.attn.qkv.matmul' "$verde" verify "$work/fraud.json" --job $job
rm -r "$work/fraud.json" "$work/liar"
kill "$pid"
audit 0 'found with 100' "$honest" --steps 0 --all --work "$work/whole"
audit 0 '2 of 4 intervals again: 2 have' "$honest" --crumbs 5 --steps 1 --intervals 2 --work "$work/again-honest"
audit 2 'goes with --work' "$honest" --all
audit 2 'looks at nothing' "$honest" --steps 0

# A provider with false proofs is convicted at once; one that is silent after its claim fails, and nothing is proven.
start liar "$verde" serve "$work/honest" --key "$work/keys-liar" --threads 1 --fault proof
audit 3 bad-proof "$liar" --crumbs 5 --steps 2
rm "$work/fraud.json"
kill "$pid"
start silent "$verde" serve "$work/honest" --key "$work/keys-silent" --threads 1 --fault silence
audit 4 'by this checker.s word alone' "$silent" --crumbs 5 --steps 2 --timeout 2
[ ! -e "$work/fraud.json" ] || fail "silence is no fraud"

# So does a provider whose answers are no statements, from the first on. A refusal of the first question is the user's mistake.
"$verde" keygen "$work/keys-odd" > /dev/null
# odd EXIT_CODE WORDS STATUS BODY: audits a provider that always gives this reply.
odd() {
    start odd python3 tests/system/fixed_reply.py "$work/keys-odd" "$3" "$4"
    audit "$1" "$2" "$odd" --crumbs 5 --steps 2 --timeout 2
    [ "$1" -ne 4 ] || grep -q 'nothing was checked' "$work/out" || fail "what was checked?"
    ! grep -q timeout "$work/out" || fail "an answer came"
    kill "$pid"
}
odd 4 'no signed answer' 200 'nonsense'
odd 4 'no signed answer' 200 ''
odd 4 'HTTP status 500' 500 ''
odd 2 'takes no part, and nothing was checked: HTTP status 400: go away' 400 '{"error":"go away"}'
[ ! -e "$work/fraud.json" ] && [ ! -e "$work/fraud.json.journal" ] || fail "something is left of it"

# A mistake in a URL, or another job, speaks against nobody.
audit 4 'nothing was checked' "$(at_port "$honest" 1)" --timeout 2
audit 1 'expected' "$(echo "$silent" | sed 's/#.*//')#$(echo "$honest" | sed 's/.*#//')"
audit 2 'KEY. is missing' "$(echo "$honest" | sed 's/#.*//')"
expect 2 'job served is program' "$verde" audit models/jobs/mlp.yaml --provider "$honest" --key "$work/checker" --proof "$work/fraud.json"
expect 2 'takes one job file' "$verde" audit --provider "$honest"

# Daemons answer a checker that the job names as a referee.
"$verde" keygen "$work/client" > /dev/null 2>&1
provide first 127.0.0.1:0
provide second 127.0.0.1:0
expect 0 . "$verde" delegate $job --key "$work/client" --out "$work/result" --provider "$first" --provider "$second" --no-challenge
expect 0 'all that was looked at is right' "$verde" audit $job --provider "$first" --key "$work/client" --crumbs 30 --steps 2 \
    --proof "$work/fraud.json"
expect 2 . "$verde" audit $job --provider "$first" --key "$work/checker" --proof "$work/fraud.json" --crumbs 5

# A job of a single provider: audited, then fetched.
# delegate EXIT_CODE WORDS OUT LIST [OPTION...]
delegate() {
    want=$1 words=$2 out=$3 list=$4
    shift 4
    expect "$want" "$words" "$verde" delegate $job --key "$work/client" --out "$work/$out" --provider "$first" --audit "$list" "$@"
}
delegate 0 'all that was looked at is right' alone crumbs=20,steps=2,intervals=1
[ -s "$work/alone/model.safetensors" ] && [ ! -e "$work/alone/fraud.json" ] || fail "no model"
delegate 0 '"result":"passed"' alone-all steps=0,all --json
audit 2 'key is given twice' "$honest" --key "$work/other"
audit 2 'seed is of .verde audit RUN., and this is .verde audit JOB --provider URL' "$honest" --seed 4
for list in crumbs steps=0 all,intervals=2 crumbs=x few=1 intervals=0; do
    delegate 2 'must be a list such as' none "$list"
done
expect 2 'is of one provider' "$verde" delegate $job --key "$work/client" --out "$work/none" --provider "$first" --provider "$second" \
    --audit crumbs=5

echo "$count commands audited as they should"
