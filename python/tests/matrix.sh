#!/bin/sh
# Trains models in many settings: versions of PyTorch, its instruction sets, threads, and the library's instruction sets.
# All must give the same weights and losses. Takes hours; the variables below choose a part.
# MATRIX_PAIRS=1: a third of the settings, among them each pair of values of two of these four.
# usage: matrix.sh WHEELS FOLDER VENV... ; each virtual environment has a PyTorch, torchvision and transformers
set -eu
wheels=$1 folder=$2
shift 2
[ $# -gt 0 ] || { echo "matrix: name virtual environments: VENVS=\"folder folder\""; exit 2; }
models=${MATRIX_MODELS:-gpt2 llama bert resnet50}
rm -rf "$folder"
mkdir -p "$folder/site"
for wheel in "$wheels"/*.whl; do "$PYTHON" -m zipfile -e "$wheel" "$folder/site"; done
unset REPOPS_LIBRARY
export PYTHONPATH="$folder/site" PYTHONDONTWRITEBYTECODE=1 HF_HUB_OFFLINE=1
export TRAIN_STEPS="${TRAIN_STEPS:-50}" TRAIN_LAYERS="${TRAIN_LAYERS:-12}"
settings=0 wrong=0

# Whether a setting is wanted; all are numbered from 0. The library and the version follow from the other two by Latin
# squares, so that each pair of values meets.
wanted() { # VERSION VERSIONS LIBRARY CAPABILITY THREADS
    [ -z "${MATRIX_PAIRS:-}" ] || { [ $((($4 + $5) % 3)) = "$3" ] && [ $((($4 + 2 * $5) % 3 % $2)) = "$1" ]; }
}

train() { # VENV LIBRARY CAPABILITY THREADS
    env REPOPS_CPU="$2" ATEN_CPU_CAPABILITY="$3" TRAIN_THREADS="$4" \
        "$1/bin/python" python/tests/train.py $models > "$folder/now.txt"
    settings=$((settings + 1))
    [ -e "$folder/first.txt" ] || cp "$folder/now.txt" "$folder/first.txt"
    same=equal
    cmp -s "$folder/first.txt" "$folder/now.txt" || { same=DIFFERENT wrong=$((wrong + 1)); }
    echo "torch $version, $3, $4 threads, library $2: $same $(sha256sum < "$folder/now.txt" | cut -c1-16)"
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
                ! wanted $at $# $b $c $t || train "$venv" "$backend" "$capability" "$threads"
                t=$((t + 1))
            done
            c=$((c + 1))
        done
        b=$((b + 1))
    done
    at=$((at + 1))
done
echo "matrix: $settings settings of $models, $TRAIN_STEPS steps, $wrong different"
[ "$settings" -gt 1 ] && [ "$wrong" = 0 ]
