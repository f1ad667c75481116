#!/bin/sh
# `verde delegate` hands a job to daemons over TLS and gets back a model, with each byte checked: with a dishonest provider, one
# that refuses, one that is killed; and when it is itself killed in every phase and restarted.
. tests/support/system

# same RESULT EXPORTED: the result has the files that `verde export` writes of an honest run.
same() {
    for file in model.safetensors config.json proof.json; do
        [ "$file" = config.json ] && [ ! -e "$2/$file" ] || cmp "$2/$file" "$1/$file" || fail "$1/$file is not the honest run's"
    done
    [ ! -e "$1/partial" ] || fail "$1/partial is left"
}

# honest NAME JOB: makes the expected result in $work/honest-NAME.
honest() {
    "$verde" run "$2" --out "$work/run-$1" --threads 1 > "$work/out" 2> "$work/err" || fail "$2 does not run"
    "$verde" export "$work/run-$1" --out "$work/honest-$1" > /dev/null
}

job=models/jobs/toy.yaml
"$verde" keygen "$work/client" > /dev/null
"$verde" keygen "$work/stranger" > /dev/null
honest toy $job
provide a 127.0.0.1:0
a_pid=$pid
provide b 127.0.0.1:0
b_pid=$pid
provide wrong 127.0.0.1:0 --fault element@7
provide other 127.0.0.1:0 --fault element@9
provide small 127.0.0.1:0 --memory 10000
delegate="$verde delegate $job --key $work/client"

# ---- agreement and disagreement ----

expect 0 'every byte checked' $delegate --provider "$a" --provider "$b" --out "$work/agreed"
same "$work/agreed" "$work/honest-toy"
grep -q '^provider 2  done; it says run root' "$work/err" || fail "no line of provider 2"
expect 0 'accepts this run' "$verde" check "$work/agreed" --verdict "$work/agreed/verdict.json" --job $job
expect 2 'exists already' $delegate --provider "$a" --provider "$b" --out "$work/agreed"
expect 3 'CONVICTED' $delegate --provider "$wrong" --provider "$a" --out "$work/convicted"
same "$work/convicted" "$work/honest-toy"
expect 0 'accepts this run' "$verde" check "$work/convicted" --verdict "$work/convicted/verdict.json"
expect 3 '"exit_code":3' $delegate --provider "$wrong" --provider "$a" --provider "$b" --out "$work/three" --json
same "$work/three" "$work/honest-toy"
[ "$(wc -l < "$work/out")" -eq 1 ] || fail "--json: not one line"
grep -q "\"verdict\":\"$work/three/verdict.json\"" "$work/out" || fail "--json: another verdict"
# The honest provider comes last, after two that are wrong in the same way.
provide also 127.0.0.1:0 --fault element@7
expect 3 'every byte checked' $delegate --provider "$wrong" --provider "$also" --provider "$a" --out "$work/last"
same "$work/last" "$work/honest-toy"
grep -q 'game 2 .* providers' "$work/out" || fail "not one dispute between all three"
# Two providers that are wrong in different ways convict each other.
expect 3 'no result is accepted' $delegate --provider "$wrong" --provider "$other" --out "$work/both"
[ ! -e "$work/both/model.safetensors" ] || fail "a wrong model is delivered"

# ---- scores ----

# The job's own `evaluate`, with images, whose weights have another layout in files: the score is the one that a run prints.
sed "s|\.\./data|$PWD/models/data|" models/jobs/resnet-tiny.yaml > "$work/images.yaml"
echo "evaluate: {file: $PWD/models/data/stripes.bin, sha256: $(sed -n 's/ *sha256: *//p' "$work/images.yaml"), every: 30}" >> "$work/images.yaml"
honest images "$work/images.yaml"
expect 0 'accuracy  *0\.' "$verde" delegate "$work/images.yaml" --key "$work/client" --provider "$a" --provider "$b" --out "$work/images"
same "$work/images" "$work/honest-images"
expected=$(sed -n 's/{"step":30,"evaluation":\(.*\),"accuracy":\(.*\)}/{"accuracy":\2,"evaluation":\1}/p' "$work/run-images/losses.jsonl")
python3 -c 'import json, sys; sys.exit(json.loads(sys.argv[1]) != json.load(open(sys.argv[2])))' "$expected" "$work/images/evaluation.json" ||
    fail "$(cat "$work/images/evaluation.json"), expected $expected"
sed 's|stripes.bin, sha|no-such-file, sha|' "$work/images.yaml" > "$work/missing.yaml"
expect 2 'evaluate: .*no-such-file' "$verde" delegate "$work/missing.yaml" --key "$work/client" --provider "$a" --provider "$b" --out "$work/no"
# A job that evaluates has its score as its state.
sed -e '/^steps\|^micro\|^checkpoint\|^optimizer\|^ *clip_norm\|^schedule/d' -e "s|file: .*|file: $PWD/models/data/project.txt|" -e 's/batch: 4/batch: 400/' $job > "$work/score.yaml"
printf 'task: evaluate\nweights: {run: run-toy, root: %s}\n' "$(state "$work/run-toy" 12)" >> "$work/score.yaml"
"$verde" run "$work/score.yaml" --out "$work/run-score" --json > "$work/out" 2> "$work/err" || fail "the evaluation does not run"
expected=$(sed -n 's/.*"evaluation":\([0-9.]*\).*/\1/p' "$work/out")
expect 0 '"score":{"evaluation":' "$verde" delegate "$work/score.yaml" --key "$work/client" --provider "$a" --provider "$b" --out "$work/score" --json
[ "$(sed 's/.*"score":{"evaluation":\([0-9.]*\)}.*/\1/' "$work/out")" = "$expected" ] || fail "another score than $expected"

