#!/bin/sh
# The tiny Llama-style decoder learns: the loss of its last step is well below the first one's.
set -eu
build=$1
work=$build/tests/llama
rm -rf "$work"
mkdir -p "$work"
"$build/bin/verde" run models/jobs/llama-tiny.yaml --out "$work/run" --json > "$work/out.json"
sed 's/.*"loss_first":\([0-9.]*\),"loss_last":\([0-9.]*\).*/\1 \2/' "$work/out.json" |
    awk '{ printf "loss %.4f -> %.4f in 40 steps\n", $1, $2; exit !($2 < 0.75 * $1) }'
