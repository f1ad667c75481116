#!/bin/sh
# A model from transformers is trained further, fully and by adapters: a job names its folder, a run resumes and is served, a
# provider with a wrong start or step is convicted, and a referee needs only the model's manifest.
. tests/support/system

write_tokens "$work/tokens.bin" 600
tokens=$(sum_of "$work/tokens.bin")

# job MODEL MORE_OF_MODEL LINE: prints a job.
job() {
    cat << YAML
verde: 1
model: {kind: pretrained, dir: $1, sha256: $sum$2}
data: {kind: tokens, file: $work/tokens.bin, sha256: $tokens}
$3
seed: 1
batch: 4
sequence: 12
micro_batches: 2
steps: 6
checkpoint_interval: 2
optimizer: {kind: adamw, lr: 1e-2, beta1: 0.9, beta2: 0.99, eps: 1e-8, weight_decay: 0.1, clip_norm: 1.0}
schedule: {kind: constant, warmup: 0}
YAML
}

# dispute JOB FAULT: a run with the fault is convicted by a referee without weights.
dispute() {
    rm -rf "$work/$1.wrong"
    expect 0 'run root' "$verde" run "$work/$1.yaml" --out "$work/$1.wrong" --fault "$2"
    serve "$1.honest"
    serve "$1.wrong"
    rm -f "$work/verdict.json"
    # shellcheck disable=SC2046
    expect 3 "${3:-wrong}" "$verde" arbitrate "$work/referee/$1.yaml" --key "$work/keys" --verdict "$work/verdict.json" \
        $(providers "$1.honest" "$1.wrong")
    expect 0 '' "$verde" verify "$work/verdict.json"
    cleanup
}

# Full training: the state has every parameter.
sum=$(take_model llama)
job llama '' '' > "$work/full.yaml"
cp "$work/full.yaml" "$work/referee/full.yaml"
expect 0 'run root' "$verde" run "$work/full.yaml" --out "$work/full.honest"
expect 0 'root' "$verde" check "$work/full.honest"
expect 0 '^data  *tokens is in 0\.\.63$' "$verde" inspect "$work/full.honest"
expect 0 '"ranges":\[{"name":"tokens","least":0,"greatest":63}\]' "$verde" graph "$work/full.yaml" --json
dispute full element@-1:init.h.0.attn.q.weight provider
dispute full element@3 provider

# Adapters: the state has only these.
job llama '' 'lora: {rank: 2, alpha: 4, targets: [attn.q, attn.v]}' > "$work/lora.yaml"
cp "$work/lora.yaml" "$work/referee/lora.yaml"
expect 0 'run root' "$verde" run "$work/lora.yaml" --out "$work/lora.honest"
[ -z "$(find "$work/lora.honest" -name 'state-*' -size +4k)" ] || fail "a state of adapters holds more than these"
dispute lora element@3 provider

# Weights that are truncated while frozen ones are read from them: one line names the file.
python3 - "$work/llama" "$work/large" << 'PYTHON'
import json
import os
import struct
import sys
source, target = sys.argv[1:]
rows = 20000  # a file is mapped from 1 MiB on
os.mkdir(target)
with open(source + "/config.json") as f:
    config = json.load(f)
config["vocab_size"] = rows
with open(target + "/config.json", "w") as f:
    json.dump(config, f)
with open(source + "/model.safetensors", "rb") as f:
    size = struct.unpack("<Q", f.read(8))[0]
    header = json.loads(f.read(size))
    data = f.read()
