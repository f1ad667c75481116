#!/bin/sh
# A run's weights are exported as safetensors with a proof, by which `verde check` decides whether they are those of the run that
# a verdict accepts. Any change of weights, proof or index is reported in one line.
. tests/support/system
job=models/jobs/toy.yaml

# expect EXIT_CODE WORDS COMMAND...: as in tests/support/system, but an error must also be one line.
expect() {
    want=$1 words=$2
    shift 2
    code=0
    timeout 1200 "$@" > "$work/out" 2> "$work/err" || code=$?
    [ $code -eq "$want" ] || fail "$*: exit code $code, expected $want"
    [ "$want" -eq 0 ] || [ "$(wc -l < "$work/err")" -eq 1 ] || fail "$*: not one line"
    grep -q -- "$words" "$work/out" "$work/err" || fail "$*: not \"$words\""
    [ "$want" -eq 0 ] || ! grep -q 'fits' "$work/out" || fail "$*: it fits, beside an error"
    count=$((count + 1))
}

# flip FILE OFFSET: changes one bit of this byte.
flip() {
    byte=$(od -An -tu1 -j "$2" -N 1 "$1")
    printf "\\$(printf %o $((byte ^ 4)))" | dd of="$1" bs=1 seek="$2" conv=notrunc 2> /dev/null
}

fresh() {
    rm -rf "$work/model"
    cp -r "$work/whole" "$work/model"
}

"$verde" run $job --out "$work/run" > /dev/null 2>&1
root=$(sed -n 's/ "root": "\(.*\)"/\1/p' "$work/run/run.json")

# ---- export ----

expect 0 "28 tensors of step 12" "$verde" export "$work/run" --out "$work/whole"
grep -q "^run root     $root, to which" "$work/out" || fail "another run root than run.json's"
expect 2 'exists already' "$verde" export "$work/run" --out "$work/whole"
expect 0 '"proof":true' "$verde" export "$work/run" --out "$work/whole" --force --json
expect 2 'a run lies there' "$verde" export "$work/run" --out "$work/run"
expect 2 'no checkpoint at step 5; there is one each 4 steps' "$verde" export "$work/run" --out "$work/no" --step 5
expect 2 'must be f32 or bf16' "$verde" export "$work/run" --out "$work/no" --dtype f16
expect 2 'shard-size' "$verde" export "$work/run" --out "$work/no" --shard-size 0
[ ! -e "$work/no" ] || fail "a failed export made a directory"
cp -r "$work/run" "$work/damaged"
for state in "$work"/damaged/state-*; do flip "$state" 2000; done
expect 6 'its bytes are not the state of step 12' "$verde" export "$work/damaged" --out "$work/no"
expect 0 'wrote' "$verde" export "$work/run" --out "$work/sharded" --shard-size 20000
[ "$(ls "$work"/sharded/model-0000?-of-00008.safetensors | wc -l)" -eq 8 ] || fail "not 8 shards"
expect 0 'of step 8' "$verde" export "$work/run" --out "$work/early" --step 8
expect 0 'rounded to BF16' "$verde" export "$work/run" --out "$work/narrow" --dtype bf16

# ---- check, without a verdict ----

for model in whole sharded; do
    expect 0 'fits         yes' "$verde" check "$work/$model"
    grep -q "^run root     $root" "$work/out" || fail "$model: another run root"
done
expect 0 '"final":true' "$verde" check "$work/whole" --json
expect 6 'is the model after step 8 of 12, expected step 12' "$verde" check "$work/early"
expect 0 'after step 8 of 12:' "$verde" check "$work/early" --step 8
expect 6 'expected step 8' "$verde" check "$work/whole" --step 8
expect 2 'goes with an exported model' "$verde" check "$work/run" --step 8
expect 5 'rounded weights cannot be checked' "$verde" check "$work/narrow"
expect 0 'fits' "$verde" check "$work/whole" --job $job
expect 6 'another program' "$verde" check "$work/whole" --job models/jobs/mlp.yaml

# ---- weights of something else ----

