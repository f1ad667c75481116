#!/bin/sh
# Jobs with `products`: one run root for every instruction set and number of threads; a wrong element of a fixed product is
# convicted; no rounding is logged; texts are scored with the bits that made them; errors are one line.
. tests/support/system
isas=$(sh tests/isas.sh)
best=${isas##* }

# job MODEL PRODUCTS STEPS: prints models/jobs/MODEL.yaml with so many steps, without the key if PRODUCTS is none.
job() {
    sed -e "s,\.\./data,$PWD/models/data," -e "s/^steps: .*/steps: $3/" -e 's/^checkpoint_interval: .*/checkpoint_interval: 1/' \
        -e 's/warmup: [0-9]*/warmup: 0/' "models/jobs/$1.yaml"
    [ "$2" = none ] || echo "products: $2"
}

# The key is part of the program; without it the program is the one with fp32.
for products in none fp32 fixed24 fixed16 fixed8; do
    job toy $products 4 > "$work/$products.yaml"
    expect 0 'run root' "$verde" run "$work/$products.yaml" --out "$work/$products" --threads 1 --backend "$best"
    root > "$work/$products.root"
done
cmp "$work/none.root" "$work/fp32.root" || fail "products: fp32 is another job than none"
[ "$(sort -u "$work/none.root" "$work/fixed24.root" "$work/fixed16.root" "$work/fixed8.root" | wc -l)" -eq 4 ] || fail "products change no bit"

# same NAME BACKEND THREADS: $work/NAME.yaml has the root in $work/NAME.root.
same() {
    expect 0 'run root' "$verde" run "$work/$1.yaml" --out "$work/again" --backend "$2" --threads "$3"
    [ "$(root)" = "$(cat "$work/$1.root")" ] || fail "$1: another root on $2 with $3 threads"
    rm -r "$work/again"
}
for products in fixed24 fixed16 fixed8; do
    for isa in $isas; do
        for threads in 1 2 3; do same $products "$isa" $threads; done
    done
    for model in llama-tiny bert-tiny mlp resnet-tiny; do
        job $model $products 2 > "$work/$model.yaml"
        expect 0 'matmul_fixed' "$verde" graph "$work/$model.yaml"
        [ $model != resnet-tiny ] || expect 0 'conv2d_fixed' "$verde" graph "$work/$model.yaml"
        expect 0 'run root' "$verde" run "$work/$model.yaml" --out "$work/$model" --threads 2 --backend "$best"
        root > "$work/$model.root"
        rm -r "${work:?}/$model"
        same $model scalar 1
    done
done

# A wrong element, forward and in a gradient: the referee computes it by its own definition, and anybody can verify the verdict.
# liar PRODUCTS NODE
liar() {
    rm -rf "$work/liar"
    "$verde" run "$work/$1.yaml" --out "$work/liar" --fault "element@2:$2" > "$work/out" 2>&1
    serve liar
    # shellcheck disable=SC2046
    expect 3 'wrong-output' "$verde" arbitrate "$work/$1.yaml" --key "$work/keys" --verdict "$work/verdict.json" --force $(providers "$1" liar)
    expect 0 "$2" "$verde" verify "$work/verdict.json" --job "$work/$1.yaml"
    verify_independently "$work/verdict.json" wrong-output
}
for products in fixed24 fixed16 fixed8; do serve $products; done
liar fixed24 m0.h.1.mlp.down.matmul
liar fixed24 m1.h.0.attn.proj.d_weight
liar fixed16 m1.h.0.mlp.up.matmul
liar fixed16 m0.h.1.attn.qkv.d_weight
liar fixed8 m0.h.0.mlp.down.matmul
liar fixed8 m1.h.1.mlp.up.d_weight

# All devices give the same bits for a fixed product, so rounding logs say nothing about it.
sed 's/^steps: .*/steps: 2/' "$work/fixed24.yaml" > "$work/rounding.yaml"
echo 'rounding: {bits: 32, encoding: calls}' >> "$work/rounding.yaml"
expect 0 'matmul ' "$verde" run "$work/rounding.yaml" --out "$work/trainer" --backend log --profile sim-wide
! grep -q '^matmul_fixed' "$work/out" || fail "fixed products are rounded"
root > "$work/trainer.root"
expect 0 'run root' "$verde" run "$work/rounding.yaml" --out "$work/auditor" --backend log --profile sim-deep --role auditor --follow "$work/trainer"
[ "$(root)" = "$(cat "$work/trainer.root")" ] || fail "an auditor on another device has another root"

# The same for convolutions.
job resnet-tiny fixed24 4 > "$work/images.yaml"
expect 0 'run root' "$verde" run "$work/images.yaml" --out "$work/images" --threads 1 --backend "$best"
root > "$work/images.root"
for isa in $isas; do same images "$isa" 2; done
serve images
liar images m0.s2.b1.conv3.conv
liar images m0.s2.b1.conv2.d_input
liar images m0.s2.b1.short.d_weight

# A text is scored with the bits that made it, whether token by token or with several prompts together.
printf '{"key": 1, "ids": [84, 104, 101]}\n{"key": 2, "ids": [32]}\n' > "$work/prompts.jsonl"
# with_prompts NAME TASK FILE MORE: writes $work/NAME.yaml.
with_prompts() {
    cat > "$work/$1.yaml" << YAML
verde: 1
task: $2
$(grep '^model:' models/jobs/toy.yaml)
products: fixed16
weights: {run: fixed16, root: $(state "$work/fixed16" 4)}
prompts: {file: $3, sha256: $(sum_of "$work/$3")}
$4
YAML
}
with_prompts made generate prompts.jsonl 'sampling: {seed: 7}
max_tokens: 9
log_probabilities: 0'
expect 0 'job root' "$verde" run "$work/made.yaml" --out "$work/made"
expect 0 'job root' "$verde" run "$work/made.yaml" --out "$work/alone" --batch 1 --backend scalar --threads 1
cmp "$work/made/run.json" "$work/alone/run.json" || fail "prompts alone have other roots"
python3 - "$work" << 'PYTHON'
import json
import sys
prompts, made = ([json.loads(line) for line in open(f"{sys.argv[1]}/{name}")] for name in ("prompts.jsonl", "made/results.jsonl"))
with open(sys.argv[1] + "/texts.jsonl", "w") as f:
    for p, m in zip(prompts, made):
        f.write(json.dumps({"key": p["key"], "ids": p["ids"] + m["ids"]}) + "\n")
PYTHON
with_prompts score score texts.jsonl ''
expect 0 'job root' "$verde" run "$work/score.yaml" --out "$work/score"
python3 - "$work" << 'PYTHON' || fail "a text has another score than when it was made"
import json
import sys
made, score = ([json.loads(line) for line in open(f"{sys.argv[1]}/{name}/results.jsonl")] for name in ("made", "score"))
assert len(made) == len(score) == 2
for m, s in zip(made, score):
    assert len(m["ids"]) == 9 and s["log_probabilities"][-9:] == m["log_probabilities"], (m, s)
PYTHON

# 16-bit weights enter products as f32.
write_tokens "$work/tokens.bin" 300
model="model: {kind: pretrained, dir: llama-bf16, sha256: $(take_model llama-bf16)}"
cat > "$work/adapters.yaml" << YAML
verde: 1
$model
data: {kind: tokens, file: tokens.bin, sha256: $(sum_of "$work/tokens.bin")}
lora: {rank: 2, alpha: 4, targets: [attn.q, mlp.up]}
products: fixed24
seed: 7
batch: 4
sequence: 12
steps: 2
checkpoint_interval: 1
optimizer: {kind: sgd, lr: 1e-2, momentum: 0, nesterov: false, weight_decay: 0, clip_norm: 0}
schedule: {kind: constant, warmup: 0}
YAML
expect 0 'run root' "$verde" run "$work/adapters.yaml" --out "$work/adapters"
root > "$work/adapters.root"
same adapters scalar 1

# An image is scored with PyTorch's files.
printf '{"key": 1, "ids": [%s0]}\n' "$(yes '0, ' | head -n 3071 | tr -d '\n')" > "$work/image.jsonl"
cat > "$work/image.yaml" << YAML
verde: 1
task: score
model: {kind: pretrained, dir: resnet, sha256: $(take_model resnet)}
products: fixed24
prompts: {file: image.jsonl, sha256: $(sum_of "$work/image.jsonl")}
YAML
expect 0 'job root' "$verde" run "$work/image.yaml" --out "$work/image"
root > "$work/image.root"
expect 0 'job root' "$verde" run "$work/image.yaml" --out "$work/again" --backend scalar
[ "$(root)" = "$(cat "$work/image.root")" ] || fail "an image has another score by scalar code"
rm -r "$work/again"

# Three different products, on each backend, forward and for both gradients. A mapping of three equal words is that word.
mixed='{forward: fixed16, gradient_x: fp32, gradient_w: fixed24}'
job toy '{forward: fixed16, gradient_x: fixed16, gradient_w: fixed16}' 4 > "$work/thrice.yaml"
cp "$work/fixed16.root" "$work/thrice.root"
same thrice "$best" 2
job toy "$mixed" 4 > "$work/mixed.yaml"
expect 0 'run root' "$verde" run "$work/mixed.yaml" --out "$work/mixed" --threads 1 --backend "$best"
root > "$work/mixed.root"
[ "$(sort -u "$work/mixed.root" "$work/none.root" "$work/fixed24.root" "$work/fixed16.root" | wc -l)" -eq 4 ] || fail "three products are one"
for isa in $isas; do same mixed "$isa" 2; done
expect 0 'fits *yes' "$verde" check "$work/mixed" --job "$work/mixed.yaml"
serve mixed
liar mixed m1.h.0.mlp.up.matmul
liar mixed m1.h.0.mlp.up.d_input
liar mixed m0.h.1.attn.qkv.d_weight
for model in llama-tiny bert-tiny mlp resnet-tiny; do
    job $model "$mixed" 2 > "$work/$model.yaml"
    expect 0 'run root' "$verde" run "$work/$model.yaml" --out "$work/$model" --threads 2 --backend "$best"
    root > "$work/$model.root"
    rm -r "${work:?}/$model"
    same $model scalar 1
done
sed 's/^products: .*/products: {forward: fp32, gradient_x: fixed16, gradient_w: fp32}/' "$work/adapters.yaml" > "$work/backward.yaml"
expect 0 'run root' "$verde" run "$work/backward.yaml" --out "$work/backward"
root > "$work/backward.root"
same backward scalar 1

# Only a mapping's `forward` matters for scoring a text.
sed "s/^products: .*/products: $mixed/" "$work/score.yaml" > "$work/forward.yaml"
expect 0 'job root' "$verde" run "$work/forward.yaml" --out "$work/forward"
cmp "$work/score/run.json" "$work/forward/run.json" || fail "a score depends on products of gradients"

# Errors are told in one line.
sed 's/^products: .*/products: fp16/' "$work/fp32.yaml" > "$work/bad.yaml"
expect 2 '`products` must be fp32, fixed24, fixed16 or fixed8, or {forward, gradient_x, gradient_w} of these, got fp16' "$verde" run "$work/bad.yaml" --out "$work/none"
one_line
echo "$count commands"