header.pop("__metadata__", None)
parts, at = [], 0
for name, tensor in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
    start, end = tensor["data_offsets"]
    part = data[start:end]
    if tensor["shape"][0] == 64 and "embed" in name or "lm_head" in name:
        tensor["shape"][0] = rows
        part = (part * (rows // 64 + 1))[:len(part) // 64 * rows]
    tensor["data_offsets"] = [at, at + len(part)]
    parts.append(part)
    at += len(part)
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
with open(target + "/model.safetensors", "wb") as f:
    f.write(struct.pack("<Q", len(text)) + text + b"".join(parts))
PYTHON
"$verde" manifest "$work/large" --out "$work/large.manifest" 2> "$work/err"
sum=$(sha256sum "$work/large.manifest" | cut -d ' ' -f 1)
job large '' 'lora: {rank: 2, alpha: 4, targets: [attn.q, attn.v]}' | sed 's/^steps: 6/steps: 1000000/' > "$work/large.yaml"
"$verde" run "$work/large.yaml" --out "$work/cut" > "$work/out" 2> "$work/err" &
pid=$!
pids=$pid
for _ in $(seq 12000); do
    [ ! -s "$work/cut/run.json" ] || break
    sleep 0.05
done
truncate -s 4096 "$work/large/model.safetensors"
code=0
wait "$pid" || code=$?
pids=
[ "$code" -eq 1 ] || fail "a run whose weights were cut off: exit code $code, expected 1"
grep -q "large/model.safetensors: was cut off while it was read" "$work/err" || fail "no word about the weights that were cut off"
sum=$(sha256sum "$work/referee/llama.manifest" | cut -d ' ' -f 1)

# Jobs that are refused before anything runs.
expect 2 'no files of a model are' "$verde" run "$work/referee/full.yaml" --out "$work/none"
job gone '' '' > "$work/gone.yaml"
expect 2 'neither it nor' "$verde" run "$work/gone.yaml" --out "$work/none"
job llama ', dropout: 0.1' '' > "$work/bad.yaml"
expect 2 'model.dropout. must not be there' "$verde" run "$work/bad.yaml" --out "$work/none"
job llama '' 'lora: {rank: 2, alpha: 4, targets: [attn.x]}' > "$work/bad.yaml"
expect 2 'no product named attn.x' "$verde" run "$work/bad.yaml" --out "$work/none"
sum=$(echo | sha256sum | cut -d ' ' -f 1)
job llama '' '' > "$work/bad.yaml"
expect 2 'but the manifest of' "$verde" run "$work/bad.yaml" --out "$work/none"

# Classification: a new head, and the class before each sequence.
sum=$(take_model bert)
job bert ', classes: 64, dropout: 0' '' > "$work/classes.yaml"
expect 0 'run root' "$verde" run "$work/classes.yaml" --out "$work/classes"
job bert ', classes: 3, dropout: 0' '' > "$work/bad.yaml"
expect 2 'must begin with a class below 3' "$verde" run "$work/bad.yaml" --out "$work/none"
job bert ', mask_rate: 0.2, mask: 63' '' > "$work/masked.yaml"
expect 0 'run root' "$verde" run "$work/masked.yaml" --out "$work/masked"
job bert ', mask_rate: 0.2' '' > "$work/bad.yaml"
expect 2 'model.mask. is missing' "$verde" run "$work/bad.yaml" --out "$work/none"
# In and out: a run's first state exports every byte of the files, and config.json means the same model.
for model in gpt2 llama llama-tied qwen2 qwen3 bert; do
    sum=$(take_model $model)
    job $model "$([ $model != bert ] || echo ', mask_rate: 0.2, mask: 3')" '' | sed 's/^steps: 6/steps: 2/' > "$work/$model.yaml"
    expect 0 'run root' "$verde" run "$work/$model.yaml" --out "$work/$model.run"
    expect 0 'of step 0' "$verde" export "$work/$model.run" --out "$work/$model.first" --step 0
    "$verde" manifest "$work/$model.first" 2> "$work/err" | tail -n +4 > "$work/out"
    tail -n +4 "$work/referee/$model.manifest" | cmp -s - "$work/out" || fail "$model: other tensors came out than went in"
    expect 0 'of step 2' "$verde" export "$work/$model.run" --out "$work/$model.last"
    expect 0 "means the job's model" "$verde" check "$work/$model.last" --job "$work/$model.yaml"
    expect 6 'its bytes give\|expected step 2' "$verde" check "$work/$model.first" --job "$work/$model.yaml"
    # The program states what config.json means: another one is noticed even without the job.
    expect 0 'means the model that the program commits to' "$verde" check "$work/$model.last"
    sed -i 's/"\(n_head\|num_attention_heads\)": [0-9]*/"\1": 1/; s/"num_key_value_heads": [0-9]*/"num_key_value_heads": 1/' "$work/$model.last/config.json"
    expect 6 'config.json: means another model than the program commits to' "$verde" check "$work/$model.last"
    one_line
done
# The same for torchvision's ResNet; a job's own scaling of images is not in config.json.
"$build/bin/standin" 40 > "$work/images.bin" 2> "$work/err"
sum=$(take_model resnet)
for scale in '' ', mean: [0.5, 0.5, 0.5], std: [0.2, 0.2, 0.2]'; do
    job resnet ', classes: 10' '' | sed "s|^data: .*|data: {kind: cifar10, files: [$work/images.bin], sha256: $(
        sha256sum "$work/images.bin" | cut -d ' ' -f 1)$scale}|; /^sequence/d; s/^steps: 6/steps: 2/" > "$work/resnet.yaml"
    rm -rf "$work/resnet.run" "$work/resnet.last"
    expect 0 'run root' "$verde" run "$work/resnet.yaml" --out "$work/resnet.run"
    expect 0 'of step 2' "$verde" export "$work/resnet.run" --out "$work/resnet.last"
    expect 0 "means the job's model" "$verde" check "$work/resnet.last" --job "$work/resnet.yaml"
    expect 0 'means the model that the program commits to' "$verde" check "$work/resnet.last"
