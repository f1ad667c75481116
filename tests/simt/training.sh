#!/bin/sh
# Jobs whose states, data and commitments stay in a device's memory: the run's root is the CPU's.
. tests/simt/setup
root() { sed -n 's/.*"run_root": *"\([0-9a-f]*\)".*/\1/p' "$1"; }
run() {
    "$build/bin/verde" run "$temp/job.yaml" --out "$temp/$1" --backend "$1" --json > "$temp/$1.json" || fail "$job on $1"
}
jobs=0
for job in toy llama-tiny; do
    sed -e "s|file: \.\.|file: $PWD/models|" -e 's/^steps: .*/steps: 5/' -e 's/^checkpoint_interval: .*/checkpoint_interval: 1/' \
        models/jobs/$job.yaml > "$temp/job.yaml"
    rm -rf "$temp/cpu" "$temp/cuda:0"
    run cpu
    run cuda:0
    [ -n "$(root "$temp/cpu.json")" ] && [ "$(root "$temp/cpu.json")" = "$(root "$temp/cuda:0.json")" ] ||
        fail "$job has another root on the device"
    jobs=$((jobs + 1))
done
[ $bad -eq 0 ] && echo "$jobs jobs, 5 steps with a commitment each: the CPU's roots"
exit $bad
