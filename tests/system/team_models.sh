#!/bin/sh
# Several processes have the root of one: for a Llama with only adapters trained, on frozen weights from files, and for a ResNet,
# whose running statistics pass through the micro-batches in order. Then a dispute about the adapters' run, served by several
# processes.
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
command -v mpirun > /dev/null && command -v mpicc > /dev/null || { echo "no mpirun and mpicc: libopenmpi-dev, openmpi-bin"; exit 77; }
. tests/support/system
make --no-print-directory BUILD="$build" mpi > /dev/null
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpirun=mpirun
mpirun --version | grep -q 'Open MPI' && mpirun="mpirun --oversubscribe"

write_tokens "$work/tokens.bin" 2000
cat > "$work/lora.yaml" << JOB
verde: 1
model: {kind: pretrained, dir: llama, sha256: $(take_model llama)}
lora: {rank: 2, alpha: 4, targets: [attn.q, attn.v]}
data: {kind: tokens, file: tokens.bin, sha256: $(sum_of "$work/tokens.bin")}
seed: 3
batch: 16
micro_batches: 8
sequence: 8
steps: 6
checkpoint_interval: 3
optimizer: {kind: adamw, lr: 1e-2, beta1: 0.9, beta2: 0.99, eps: 1e-8, weight_decay: 0.1, clip_norm: 1.0}
schedule: {kind: constant, warmup: 0}
JOB
"$build/bin/standin" 400 > "$work/stripes.bin" 2> "$work/err"
sed -e "s,\.\./data/,$work/," -e '/^micro_batches:/d' -e 's/^steps: .*/steps: 4/' -e 's/^checkpoint_interval: .*/checkpoint_interval: 2/' \
    -e 's/^batch: .*/batch: 16/' -e '/^evaluate:/d' models/jobs/resnet-tiny.yaml > "$work/resnet.yaml"
echo 'micro_batches: 8' >> "$work/resnet.yaml"

# by N NAME [OPTION...]: runs the job with N processes into $work/NAME-N.
by() {
    n=$1 name=$2
    shift 2
    # shellcheck disable=SC2086
    expect 0 '^run root' $mpirun -n "$n" "$verde" run "$work/$name.yaml" --out "$work/$name-$n" --threads 1 "$@"
}

for name in lora resnet; do
    by 1 $name
    alone=$(root)
    for n in 3 4 8; do
        by $n $name
        [ -n "$alone" ] && [ "$(root)" = "$alone" ] || fail "$name by $n processes has another root than by one"
    done
done

# serve_by N NAME: serves $work/NAME with N processes.
serve_by() {
    # shellcheck disable=SC2086
    start "$2" $mpirun -n "$1" "$verde" serve "$work/$2" --key "$work/keys-$2" --threads 1
}
mv "$work/lora-1" "$work/one"
mv "$work/lora-4" "$work/four"
cp "$work/lora.yaml" "$work/liar.yaml"
by 4 liar --fault element@4:m3.h.0.attn.q.lora_a.matmul
mv "$work/liar-4" "$work/liar"
serve_by 1 one
serve_by 3 four
serve_by 4 liar
# shellcheck disable=SC2046
expect 0 'agreed' "$verde" arbitrate "$work/lora.yaml" --key "$work/referee" --verdict "$work/agreed.json" $(providers one four)
# shellcheck disable=SC2046
expect 3 '^provider 2 *CONVICTED' "$verde" arbitrate "$work/lora.yaml" --key "$work/referee" --verdict "$work/liar.json" \
    $(providers four liar)
grep -q 'm3.h.0.attn.q.lora_a' "$work/out" || fail "not at the node of the fault"
echo "$count commands: adapters and batch statistics have the root of one process"
