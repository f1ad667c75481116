#!/bin/sh
# Delegates the demo job to the daemons of two providers, one of them dishonest, and gets back a checked model.
# Usage: verde/demo.sh FOLDER. The program is FOLDER/verde; the demo writes only below FOLDER.
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

# cpu_used: sets $cpu to the CPU seconds of all processes that have ended and were waited for.
cpu_used() {
    times > "$work/times"
    cpu=$(sed -n 2p "$work/times" | tr ms '  ' | awk '{ printf "%.3f", 60 * ($1 + $3) + $2 + $4 }')
}

# stop NAME: ends a provider and sets $cpu to the CPU seconds of its daemon and jobs.
stop() {
    cpu_used
    before=$cpu
    eval "pid=\$$1"
    kill "$pid"
    wait "$pid" || true
    cpu_used
    cpu=$(awk -v a="$before" -v b="$cpu" 'BEGIN { printf "%.3f", b - a }')
}

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
    eval "$name=$!"
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
cpu_used
before_client=$cpu
"$verde" delegate "$job" --key "$work/client" --out "$work/result" \
    --provider "$(cat "$work/mallory.url")" --provider "$(cat "$work/alice.url")" || code=$?
[ $code -eq 3 ] || { echo "expected a conviction (exit code 3), got $code"; exit 1; }
cpu_used
client_cpu=$(awk -v a="$before_client" -v b="$cpu" 'BEGIN { printf "%.3f", b - a }')

stop mallory
stop alice
alice_cpu=$cpu
pids=

echo
echo "== 3. Both providers are gone. Anyone can check the verdict, and that this is the model that it accepts."
"$verde" verify "$work/result/verdict.json" --job "$job"
"$verde" check "$work/result" --verdict "$work/result/verdict.json" --job "$job"
if python3 -c 'import cryptography' 2> /dev/null; then
    echo "   The same by a verifier that shares no code with this one, tests/independent/verify.py:"
    PYTHONDONTWRITEBYTECODE=1 python3 tests/independent/verify.py "$work/result/verdict.json"
else
    echo "   tests/independent/verify.py, which shares no code with this one, would decide as well;"
    echo "   it needs python3-cryptography, which is not there."
fi

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

echo
echo "== 5. Had there been mallory alone, there would have been no dispute. An audit needs no rival: mallory signs its result,"
echo "==    and the client executes intervals of the run from mallory's own states: here all 6, so that the wrong one is found."
"$verde" provide --dir "$work/mallory" --listen 127.0.0.1:0 --threads 1 --client "$client" \
    --fault element@23:m1.h.2.mlp.up.matmul > "$work/alone.url" 2> "$work/alone.log" &
mallory=$!
pids=$mallory
tries=0
while ! [ -s "$work/alone.url" ]; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] || { echo "mallory does not start:"; cat "$work/alone.log"; exit 1; }
    sleep 0.1
done
code=0
"$verde" audit "$job" --provider "$(cat "$work/alone.url")" --key "$work/client" --proof "$work/fraud.json" \
    --steps 0 --intervals 6 --work "$work/audit" || code=$?
[ $code -eq 3 ] || { echo "expected fraud (exit code 3), got $code"; exit 1; }
"$verde" verify "$work/fraud.json" --job "$job" --quiet && echo "   \`verde verify\` comes to the same."
stop mallory
pids=

referee_cpu=$("$verde" verify "$work/result/verdict.json" --json | sed 's/.*"cpu_seconds":\([0-9.e-]*\).*/\1/')
awk -v referee="$referee_cpu" -v client="$client_cpu" -v alice="$alice_cpu" 'BEGIN {
    printf "\nCPU time: alice, who trained and answered, used %.1f s. The client used %.2f s (%.1f %% of that),\n",
        alice, client, 100 * client / alice
    printf "%.2f s of it (%.1f %%) as the referee; the rest for the upload and the checked download.\n",
        referee, 100 * referee / alice }'
echo "The verdict is in $work/result/verdict.json, the model in $work/result"
