#!/bin/sh
# A step of a Llama with 1.2 billion parameters and adapters is captured in less than 6 GB, without loading its weights, and verde
# accepts the job. PYTHON: a Python with torch and numpy.
set -eu
build=$1
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
python=${PYTHON:-python3}
"$python" -c 'import torch, numpy' 2> /dev/null || { echo "no Python with torch and numpy (PYTHON=...)"; exit 77; }
top=$(pwd)
case $build in /*) ;; *) build=$top/$build ;; esac
export REPOPS_LIBRARY="$build/lib/librepops.so.1" PYTHONPATH="$top/python" PYTHONDONTWRITEBYTECODE=1
work=$build/tests/large
rm -rf "$work"
told=$("$python" python/tests/large.py "$work" 1b)
echo "$told"
memory=$(echo "$told" | sed 's/.*"most_memory_bytes": \([0-9]*\).*/\1/')
[ "$memory" -lt 6000000000 ] || { echo "it took $memory bytes of memory; expected less than 6 GB"; exit 1; }
hash=$(echo "$told" | sed 's/.*"hash": "\([0-9a-f]*\)".*/\1/')
"$build/bin/verde" graph "$work/job" --json | grep -q "$hash" || { echo "verde has another hash than $hash"; exit 1; }
"$build/bin/verde" run "$work/job" --dry-run
rm -rf "$work"