size=$(wc -c < "$work/whole/model.safetensors")
header=$(($(od -An -tu8 -N 8 "$work/whole/model.safetensors") + 8))
for at in $header $((header + 1)) $(((header + size) / 2)) $((size - 1)); do
    fresh
    flip "$work/model/model.safetensors" "$at"
    expect 6 'model.safetensors: tensor .*: its bytes give' "$verde" check "$work/model"
done
fresh
truncate -s -1 "$work/model/model.safetensors"
expect 6 'beyond the' "$verde" check "$work/model"
fresh
printf x >> "$work/model/model.safetensors"
expect 6 '1 bytes at the end of the file belong to no tensor' "$verde" check "$work/model"
fresh
sed -i 's/"transformer.h.0.attn.c_attn.bias"/"transformer.h.0.attn.c_attn.bius"/' "$work/model/model.safetensors"
expect 6 'lacks tensor transformer.h.0.attn.c_attn.bias, expected F32 \[96\]' "$verde" check "$work/model"
# Two tensors of the same shape with swapped names are another model.
fresh
sed -i 's/"transformer.h.0.ln_1.bias"/"transformer.h.9.ln_1.bias"/; s/"transformer.h.0.ln_2.bias"/"transformer.h.0.ln_1.bias"/
    s/"transformer.h.9.ln_1.bias"/"transformer.h.0.ln_2.bias"/' "$work/model/model.safetensors"
expect 6 'tensor transformer.h.0.ln_[12].bias: its bytes give' "$verde" check "$work/model"
fresh
sed -i 's/"shape":\[32,96\]/"shape":[96,32]/' "$work/model/model.safetensors"
expect 6 'is F32 \[96,32\], expected F32 \[32,96\]' "$verde" check "$work/model"
fresh
sed -i 's/"F32","shape":\[32,96\]/"I32","shape":[32,96]/' "$work/model/model.safetensors"
expect 5 'is I32, and the run.s is F32' "$verde" check "$work/model"
rm -rf "$work/model" && cp -r "$work/sharded" "$work/model"
rm "$work/model/model-00003-of-00008.safetensors"
expect 6 'model-00003-of-00008.safetensors: No such file' "$verde" check "$work/model"
cp "$work/model/model-00004-of-00008.safetensors" "$work/model/model-00003-of-00008.safetensors"
expect 6 'lies in' "$verde" check "$work/model"
cp "$work/sharded/model-00003-of-00008.safetensors" "$work/model"
cp "$work/whole/model.safetensors" "$work/model"
expect 6 'which is meant' "$verde" check "$work/model"
fresh
rm "$work/model/model.safetensors"
expect 6 'expected model.safetensors' "$verde" check "$work/model"
printf x > "$work/model/pytorch_model.bin"
expect 6 'pytorch_model.bin, a pickle' "$verde" check "$work/model"

# ---- config.json ----

expect 0 "means the job's model" "$verde" check "$work/whole" --job $job
expect 0 'gives the names alone' "$verde" check "$work/whole"
# edited SCRIPT: applies sed's SCRIPT to config.json in a fresh folder; it must change the file.
edited() {
    fresh
    sed -i "$1" "$work/model/config.json"
    if cmp -s "$work/whole/config.json" "$work/model/config.json"; then fail "$1 changed nothing"; fi
}
for edit in 's/"n_head": 2/"n_head": 4/' 's/gelu_new/relu/' 's/"layer_norm_epsilon": 1/"layer_norm_epsilon": 2/'; do
    edited "$edit"
    expect 0 'gives the names alone' "$verde" check "$work/model"
    expect 6 "config.json: means another model than $job" "$verde" check "$work/model" --job $job
