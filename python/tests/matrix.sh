#!/bin/sh
# Trains models in every setting: versions of PyTorch, its instruction sets, threads, and the library's instruction sets.
# All must give the same weights and losses. Takes hours; the variables below choose a part.
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
export PYTHONPATH="$folder/site" PYTHONDONTWRITEBYTECODE=1 HF_HUB_OFFLINE=1 TRAIN_STEPS="${TRAIN_STEPS:-50}"
settings=0 wrong=0
for venv in "$@"; do
    version=$("$venv/bin/python" -c 'import torch; print(torch.__version__)')
    for backend in ${MATRIX_BACKENDS:-avx512 avx2 scalar}; do
        for capability in ${MATRIX_CAPABILITIES:-default avx2 avx512}; do
            for threads in ${MATRIX_THREADS:-1 2 3}; do
                env ATEN_CPU_CAPABILITY="$capability" TRAIN_THREADS="$threads" REPOPS_CPU="$backend" \
                    "$venv/bin/python" python/tests/train.py $models > "$folder/now.txt"
                settings=$((settings + 1))
                [ -e "$folder/first.txt" ] || cp "$folder/now.txt" "$folder/first.txt"
                same=equal
                cmp -s "$folder/first.txt" "$folder/now.txt" || { same=DIFFERENT wrong=$((wrong + 1)); }
                echo "torch $version, $capability, $threads threads, library $backend: $same" \
                    "$(sha256sum < "$folder/now.txt" | cut -c1-16)"
            done
        done
    done
done
echo "matrix: $settings settings of $models, $TRAIN_STEPS steps, $wrong different"
[ "$wrong" = 0 ]
