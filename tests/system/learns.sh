#!/bin/sh
# 200 steps of the demo job more than halve its loss.
set -eu
build=$1
work=$build/tests/learns
[ -z "${SANITIZED:-}" ] || { echo "not under sanitizers: nothing new to see, and slow"; exit 77; }
rm -rf "$work"
mkdir -p "$work"
sed -e 's/^steps: .*/steps: 200/' -e 's/^checkpoint_interval: .*/checkpoint_interval: 200/' \
    -e "s,file: \.\./data,file: $PWD/models/data," models/jobs/demo.yaml > "$work/job.yaml"
"$build/bin/verde" run "$work/job.yaml" --out "$work/run" --json > "$work/out.json"
sed -n 's/.*"loss_first":\([0-9.]*\),"loss_last":\([0-9.]*\).*/\1 \2/p' "$work/out.json" |
    awk '{ printf "loss %.4f -> %.4f in 200 steps\n", $1, $2; exit !($2 < $1 / 2) }'
