#!/bin/sh
# Every bad input: one line of error, the right exit code, nothing lost.
set -eu
build=$1
verde=$build/bin/verde
work=$build/tests/errors
rm -rf "$work"
mkdir -p "$work"
count=0

# expect EXIT_CODE TEXT COMMAND...
expect() {
    want=$1 text=$2
    shift 2
    code=0
    "$@" > "$work/out.txt" 2> "$work/err.txt" || code=$?
    [ $code -eq "$want" ] || { echo "$*: exit code $code, expected $want"; cat "$work/err.txt"; exit 1; }
    grep -qF -- "$text" "$work/err.txt" "$work/out.txt" ||
        { echo "$*: no \"$text\" in:"; cat "$work/err.txt" "$work/out.txt"; exit 1; }
    count=$((count + 1))
}

job=models/jobs/toy.yaml
expect 2 'no command "frobnicate"' "$verde" frobnicate
expect 0 'Usage' "$verde" --help
for command in keygen run serve arbitrate verify inspect graph; do
    expect 0 'Example' "$verde" $command --help
    expect 2 'verde' "$verde" $command --no-such-option
    expect 2 'verde' "$verde" $command
done
expect 2 'nowhere.yaml' "$verde" run "$work/nowhere.yaml" --out "$work/run"
expect 2 'threads' "$verde" run $job --out "$work/run" --threads -1
expect 2 'backend' "$verde" run $job --out "$work/run" --backend quantum
expect 2 'kind must be one of' "$verde" run $job --out "$work/run" --fault mischief
expect 2 'step must be' "$verde" run $job --out "$work/run" --fault element@99999
expect 2 'no node' "$verde" run $job --out "$work/run" --fault element@1:nonsense
"$verde" run $job --out "$work/run" > /dev/null 2>&1
cp "$work/run/run.json" "$work/before.json"
expect 2 'another job' "$verde" run models/jobs/mlp.yaml --out "$work/run"
expect 2 'with fault' "$verde" run $job --out "$work/run" --fault element
cmp "$work/before.json" "$work/run/run.json"
expect 2 'program' "$verde" inspect "$work"
expect 2 'STEP:VALUE:LEAF' "$verde" inspect "$work/run" --proof 1:2
expect 0 'holds' "$verde" inspect "$work/run" --proof 1:200:0
expect 0 'matmul' "$verde" inspect "$work/run" --trace 3
echo '{"payload":' > "$work/bad.json"
expect 6 'verde' "$verde" verify "$work/bad.json"
expect 2 'nothere' "$verde" verify "$work/nothere.json"
expect 2 'http' "$verde" arbitrate $job --key "$work/referee" --verdict "$work/v.json" \
    --provider http://127.0.0.1:1 --provider http://127.0.0.1:2
"$verde" keygen "$work/k1" > "$work/k1.txt"
expect 2 'same key' "$verde" arbitrate $job --key "$work/referee" --verdict "$work/v.json" \
    --provider "https://127.0.0.1:1#$(cat "$work/k1.txt")" \
    --provider "https://127.0.0.1:2#$(cat "$work/k1.txt")"
expect 2 'key.pem' "$verde" keygen "$work/k1"
[ ! -e "$work/v.json" ]
echo "$count bad inputs and help texts"
