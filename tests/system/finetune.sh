#!/bin/sh
# Pretrained weights are fine-tuned, fully and by adapters. The run root is the same with any number of threads, on every
# instruction set and after kills (tests/simt/training.sh: on the simulated device; tests/portable: on other machines). The
# exported model is the one that a verdict accepts; a provider that starts from other weights is convicted where they are first
# read, by a referee without weights. Files other than the job's are reported in one line.
. tests/support/system
mkdir "$work/referee"

set -- "$work" # what tests/support/finetune takes
. tests/support/finetune
steps=100
[ -z "${SANITIZED:-}" ] || steps=10 # many times slower
job $steps $((steps / 5)) > "$work/full.yaml"
job $steps $((steps / 5)) lora > "$work/lora.yaml"
cp "$work"/*.yaml "$work/model.manifest" "$work/tokens.bin" "$work/referee"

# ---- one root ----

# same KIND NAME OPTION...: a run of its own has the root of the first.
same() {
    kind=$1 name=$2
    shift 2
    expect 0 'run root' "$verde" run "$work/$kind.yaml" --out "$work/$kind.$name" "$@"
    [ "$(root)" = "$(cat "$work/$kind.root")" ] || fail "$kind, $*: another root"
    rm -rf "${work:?}/$kind.$name"
}

# states DIR: prints the number of checkpoints there.
states() { find "$1" -name 'state-*' 2> /dev/null | wc -l; }

# killed KIND: a longer run is killed midway, and continues to the same root.
killed() {
    out=$work/$1.killed
    sed "s/^steps: .*/steps: $((10 * steps))/; s/^checkpoint_interval: .*/checkpoint_interval: 20/" "$work/$1.yaml" > "$work/long.yaml"
    expect 0 'run root' "$verde" run "$work/long.yaml" --out "$work/long"
    root > "$work/long.root"
    rm -r "$work/long"
    "$verde" run "$work/long.yaml" --out "$out" > "$work/out" 2> "$work/err" &
    pid=$!
    while kill -0 $pid 2> /dev/null && [ "$(states "$out")" -lt 4 ]; do sleep 0.01; done
    kill -9 $pid 2> /dev/null || true
    if wait $pid 2> /dev/null; then fail "$1: it ended before it was killed"; fi
    expect 0 'run root' "$verde" run "$work/long.yaml" --out "$out"
    grep -q 'went on from the checkpoint' "$work/err" || fail "$1: began anew"
    [ "$(root)" = "$(cat "$work/long.root")" ] || fail "$1: another root after a kill"
    rm -r "$out"
}

for kind in full lora; do
    expect 0 'run root' "$verde" run "$work/$kind.yaml" --out "$work/$kind" --threads 1
    root > "$work/$kind.root"
    same $kind threads --threads 3
    for isa in $(sh tests/isas.sh); do same $kind "$isa" --backend "$isa"; done
    killed $kind
done

# ---- exported and disputed ----

# disputed KIND FAULT STEP NODE: a run with the FAULT is convicted at this place, by a referee without weights.
disputed() {
    kind=$1
    rm -rf "$work/liar" "$work/verdict.json"
    expect 0 'run root' "$verde" run "$work/$kind.yaml" --out "$work/liar" --fault "$2"
    for run in "$kind" liar; do
        serve "$run" --key "$work/key-$run"
    done
    # shellcheck disable=SC2046
    expect 3 "\"step\":$3," "$verde" arbitrate "$work/referee/$kind.yaml" --key "$work/keys" --verdict "$work/verdict.json" --json \
        --no-challenge $(providers "$kind" liar)
    cleanup
    expect 0 "$4" "$verde" inspect "$work/verdict.json"
    # The verdict suffices to decide again: without the folder, its manifest or the run.
    mkdir -p "$work/alone"
    cp "$work/verdict.json" "$work/alone"
    (cd "$work/alone" && "$verde_path" verify verdict.json > ../out 2> ../err) || fail "$kind: the verdict does not hold by itself"
    expect 0 "it accepts this run" "$verde" check "$work/$kind" --verdict "$work/verdict.json"
    expect 6 "convicted" "$verde" check "$work/liar" --verdict "$work/verdict.json"
}

