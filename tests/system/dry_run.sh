#!/bin/sh
# A run's needs are told before it starts: `--dry-run` of `verde run` and `verde delegate` prints steps, memory, disk and time,
# and writes nothing; a run that does not fit on this machine is refused at once.
. tests/support/system
job=models/jobs/toy.yaml

expect 0 '^steps  *12, a checkpoint after every 4$' "$verde" run $job --dry-run --out "$work/run"
for row in memory data disk time; do
    grep -q "^$row  *[a-z0-9]" "$work/out" || fail "no row $row"
done
[ ! -e "$work/run" ] || fail "a dry run wrote something"
expect 0 '^upload  *150.1 kB to each provider$' "$verde" delegate $job --dry-run
"$verde" run $job --dry-run --keep 2 --json > "$work/kept.json"
"$verde" delegate $job --dry-run --json > "$work/delegate.json"
"$verde" run $job --dry-run --json > "$work/run.json"
"$verde" run $job --out "$work/run" --json > "$work/out" 2> "$work/err"
# A job with prompts of different lengths.
sum=$(take_model llama)
printf '{"key": 1, "ids": [1, 2, 3]}\n{"key": 2, "ids": [5, 4]}\n' > "$work/prompts.jsonl"
cat > "$work/generate.yaml" << YAML
verde: 1
task: generate
model: {kind: pretrained, dir: llama, sha256: $sum}
prompts: {file: prompts.jsonl, sha256: $(sum_of "$work/prompts.jsonl")}
sampling: {greedy: true}
max_tokens: 7
YAML
expect 0 '^prompts  *2, with [0-9]* steps at most' "$verde" run "$work/generate.yaml" --dry-run
"$verde" run "$work/generate.yaml" --dry-run --json > "$work/generate.json"
"$verde" delegate "$work/generate.yaml" --dry-run --json > "$work/generated.json"
python3 - "$work" << 'PYTHON' || fail "another JSON"
import glob
import json
import os
import sys

def read(name):
    with open(f"{sys.argv[1]}/{name}.json") as f:
        return json.load(f)

run, kept, delegate, generate, generated = (read(name) for name in ("run", "kept", "delegate", "generate", "generated"))
assert run["steps"] == 12 and run["prompts"] == 0 and run["steps_timed"] > 1, run
states = [os.path.getsize(path) for path in glob.glob(f"{sys.argv[1]}/run/state-*")]
assert set(states) == {run["state_bytes"]}, states
assert run["disk_bytes"] >= sum(states) and kept["disk_bytes"] < run["disk_bytes"], (run, kept)
assert run["memory_bytes"] > run["state_bytes"] and run["machine_memory_bytes"] > run["memory_bytes"], run
assert 0 < run["step_seconds"] < run["seconds"], run
assert delegate["upload_bytes"] > run["data_bytes"] and delegate["steps"] == 12, delegate
assert generate["prompts"] == 2 and generate["steps"] >= 14 and generate["seconds"] > 0, generate
assert generated["upload_bytes"] > 0 and generated["steps"] == generate["steps"], generated
PYTHON

# A job that is too large for the machine is refused at once, in one line, and leaves nothing behind.
cat > "$work/huge.yaml" << YAML
verde: 1
model: {kind: gpt2, vocab: 256, context: 8, layers: 64, heads: 64, channels: 65536, dropout: 0}
data: {kind: text, file: $PWD/models/data/project.txt, sha256: $(sum_of models/data/project.txt)}
seed: 3
batch: 1
sequence: 8
steps: 10
checkpoint_interval: 1
optimizer: {kind: adamw, lr: 1e-2, beta1: 0.9, beta2: 0.99, eps: 1e-8, weight_decay: 0.1, clip_norm: 1.0}
schedule: {kind: constant, warmup: 0}
YAML
words='huge.yaml: its weights, and what the optimizer keeps, take 39.6 TB of memory, and this machine has '
expect 1 "$words" "$verde" run "$work/huge.yaml" --out "$work/huge"
[ ! -e "$work/huge" ] || fail "a run that was refused left a folder"
expect 1 "$words" "$verde" run "$work/huge.yaml" --dry-run
grep -q '^disk  *[0-9.]* TB' "$work/out" || fail "it does not say what the disk would hold"
# A state that may fit in memory, but more checkpoints than any disk can hold.
sed -e 's/^steps: .*/steps: 2000000000/' -e 's/^checkpoint_interval: .*/checkpoint_interval: 1/' -e 's/warmup: [0-9]*/warmup: 0/' \
    -e "s|\.\./data|$PWD/models/data|" $job > "$work/many.yaml"
expect 1 'its checkpoints take [0-9.]* TB, and the disk of .* has .* in all; --keep N keeps at most N checkpoints' \
    "$verde" run "$work/many.yaml" --out "$work/many"
[ ! -e "$work/many" ] || fail "a run that was refused left a folder"
expect 2 'dry-run: a run with --backend log is not timed' "$verde" run $job --dry-run --backend log
expect 2 'run takes one job file, and --out DIR or --dry-run' "$verde" run $job
echo "$count dry runs and refusals"
