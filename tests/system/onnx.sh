#!/bin/sh
# 200 of ONNX's own operator cases have the bits in python/tests/onnx_cases.txt, and malformed files of strangers are refused in
# one line. PYTHON: a Python with torch, onnx and pytest. `make test-python` tests the rest.
set -eu
build=$1
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
python=${PYTHON:-python3}
"$python" -c 'import torch, onnx, pytest, numpy' 2> /dev/null || { echo "no Python with torch, onnx and pytest (PYTHON=...)"; exit 77; }
top=$(pwd)
case $build in /*) ;; *) build=$top/$build ;; esac
[ -e "$build/lib/libverde_commit.so" ] || { echo "no libverde_commit.so: make wheel"; exit 77; }
export REPOPS_LIBRARY="$build/lib/librepops.so.1" PYTHONPATH="$top/python" PYTHONDONTWRITEBYTECODE=1 VERDE=
cd python/tests
"$python" -W ignore onnx_cases.py --hashes onnx_cases.txt
"$python" -m pytest -q -p no:cacheprovider test_onnx_files.py
echo "200 cases have their bits; files of strangers are refused in one line"