done
# Adapters are exported in PEFT's form.
expect 0 '8 tensors of step 6' "$verde" export "$work/lora.honest" --out "$work/lora.last"
expect 0 "means the job's model" "$verde" check "$work/lora.last" --job "$work/lora.yaml"
expect 0 'means the model that the program commits to' "$verde" check "$work/lora.last"
grep -q "\"base_model_name_or_path\": \"$(cd "$work/llama" && pwd -P)\"" "$work/lora.last/adapter_config.json" ||
    fail "adapter_config.json does not say where the model is: $(cat "$work/lora.last/adapter_config.json")"
expect 0 'lora_A.weight F32 \[2,16\]' "$verde" manifest "$work/lora.last/adapter_model.safetensors"
sed -i 's/"lora_alpha": 4/"lora_alpha": 8/' "$work/lora.last/adapter_config.json"
expect 6 'adapter_config.json: means other adapters' "$verde" check "$work/lora.last" --job "$work/lora.yaml"
rm "$work/lora.last/adapter_config.json"
expect 6 'adapter_config.json: is missing' "$verde" check "$work/lora.last" --job "$work/lora.yaml"
cp "$work/lora.last/adapter_model.safetensors" "$work/lora.last/model.safetensors"
expect 6 'which is meant' "$verde" check "$work/lora.last"
# A new last product for three classes, which config.json then has, too.
python3 - "$work/classes.bin" << 'PYTHON'
import struct
import sys
records = 40
tokens = [t for i in range(records) for t in [i % 3] + [(i * j + j) % 60 + 1 for j in range(12)]] + [0]
with open(sys.argv[1], "wb") as f:
    f.write(struct.pack("<256i", 20240520, 1, len(tokens), *[0] * 253))
    f.write(struct.pack(f"<{len(tokens)}H", *tokens))
PYTHON
sum=$(sha256sum "$work/referee/bert.manifest" | cut -d ' ' -f 1)
job bert ', classes: 3' '' | sed "s,$work/tokens.bin,$work/classes.bin,; s/$tokens/$(sha256sum "$work/classes.bin" | cut -d ' ' -f 1)/" > "$work/classes.yaml"
expect 0 'run root' "$verde" run "$work/classes.yaml" --out "$work/classes.run"
expect 0 'wrote' "$verde" export "$work/classes.run" --out "$work/classes.last"
grep -q '"2": "LABEL_2"' "$work/classes.last/config.json" || fail "config.json has not three classes"
expect 0 "means the job's model" "$verde" check "$work/classes.last" --job "$work/classes.yaml"
expect 0 'means the model that the program commits to' "$verde" check "$work/classes.last"

