#!/bin/sh
# The tiny ResNet learns made-up images: the loss of its last step is below half of the first one's.
set -eu
build=$1
work=$build/tests/resnet
[ -z "${SANITIZED:-}" ] || { echo "not under sanitizers: evaluate.sh trains these models"; exit 77; }
rm -rf "$work"
mkdir -p "$work"
"$build/bin/standin" 400 > "$work/stripes.bin" 2> "$work/says.txt"
grep -q 'not CIFAR-10' "$work/says.txt"
sed -e "s,\.\./data/,$PWD/$work/," models/jobs/resnet-tiny.yaml > "$work/job.yaml"
"$build/bin/verde" run "$work/job.yaml" --out "$work/run" --json > "$work/out.json"
sed -n 's/.*"loss_first":\([0-9.]*\),"loss_last":\([0-9.]*\).*/\1 \2/p' "$work/out.json" |
    awk '{ printf "loss %.4f -> %.4f in 30 steps\n", $1, $2; exit !($2 < $1 / 2) }'
