#!/bin/sh
# Jobs with prompts on the device, in other batch sizes than on the CPU: the job root and every line of the results are equal. Fused
# attention over a key cache, and packed operands, give the states of single nodes.
. tests/simt/setup
sum_of() { sha256sum "$1" | cut -d ' ' -f 1; }

# prompts FILE KEY:LENGTH...
prompts() {
    python3 - "$temp/$1" "$@" << 'PYTHON'
import json
import sys
with open(sys.argv[1], "w") as f:
    for prompt in sys.argv[3:]:
        key, length = map(int, prompt.split(":"))
        f.write(json.dumps({"key": key, "ids": [(key * i * i + 3 * i + key) % 63 for i in range(length)]}) + "\n")
PYTHON
}
prompts generate.jsonl 9:1 4:2 7:10 2:7
prompts score.jsonl 4:2 7:12

# job TASK MODEL [MORE]: writes $temp/TASK.yaml.
job() {
    rm -rf "$temp/model"
    mkdir "$temp/model"
    cp "tests/vectors/pretrained/$2/config.json" "tests/vectors/pretrained/$2/model.safetensors" "$temp/model"
    "$build/bin/verde" manifest "$temp/model" --out "$temp/model.manifest" 2> /dev/null
    cat > "$temp/$1.yaml" << YAML
verde: 1
task: $1
model: {kind: pretrained, dir: model, sha256: $(sum_of "$temp/model.manifest")}
prompts: {file: $1.jsonl, sha256: $(sum_of "$temp/$1.jsonl")}
${3:-}
YAML
}

# run TASK NAME OPTION...: runs the job and prints its job root.
run() {
    task=$1 name=$2
    shift 2
    rm -rf "${temp:?}/$name"
    "$build/bin/verde" run "$temp/$task.yaml" --out "$temp/$name" "$@" > "$temp/said" 2> "$temp/err" || { cat "$temp/err" >&2; return 1; }
    sed -n 's/^job root  *//p' "$temp/said"
}

# same TASK MODEL BATCH...: compares the device with the CPU in batches of these sizes.
same() {
    task=$1 model=$2
    shift 2
    for batch; do
        root=$(SIMT_LAUNCHES="$temp/launches" run "$task" device --backend cuda:0 --batch $((9 - batch)))
        [ -n "$root" ] && [ "$(run "$task" cpu --batch "$batch" --threads $((batch % 3 + 1)))" = "$root" ] || fail "$task, $model: another job root in batches of $batch"
        cmp "$temp/cpu/results.jsonl" "$temp/device/results.jsonl" || fail "$task, $model: other results in batches of $batch"
        compared=$((compared + 1))
    done
}

compared=0
for model in gpt2 llama-bf16 mistral qwen2; do
    job generate $model 'sampling: {temperature: 1.5, top_k: 40, top_p: 0.9, seed: 7}
max_tokens: 6
min_tokens: 2
stop: [3, 11]
repetition_penalty: 1.2
log_probabilities: 2'
    same generate $model 1 2 7
    grep -q '^[1-9].*launch_tiles<' "$temp/launches" || fail "$model: no fused attention over kept keys"
done
job score qwen2
same score qwen2 8
[ $bad -eq 0 ] && echo "$compared jobs with prompts: the CPU's job root and results"
# A killed job continues from the journals of its prompts.
job generate mistral 'sampling: {temperature: 1.5, seed: 7}
max_tokens: 20'
root=$(run generate cpu)
rm -rf "$temp/device"
"$build/bin/verde" run "$temp/generate.yaml" --out "$temp/device" --backend cuda:0 > "$temp/said" 2>&1 &
killed=$!
tries=0
while [ ! -s "$temp/device/prompts/9/journal" ] && [ $tries -lt 6000 ]; do
    tries=$((tries + 1))
    sleep 0.05
done
sleep 0.2
kill -9 $killed
wait $killed 2> /dev/null
[ ! -e "$temp/device/results.jsonl" ] || fail "a job ended before it was killed"
"$build/bin/verde" run "$temp/generate.yaml" --out "$temp/device" --backend cuda:0 > "$temp/said" 2> "$temp/err" || { cat "$temp/err"; fail "a job that was killed"; }
[ -n "$root" ] && [ "$(sed -n 's/^job root  *//p' "$temp/said")" = "$root" ] || fail "a job that was killed has another job root"
[ $bad -eq 0 ] && echo "a job that was killed: the CPU's job root"
# Fused groups and single nodes both run on the device.
if [ -x "$build/tests/test_fuse_kept" ]; then
    REPOPS_CPU=cuda:0 "$build/tests/test_fuse_kept" --filter 'fuse_kept/attention*' > "$temp/said" 2>&1 || { tail -n 5 "$temp/said"; fail "fused attention over kept keys"; }
    echo "fused attention over kept keys: the states of its nodes"
fi
if [ -x "$build/tests/test_kept_operands" ]; then
    REPOPS_CPU=cuda:0 "$build/tests/test_kept_operands" > "$temp/said" 2>&1 || { tail -n 5 "$temp/said"; fail "operands that stay packed"; }
    echo "operands that stay packed: the states of their nodes"
fi
exit $bad
