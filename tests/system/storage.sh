#!/bin/sh
# Jobs with `storage`: one run root for every instruction set, number of threads and of processes, and after a kill; a wrong
# element of a stored tensor is convicted; states can be exported, loaded, evaluated and continued from; errors are one line.
. tests/support/system
isas=$(sh tests/isas.sh)
best=${isas##* }

# job MODEL STEPS [LINE...]: prints models/jobs/MODEL.yaml with so many steps and these lines.
job() {
    sed -e "s,\.\./data,$PWD/models/data," -e "s/^steps: .*/steps: $2/" -e 's/^checkpoint_interval: .*/checkpoint_interval: 1/' \
        -e 's/warmup: [0-9]*/warmup: 0/' "models/jobs/$1.yaml"
    shift 2
    for line in "$@"; do echo "$line"; done
}

# run_one NAME: runs $work/NAME.yaml for the first time; its root is in $work/NAME.root.
run_one() {
    expect 0 'run root' "$verde" run "$work/$1.yaml" --out "$work/$1" --threads 1 --backend "$best"
    root > "$work/$1.root"
}

# same NAME BACKEND THREADS: $work/NAME.yaml has the root in $work/NAME.root.
same() {
    expect 0 'run root' "$verde" run "$work/$1.yaml" --out "$work/again" --backend "$2" --threads "$3"
    [ "$(root)" = "$(cat "$work/$1.root")" ] || fail "$1: another root on $2 with $3 threads"
    rm -r "$work/again"
}

# The key is part of the program; without it the program is the one with fp32.
job toy 4 > "$work/none.yaml"
job toy 4 'storage: fp32' > "$work/fp32.yaml"
job toy 4 'storage: bf16' > "$work/bf16.yaml"
job toy 4 'storage: bf16' 'products: fixed16' > "$work/fixed.yaml"
job toy 4 'storage: bf16' 'products: fixed24' > "$work/fixed24.yaml"
for name in none fp32 bf16 fixed fixed24; do run_one $name; done
cmp "$work/none.root" "$work/fp32.root" || fail "storage: fp32 is another job than none"
[ "$(sort -u "$work/none.root" "$work/bf16.root" "$work/fixed.root" "$work/fixed24.root" | wc -l)" -eq 4 ] || fail "storage changes no bit"
for isa in $isas; do
    for threads in 1 3; do same bf16 "$isa" $threads; done
done
same fixed scalar 2
for model in llama-tiny bert-tiny mlp resnet-tiny; do
    job $model 2 'storage: bf16' > "$work/$model.yaml"
    expect 0 'cast_stochastic' "$verde" graph "$work/$model.yaml"
    run_one $model
    same $model scalar 2
done

# States have almost half the bytes; a run that was killed continues.
large=$(cat "$work"/none/state-* | wc -c) small=$(cat "$work"/bf16/state-* | wc -c)
[ "$((10 * small))" -lt "$((6 * large))" ] || fail "states of $small bytes, in place of $large"
cp "$work/bf16.yaml" "$work/long.yaml"
sed -i -e 's/^steps: .*/steps: 400/' "$work/long.yaml"
expect 0 'run root' "$verde" run "$work/long.yaml" --out "$work/long"
root > "$work/long.root"
rm -r "$work/long"
"$verde" run "$work/long.yaml" --out "$work/long" > "$work/out" 2> "$work/err" &
pid=$!
tries=0
until [ "$(find "$work/long" -name 'state-*' 2> /dev/null | wc -l)" -ge 5 ]; do
    tries=$((tries + 1))
    [ $tries -lt 6000 ] && kill -0 $pid || fail "no state of a long run"
    sleep 0.01
done
kill -9 $pid
wait $pid 2> /dev/null || true
expect 0 'went on from the checkpoint' "$verde" run "$work/long.yaml" --out "$work/long"
[ "$(root)" = "$(cat "$work/long.root")" ] || fail "another root after a kill"

# A wrong element of a weight, a moment, an activation and a fixed product (where rounding to bf16 does not hide it): the referee
# computes it by its own definition, and anybody can verify the verdict.
# liar NAME NODE
liar() {
    rm -rf "$work/liar"
    "$verde" run "$work/$1.yaml" --out "$work/liar" --fault "element@2:$2" > "$work/out" 2>&1
    serve liar
    # shellcheck disable=SC2046
    expect 3 'wrong-output' "$verde" arbitrate "$work/$1.yaml" --key "$work/keys" --verdict "$work/verdict.json" --force $(providers "$1" liar)
    expect 0 "$2" "$verde" verify "$work/verdict.json" --job "$work/$1.yaml"
    verify_independently "$work/verdict.json" wrong-output
}
serve bf16
serve fixed
for node in adamw.wte.w_bf16 adamw.h.0.mlp.up.weight.v_bf16 m1.h.0.mlp.up.argument_bf16 m0.h.1.attn.qkv_bf16; do liar bf16 $node; done
liar fixed m1.logits.d_input

# One of three lies; the others computed the right result on different instruction sets.
for name in fixed24 llama-tiny; do
    expect 0 'run root' "$verde" run "$work/$name.yaml" --out "$work/second" --backend scalar
    expect 0 'fits' "$verde" check "$work/second"
    node=$("$verde" graph "$work/$name.yaml" | awk '$3 ~ /^cast_stochastic/ { node = $2 } END { print node }')
    rm -rf "$work/liar"
    "$verde" run "$work/$name.yaml" --out "$work/liar" --fault "element@1:$node" > "$work/out" 2>&1
    for run in "$name" liar second; do serve "$run"; done
    # shellcheck disable=SC2046
    expect 3 'wrong-output' "$verde" arbitrate "$work/$name.yaml" --key "$work/keys" --verdict "$work/verdict.json" --force \
        $(providers "$name" liar) --provider "$(cat "$work/second.url")"
    expect 0 "$node" "$verde" verify "$work/verdict.json" --job "$work/$name.yaml"
    rm -r "$work/second"
done

# The weights are exported as BF16 with a proof; Python reads the state.
expect 0 'step 4' "$verde" export "$work/bf16" --out "$work/model"
expect 0 'fits         yes' "$verde" check "$work/model"
head -c 300 "$work/model/model.safetensors" | grep -q '"dtype":"BF16"' || fail "what is exported is no BF16"
if python3 -c 'import numpy' 2> /dev/null; then
    PYTHONPATH=python python3 - "$work" << 'PYTHON' || fail "Python reads another state"
import sys
import numpy as np
import verde
state = verde.load(sys.argv[1] + "/bf16")
for leaf in state.program.leaves:
    assert leaf.dtype == ("f32" if leaf.name in ("adamw.c1", "adamw.c2") else "bf16"), leaf
weights = (state["wte"].astype(np.uint32) << 16).view(np.float32)
assert 0.01 < weights.std() < 0.1 and np.isfinite(weights).all()
PYTHON
fi

# A state is evaluated, and another run continues from it: exactly, or with the other storage.
cat > "$work/evaluate.yaml" << YAML
verde: 1
task: evaluate
$(grep '^model:' models/jobs/toy.yaml)
$(sed -e "s,file: \.\./data,file: $PWD/models/data," -n -e '/^data:/,/^seed/p' models/jobs/toy.yaml)
batch: 64
sequence: 32
weights: {run: bf16, root: $(state "$work/bf16" 4)}
YAML
expect 0 'evaluation' "$verde" run "$work/evaluate.yaml" --out "$work/evaluation"
for storage in bf16 fp32; do
    job toy 2 "storage: $storage" "weights: {run: bf16, root: $(state "$work/bf16" 2)}" > "$work/on.$storage.yaml"
    run_one on.$storage
done
[ "$(state "$work/on.bf16" 2)" != "$(state "$work/on.fp32" 2)" ] || fail "both storages go on alike"
job toy 2 'storage: bf16' "weights: {run: none, root: $(state "$work/none" 2)}" > "$work/on.yaml"
run_one on
same on scalar 2

# Pretrained weights of 32 and of 16 bits.
write_tokens "$work/tokens.bin" 300
for model in gpt2 llama-bf16; do
    for adapters in '' 'lora: {rank: 2, alpha: 4, targets: [mlp.up]}'; do
        cat > "$work/given.yaml" << YAML
verde: 1
model: {kind: pretrained, dir: $model, sha256: $(take_model $model)}
data: {kind: tokens, file: tokens.bin, sha256: $(sum_of "$work/tokens.bin")}
$adapters
storage: bf16
seed: 7
batch: 4
sequence: 12
steps: 2
checkpoint_interval: 1
optimizer: {kind: sgd, lr: 1e-2, momentum: 0.5, nesterov: true, weight_decay: 0.1, clip_norm: 1}
schedule: {kind: constant, warmup: 0}
YAML
        rm -rf "$work/given"
        run_one given
        same given scalar 1
    done
done

# Errors are told in one line.
sed 's/^storage: .*/storage: fp16/' "$work/bf16.yaml" > "$work/bad.yaml"
expect 2 '`storage` must be fp32 or bf16, got fp16' "$verde" run "$work/bad.yaml" --out "$work/no"
one_line
echo 'storage: bf16' >> "$work/evaluate.yaml"
expect 2 'storage' "$verde" run "$work/evaluate.yaml" --out "$work/no"
one_line
echo "$count commands"