done
edited 's/"n_layer": 2/"n_layer": 3/'
expect 6 "config.json: is of a model with other tensors than the program's" "$verde" check "$work/model"
edited 's/"gpt2"/"gpt3"/'
expect 6 "config.json: is of a model with other tensors than the program's: .*model_type must be" "$verde" check "$work/model"
rm "$work/model/config.json"
expect 6 'lacks tensor wte' "$verde" check "$work/model"
grep -q '"torch_dtype": "bfloat16"' "$work/narrow/config.json" || fail "config.json does not say bfloat16"
expect 0 '"config":"compared"' "$verde" check "$work/whole" --job $job --json
"$verde" run models/jobs/llama-tiny.yaml --out "$work/llama" > /dev/null 2>&1
expect 0 '21 tensors' "$verde" export "$work/llama" --out "$work/llama-model"
expect 0 "means the job's model" "$verde" check "$work/llama-model" --job models/jobs/llama-tiny.yaml
# A kind of model that transformers lacks keeps the names of its leaves.
"$verde" run models/jobs/mlp.yaml --out "$work/other" > /dev/null 2>&1
expect 0 '7 tensors' "$verde" export "$work/other" --out "$work/mlp"
[ ! -e "$work/mlp/config.json" ] || fail "a config.json for an mlp"
expect 0 'fits' "$verde" check "$work/mlp" --job models/jobs/mlp.yaml

# ---- proofs that do not hold ----

# changed SCRIPT: applies sed's SCRIPT to the proof in a fresh folder; it must change the file.
changed() {
    fresh
    sed "$1" "$work/whole/proof.json" > "$work/model/proof.json"
    if cmp -s "$work/whole/proof.json" "$work/model/proof.json"; then fail "$1 changed nothing"; fi
}
changed 's/"step": 12/"step": 8/'
expect 6 'proof.json:' "$verde" check "$work/model" --step 8
changed 's/"step": 12/"step": 7/'
expect 6 'step 7 is no checkpoint' "$verde" check "$work/model"
changed 's/"step": 12/"step": -1/'
expect 6 'step -1 is no checkpoint' "$verde" check "$work/model"
changed 's/"step": 12/"step": 12.0/'
expect 6 'whole number' "$verde" check "$work/model"
changed 's/"run_root": ".\{64\}/"run_root": "0000000000000000000000000000000000000000000000000000000000000000/'
expect 6 'proof.json:' "$verde" check "$work/model"
changed 's/"run_root": "./"run_root": "/'
expect 6 'run_root' "$verde" check "$work/model"
changed 's/"program": ".../"program": "AAA/'
expect 6 'proof.json:' "$verde" check "$work/model"
changed 's/"verde_proof": 1/"verde_proof": 2/'
expect 8 'proof.json: version 2 of the proof of a state; this verde reads version 1' "$verde" check "$work/model"
changed 's/"path": \[/"path": ["'"$root"'",/'
expect 6 'proof.json:' "$verde" check "$work/model"
changed 's/"tensors": \[/"tensors": ["'"$root"'",/'
expect 6 'one for each leaf' "$verde" check "$work/model"
# Every commitment counts, also those of the optimizer's tensors, which are in no file.
lines=$(grep -n '"tensors"' "$work/whole/proof.json" | cut -d: -f1)
for line in $((lines + 1)) $((lines + 40)) $((lines + 86)); do
    changed "${line}s/\"[0-9a-f]\\{64\\}\"/\"$root\"/"
    expect 6 'proof.json:' "$verde" check "$work/model"
done
head -c 3000 "$work/whole/proof.json" > "$work/model/proof.json"
expect 6 'JSON object' "$verde" check "$work/model"

# ---- with a verdict ----

"$verde" run $job --out "$work/liar" --fault element@5 > /dev/null 2>&1
for name in run liar; do
    serve $name --key "$work/keys-$name"
done
verdict=$work/verdict.json
code=0
# shellcheck disable=SC2046
"$verde" arbitrate $job --key "$work/referee" --verdict "$verdict" --no-challenge $(providers run liar) \
    > "$work/out" 2> "$work/err" || code=$?
