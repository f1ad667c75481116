#!/bin/sh
# Twelve captured models with every kind of fault: the liar is convicted, tests/independent decides the same, and the referee
# needs little memory and traffic. Then each operator that was added for captured models. The tables are build/tests/disputes*.md;
# `cp` them into bench/results/cpu. PYTHON: one with the packages (pip install torch torchvision transformers peft pytest).
set -eu
build=$1
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
python=${PYTHON:-python3}
"$python" -c 'import peft, pytest, torch, torchvision, transformers' 2> /dev/null ||
    { echo "no Python with torchvision, transformers, peft and pytest (PYTHON=...)"; exit 77; }
top=$(pwd)
case $build in /*) ;; *) build=$top/$build ;; esac
export VERDE="$build/bin/verde" REPOPS_LIBRARY="$build/lib/librepops.so.1" PYTHONPATH="$top/python" PYTHONDONTWRITEBYTECODE=1
"$python" python/tests/disputes.py "$build/tests/disputes" --table "$build/tests/disputes.md"
"$python" python/tests/disputes_operators.py "$build/tests/disputes_operators" --table "$build/tests/disputes_operators.md"
