#!/bin/sh
# A client hands a job to two daemons, one of them dishonest: a referee that the submission names convicts it, although the honest
# daemon and an answering child are killed midway. No other referee is answered.
. tests/support/system
client=tests/system/provide_client.py
if ! command -v python3 > /dev/null || ! python3 -c 'import ssl' 2> /dev/null || ! command -v openssl > /dev/null; then
    echo "no python3 with ssl, or no openssl: there is no other client"
    exit 77
fi
for name in client referee other; do
    "$verde" keygen "$work/$name" > /dev/null
done
"$verde" run models/jobs/toy.yaml --out "$work/toy" --threads 1 --json > "$work/toy.json" 2> /dev/null
root=$(sed -n 's/.*"run_root":"\([0-9a-f]*\)".*/\1/p' "$work/toy.json")
provide wrong 127.0.0.1:0 --fault element@7
provide honest 127.0.0.1:0
honest_pid=$pid
for name in wrong honest; do
    python3 "$client" "$(cat "$work/$name.url")" "$work/client" submit "$work/toy" --referee "$(cat "$work/referee/key.pub")" \
        > "$work/$name.job" || fail "$name does not take the job"
    python3 "$client" "$(cat "$work/$name.url")" "$work/client" wait "$(cat "$work/$name.job")" done failed > "$work/$name.json"
    grep -q '"state": "done"' "$work/$name.json" || fail "$name has not done the job"
done
job=$(cat "$work/honest.job")
if grep -q 'changed nothing' "$work/wrong.log"; then fail "a fault that changed something is said to have changed nothing"; fi

# A run of one interval has no state in the middle of its history, so that fault changes nothing.
sed -e "s|file: \.\./data|file: $PWD/models/data|" -e 's/^steps: .*/steps: 2/' -e 's/^checkpoint_interval: .*/checkpoint_interval: 2/' \
    -e 's/^schedule: .*/schedule: {kind: constant, warmup: 0}/' models/jobs/toy.yaml > "$work/short.yaml"
"$verde" run "$work/short.yaml" --out "$work/short" --threads 1 > /dev/null 2>&1
provide idle 127.0.0.1:0 --fault history
python3 "$client" "$(cat "$work/idle.url")" "$work/client" submit "$work/short" > "$work/idle.job" || fail "idle does not take the job"
python3 "$client" "$(cat "$work/idle.url")" "$work/client" wait "$(cat "$work/idle.job")" done failed > /dev/null
tries=0
until grep -q 'done after .*; its fault changed nothing, so that this run is honest' "$work/idle.log"; do
    tries=$((tries + 1))
    [ $tries -lt 1000 ] || fail "the daemon does not say that its fault changed nothing"
    sleep 0.01
done

# arbitrate KEYS VERDICT: holds a dispute; the exit code is in $code.
arbitrate() {
    code=0
    "$verde" arbitrate models/jobs/toy.yaml --key "$work/$1" --verdict "$work/$2" --provider "$(cat "$work/honest.url")" \
        --provider "$(cat "$work/wrong.url")" > "$work/out" 2> "$work/err" || code=$?
}

# A referee's request is valid for one provider, once. ask WANTED OPTIONS: the answer has this status and these words.
program=$("$verde" inspect "$work/toy" 2> /dev/null | sed -n 's/^program  *//p')
ask() {
    wanted=$1
    shift
    python3 "$client" "$(cat "$work/honest.url")" "$work/referee" ask "$program" "$(cat "$work/other/key.pub")" "$@" > "$work/asked"
    grep -q "^$wanted" "$work/asked" || fail "$*: $(cat "$work/asked"), expected $wanted"
}
# Questions may wait while the child loads (503), but refusals come at once.
answered() {
    count=$1
    tries=0
    while python3 "$client" "$(cat "$work/honest.url")" "$work/referee" ask "$program" "$(cat "$work/other/key.pub")" --count "$count" \
        > "$work/asked" && grep -q '"working":true' "$work/asked"; do
        tries=$((tries + 1)) count=$((count + 1))
        [ $tries -lt 1000 ] || fail "it works for ever"
        sleep 0.05
    done
    grep -q '^200 ' "$work/asked" || fail "no answer: $(cat "$work/asked")"
}
ask '401 .*no header Verde-Request' --unsigned
ask '401 .*signed for another provider' --signed-for "$(sed 's/.*#//' "$work/wrong.url")"
answered 1
ask '409 .*"have":'"$count" --count "$count"
ask '409 .*"have":'"$count" --count 1
answered $((count + 1))