# ---- providers that do not take part ----

expect 5 'is not enrolled' "$verde" delegate $job --key "$work/stranger" --provider "$a" --provider "$b" --out "$work/no"
expect 5 '1 of 2 providers left, and a result needs two; provider 2: .*HTTP status 413: the job takes' $delegate --provider "$a" --provider "$small" --out "$work/no"
expect 0 'every byte checked' $delegate --provider "$small" --provider "$a" --provider "$b" --out "$work/without"
same "$work/without" "$work/honest-toy"
expect 5 'another key answers' $delegate --provider "$a" --provider "${b%%#*}#$(cat "$work/stranger/key.pub")" --out "$work/no"
expect 2 'have the same key' $delegate --provider "$a" --provider "$a" --out "$work/no"
expect 2 'KEY. is missing' $delegate --provider "$a" --provider "${b%%#*}" --out "$work/no"
expect 2 'delegate takes' $delegate --provider "$a" --out "$work/no"
expect 2 'has .rounding., and daemons run jobs in fixed order alone' "$verde" delegate models/jobs/toy-log.yaml --key "$work/client" \
    --provider "$a" --provider "$b" --out "$work/no"
[ ! -e "$work/no/model.safetensors" ] || fail "a model came of nothing"

# With sanitizers the following takes too long.
[ -z "${SANITIZED:-}" ] || { echo "$count results and refusals of daemons"; exit 0; }

# ---- wrong bytes in a download; a full disk ----

for state in "$work"/b/jobs/*/run/state-*; do
    dd if=/dev/zero of="$state" bs=1000 count=400 conv=notrunc 2> /dev/null
done
expect 0 'provider 1 (.*) is dropped: block 0 of tensor' $delegate --provider "$b" --provider "$a" --out "$work/spoilt"
same "$work/spoilt" "$work/honest-toy"
code=0
(ulimit -f 100 && exec $delegate --provider "$a" --provider "$small" --provider "$also" --out "$work/full") > "$work/out" 2> "$work/err" || code=$?
[ $code -eq 1 ] || fail "a full disk: exit code $code, expected 1"
grep '^verde: ' "$work/err" | grep -q 'File too large' || fail "a full disk is not told of"
[ ! -e "$work/full/model.safetensors" ] || fail "a model on a full disk"
expect 3 'every byte checked' $delegate --provider "$a" --provider "$small" --provider "$also" --out "$work/full"
same "$work/full" "$work/honest-toy"

# ---- killed and restarted: the client in every phase, providers during an upload and a run ----

# Seconds of computing, and data of several chunks.
head -c 9000000 /dev/urandom | od -An -v -tx1 | tr -d '\n' | head -c 11000000 > "$work/text"
sed -e 's/^steps: .*/steps: 1000/' -e 's/^checkpoint_interval: .*/checkpoint_interval: 250/' -e "s|file: .*|file: $work/text|" \
    -e "s/sha256: .*/sha256: $(sum_of "$work/text")/" $job > "$work/long.yaml"
long="$verde delegate $work/long.yaml --key $work/client --provider $a --provider $b --out $work/killed"

# uploaded: prints the bytes that provider a has received since it started.
uploaded() {
    curl -sk "${a%%#*}/v1/metrics" | sed -n 's/^verde_uploaded_bytes_total //p'
}

in_background $long
tries=0
until [ -n "$(ls "$work/b/uploads")" ] || [ $tries -eq 400 ]; do
    tries=$((tries + 1))
    sleep 0.01
done
provide_again b "$b_pid"
b_pid=$pid
for after in 0.05 0.15 0.3 1; do
    stop_client
    in_background $long
    sleep $after
done
stop_client
if command -v curl > /dev/null; then
    [ "$(uploaded)" -lt 13000000 ] || fail "$(uploaded) bytes were taken of 11000000, in chunks of 4 MiB"
fi
in_background $long
sleep 0.5
provide_again a "$a_pid"
provide_again b "$b_pid"
wait $client || fail "providers that were killed and started again: exit code $?"
honest long "$work/long.yaml"
same "$work/killed" "$work/honest-long"
# Killed during the download, after the verdict: the verdict is not made again.
rm "$work/killed/model.safetensors" "$work/killed/proof.json"
before=$(sum_of "$work/killed/verdict.json")
expect 0 'every byte checked' $long
same "$work/killed" "$work/honest-long"
[ "$before" = "$(sum_of "$work/killed/verdict.json")" ] || fail "the verdict was made again"
# Killed during a dispute.
in_background $delegate --provider "$wrong" --provider "$a" --out "$work/disputed"
tries=0
until grep -q 'differ' "$work/err" || [ $tries -eq 1000 ]; do
    tries=$((tries + 1))
    sleep 0.01
done
stop_client
[ ! -e "$work/disputed/model.safetensors" ] || echo "the dispute was faster than its end"
expect 3 'every byte checked' $delegate --provider "$wrong" --provider "$a" --out "$work/disputed"
same "$work/disputed" "$work/honest-toy"
echo "$count results and refusals of daemons; the client killed 6 times, providers 3 times"
