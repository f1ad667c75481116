#!/bin/sh
# Models of random shapes and weights generate as transformers does, and score texts as it does. PYTHON: a Python with it (pip
# install torch transformers).
set -eu
build=$1
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
python=${PYTHON:-python3}
"$python" -c 'import torch, transformers' 2> /dev/null || { echo "no Python with transformers (PYTHON=...)"; exit 77; }
"$python" tests/full/generate.py "$build/bin/verde" "$build/tests/generated"
