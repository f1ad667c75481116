#!/bin/sh
# 64 prompts of 1 to 500 tokens with 256 new ones each have the same roots in 12 settings of batch, chunk, threads and instruction
# set, which cover all pairs; with a GPT-2 of 124M in two settings.
set -eu
build=$1
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
${MAKE:-make} -s "$build/tests/test_batch_matrix"
for size in full 124m; do
    began=$(date +%s)
    BATCH_MATRIX=$size "$build/tests/test_batch_matrix"
    echo "$size: $(($(date +%s) - began)) s"
done
echo "the same states in every setting"
