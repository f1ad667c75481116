#!/bin/sh
# Delegates the demo job to two providers, one of them dishonest, and settles the dispute.
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

echo "== 1. Two providers train the same GPT-2, $job. One of them cheats at one operator."
"$verde" run "$job" --out "$work/mallory" --threads 1 \
    --fault element@23:m1.h.2.mlp.up.matmul > "$work/mallory.txt" 2>&1 &
mallory=$!
pids="$pids $mallory"
"$verde" run "$job" --out "$work/alice" --threads 1
wait $mallory
echo
echo "   the other provider, whose loss curve looks just as good:"
sed 's/^/   /' "$work/mallory.txt" | tail -n 3

echo
echo "== 2. Both serve their results over HTTPS."
for name in alice mallory; do
    "$verde" serve "$work/$name" > "$work/$name.url" 2> "$work/$name.log" &
    pids="$pids $!"
done
for name in alice mallory; do
    tries=0
    while ! [ -s "$work/$name.url" ]; do
        tries=$((tries + 1))
        [ $tries -lt 100 ] || { echo "$name does not serve:"; cat "$work/$name.log"; exit 1; }
        sleep 0.1
    done
    echo "   $name: $(cat "$work/$name.url")"
done

echo
echo "== 3. A referee who never ran the job settles it. Then the convicted one may run again and contest the other's claim."
code=0
"$verde" arbitrate "$job" --verdict "$work/verdict.json" --key "$work/referee" \
    --provider "$(cat "$work/alice.url")" --provider "$(cat "$work/mallory.url")" || code=$?
[ $code -eq 3 ] || { echo "expected a conviction (exit code 3), got $code"; exit 1; }

cleanup
pids=

echo
echo "== 4. Both providers are gone. Anyone can check the verdict."
"$verde" verify "$work/verdict.json" --job "$job"

rerun=$(awk '/^loss /{print $(NF-1)}' "$work/mallory.txt")
cpu=$("$verde" verify "$work/verdict.json" --json | sed 's/.*"cpu_seconds":\([0-9.e-]*\).*/\1/')
awk -v cpu="$cpu" -v run="$rerun" 'BEGIN {
    printf "\nThe referee used %.3f s of CPU; re-running the job takes %.1f s: %.2f %% of it.\n",
        cpu, run, 100 * cpu / run }'
cp "$work/verdict.json" verdict.json
echo "The verdict is in ./verdict.json"
