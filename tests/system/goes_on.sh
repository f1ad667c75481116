#!/bin/sh
# A run continues from a state of another run: 10 steps and 10 more give the bytes of 20, with each optimizer, fully and by
# adapters. What does not fit is refused. A provider that starts from another state is convicted by a referee that only has a
# proof.
. tests/support/system

# One window of data and a constant rate: every step does the same, whatever its number.
python3 - "$work" << 'PYTHON'
import struct
import sys
tokens = [(i * i + i // 7) % 64 for i in range(13)]
with open(sys.argv[1] + "/data.txt", "wb") as f:
    f.write(bytes(tokens))
with open(sys.argv[1] + "/tokens.bin", "wb") as f:
    f.write(struct.pack("<256i", 20240520, 1, len(tokens), *[0] * 253))
    f.write(struct.pack(f"<{len(tokens)}H", *tokens))
PYTHON
adamw='{kind: adamw, lr: 1e-2, beta1: 0.9, beta2: 0.99, eps: 1e-8, weight_decay: 0.1, clip_norm: 1.0}'
sgd='{kind: sgd, lr: 0.01, momentum: 0.9, nesterov: true, weight_decay: 5e-4, clip_norm: 0}'
text="kind: text, file: $work/data.txt, sha256: $(sha256sum "$work/data.txt" | cut -d ' ' -f 1)"
binary="kind: tokens, file: $work/tokens.bin, sha256: $(sha256sum "$work/tokens.bin" | cut -d ' ' -f 1)"
gpt2='model: {kind: gpt2, vocab: 256, context: 16, layers: 1, heads: 2, channels: 16, dropout: 0}'

# job MODEL DATA OPTIMIZER STEPS [LINE]: prints a job.
job() {
    cat << YAML
verde: 1
$1
data: {$2}
seed: 7
batch: 1
sequence: 12
steps: $4
checkpoint_interval: 5
optimizer: $3
schedule: {kind: constant, warmup: 0}
${5-}
YAML
}

# twice NAME MODEL DATA OPTIMIZER: runs 20 steps, and 10 steps and 10 more.
twice() {
    job "$2" "$3" "$4" 20 > "$work/$1.whole.yaml"
    job "$2" "$3" "$4" 10 > "$work/$1.first.yaml"
    expect 0 'run root' "$verde" run "$work/$1.whole.yaml" --out "$work/$1.whole"
    expect 0 'run root' "$verde" run "$work/$1.first.yaml" --out "$work/$1.first"
    root=$(state "$work/$1.first" 10)
    job "$2" "$3" "$4" 10 "weights: {run: $1.first, root: $root}" > "$work/$1.second.yaml"
    expect 0 'goes on from step 10 .* what the optimizer keeps' "$verde" run "$work/$1.second.yaml" --out "$work/$1.second"
    cmp "$work/$1.second/state-$(state "$work/$1.second" 10)" "$work/$1.whole/state-$(state "$work/$1.whole" 20)" ||
        fail "$1: 10 steps and 10 more are not 20"
    expect 0 'root' "$verde" check "$work/$1.second"
}
twice adamw "$gpt2" "$text" "$adamw"
twice sgd "$gpt2" "$text" "$sgd"

# Rates, the order of the data and dropout continue, too: 10 more steps from step 10 of a run of 20 are its last 10, with any
# schedule. With first_step: 0 they start over, and differ.
numbered() {
    job "$1" "$2" "$adamw" "$3" "${4-}" | sed 's/^schedule: .*/schedule: {kind: cosine, warmup: 12, min_lr: 1e-4}/; s/^batch: .*/batch: 2/'
}
many="kind: text, file: $PWD/models/data/project.txt, sha256: $(sha256sum models/data/project.txt | cut -d ' ' -f 1)"
# last_steps NAME MODEL: compares them.
last_steps() {
    numbered "$2" "$many" 20 > "$work/$1.yaml"
    expect 0 'run root' "$verde" run "$work/$1.yaml" --out "$work/$1"
    numbered "$2" "$many" 10 "weights: {run: $1, root: $(state "$work/$1" 10)}" > "$work/$1.on.yaml"
    expect 0 'of steps 10 to 19' "$verde" run "$work/$1.on.yaml" --out "$work/$1.on"
    cmp "$work/$1.on/state-$(state "$work/$1.on" 10)" "$work/$1/state-$(state "$work/$1" 20)" ||
        fail "$1: the last 10 steps are not the whole's"
    expect 0 'root' "$verde" check "$work/$1.on"
}
last_steps drops "$(echo "$gpt2" | sed 's/dropout: 0}/dropout: 0.1}/')"
last_steps bert 'model: {kind: bert, vocab: 257, context: 16, layers: 1, heads: 2, channels: 16, dropout: 0.1, mask_rate: 0.3}'
sed 's/, root: /, first_step: 0, root: /; s/warmup: 12/warmup: 2/' "$work/drops.on.yaml" > "$work/anew.yaml"
expect 0 'run root' "$verde" run "$work/anew.yaml" --out "$work/anew"
head -n 1 "$work/anew/losses.jsonl" | grep -q '"lr":0.00499' || fail "no warm-up: $(head -n 1 "$work/anew/losses.jsonl")"
sed 's/, root: /, state: weights, root: /; s/warmup: 12/warmup: 2/' "$work/drops.on.yaml" > "$work/anew.yaml"
expect 0 'weights alone$' "$verde" run "$work/anew.yaml" --out "$work/alone"
head -n 1 "$work/alone/losses.jsonl" | grep -q '"lr":0.00499' || fail "weights alone: no warm-up"
sed 's/, root: /, first_step: 16777210, root: /' "$work/drops.on.yaml" > "$work/bad.yaml"
expect 2 'steps must be at most 6 after step 16777210, got 10' "$verde" run "$work/bad.yaml" --out "$work/none"
sed 's/warmup: 12/warmup: 20/' "$work/drops.on.yaml" > "$work/bad.yaml"
expect 2 'schedule.warmup must be less than the number of the last step, 20, got 20' "$verde" run "$work/bad.yaml" --out "$work/none"

# A pretrained model, fully and by adapters.
llama="model: {kind: pretrained, dir: llama, sha256: $(take_model llama)}"
twice full "$llama" "$binary" "$adamw"
twice lora "$llama
lora: {rank: 2, alpha: 4, targets: [attn.q, attn.v]}" "$binary" "$adamw"

# Only the weights, with another optimizer, from a state in between; also from an unfinished run.
job "$gpt2" "$text" "$sgd" 10 "weights: {run: adamw.whole, root: $(state "$work/adamw.whole" 15), state: weights}" \
    > "$work/bare.yaml"
expect 0 'goes on from step 15 .* weights alone' "$verde" run "$work/bare.yaml" --out "$work/bare"
expect 0 'of step 0' "$verde" export "$work/bare" --out "$work/bare.in" --step 0
expect 0 'of step 15' "$verde" export "$work/adamw.whole" --out "$work/bare.out" --step 15
"$verde" manifest "$work/bare.in" > "$work/bare.in.manifest" 2> "$work/err"
"$verde" manifest "$work/bare.out" 2> "$work/err" | cmp - "$work/bare.in.manifest" || fail "other weights came in than went out"

# Jobs that are refused.
refused() {
    expect "$1" "$2" "$verde" run "$work/bad.yaml" --out "$work/none"
    one_line
}
last=$(state "$work/adamw.first" 10)
job "$gpt2" "$text" "$sgd" 10 "weights: {run: adamw.first, root: $last}" > "$work/bad.yaml"
refused 2 'has a tensor .*, which the job has not'
job "$gpt2" "$text" "$adamw" 10 "weights: {run: sgd.first, root: $(state "$work/sgd.first" 10)}" > "$work/bad.yaml"
refused 2 'has no tensor token_embedding.v\|has no tensor wte.v\|has no tensor .*[.]v'
job "$(echo "$gpt2" | sed 's/channels: 16/channels: 32/')" "$text" "$adamw" 10 "weights: {run: adamw.first, root: $last}" \
    > "$work/bad.yaml"
refused 2 'the shape of .* is .*, expected'
job "$gpt2" "$text" "$adamw" 10 "weights: {run: adamw.first, root: $(state "$work/sgd.first" 10)}" > "$work/bad.yaml"
refused 2 'which is no state of the run'
job "$gpt2" "$text" "$adamw" 10 "weights: {run: gone, root: $last}" > "$work/bad.yaml"
refused 2 'neither it nor .*gone.proof.json is there'
job "$gpt2" "$text" "$adamw" 10 "weights: {run: adamw.first}" > "$work/bad.yaml"
refused 2 'weights.root. must be 64'
cp -r "$work/adamw.first" "$work/changed"
printf 'x' | dd of="$work/changed/state-$last" bs=1 seek=40 conv=notrunc 2> "$work/err"
job "$gpt2" "$text" "$adamw" 10 "weights: {run: changed, root: $last}" > "$work/bad.yaml"
refused 6 'its bytes are not the state of step 10'
rm "$work/changed/state-$last"
refused 2 'cannot open .*state-'
expect 0 'run root' "$verde" run "$work/adamw.whole.yaml" --out "$work/thin" --keep 2
job "$gpt2" "$text" "$adamw" 10 "weights: {run: thin, root: $(state "$work/adamw.whole" 10)}" > "$work/bad.yaml"
refused 2 'was not kept'

# Another start is disputed at step -1, before a referee that only has the proof of the state.
expect 0 'proof.json' "$verde" export "$work/adamw.first" --out "$work/exported"
cp "$work/exported/proof.json" "$work/referee/adamw.first.proof.json"
cp "$work/adamw.second.yaml" "$work/referee/job.yaml"
expect 2 'where no run is' "$verde" run "$work/referee/job.yaml" --out "$work/none"
expect 0 'run root' "$verde" run "$work/adamw.second.yaml" --out "$work/wrong" --fault element@-1:init.h.0.attn.qkv.weight
serve adamw.second
serve wrong
# shellcheck disable=SC2046
expect 3 'initialisation, node' "$verde" arbitrate "$work/referee/job.yaml" --key "$work/keys" --verdict "$work/verdict.json" \
    $(providers adamw.second wrong)
expect 0 '' "$verde" verify "$work/verdict.json"
cp "$work/sgd.first/data" "$work/referee/adamw.first.proof.json"
expect 6 'adamw.first.proof.json' "$verde" graph "$work/referee/job.yaml"
echo "a run goes on from another one's state: 10 steps and 10 more are 20"