# Whatever the targets, PEFT finds the adapters' modules and no others, by the ends of module names in the base model.
# adapters MODEL MORE TARGETS
adapters() {
    sum=$(sum_of "$work/referee/$1.manifest")
    job "$1" "$2" "lora: {rank: 2, alpha: 4, targets: [$3]}" | sed "s/^steps: 6/steps: 2/; ${4:-}" > "$work/adapters.yaml"
    rm -rf "$work/adapters.run" "$work/adapters"
    expect 0 'run root' "$verde" run "$work/adapters.yaml" --out "$work/adapters.run"
    expect 0 'wrote' "$verde" export "$work/adapters.run" --out "$work/adapters"
    [ ! -e "$work/adapters/model.safetensors" ] || fail "$1, $3: a model was written in place of adapters"
    python3 - "$work/$1/model.safetensors" "$work/adapters" << 'PYTHON' || fail "$1, $3: PEFT would find other modules"
import json
import struct
import sys


def names(path):
    with open(path, "rb") as f:
        return [n for n in json.loads(f.read(struct.unpack("<Q", f.read(8))[0])) if n != "__metadata__"]


modules = {n.removesuffix(".weight") for n in names(sys.argv[1]) if n.endswith(".weight") and "norm" not in n.lower() and "ln_" not in n}
with open(sys.argv[2] + "/adapter_config.json") as f:
    targets = json.load(f)["target_modules"]
found = {m for m in modules if any(m == t or m.endswith("." + t) for t in targets)}
made = names(sys.argv[2] + "/adapter_model.safetensors")
expected = {f"base_model.model.{m}.lora_{x}.weight" for m in found for x in "AB"}
assert found and set(made) == expected, (targets, sorted(set(made) ^ expected))
PYTHON
}
adapters gpt2 '' 'attn.qkv, attn.proj, mlp.up, mlp.down'
adapters llama '' 'attn.q, attn.k, attn.v, attn.proj, mlp.gate, mlp.up, mlp.down, head'
adapters llama '' head
expect 0 "means the job's model" "$verde" check "$work/adapters" --job "$work/adapters.yaml"
adapters bert ', mask_rate: 0.2, mask: 3' 'attn.q, attn.k, attn.v, attn.proj, mlp.up, mlp.down, head'
adapters bert ', mask_rate: 0.2, mask: 3' mlp.down
adapters bert ', mask_rate: 0.2, mask: 3' head
sum=$(take_model bert-classes)
of_classes="s,$work/tokens.bin,$work/classes.bin,; s/$tokens/$(sum_of "$work/classes.bin")/"
adapters bert-classes '' 'pooler, classes' "$of_classes"
adapters bert-classes '' classes "$of_classes"
# A new last product would stay random when only adapters are trained.
sum=$(sum_of "$work/referee/bert.manifest")
job bert ', classes: 3' 'lora: {rank: 2, alpha: 4, targets: [attn.q]}' | sed "$of_classes" > "$work/bad.yaml"
expect 2 'lora: the files have no pooler.weight, and adapters alone are trained' "$verde" run "$work/bad.yaml" --out "$work/none"
one_line
# Heads of BERT that the job does not train are named, and the export says that it has none.
python3 - "$work/bert" "$work/pretraining" << 'PYTHON'
import json
import os
import struct
import sys
source, target = sys.argv[1:]
os.mkdir(target)
with open(source + "/config.json") as f:
    config = json.load(f)
with open(target + "/config.json", "w") as f:
    json.dump({**config, "architectures": ["BertForPreTraining"]}, f)
with open(source + "/model.safetensors", "rb") as f:
    header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
    data = f.read()
for name, shape in {"bert.pooler.dense.weight": [16, 16], "bert.pooler.dense.bias": [16],
                    "cls.seq_relationship.weight": [2, 16], "cls.seq_relationship.bias": [2]}.items():
    size = 4 * shape[0] * (shape + [1])[1]
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + size]}
    data += bytes(size)
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
with open(target + "/model.safetensors", "wb") as f:
    f.write(struct.pack("<Q", len(text)) + text + data)
PYTHON
"$verde" manifest "$work/pretraining" --out "$work/pretraining.manifest" 2> "$work/err"
sum=$(sum_of "$work/pretraining.manifest")
job pretraining ', mask_rate: 0.2, mask: 3' '' | sed 's/^steps: 6/steps: 2/' > "$work/pretraining.yaml"
expect 0 '4 tensors of its files are neither read nor exported: bert.pooler.dense.bias, bert.pooler.dense.weight, cls.seq' \
    "$verde" run "$work/pretraining.yaml" --out "$work/pretraining.run"
expect 0 'wrote' "$verde" export "$work/pretraining.run" --out "$work/pretraining.last"
grep -q '"BertForMaskedLM"' "$work/pretraining.last/config.json" || fail "config.json does not say what the export is"
expect 0 "means the job's model" "$verde" check "$work/pretraining.last" --job "$work/pretraining.yaml"
# The tokenizer's files and generation_config.json are exported with the model.
for name in tokenizer.json tokenizer_config.json generation_config.json chat_template.jinja; do echo "{\"$name\": 1}" > "$work/pretraining/$name"; done
rm -rf "$work/pretraining.run" "$work/pretraining.last"
expect 0 'run root' "$verde" run "$work/pretraining.yaml" --out "$work/pretraining.run"
expect 0 'wrote' "$verde" export "$work/pretraining.run" --out "$work/pretraining.last"
for name in tokenizer.json tokenizer_config.json generation_config.json chat_template.jinja; do
    cmp "$work/pretraining/$name" "$work/pretraining.last/$name" || fail "$name did not come out as it went in"
done
expect 0 "means the job's model" "$verde" check "$work/pretraining.last" --job "$work/pretraining.yaml"
# The config.json of another model gives no names.
cp "$work/llama/config.json" "$work/pretraining.run"
expect 2 'config.json: is of a model with other tensors' "$verde" export "$work/pretraining.run" --out "$work/none"

echo "$count commands did what they should"