[ $code -eq 3 ] || fail "exit code $code, expected a conviction"
cleanup
referee=$(cat "$work/referee/key.pub")
expect 0 'it accepts this run' "$verde" check "$work/whole" --verdict "$verdict"
expect 0 '"accepts_this":true' "$verde" check "$work/sharded" --verdict "$verdict" --referee "$referee" --json
expect 0 'after step 8 of 12:' "$verde" check "$work/early" --verdict "$verdict" --step 8
expect 6 'expected step 12' "$verde" check "$work/early" --verdict "$verdict"
expect 5 'rounded weights' "$verde" check "$work/narrow" --verdict "$verdict"
expect 6 'another referee' "$verde" check "$work/whole" --verdict "$verdict" --referee "$(cat "$work/keys-liar/key.pub")"
"$verde" export "$work/liar" --out "$work/lie" > /dev/null
expect 0 'fits         yes' "$verde" check "$work/lie"
expect 6 'accepts run root' "$verde" check "$work/lie" --verdict "$verdict"
# The liar's weights with the honest proof.
fresh
cp "$work/lie/model.safetensors" "$work/model"
expect 6 'its bytes give' "$verde" check "$work/model" --verdict "$verdict"
expect 6 'about another program' "$verde" check "$work/mlp" --verdict "$verdict"

# ---- manifests ----

vectors=tests/vectors/weights
for model in gpt2 llama types; do
    expect 0 'SHA-256 of the manifest' "$verde" manifest $vectors/$model
    cmp -s "$work/out" $vectors/$model.manifest || fail "$model: another manifest than the generator's"
    expect 0 "$(sha256sum < $vectors/$model.manifest | cut -d' ' -f1)" "$verde" manifest $vectors/$model --json
    expect 0 'as the manifest says' "$verde" manifest $vectors/$model --against $vectors/$model.manifest
    expect 0 'tensors in' "$verde" manifest $vectors/$model --out "$work/manifest"
    cmp -s "$work/manifest" $vectors/$model.manifest || fail "$model: --out wrote another manifest"
done
cp -r $vectors/gpt2 "$work/gpt2"
flip "$work/gpt2/model.safetensors" 30000
expect 6 'gpt2/model.safetensors: tensor .*: its bytes give' "$verde" manifest "$work/gpt2" --against $vectors/gpt2.manifest
expect 2 'model.safetensors:1: expected the line `verde manifest 1`' "$verde" manifest $vectors/gpt2 --against "$work/gpt2/model.safetensors"
expect 2 'expected model.safetensors' "$verde" manifest "$work"
expect 2 'no such file' "$verde" manifest "$work/nowhere"
expect 2 'cannot create' "$verde" manifest $vectors/gpt2 --out "$work/nowhere/manifest"
expect 2 'is this a safetensors file?' "$verde" manifest "$work/whole/proof.json"

# ---- an unfinished run, and one with rounding logs ----

# The run as it was before its last checkpoint.
cp -r "$work/run" "$work/part"
python3 - "$work/part/run.json" << 'PYTHON'
import hashlib
import json
import sys
log = json.load(open(sys.argv[1]))
log["states"] = log["states"][:3]
a, b, c = (hashlib.sha256(b"\0" + bytes.fromhex(s["state"])).digest() for s in log["states"])
log["root"] = hashlib.sha256(b"\1" + hashlib.sha256(b"\1" + a + b).digest() + c).hexdigest()
json.dump(log, open(sys.argv[1], "w"))
PYTHON
expect 0 'proof        none: the run is not finished' "$verde" export "$work/part" --out "$work/whole-part"
[ ! -e "$work/whole-part/proof.json" ] || fail "a proof of an unfinished run"
cp "$work/whole/proof.json" "$work/whole-part"
expect 0 '"proof":false' "$verde" export "$work/part" --out "$work/whole-part" --force --json
[ ! -e "$work/whole-part/proof.json" ] || fail "an older proof beside newer weights"

sed -e "s,file: \.\./data,file: $PWD/models/data," $job > "$work/rounding.yaml"
printf 'rounding:\n  bits: 32\n  encoding: calls\n' >> "$work/rounding.yaml"
"$verde" run "$work/rounding.yaml" --out "$work/logged" --backend log > /dev/null 2>&1
expect 0 'proof.json leads' "$verde" export "$work/logged" --out "$work/logged-model"
expect 0 'fits         yes' "$verde" check "$work/logged-model"
sed '/"logs"/s/"logs": "...../"logs": "00000/' "$work/logged-model/proof.json" > "$work/proof.json"
cp "$work/proof.json" "$work/logged-model"
expect 6 'proof.json:' "$verde" check "$work/logged-model"

echo "$count exports and checks of models"
