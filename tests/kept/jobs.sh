# shellcheck shell=sh disable=SC2154
# Read by make.sh: YAML jobs, with all files that their programs depend on, as those of the tree may change.
jobs=$evidence/yaml
mkdir -p "$jobs/data"

# Data of each kind: text, tokens and images. Contents do not matter.
head -c 4096 models/data/project.txt > "$jobs/data/text.txt"
write_tokens "$jobs/data/tokens.bin" 2000
head -c $((64 * 3073)) /dev/zero > "$jobs/data/images.bin"
printf '{"key": 7, "ids": [15, 2, 9]}\n{"key": 1, "ids": [5, 6]}\n' > "$jobs/prompts.jsonl"
text="file: data/text.txt, sha256: $(sum_of "$jobs/data/text.txt")"
tokens="file: data/tokens.bin, sha256: $(sum_of "$jobs/data/tokens.bin")"
images="files: [data/images.bin], sha256: $(sum_of "$jobs/data/images.bin")"
prompts="prompts: {file: prompts.jsonl, sha256: $(sum_of "$jobs/prompts.jsonl")}"

# with_data: a job of models/jobs, with the kept data in place of its own.
with_data() {
    sed -e '/^#/d' -e 's/ *#.*//' -e '/^  kind: \(text\|tokens\|cifar10\)/,/^  sha256:/d' \
        -e "s|^data:.*|data: {kind: $(sed -n 's/^  kind: \([a-z0-9]*\).*/\1/p' "$1" | grep -x 'text\|tokens\|cifar10'), DATA}|" "$1" |
        sed -e "s|text, DATA|text, $text|; s|tokens, DATA|tokens, $tokens|; s|cifar10, DATA|cifar10, $images|"
}
for job in models/jobs/*.yaml; do
    with_data "$job" > "$jobs/$(basename "$job")"
done

# vary NAME EDIT: the toy job, changed by sed.
vary() {
    sed -e "$2" "$jobs/toy.yaml" > "$jobs/toy-$1.yaml"
}
vary fixed8 's/^seed:.*/&\nproducts: fixed8/'
vary fixed24 's/^seed:.*/&\nproducts: fixed24/'
vary fixed16 's/^seed:.*/&\nproducts: {forward: fixed16, gradient_x: fp32, gradient_w: fixed24}/'
vary bf16 's/^seed:.*/&\nstorage: bf16/'
vary tokens "s|^data:.*|data: {kind: tokens, $tokens}|"
vary evaluate "s|^seed:.*|&\nevaluate: {$text, every: 4}|"
vary sgd '/^optimizer:/,/clip_norm/c optimizer: {kind: sgd, lr: 0.1, momentum: 0.9, nesterov: true, weight_decay: 5e-4, decay_exempt: none, clip_norm: 0}'
vary constant 's/^schedule:.*/schedule: {kind: constant, warmup: 3}/'
"$verde" calibrate "$jobs/toy.yaml" --out "$jobs/data/thresholds" > "$work/out" 2>&1 || fail "no thresholds"
vary symbols "\$a rounding: {bits: 32, encoding: symbols, thresholds: data/thresholds, sha256: $(sum_of "$jobs/data/thresholds")}"

sed -e 's/mask_rate: 0.15/&, pad: 32/' "$jobs/bert-tiny.yaml" > "$jobs/bert-padded.yaml"

# Models of other projects, as their manifests name them.
training="seed: 1
batch: 4
steps: 6
checkpoint_interval: 2
optimizer: {kind: adamw, lr: 1e-2, beta1: 0.9, beta2: 0.99, eps: 1e-8, weight_decay: 0.1, clip_norm: 1.0}
schedule: {kind: constant, warmup: 0}"

# pretrained NAME MODEL MORE_OF_MODEL LINE...: a job that trains it.
pretrained() {
    name=$1 model=$2 more=$3
    shift 3
    sum=$(take_model "$model")
    cp "$work/referee/$model.manifest" "$jobs"
    printf '%s\n' 'verde: 1' "model: {kind: pretrained, dir: $model, sha256: $sum$more}" "$@" "$training" > "$jobs/$name.yaml"
}
data="data: {kind: tokens, $tokens}"
for name in gpt2 llama llama-bf16 llama-tied llama3 mistral qwen2 qwen2-window qwen3; do
    pretrained $name $name '' "$data" 'sequence: 12'
done
pretrained llama-adapters llama '' "$data" 'sequence: 12' 'lora: {rank: 2, alpha: 4, targets: [attn.q, mlp.up]}'
pretrained bert bert ', mask_rate: 0.2, mask: 63' "$data" 'sequence: 12'
pretrained bert-classes bert ', classes: 64, dropout: 0.1' "$data" 'sequence: 12'
pretrained resnet resnet ', classes: 10' "data: {kind: cifar10, $images, mean: [0.5, 0.5, 0.5], std: [0.2, 0.2, 0.2]}"

# What goes on from a run, of which the proof of a state is enough.
expect 0 root "$verde" run "$jobs/toy.yaml" --out "$work/toy" --threads 1
expect 0 wrote "$verde" export "$work/toy" --out "$work/exported"
cp "$work/exported/proof.json" "$jobs/trained.proof.json"
weights="run: trained, root: $(state "$work/toy" 12)"
# after NAME TASK LINE...: a job with this task, and the trained weights.
after() {
    name=$1 task=$2
    shift 2
    printf '%s\n' 'verde: 1' "task: $task" "$(grep '^model:' "$jobs/toy.yaml")" "weights: {$weights}" "$@" > "$jobs/$name.yaml"
}
after evaluate evaluate "data: {kind: text, $text}" 'seed: 7' 'batch: 4' 'sequence: 32'
after generate generate "$prompts" 'sampling: {temperature: 1.5, top_k: 40, top_p: 0.9, seed: 7}' \
    'max_tokens: 10' 'min_tokens: 3' 'stop: [3, 11]' 'repetition_penalty: 1.2' 'log_probabilities: 2'
after greedy generate "$prompts" 'sampling: {greedy: true}' 'max_tokens: 4'
after score score "$prompts"
sed -e "s|^seed:.*|weights: {$weights, state: weights, first_step: 3}\n&|" "$jobs/toy.yaml" > "$jobs/further.yaml"

# Each key of job files is in one of them.
grep -oE '((INTEGER|REALS?|CHOICE|MAPPING)\(|\.path = )"[a-z0-9_.]+"' verde/job/fields.c | sed 's/.*"\(.*\)"/\1/; s/.*\.//' | while read -r key; do
    grep -qE "(^|[{, ])$key:" "$jobs"/*.yaml || fail "no job has the key $key"
done
