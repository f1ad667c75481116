#!/bin/sh
# transformers and peft load what `verde export` wrote of models that were trained on, and generate the tokens of PyTorch's own model
# after the same training. PYTHON: one that has them (pip install torch transformers peft).
set -eu
build=$1
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
python=${PYTHON:-python3}
"$python" -c 'import peft, torch, transformers' 2> /dev/null || { echo "no Python with transformers and peft (PYTHON=...)"; exit 77; }
"$python" tests/full/exported.py "$build/bin/verde" "$build/tests/exported"
