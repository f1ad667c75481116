#!/bin/sh
# A model learns from this project's text, is trained further on a rhyme, and then continues prompts. Each of the three is a job that
# anybody can run again, to the same root, and dispute. Takes half a minute.
#
#     sh examples/answer.sh [DIR]      # default: build/answer, made anew; needs `make build`
set -eu
verde=${VERDE:-build/bin/verde}
dir=${1:-build/answer}
rm -rf "$dir"
mkdir -p "$dir"

sum_of() { sha256sum "$1" | cut -d ' ' -f 1; }
# last_state RUN: the root of the state that a run ended with.
last_state() { "$verde" inspect "$1" | sed -n 's/^state [0-9]* *//p' | tail -n 1; }
# bytes TEXT: prints the text as a list of tokens.
bytes() { printf '%s' "$1" | od -An -v -tu1 | tr -s ' \n' ',' | sed 's/^,//; s/,$//'; }

# training MODEL DATA STEPS RATE: prints a job. The models here read bytes.
training() {
    cat << YAML
verde: 1
model: $1
data: {kind: text, file: $2, sha256: $(sum_of "$dir/$2")}
seed: 1
batch: 8
sequence: 64
steps: $3
checkpoint_interval: $3
optimizer: {kind: adamw, lr: $4, beta1: 0.9, beta2: 0.99, eps: 1e-8, weight_decay: 0.1, clip_norm: 1}
schedule: {kind: cosine, warmup: 10, min_lr: 0}
YAML
}

cp models/data/project.txt "$dir/project.txt"
# The rhyme, of 141 bytes, is repeated, so that it begins at a different place in each window.
for _ in $(seq 64); do
    cat << TEXT
Humpty Dumpty sat on a wall,
Humpty Dumpty had a great fall.
All the king's horses and all the king's men
Couldn't put Humpty together again
TEXT
done > "$dir/rhyme.txt"

echo "== A model learns from scratch, and is written as files that transformers loads"
training '{kind: gpt2, vocab: 256, context: 128, layers: 2, heads: 4, channels: 64, dropout: 0}' project.txt 200 5e-3 > "$dir/base.yaml"
"$verde" run "$dir/base.yaml" --out "$dir/base"
"$verde" export "$dir/base" --out "$dir/model"

echo "== It is trained on"
manifest=$("$verde" manifest "$dir/model" 2> /dev/null | sha256sum | cut -d ' ' -f 1)
given="{kind: pretrained, dir: model, sha256: $manifest}"
training "$given" rhyme.txt 400 5e-3 > "$dir/tune.yaml"
"$verde" run "$dir/tune.yaml" --out "$dir/tuned"

echo "== It goes on with prompts"
cat > "$dir/prompts.jsonl" << JSON
{"key": 1, "ids": [$(bytes "Humpty Dumpty sat")]}
{"key": 2, "ids": [$(bytes "All the king's horses")]}
JSON
cat > "$dir/generate.yaml" << YAML
verde: 1
task: generate
model: $given
weights: {run: tuned, root: $(last_state "$dir/tuned")}
prompts: {file: prompts.jsonl, sha256: $(sum_of "$dir/prompts.jsonl")}
sampling: {greedy: true}
max_tokens: 60
stop: [10]
log_probabilities: 0
YAML
"$verde" run "$dir/generate.yaml" --out "$dir/answers"

echo "== What it said"
sed 's/.*"ids":\[\([0-9,]*\)\].*/\1/' "$dir/answers/results.jsonl" | while read -r ids; do
    echo "$ids" | tr ',' '\n' | while read -r byte; do
        printf "%b" "$(printf '\\0%o' "$byte")"
    done
done
"$verde" check "$dir/answers" --job "$dir/generate.yaml"
