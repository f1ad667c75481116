#!/bin/sh
# Trains models in many settings: versions of PyTorch, its instruction sets, threads, and the library's instruction sets.
# All must give the same weights and losses. Takes hours; the variables below choose a part.
# MATRIX_PAIRS=1: a third of the settings, among them each pair of values of two of these four.
# Results in FOLDER are not computed again, so that a stopped run continues. Results are kept by the
# wheel's hash, the steps, the layers and the kinds of AdamW: another wheel begins anew.
# usage: matrix.sh WHEELS FOLDER VENV... ; each virtual environment has a PyTorch, torchvision and transformers
set -eu
wheels=$1 folder=$2
shift 2
[ $# -gt 0 ] || { echo "matrix: name virtual environments: VENVS=\"folder folder\""; exit 2; }
models=${MATRIX_MODELS:-gpt2 llama bert resnet50}
export TRAIN_STEPS="${TRAIN_STEPS:-50}" TRAIN_LAYERS="${TRAIN_LAYERS:-12}" TRAIN_ADAMW="${TRAIN_ADAMW:-fused plain}"
# Otherwise PyTorch's threads would spin while they wait, on cores that other threads need.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
wheel=$(ls "$wheels"/*.whl)
results=$folder/$(sha256sum < "$wheel" | cut -c1-16)-$TRAIN_STEPS-$TRAIN_LAYERS-$(echo "$TRAIN_ADAMW" | tr ' ' -)
mkdir -p "$results"
if [ ! -d "$results/site" ]; then
    "$PYTHON" -m zipfile -e "$wheel" "$results/site.$$"
    mv "$results/site.$$" "$results/site"
fi
unset REPOPS_LIBRARY
export PYTHONPATH="$results/site" PYTHONDONTWRITEBYTECODE=1 HF_HUB_OFFLINE=1
settings=0 wrong=0 kept=0

# Is a setting wanted? All arguments count from 0. With MATRIX_PAIRS library and version follow from the other two by
# Latin squares, so that each pair of values occurs.
wanted() { # VERSION VERSIONS LIBRARY CAPABILITY THREADS
    [ -z "${MATRIX_PAIRS:-}" ] || { [ $((($4 + $5) % 3)) = "$3" ] && [ $((($4 + 2 * $5) % 3 % $2)) = "$1" ]; }
}

# Trains a model unless this setting has a result already. A result appears whole or not at all.
train() { # VENV LIBRARY CAPABILITY THREADS MODEL
    result=$results/$5-$version-$3-$4-$2.txt
    if [ -e "$result" ]; then
        kept=$((kept + 1))
    else
        env REPOPS_CPU="$2" ATEN_CPU_CAPABILITY="$3" TRAIN_THREADS="$4" \
            "$1/bin/python" python/tests/train.py "$5" > "$results/now.$$"
        mv "$results/now.$$" "$result"
    fi
    first=$(ls -tr "$results/$5-"*.txt | head -n 1)
    settings=$((settings + 1))
    same=equal
    cmp -s "$first" "$result" || { same=DIFFERENT wrong=$((wrong + 1)); }
    echo "$5: torch $version, $3, $4 threads, library $2: $same $(sha256sum < "$result" | cut -c1-16)"
}

at=0
for venv in "$@"; do
    version=$("$venv/bin/python" -c 'import torch; print(torch.__version__)')
    b=0
    for backend in ${MATRIX_BACKENDS:-avx512 avx2 scalar}; do
        c=0
        for capability in ${MATRIX_CAPABILITIES:-default avx2 avx512}; do
            t=0
            for threads in ${MATRIX_THREADS:-1 2 3}; do
                if wanted $at $# $b $c $t; then
                    for model in $models; do train "$venv" "$backend" "$capability" "$threads" "$model"; done
                fi
                t=$((t + 1))
            done
            c=$((c + 1))
        done
        b=$((b + 1))
    done
    at=$((at + 1))
done
echo "matrix: $settings trainings of $models, $kept of them from $results, $TRAIN_STEPS steps, $wrong different"
[ "$settings" -gt 1 ] && [ "$wrong" = 0 ]
