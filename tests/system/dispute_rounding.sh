#!/bin/sh
# Disputes over rounding logs, over TLS between processes: a trainer and auditors on other devices, faults of the log, roles, and
# verdicts that hold without the providers.
set -eu
build=$1
verde=$build/bin/verde
work=$build/tests/dispute_rounding
rm -rf "$work"
mkdir -p "$work"
sed -e "s/^rounding: .*/rounding: {bits: 32, encoding: calls}/" -e "s,file: \.\./data,file: $PWD/models/data," \
    models/jobs/toy-log.yaml > "$work/job.yaml"
job=$work/job.yaml
pids=
cleanup() {
    for pid in $pids; do kill "$pid" 2> /dev/null || true; done
    wait 2> /dev/null || true
    pids=
}
trap cleanup EXIT

"$verde" keygen "$work/keys" > /dev/null
key=$(cat "$work/keys/key.pub")

# train NAME [OPTIONS]; audit NAME OF [OPTIONS]: run the job as trainer, or as auditor of OF's log.
train() {
    name=$1
    shift
    "$verde" run "$job" --backend log --profile sim-wide --threads 1 --key "$work/keys" --out "$work/$name" "$@" --json \
        > "$work/$name.json" 2> "$work/$name.err" || { cat "$work/$name.err"; exit 1; }
}
audit() {
    name=$1 of=$2
    shift 2
    "$verde" run "$job" --backend log --profile sim-deep --threads 1 --role auditor --follow "$work/$of" --trainer-key "$key" \
        --out "$work/$name" "$@" --json > "$work/$name.json" 2> "$work/$name.err"
}

# serve NAME [OPTIONS]: starts a provider; its URL is in NAME.url.
serve() {
    name=$1
    shift
    rm -f "$work/$name.url"
    "$verde" serve "$work/$name" --threads 1 "$@" > "$work/$name.url" 2> "$work/$name.log" &
    pids="$pids $!"
    tries=0
    while ! [ -s "$work/$name.url" ]; do
        tries=$((tries + 1))
        [ $tries -lt 12000 ] || { echo "$name does not serve"; cat "$work/$name.log"; exit 1; }
        sleep 0.05
    done
}

# settle LABEL EXIT_CODE GRADE FIRST SECOND: holds a dispute and checks its outcome.
settle() {
    code=0
    "$verde" arbitrate "$job" --key "$work/referee" --verdict "$work/$1.verdict" --timeout 60 --json \
        --provider "$(cat "$work/$4.url")" --provider "$(cat "$work/$5.url")" > "$work/$1.out" 2> "$work/$1.log" || code=$?
    [ $code -eq "$2" ] || { echo "$1: exit code $code, expected $2"; cat "$work/$1.log" "$work/$1.out"; exit 1; }
    grep -q "\"grade\":\"$3\"" "$work/$1.out" || { echo "$1: not $3"; cat "$work/$1.out"; exit 1; }
    "$verde" verify "$work/$1.verdict" --job "$job" --quiet
    echo "$1: $3"
}

# refused WORDS COMMAND...: the command fails with a sentence that has these words.
refused() {
    words=$1
    shift
    if "$@" > "$work/out" 2> "$work/err"; then echo "not refused: $*"; exit 1; fi
    grep -q -- "$words" "$work/err" || { echo "expected \"$words\", got:"; cat "$work/err"; exit 1; }
}

train trainer
audit auditor trainer || { cat "$work/auditor.err"; exit 1; }
serve trainer --key "$work/keys"
serve auditor
settle honest 0 none trainer auditor
refused "neither provider takes part.*provider 1: .*the run is the auditor's, which is provider 2; .*the trainer's" \
    "$verde" arbitrate "$job" --key "$work/referee" --verdict "$work/swapped.verdict" --timeout 60 \
    --provider "$(cat "$work/auditor.url")" --provider "$(cat "$work/trainer.url")"
[ ! -e "$work/swapped.verdict" ] || { echo "a verdict between nobody"; exit 1; }

for fault in element:wrong-output drop-record:log-incomplete forge-record:contradiction forge-both:wrong-output \
    two-logs:contradiction; do
    kind=${fault%:*} grade=${fault#*:}
    train "$kind" --fault "$kind@7"
    if audit "$kind-stops" "$kind"; then echo "$kind was not noticed"; exit 1; fi
    grep -q "step" "$work/$kind-stops.err" || { cat "$work/$kind-stops.err"; exit 1; }
    audit "$kind-contests" "$kind" --contest || { cat "$work/$kind-contests.err"; exit 1; }
    grep -q '"contested":"' "$work/$kind-contests.json" || { echo "$kind: nothing contested"; exit 1; }
    serve "$kind" --key "$work/keys"
    serve "$kind-contests"
    settle "$kind" 3 "$grade" "$kind" "$kind-contests"
done

train steer --fault steer@7
audit steer-audit steer || { cat "$work/steer-audit.err"; exit 1; }
serve steer --key "$work/keys"
serve steer-audit
settle steer 0 none steer steer-audit

audit liar trainer --contest --fault element@5 || { cat "$work/liar.err"; exit 1; }
serve liar
settle liar 3 wrong-output trainer liar
audit other trainer --contest --fault steer@7 || { cat "$work/other.err"; exit 1; }
serve other
settle other 7 dismissed trainer other

cleanup
"$verde" verify "$work/drop-record.verdict" --story > "$work/story" 2>&1
grep -q "the log says nothing" "$work/story" || { cat "$work/story"; exit 1; }
# The possible roundings, in decimal and bits, lowest first.
sed -n 's/^reference .*; \([^ ]*\) (0x[0-9a-f]*) to \([^ ]*\) (0x[0-9a-f]*) are possible.*/\1 \2/p' "$work/story" | grep . |
    awk '{ exit !($1 < $2) }' || { echo "not the lowest first"; cat "$work/story"; exit 1; }
echo "verdicts hold without the providers"

refused "run with --backend log" "$verde" run "$job" --out "$work/fixed"
refused "rounding.bits is 32" "$verde" run "$job" --backend log --bits 20 --out "$work/b"
refused "rounding.encoding is calls" "$verde" run "$job" --backend log --encoding symbols --out "$work/e"
refused "are the job's" "$verde" run "$job" --backend log --thresholds x --out "$work/t"
refused "an auditor's" "$verde" run "$job" --backend log --contest --out "$work/c"
refused "the trainer's" "$verde" run "$job" --backend log --role auditor --follow "$work/trainer" --key "$work/keys" --out "$work/k"
other_key=$("$verde" keygen "$work/keys2" > /dev/null && cat "$work/keys2/key.pub")
refused "note of its log" "$verde" run "$job" --backend log --role auditor --follow "$work/trainer" --trainer-key "$other_key" \
    --out "$work/n"
refused "repeated on it alone" "$verde" serve "$work/trainer" --key "$work/keys" --backend scalar
rm "$work/trainer/log/note-00000004.json"
refused "no signed note" "$verde" run "$job" --backend log --role auditor --follow "$work/trainer" --trainer-key "$key" --out "$work/m"
refused "another role" "$verde" run "$job" --backend log --out "$work/auditor"
echo "what does not fit together is refused"
