#!/bin/sh
# Training steps of GPT-2 and ResNet with emulated PTX have the CPU's run roots.
. tests/ptx/setup
need_nvcc
root() { sed -n 's/.*"run_root": *"\([0-9a-f]*\)".*/\1/p' "$1"; }
# trained JOB ARCHITECTURE STEPS SED_ARGUMENTS...
jobs=0
trained() {
    job=$1 arch=$2 steps=$3
    shift 3
    sed -e "s|file: \.\.|file: $PWD/models|" -e "s|\.\./data/|$temp/|" -e "s/^steps: .*/steps: $steps/" -e 's/warmup: [0-9]*/warmup: 0/' \
        -e 's/^checkpoint_interval: .*/checkpoint_interval: 1/' "$@" "models/jobs/$job.yaml" > "$temp/job.yaml"
    rm -rf "$temp/cpu" "$temp/cuda"
    "$build/bin/verde" run "$temp/job.yaml" --out "$temp/cpu" --backend cpu --json > "$temp/cpu.json" 2> "$temp/err" || { cat "$temp/err"; fail "$job on the CPU"; }
    PTX_ARCH=$arch PTX_MODULES=$(modules "$arch") "$build/bin/verde" run "$temp/job.yaml" --out "$temp/cuda" --backend cuda:0 --json > "$temp/cuda.json" \
        2> "$temp/err" || { cat "$temp/err"; fail "$job as compute_$arch"; }
    [ -n "$(root "$temp/cpu.json")" ] && [ "$(root "$temp/cpu.json")" = "$(root "$temp/cuda.json")" ] || fail "$job as compute_$arch has another root than the CPU"
    jobs=$((jobs + 1))
}
"$build/bin/standin" 400 > "$temp/stripes.bin" 2> "$temp/err"
for arch in 75 80; do
    trained toy $arch 4
    trained llama-tiny $arch 2
    trained resnet-tiny $arch 3 -e 's/^batch: .*/batch: 2/'
done
[ $bad -eq 0 ] && echo "$jobs runs by compiled PTX, a commitment each step: the CPU's roots"
exit $bad
