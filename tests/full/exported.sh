#!/bin/sh
# transformers and peft load what `verde export` writes of trained models, and generate the same tokens as PyTorch's own model
# after the same training. PYTHON: a Python with them (pip install torch transformers peft).
set -eu
build=$1
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
python=${PYTHON:-python3}
"$python" -c 'import peft, torch, transformers' 2> /dev/null || { echo "no Python with transformers and peft (PYTHON=...)"; exit 77; }
"$python" tests/full/exported.py "$build/bin/verde" "$build/tests/exported"
