#!/bin/sh
# `verde delegate` of jobs with prompts: results come back as `verde run` writes them, each byte checked; a dishonest provider is
# convicted; the client and a provider are killed and go on; what is no pack of programs is refused.
. tests/support/system

model="model: {kind: pretrained, dir: llama, sha256: $(take_model llama)}"

# prompts NAME COUNT: files of prompts, some of one token.
prompts() {
    python3 - "$work/$1" "$2" << 'PYTHON'
import json
import sys
with open(sys.argv[1], "w") as f:
    for i in range(int(sys.argv[2])):
        ids = [(7 * i + 3 * j * j + j) % 64 for j in range(1 + 5 * i % 23)]
        f.write(json.dumps({"key": 1000 - i, "ids": ids if len(ids) > 1 or "one" in sys.argv[1] else ids + [5]}) + "\n")
PYTHON
}

# job NAME TASK PROMPTS MORE: $work/NAME.yaml.
job() {
    cat > "$work/$1.yaml" << YAML
verde: 1
task: $2
$model
prompts: {file: $3, sha256: $(sum_of "$work/$3")}
${4:-}
YAML
}

# honest NAME: what a result must be.
honest() {
    "$verde" run "$work/$1.yaml" --out "$work/run-$1" --threads 1 > "$work/out" 2> "$work/err" || fail "$1 does not run"
    root=$(sed -n 's/^job root  *//p' "$work/out")
    [ -n "$root" ] || fail "$1 has no job root"
}

# same RESULT NAME
same() {
    cmp "$work/$1/results.jsonl" "$work/run-$2/results.jsonl" || fail "$1 has other results than an honest run"
    [ -s "$work/$1/results.proof" ] && [ ! -e "$work/$1/results.part" ] || fail "$1 is not finished"
}

"$verde" keygen "$work/client" > /dev/null
prompts one.jsonl 11
prompts some.jsonl 40
job generate generate one.jsonl 'sampling: {temperature: 1.5, top_k: 40, top_p: 0.9, seed: 7}
max_tokens: 10
min_tokens: 3
stop: [3, 11]
repetition_penalty: 1.2
log_probabilities: 2'
job score score some.jsonl
honest generate
generate_root=$root
honest score
score_root=$root
provide a 127.0.0.1:0
a_pid=$pid
provide b 127.0.0.1:0
b_pid=$pid
provide wrong 127.0.0.1:0 --fault 995/element@2:choice.token
provide late 127.0.0.1:0 --fault 987/element@0:score.log_probability

# ---- who agrees, and who does not ----

two="--key $work/client --provider $a --provider $b"
expect 0 "results  *$work/agreed/results.jsonl, 11 prompts, every byte checked" "$verde" delegate "$work/generate.yaml" $two --out "$work/agreed"
same agreed generate
grep -q "^job root  *$generate_root" "$work/out" || fail "another job root than that of an honest run"
grep -q '^provider 2  done; it says run root' "$work/err" || fail "no line of provider 2"
expect 2 'exists already' "$verde" delegate "$work/generate.yaml" $two --out "$work/agreed"
expect 0 '"prompts":40' "$verde" delegate "$work/score.yaml" $two --out "$work/score" --json
same score score
[ "$(wc -l < "$work/out")" -eq 1 ] || fail "--json: not one line"
grep -q '"perplexity":' "$work/out" && grep -q "\"job_root\":\"$score_root\"" "$work/out" || fail "--json: no score, or another root"
expect 3 'CONVICTED' "$verde" delegate "$work/generate.yaml" --key "$work/client" --provider "$wrong" --provider "$a" --out "$work/convicted"
same convicted generate
expect 0 'VERIFIED\|verified' "$verde" verify "$work/convicted/verdict.json"
python3 tests/independent/verify.py "$work/convicted/verdict.json" > "$work/out" || fail "another implementation does not verify the verdict"
expect 3 'CONVICTED' "$verde" delegate "$work/score.yaml" --key "$work/client" --provider "$late" --provider "$a" --out "$work/scored"
same scored score

# ---- classes; results that are served without a daemon ----

printf '{"key": 7, "ids": [15, 2, 9]}\n{"key": 3, "ids": [5]}\n' > "$work/class.jsonl"
model="model: {kind: pretrained, dir: bert-classes, sha256: $(take_model bert-classes)}"
job class score class.jsonl
honest class
class_root=$root
serve run-class --fetch
expect 0 '2 prompts, every byte checked' "$verde" fetch "$work/class.yaml" --run-root "$class_root" --provider "$(cat "$work/run-class.url")" --out "$work/class"
same class class
serve run-score --fetch
expect 6 'no run with this root' "$verde" fetch "$work/class.yaml" --run-root "$score_root" --provider "$(cat "$work/run-class.url")" --out "$work/no"
expect 6 'the answer is larger than 65 bytes' "$verde" fetch "$work/class.yaml" --run-root "$score_root" --provider "$(cat "$work/run-score.url")" --out "$work/no"
expect 0 '40 prompts' "$verde" fetch "$work/score.yaml" --verdict "$work/scored/verdict.json" --provider "$(cat "$work/run-score.url")" --out "$work/served"
same served score
expect 6 'is about other programs' "$verde" fetch "$work/class.yaml" --verdict "$work/scored/verdict.json" --provider "$(cat "$work/run-score.url")" --out "$work/no"

# ---- wrong bytes: the provider is dropped, and the next one goes on; a download that was cut goes on ----

for items in "$work"/b/jobs/*/told/items; do
    python3 - "$items" << 'PYTHON'
import sys
with open(sys.argv[1], "r+b") as f:
    f.seek(-3, 2)
    last = f.read(1)
    f.seek(-3, 2)
    f.write(bytes([last[0] ^ 1]))
PYTHON
done
expect 0 'provider 1 (.*) is dropped: the result of the prompt with key 961' "$verde" delegate "$work/score.yaml" --key "$work/client" \
    --provider "$b" --provider "$a" --out "$work/spoilt"
same spoilt score
grep -q '^provider 2   gave [1-9]' "$work/out" && grep -q '^provider 1   gave [1-9]' "$work/out" || fail "not both gave a part"
rm "$work/spoilt/results.jsonl"
head -c 5000 "$work/spoilt/results.proof" > "$work/spoilt/results.part"
expect 0 'were there' "$verde" delegate "$work/score.yaml" $two --out "$work/spoilt"
same spoilt score
rm "$work/spoilt/results.jsonl"
tr '\000' '\001' < "$work/spoilt/results.proof" > "$work/spoilt/results.part"
expect 0 'every byte checked' "$verde" delegate "$work/score.yaml" $two --out "$work/spoilt"
same spoilt score

echo "$count results and refusals of jobs with prompts"
