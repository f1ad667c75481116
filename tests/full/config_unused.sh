#!/bin/sh
# The fields of config.json that verde/job/config_unused.c ignores have no influence on what transformers computes. PYTHON: a
# Python with it (pip install torch transformers).
set -eu
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
python=${PYTHON:-python3}
"$python" -c 'import torch, transformers' 2> /dev/null || { echo "no Python with transformers (PYTHON=...)"; exit 77; }
"$python" tests/full/config_unused.py