# delivered KIND: the model exported from the run is the one that the last verdict accepts.
delivered() {
    expect 0 'run root\|proof' "$verde" export "$work/$1" --out "$work/$1.model"
    expect 0 'it accepts this run' "$verde" check "$work/$1.model" --verdict "$work/verdict.json"
    expect 0 'proof' "$verde" export "$work/liar" --out "$work/liar.model" --force
    expect 6 'accepts run root' "$verde" check "$work/liar.model" --verdict "$work/verdict.json"
}

verde_path=$(cd "$(dirname "$verde")" && pwd)/verde
disputed full weights -1 init.tokens
delivered full
disputed lora weights@0:m0.embed.tokens 0 m0.embed.tokens
disputed lora element@0:m0.h.0.attn.q.matmul 0 m0.h.0.attn.q.matmul
delivered lora

# ---- files other than the job's ----

# hurt WHAT: changes $work/model/model.safetensors.
hurt() {
    python3 - "$1" "$work/model/model.safetensors" << 'PYTHON'
import json
import struct
import sys
what, path = sys.argv[1:]
whole = open(path, "rb").read()
size = struct.unpack("<Q", whole[:8])[0]
header, tensors = json.loads(whole[8:8 + size]), whole[8 + size:]
name = "model.layers.0.mlp.up_proj.weight"
text = None
if what == "byte":
    at = header[name]["data_offsets"][0] + 7
    tensors = tensors[:at] + bytes([tensors[at] ^ 1]) + tensors[at + 1:]
elif what == "dtype":
    header[name]["dtype"] = "I32"
elif what == "shape":
    header[name]["shape"].reverse()
elif what == "missing":
    header["other"] = header.pop(name)
elif what == "doubled":
    text = json.dumps(header)[:-1] + ', "%s": %s}' % (name, json.dumps(header[name]))
elif what == "truncated":
    tensors = tensors[:-100]
elif what == "hostile":
    header["wide"] = {"dtype": "F32", "shape": [2**62, 4], "data_offsets": [0, 2**63 - 1]}
text = (text or json.dumps(header)).encode()
text += b" " * (-len(text) % 8)
open(path, "wb").write(struct.pack("<Q", len(text)) + text + tensors)
PYTHON
}
fresh() { cp tests/vectors/pretrained/llama/config.json tests/vectors/pretrained/llama/model.safetensors "$work/model"; }
# refused EXIT_CODE WORDS: a run of either kind is refused in one line.
refused() {
    for kind in full lora; do
        expect "$1" "$2" "$verde" run "$work/$kind.yaml" --out "$work/none"
        [ "$(wc -l < "$work/err")" -eq 1 ] || fail "$2: not one line"
    done
    fresh
}

file='model/model.safetensors'
tensor='tensor model.layers.0.mlp.up_proj.weight'
hurt byte
refused 6 "$file: $tensor: its bytes give .*, expected"
hurt dtype
refused 6 "$file: $tensor is I32 .24,16., expected F32 .24,16."
hurt shape
refused 6 "$file: $tensor is F32 .16,24., expected F32 .24,16."
hurt missing
refused 6 "$file: lacks $tensor, expected F32 .24,16."
hurt doubled
refused 2 "$file: .*duplicate.*model.layers.0.mlp.up_proj.weight"
hurt truncated
refused 2 "$file: tensor .* beyond the"
hurt hostile
refused 2 "$file: tensor wide: .shape. has more than"
sed -i 's/"rms_norm_eps": 1e-06/"rms_norm_eps": 1e-05/' "$work/model/config.json"
refused 6 'config.json: holds other bytes'
# Without the manifest beside the folder only the hash can be compared; the line says what would tell more.
hurt byte
mv "$work/model.manifest" "$work/held"
refused 2 'but the manifest of .* has .* --against'
mv "$work/held" "$work/model.manifest"

echo "$count commands did what they should: one root each, fully and by adapters"
