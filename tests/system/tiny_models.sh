#!/bin/sh
# The tiny decoder and the tiny encoder learn: the loss of the last step is well below the first one's.
set -eu
build=$1
work=$build/tests/tiny_models
[ -z "${SANITIZED:-}" ] || { echo "not under sanitizers: evaluate.sh trains these models"; exit 77; }
rm -rf "$work"
mkdir -p "$work"
for model in llama bert; do
    "$build/bin/verde" run models/jobs/$model-tiny.yaml --out "$work/$model" --json > "$work/$model.json"
    sed -n 's/.*"loss_first":\([0-9.]*\),"loss_last":\([0-9.]*\).*/\1 \2/p' "$work/$model.json" |
        awk -v model=$model '{ printf "%s: loss %.4f -> %.4f\n", model, $1, $2; exit !($2 < 0.75 * $1) }'
done
