#!/bin/sh
# One wrong byte anywhere in a run: check, inspect and serve say in which file, and nothing is signed. check says whether a run,
# or one state of it, is the one that a verdict accepts.
set -eu
build=$1
verde=$build/bin/verde
job=models/jobs/toy.yaml
work=$build/tests/check
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
    exit 1
}

# expect EXIT_CODE WORDS COMMAND...: an error must be one line; the words must be in it, or in the output.
expect() {
    want=$1 words=$2
    shift 2
    code=0
    timeout 1200 "$@" > "$work/out" 2> "$work/err" || code=$?
    [ $code -eq "$want" ] || fail "$*: exit code $code, expected $want"
    [ "$want" -eq 0 ] || [ "$(wc -l < "$work/err")" -eq 1 ] || fail "$*: not one line"
    grep -q -- "$words" "$work/out" "$work/err" || fail "$*: not \"$words\""
    [ "$want" -eq 0 ] || ! grep -q 'run root  ' "$work/out" || fail "$*: a run root beside an error"
    count=$((count + 1))
}

# state STEP: prints the file of this state in the current run.
state() { echo "$work/run/state-$(grep -A 1 "\"step\": $1," "$work/whole/run.json" | sed -n 's/.*"state": "\(.*\)".*/\1/p')"; }
fresh() {
    rm -rf "$work/run"
    cp -r "$work/whole" "$work/run"
}
# flip FILE OFFSET: changes one bit of this byte.
flip() {
    byte=$(od -An -tu1 -j "$2" -N 1 "$1")
    printf "\\$(printf %o $((byte ^ 4)))" | dd of="$1" bs=1 seek="$2" conv=notrunc 2> /dev/null
}
# refused WORDS: check, inspect and serve refuse the run.
refused() {
    expect 6 "$1" "$verde" check "$work/run"
    expect 6 "$1" "$verde" serve "$work/run"
    [ ! -e "$work/run/keys" ] || fail "a key was made for a run that is not served"
    expect 6 "$1" "$verde" inspect "$work/run"
}

"$verde" run $job --out "$work/whole" > /dev/null 2>&1
fresh
expect 0 'fits         yes' "$verde" check "$work/run"
expect 0 '"fits":true.*"states":4' "$verde" check "$work/run" --json --threads 1
expect 0 'fits         yes' "$verde" check "$work/run" --job $job
expect 6 'another program' "$verde" check "$work/run" --job models/jobs/mlp.yaml
expect 0 'every byte of all states' "$verde" inspect "$work/run"
expect 2 'no run.json' "$verde" check "$work"
expect 2 'no such file' "$verde" check "$work/nowhere"
expect 2 'one directory' "$verde" check
expect 2 'goes with --verdict' "$verde" check "$work/run" --referee 00

# ---- states ----

final=$(state 12) first=$(state 0) middle=$(state 8)
size=$(wc -c < "$final")
for file in "$first" "$middle" "$final"; do
    for at in 0 1023 1024 $((size / 2)) $((size - 1)); do
        fresh
        flip "$file" "$at"
        refused "$(basename "$file"): expected the state of step .* the bytes give"
    done
done
fresh
truncate -s -1 "$final"
refused "expected $size bytes of a state, found $((size - 1))"
printf '\0' >> "$final"
printf '\0' >> "$final"
refused "expected $size bytes of a state, found $((size + 1))"
rm "$final"
refused "expected a state: .*$(basename "$final"): No such file"
mkfifo "$final"
refused 'it is not a regular file'
fresh
mv "$final" "$work/held" && mv "$middle" "$final" && mv "$work/held" "$middle"
refused 'expected the state of step .*, and are those of step'

# ---- run.json, program, data ----

# digit NAME N: changes the last hexadecimal digit of the N-th hash with this name in run.json.
digit() { awk -v name="\"$1\": \"" -v n="$2" 'index($0, name) && ++i == n {
    sub(/[0-9a-f]",?$/, (/0",?$/ ? "1" : "0") (/,$/ ? "\"," : "\"")) } { print }' "$work/whole/run.json" > "$work/run/run.json"
    if cmp -s "$work/whole/run.json" "$work/run/run.json"; then fail "digit $1 $2 changed nothing"; fi; }
fresh
for i in 1 2 3 4; do
    digit state $i
    refused 'run.json: damaged: its 4 states give the root .*, and it names the root'
done
digit root 1
refused 'run.json: damaged'
sed 's/"root":.*/"kept_every": 1/' "$work/whole/run.json" > "$work/run/run.json"
refused 'run.json: damaged: .* names the root of no string'
digit program 1
refused 'run.json: is of program .*, expected .*, the hash of'
sed 's/"step": 8/"step": 9/' "$work/whole/run.json" > "$work/run/run.json"
refused 'states\[2\] is of step 9, expected step 8'
head -c 300 "$work/whole/run.json" > "$work/run/run.json"
expect 6 'run.json:' "$verde" check "$work/run"
fresh
flip "$work/run/program" 4000
expect 6 'program' "$verde" check "$work/run"
expect 6 'program' "$verde" serve "$work/run"
fresh
flip "$work/run/data" 100
expect 6 'not the data' "$verde" check "$work/run"
expect 6 'not the data' "$verde" serve "$work/run"
truncate -s 100 "$work/run/data"
expect 6 'data: 100 bytes' "$verde" serve "$work/run"
rm "$work/run/data"
expect 2 '/data: No such file or directory; the run in .* reads it, and --data says' "$verde" serve "$work/run"
expect 0 'data         not there' "$verde" check "$work/run"

