#!/bin/sh
# Ctrl-C and SIGTERM: one line says how to continue, the exit code tells the signal, and finished work is kept.
set -eu
build=$1
verde=$build/bin/verde
job=models/jobs/toy.yaml
work=$build/tests/stop
rm -rf "$work"
mkdir -p "$work"
pids=
cleanup() {
    for pid in $pids; do kill "$pid" 2> /dev/null || true; done
    wait 2> /dev/null || true
}
trap cleanup EXIT

fail() {
    echo "$1"
    cat "$work/out" "$work/err"
    exit 1
}

# stopped SIGNAL EXIT_CODE SECONDS COMMAND...: stops the command, whose last line must say so. False: it had already ended.
# (timeout gives its child a SIGINT that is not ignored, whoever runs this.)
stopped() {
    signal=$1 want=$2 seconds=$3
    shift 3
    code=0
    timeout --preserve-status -s "$signal" "$seconds" "$@" > "$work/out" 2> "$work/err" || code=$?
    [ $code -ne 0 ] || return 1
    [ $code -eq "$want" ] || fail "$*: exit code $code, expected $want"
    [ "$(grep -c '^verde: stopped' "$work/err")" -eq 1 ] || fail "$*: not one line"
    tail -n 1 "$work/err" | grep -q '^verde: stopped' || fail "$*: it is not the last line"
}

steps=2400 interval=20
[ -z "${SANITIZED:-}" ] || steps=200 interval=5 # many times slower
sed -e "s/^steps: .*/steps: $steps/" -e "s/^checkpoint_interval: .*/checkpoint_interval: $interval/" \
    -e "s,file: \.\./data,file: $PWD/models/data," $job > "$work/long job.yaml"
"$verde" run "$work/long job.yaml" --out "$work/whole" --json > "$work/whole.json" 2> /dev/null
count=0 at=0
for turn in 1 2 3 4 5 6 7 8 9 10 11 12; do
    if [ $((turn % 2)) -eq 0 ]; then signal=INT code=130; else signal=TERM code=143; fi
    stopped $signal $code $((turn * 3 / 10)).$((turn * 3 % 10)) "$verde" run "$work/long job.yaml" --out "$work/run" --json || break
    count=$((count + 1))
    # The printed command is the one that was typed.
    grep -qF "\`verde run '$work/long job.yaml' --out $work/run --json\` goes on" "$work/err" || fail "not how to go on"
    next=$(sed -n 's/^verde: stopped after .* from the checkpoint at step \([0-9]*\)$/\1/p' "$work/err")
    [ "${next:-$at}" -ge "$at" ] || fail "went back from step $at"
    at=${next:-$at}
    # If it is stopped between a checkpoint and the line about it, a run continues from a newer one.
    last=$("$verde" inspect "$work/run" | awk '/^state /{ step = $2 } END { print step + 0 }')
    [ -z "$next" ] || [ "$last" -eq "$at" ] || [ "$last" -eq $((at + interval)) ] ||
        fail "the last checkpoint is at step $last, not at step $at"
done
[ $count -gt 0 ] || echo "SKIP: the run was at its end before it could be stopped"
"$verde" run "$work/long job.yaml" --out "$work/run" --json > "$work/out" 2> "$work/err"
root() { sed -n 's/.*"run_root":"\([0-9a-f]*\)".*/\1/p' "$1"; }
[ "$(root "$work/out")" = "$(root "$work/whole.json")" ] || fail "another root after $count stops"

# A dispute in which nobody answers.
"$verde" run $job --out "$work/a" > /dev/null 2>&1
"$verde" run $job --out "$work/b" --fault skip > /dev/null 2>&1
for name in a b; do
    "$verde" serve "$work/$name" --fault silence > "$work/$name.url" 2> /dev/null &
    pids="$pids $!"
done
for name in a b; do
    tries=0
    until [ -s "$work/$name.url" ]; do
        tries=$((tries + 1))
        [ $tries -lt 12000 ] || fail "$name does not serve"
        sleep 0.1
    done
done
stopped INT 130 2 "$verde" arbitrate $job --key "$work/referee" --verdict "$work/verdict.json" \
    --provider "$(cat "$work/a.url")" --provider "$(cat "$work/b.url")" || fail "arbitrate ended by itself"
grep -q "there is no verdict.*--verdict $work/verdict.json" "$work/err" || fail "not how to begin again"
[ ! -e "$work/verdict.json" ] && [ ! -e "$work/verdict.json.draft" ] || fail "a verdict between nobody"
echo "stopped $count times, the same root"
