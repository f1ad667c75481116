#!/bin/sh
# Delegates the demo job to two providers' daemons, one of them dishonest, and comes back with a checked model.
# Usage: verde/demo.sh FOLDER, in which the program `verde` is; what the demo writes goes there too.
set -eu

verde=$1/verde
job=models/jobs/demo.yaml
work=$1/run
pids=

cleanup() {
    for pid in $pids; do kill "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
}
trap cleanup EXIT
trap 'exit 130' INT TERM

rm -rf "$work"
mkdir -p "$work"

echo "== 1. Two providers start their daemons, and enrol a client. One of them cheats at one operator."
client=$("$verde" keygen "$work/client")
for name in alice mallory; do
    fault=
    [ $name = alice ] || fault='--fault element@23:m1.h.2.mlp.up.matmul'
    # shellcheck disable=SC2086
    "$verde" provide --dir "$work/$name" --listen 127.0.0.1:0 --threads 1 --client "$client" $fault \
        > "$work/$name.url" 2> "$work/$name.log" &
    pids="$pids $!"
done
for name in alice mallory; do
    tries=0
    while ! [ -s "$work/$name.url" ]; do
        tries=$((tries + 1))
        [ $tries -lt 100 ] || { echo "$name does not start:"; cat "$work/$name.log"; exit 1; }
        sleep 0.1
    done
    echo "   $name: $(cat "$work/$name.url")"
done

echo
echo "== 2. A client, which never runs the job, hands both the same GPT-2 to train, $job. Their results differ: it settles the"
echo "==    dispute. Then the convicted one may run again and contest the other's claim. The model comes from whoever stands."
code=0
"$verde" delegate "$job" --key "$work/client" --out "$work/result" \
    --provider "$(cat "$work/mallory.url")" --provider "$(cat "$work/alice.url")" || code=$?
[ $code -eq 3 ] || { echo "expected a conviction (exit code 3), got $code"; exit 1; }

cleanup
pids=

echo
echo "== 3. Both providers are gone. Anyone can check the verdict, and that this is the model that it accepts."
"$verde" verify "$work/result/verdict.json" --job "$job"
"$verde" check "$work/result" --verdict "$work/result/verdict.json" --job "$job"

echo
echo "== 4. The model is used: how well does it guess the next byte of SPEC.md? A blind guess has a loss of 5.545."
text=$PWD/repops/SPEC.md
cat > "$work/evaluate.yaml" << YAML
verde: 1
task: evaluate
model: {kind: pretrained, dir: result, sha256: $("$verde" manifest "$work/result" 2>/dev/null | sha256sum | cut -d' ' -f1)}
data: {kind: text, file: $text, sha256: $(sha256sum "$text" | cut -d' ' -f1)}
seed: 1
batch: 24
sequence: 128
YAML
"$verde" run "$work/evaluate.yaml" --out "$work/score" 2>/dev/null | sed -n 's/^/   /; /evaluation/p'

run=$(awk -F, 'NR > 1 { s += $7 } END { print s }' "$work/result/losses.csv")
cpu=$("$verde" verify "$work/result/verdict.json" --json | sed 's/.*"cpu_seconds":\([0-9.e-]*\).*/\1/')
awk -v cpu="$cpu" -v run="$run" 'BEGIN {
    printf "\nThe client used %.3f s of CPU as a referee; the job takes %.1f s: %.2f %% of it.\n",
        cpu, run, 100 * cpu / run }'
cp "$work/result/verdict.json" verdict.json
echo "The verdict is in ./verdict.json, the model in $work/result"
