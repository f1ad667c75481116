#!/bin/sh
# Runs on a GPU what users run: jobs have the CPU's run roots; a provider on the GPU and one on the CPU agree; one that lies on the
# GPU is convicted; each can follow the other's rounding log; generated text has one root. The last line sums up.
# Usage: tests/cuda/jobs.sh BUILD_DIR, with verde in it. Exit code 77: it is not there, or does not start here.
set -u
verde=$1/bin/verde
"$verde" --version > /dev/null 2>&1 || { echo "no $verde that starts here: make build"; exit 77; }
work=$(mktemp -d)
serving=
# shellcheck disable=SC2086
trap '[ -z "$serving" ] || kill $serving 2> /dev/null; rm -rf "$work"' EXIT
passed=0 failed=0

# holds WHAT COMMAND...: runs the command and counts whether it succeeds.
holds() {
    what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
        return
    fi
    failed=$((failed + 1))
    echo "$what: no"
    tail -n 3 "$work/err" | cut -c 1-200
}
# job NAME STEPS: models/jobs/NAME.yaml with its data, as $work/NAME.yaml.
job() {
    sed -e "s|\.\./data|$PWD/models/data|" -e "s/^steps: .*/steps: $2/" "models/jobs/$1.yaml" > "$work/$1.yaml"
}
# run JOB OUT [OPTIONS]
run() {
    name=$1 out=$2
    shift 2
    "$verde" run "$work/$name.yaml" --out "$work/$out" --json "$@" > "$work/$out.json" 2> "$work/err"
}
root() { sed -n 's/.*"\(run\|job\)_root": *"\([0-9a-f]*\)".*/\2/p' "$work/$1.json"; }
same() { [ -n "$(root "$1")" ] && [ "$(root "$1")" = "$(root "$2")" ]; }
other() { [ -n "$(root "$1")" ] && [ "$(root "$1")" != "$(root "$2")" ]; }

# both NAME: the CPU and the GPU must have one root.
both() {
    holds "$1 on the CPU" run "$1" "$1-cpu"
    holds "$1 on the GPU" run "$1" "$1-gpu" --backend cuda:0
    holds "$1: one root" same "$1-cpu" "$1-gpu"
}
for name in toy mlp llama-tiny bert-tiny resnet-tiny demo; do
    job $name 12
    both $name
done
# with JOB NAME LINE...: $work/NAME.yaml is the job plus these lines, which must change the root.
with() {
    from=$1 name=$2
    shift 2
    { cat "$work/$from.yaml"; printf '%s\n' "$@"; } > "$work/$name.yaml"
    both "$name"
    holds "$name: another root than $from's" other "$name-cpu" "$from-cpu"
}
for way in 'products: fixed24' 'products: fixed16' 'storage: bf16'; do
    with demo "demo-${way#*: }" "$way"
    with resnet-tiny "resnet-${way#*: }" "$way"
done
with llama-tiny llama-fixed16-bf16 'products: fixed16' 'storage: bf16'

# serve NAME RUN [OPTIONS]: starts a server, and writes its URL to NAME.url.
serve() {
    name=$1 served=$2
    shift 2
    "$verde" serve "$work/$served" --key "$work/key-$name" "$@" > "$work/$name.url" 2> "$work/$name.log" &
    serving="$serving $!"
    tries=0
    while [ ! -s "$work/$name.url" ] && [ $tries -lt 600 ]; do
        tries=$((tries + 1))
        sleep 0.05
    done
}
# settled EXIT_CODE JOB FIRST SECOND: `verde arbitrate` must exit so, and its verdict must verify.
settled() {
    "$verde" arbitrate "$work/$2.yaml" --key "$work/referee" --verdict "$work/$3-$4.json" --json --provider "$(cat "$work/$3.url")" \
        --provider "$(cat "$work/$4.url")" > "$work/out" 2> "$work/err"
    [ $? -eq "$1" ] && "$verde" verify "$work/$3-$4.json" --job "$work/$2.yaml" --quiet 2> "$work/err"
}
lie() { run demo "$@" --backend cuda:0 --fault element@9 && other "$1" demo-cpu; }
holds "a wrong element on the GPU: another root" lie liar
serve cpu demo-cpu
serve gpu demo-gpu --backend cuda:0
serve liar liar --backend cuda:0
holds "GPU and CPU: agreed" settled 0 demo gpu cpu
holds "a liar on the GPU beside the CPU: convicted" settled 3 demo liar cpu
holds "a liar beside the GPU: convicted" settled 3 demo gpu liar

# follow TRAINER AUDITOR: both are profiles of free kernels
follow() {
    run toy log-$1 --backend log --profile "$1" &&
        run toy audit-$2 --backend log --profile "$2" --role auditor --follow "$work/log-$1" && same "log-$1" "audit-$2"
}
holds "the GPU follows the log of the CPU" follow sim-wide cuda
holds "the CPU follows the log of the GPU" follow cuda sim-deep

state=$("$verde" inspect "$work/toy-cpu" | sed -n 's/^state 12 *//p')
i=0
while [ $i -lt 24 ]; do
    printf '{"key": %d, "ids": [%d, %d, %d]}\n' $i $((i * 9 + 1)) $((i + 30)) $((i * 5 + 2))
    i=$((i + 1))
done > "$work/prompts.jsonl"
{
    printf 'verde: 1\ntask: generate\n'
    grep '^model:' "$work/toy.yaml"
    printf 'weights: {run: toy-cpu, root: %s}\nprompts: {file: prompts.jsonl, sha256: %s}\n' "$state" \
        "$(sha256sum < "$work/prompts.jsonl" | cut -d ' ' -f 1)"
    printf 'sampling: {temperature: 1.2, top_k: 40, top_p: 0.9, seed: 7}\nmax_tokens: 24\nlog_probabilities: 2\n'
} > "$work/generate.yaml"
holds "text on the CPU" run generate text-cpu
holds "text on the GPU" run generate text-gpu --backend cuda:0
holds "text: one root" same text-cpu text-gpu

echo "$passed hold, $failed do not"
[ $failed -eq 0 ]