# ---- one state, and a verdict ----

"$verde" run $job --out "$work/liar" --fault element@5 > /dev/null 2>&1
for name in whole liar; do
    "$verde" serve "$work/$name" --key "$work/keys-$name" > "$work/$name.url" 2> /dev/null &
    pids="$pids $!"
done
for name in whole liar; do
    tries=0
    until [ -s "$work/$name.url" ]; do
        tries=$((tries + 1))
        [ $tries -lt 12000 ] || fail "$name does not serve"
        sleep 0.1
    done
done
verdict=$work/verdict.json
code=0
"$verde" arbitrate $job --key "$work/referee" --verdict "$verdict" --no-challenge \
    --provider "$(cat "$work/whole.url")" --provider "$(cat "$work/liar.url")" > "$work/out" 2> "$work/err" || code=$?
[ $code -eq 3 ] || fail "exit code $code, expected a conviction"
cleanup
referee=$(cat "$work/referee/key.pub")
expect 0 'it accepts this run' "$verde" check "$work/whole" --verdict "$verdict"
expect 0 '"accepts_this":true' "$verde" check "$work/whole" --verdict "$verdict" --referee "$referee" --json
expect 6 'another referee' "$verde" check "$work/whole" --verdict "$verdict" --referee "$(cat "$work/keys-liar/key.pub")"
expect 6 'the claim of provider 2, which is convicted' "$verde" check "$work/liar" --verdict "$verdict"
sed 's/"payload":"\(....\)/"payload":"\1AAAA/' "$verdict" > "$work/forged.json"
expect 6 'forged.json' "$verde" check "$work/whole" --verdict "$work/forged.json"
"$verde" run models/jobs/mlp.yaml --out "$work/other" > /dev/null 2>&1
expect 6 'about another program' "$verde" check "$work/other" --verdict "$verdict"

# A delivery: the weights under another name, with run.json and program.
mkdir "$work/delivered"
cp "$work/whole/run.json" "$work/whole/program" "$work/delivered"
fresh
cp "$final" "$work/delivered/weights"
expect 0 'the state after step 12 of 12, the final one' "$verde" check "$work/delivered/weights" --verdict "$verdict"
(cd "$work/delivered" && ln -s weights same)
expect 0 '"step":12' "$verde" check "$work/delivered/same" --verdict "$verdict" --json
cp "$first" "$work/delivered/weights"
expect 0 'the state after step 0 of 12: every byte' "$verde" check "$work/delivered/weights" --verdict "$verdict"
cp "$final" "$work/delivered/weights"
flip "$work/delivered/weights" $((size - 1))
expect 6 'expected one of the 4 states' "$verde" check "$work/delivered/weights"
expect 6 'expected one of the 4 states' "$verde" check "$work/delivered/weights" --verdict "$verdict"
expect 6 'expected .* bytes of a state' "$verde" check "$work/delivered/run.json"
# The liar's state fits the liar's run.json, but the verdict does not accept it.
cp "$work/liar/run.json" "$work/delivered"
cp "$work/liar/state-$(sed -n 's/.*"state": "\(.*\)".*/\1/p' "$work/liar/run.json" | tail -n 1)" "$work/delivered/weights"
expect 0 'the final one' "$verde" check "$work/delivered/weights"
expect 6 'which is convicted' "$verde" check "$work/delivered/weights" --verdict "$verdict"

# ---- rounding logs ----

sed -e "s,file: \.\./data,file: $PWD/models/data," $job > "$work/rounding.yaml"
printf 'rounding:\n  bits: 32\n  encoding: calls\n' >> "$work/rounding.yaml"
for fault in two-logs@7 none; do
    rm -rf "$work/whole"
    "$verde" run "$work/rounding.yaml" --out "$work/whole" --backend log \
        $([ $fault = none ] || echo "--fault $fault") > /dev/null 2> "$work/err"
    expect 0 'logs         every byte' "$verde" check "$work/whole"
done
fresh
for log in "$work"/run/log/*.vlog; do
    for at in 200 $(($(wc -c < "$log") / 2)) $(($(wc -c < "$log") - 1)); do
        flip "$log" "$at"
        expect 6 "$(basename "$log")" "$verde" check "$work/run"
        expect 6 "$(basename "$log")" "$verde" serve "$work/run"
        flip "$log" "$at"
    done
done
digit logs 2
expect 6 'damaged' "$verde" check "$work/run"
digit run 1
expect 6 'log' "$verde" check "$work/run"
expect 6 'log' "$verde" serve "$work/run"

echo "$count checks of runs and states"