arbitrate other none.json
[ $code -eq 2 ] || fail "a referee that nobody named: exit code $code, expected 2"
grep -q 'no finished job here is program' "$work/err" || fail "it is not said why"

# The honest daemon is killed midway and restarts where it was.
address=$(sed 's|https://\(.*\)#.*|\1|' "$work/honest.url")
arbitrate referee verdict.json &
arbiter=$!
tries=0
while ! grep -q 'differ' "$work/err" 2> /dev/null && [ $tries -lt 400 ]; do
    tries=$((tries + 1))
    sleep 0.01
done
children=$(pgrep -P "$honest_pid" || true)
kill -9 "$honest_pid"
wait "$honest_pid" 2> /dev/null || true
provide honest "$address"
honest_pid=$pid
wait $arbiter
code=0
"$verde" verify "$work/verdict.json" > "$work/out" 2> "$work/err" || code=$?
[ $code -eq 0 ] || fail "the verdict does not hold"
"$verde" inspect "$work/verdict.json" > "$work/inspected" 2>&1
"$verde" check "$work/honest/jobs/$job/run" --verdict "$work/verdict.json" > "$work/out" 2> "$work/err" ||
    fail "the verdict does not accept the honest run"
for child in $children; do
    tries=0
    while kill -0 "$child" 2> /dev/null; do
        tries=$((tries + 1))
        [ $tries -lt 12000 ] || fail "a child has outlived its daemon"
        sleep 0.05
    done
done

# submit_long NAME STEPS: submits a job that runs for as long as this script.
submit_long() {
    sed -e "s|file: \.\./data|file: $PWD/models/data|" -e "s/^steps: .*/steps: $2/" models/jobs/toy.yaml > "$work/$1.yaml"
    "$verde" run "$work/$1.yaml" --out "$work/$1" --threads 1 > /dev/null 2>&1 &
    started=$!
    until [ -e "$work/$1/program" ]; do sleep 0.01; done
    kill -9 $started
    wait $started 2> /dev/null || true
    cp "$work/toy/data" "$work/toy/data.json" "$work/$1" # the same
    python3 "$client" "$(cat "$work/honest.url")" "$work/client" submit "$work/$1" --keep 4 || fail "honest does not take the job $1"
}
# niceness KIND: prints that of the honest daemon's child of this kind.
niceness() {
    ps -o ni= -p "$(pgrep -P "$honest_pid" -f -- "--child-$1")" | tr -d ' '
}

# A dispute does not wait for running and queued jobs, and answering has priority over them. A child that was killed is started
# again for the next question.
submit_long long 1000000 > "$work/long.job"
submit_long longer 1000001 > "$work/longer.job"
python3 "$client" "$(cat "$work/honest.url")" "$work/client" wait "$(cat "$work/long.job")" running done failed > /dev/null
arbitrate referee second.json
[ $code -eq 3 ] || fail "the second dispute: exit code $code, expected 3"
grep -q "accepted *$root" "$work/out" || fail "the honest run is not accepted"
python3 "$client" "$(cat "$work/honest.url")" "$work/client" wait "$(cat "$work/long.job")" running done failed | grep -q running ||
    fail "the job did not run beside the dispute"
[ $(($(niceness run) - $(niceness answer))) -gt 0 ] || fail "a job has the priority of answers"
child=$(pgrep -P "$honest_pid" -f -- --child-answer)
[ -n "$child" ] || fail "no child answers"
kill -9 $child
arbitrate referee third.json
[ $code -eq 3 ] || fail "the third dispute: exit code $code, expected 3"
echo "3 disputes over daemons"
