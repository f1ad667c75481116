#!/bin/sh
# Jobs whose states, data and commitments stay in device memory have the CPU's run root. With rounding logs, an auditor on a
# device has the run root of a trainer on the CPU, and the reverse. Also the GPT-2 example in C.
. tests/simt/setup
root() { sed -n 's/.*"run_root": *"\([0-9a-f]*\)".*/\1/p' "$1"; }
run() {
    "$build/bin/verde" run "$temp/job.yaml" --out "$temp/$1" --backend "$1" --json > "$temp/$1.json" || fail "$job on $1"
}
jobs=0
# both: runs $temp/job.yaml on the CPU and on the device.
both() {
    rm -rf "$temp/cpu" "$temp/cuda:0"
    run cpu
    run cuda:0
    [ -n "$(root "$temp/cpu.json")" ] && [ "$(root "$temp/cpu.json")" = "$(root "$temp/cuda:0.json")" ] ||
        fail "$job has another root on the device"
    jobs=$((jobs + 1))
}
for job in toy llama-tiny; do
    sed -e "s|file: \.\.|file: $PWD/models|" -e 's/^steps: .*/steps: 5/' -e 's/^checkpoint_interval: .*/checkpoint_interval: 1/' \
        models/jobs/$job.yaml > "$temp/job.yaml"
    both
done
# The statement that a run on the device makes about it, and its audit on the CPU.
"$build/bin/verde" audit "$temp/cuda:0" --all > "$temp/out" 2> "$temp/err" || { cat "$temp/out" "$temp/err"; fail "an audit of the device's run"; }
grep -q 'backend cuda, device simulated on this CPU.*, GPU-00112233-4455-6677-8899-aabbccddeeff,' "$temp/out" ||
    { cat "$temp/out"; fail "the run does not state its device"; }
# Fixed products, by the matrix units for bytes.
for products in fixed24 fixed16 fixed8; do
    sed -e "s|file: \.\.|file: $PWD/models|" -e 's/^steps: .*/steps: 2/' -e 's/^checkpoint_interval: .*/checkpoint_interval: 1/' \
        -e 's/warmup: 2/warmup: 1/' models/jobs/toy.yaml > "$temp/job.yaml"
    echo "products: $products" >> "$temp/job.yaml"
    job="toy with $products"
    both
done
# The device has no room for operands that would stay packed.
job="toy with $products, all packed anew"
export SIMT_AVAILABLE=0
both
unset SIMT_AVAILABLE
# 16-bit weights, moments and activations.
sed -e "s|file: \.\.|file: $PWD/models|" -e 's/^steps: .*/steps: 2/' -e 's/^checkpoint_interval: .*/checkpoint_interval: 1/' \
    -e 's/warmup: 2/warmup: 1/' models/jobs/toy.yaml > "$temp/job.yaml"
echo "storage: bf16" >> "$temp/job.yaml"
job="toy that stores bf16"
both
# Fine-tuning of given weights, of all of them and with adapters.
set -- "$temp"
. tests/support/finetune
for kind in '' lora; do
    job 5 1 $kind > "$temp/job.yaml"
    job="fine-tuning $kind"
    both
done
# logged TRAINER AUDITOR: both are profiles
logged() {
    rm -rf "$temp/trainer" "$temp/auditor"
    "$build/bin/verde" run "$temp/job.yaml" --out "$temp/trainer" --backend log --profile "$1" --json > "$temp/trainer.json" 2> "$temp/err" &&
        "$build/bin/verde" run "$temp/job.yaml" --out "$temp/auditor" --backend log --profile "$2" --role auditor \
            --follow "$temp/trainer" --json > "$temp/auditor.json" 2> "$temp/err" ||
        { cat "$temp/err"; fail "$job: trainer on $1, auditor on $2"; return; }
    [ -n "$(root "$temp/trainer.json")" ] && [ "$(root "$temp/trainer.json")" = "$(root "$temp/auditor.json")" ] ||
        fail "$job: an auditor on $2 has another root than a trainer on $1"
    logs=$((logs + 1))
}
logs=0
"$build/bin/standin" 400 > "$temp/stripes.bin" 2> "$temp/err"
for job in toy resnet-tiny; do
    sed -e "s|file: \.\.|file: $PWD/models|" -e "s|\.\./data/|$temp/|" -e 's/^steps: .*/steps: 3/' -e 's/^batch: 16/batch: 2/' \
        -e 's/^checkpoint_interval: .*/checkpoint_interval: 1/' models/jobs/$job.yaml > "$temp/job.yaml"
    logged sim-wide cuda
    logged cuda sim-deep
done
# A C program with typed calls, fused functions and those of layers.h; all tensors are on the device.
REPOPS_CPU=cuda:0 "$build/examples/gpt2" 1 > "$temp/out" 2> "$temp/err" || { cat "$temp/err"; fail "examples/gpt2 on the device"; }
grep -qx "weights $(cat tests/golden/example_gpt2.txt)" "$temp/out" || fail "examples/gpt2 has other weights on the device"
# A provider's daemon: its child processes, which the kernel confines, can still open the library and the device.
provided="no python3 with ssl, or no openssl: no daemon on the device"
if command -v python3 > /dev/null && python3 -c 'import ssl' 2> /dev/null && command -v openssl > /dev/null; then
    "$build/bin/verde" keygen "$temp/client" > /dev/null
    sed -e "s|file: \.\.|file: $PWD/models|" -e 's/^steps: .*/steps: 3/' -e 's/^checkpoint_interval: .*/checkpoint_interval: 1/' \
        models/jobs/toy.yaml > "$temp/job.yaml"
    job=provided
    rm -rf "$temp/cpu"
    run cpu
    "$build/bin/verde" provide --dir "$temp/data" --listen 127.0.0.1:0 --backend cuda:0 --client "$(cat "$temp/client/key.pub")" \
        > "$temp/url" 2> "$temp/err" &
    daemon=$!
    tries=0
    while [ ! -s "$temp/url" ] && [ $tries -lt 12000 ]; do
        tries=$((tries + 1))
        sleep 0.05
    done
    ask() { python3 tests/system/provide_client.py "$(cat "$temp/url")" "$temp/client" "$@"; }
    ask wait "$(ask submit "$temp/cpu")" done failed > "$temp/out"
    grep -q "\"run_root\": \"$(root "$temp/cpu.json")\"" "$temp/out" || { cat "$temp/out" "$temp/err"; fail "a daemon's job on the device"; }
    kill $daemon
    wait $daemon
    provided="a daemon's job: the CPU's root"
fi
[ $bad -eq 0 ] && echo "$provided" && echo "examples/gpt2: the CPU's weights" && echo "$logs runs with rounding logs on one side by the profile cuda: the roots of both sides are equal" &&
    echo "$jobs jobs, 5 steps with a commitment each: the CPU's roots"
exit $bad
