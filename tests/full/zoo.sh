#!/bin/sh
# Captures the models of python/tests/zoo that docs/zoo.md lists: none may do worse than there. Runs some of the programs on other
# backends, and 10 steps beside plain PyTorch. PYTHON: a Python with torch, torchvision, timm and transformers; models of other
# packages are skipped without these. Models that this build has captured are not repeated, so a run that was stopped continues.
set -eu
build=$1
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
python=${PYTHON:-python3}
"$python" -c 'import torch, torchvision, timm, transformers, numpy' 2> /dev/null ||
    { echo "no Python with torch, torchvision, timm and transformers (PYTHON=...)"; exit 77; }
top=$(pwd)
case $build in /*) ;; *) build=$top/$build ;; esac
export REPOPS_LIBRARY="$build/lib/librepops.so.1" VERDE="$build/bin/verde" PYTHONPATH="$top/python" PYTHONDONTWRITEBYTECODE=1
export HF_HUB_OFFLINE=1 OMP_WAIT_POLICY=passive
key=$(cat "$REPOPS_LIBRARY" "$VERDE" python/repops/*.py python/repops/*/*.py python/tests/capture*.py python/tests/zoo/*.py | sha256sum)
results=$build/zoo/$(echo "$key" | cut -c1-16)
mkdir -p "$results"
"$python" -W ignore python/tests/capture_zoo.py "$results/main" ${ZOO:-} || failed=1
"$python" python/tests/capture_page.py --against "$results" || failed=1
"$python" -W ignore python/tests/capture_losses.py "$results/losses" || failed=1

neon=$build/cross/aarch64-aarch64-linux-gnu-gcc-O2/tests/portable
if command -v qemu-aarch64 > /dev/null && [ -x "$neon" ] && command -v g++ > /dev/null; then
    flock "$build/simt.lock" make --no-print-directory BUILD="$1" "$1/simt/librepops_cuda.so.1" > "$results/simt.log" 2>&1
    "$python" -W ignore python/tests/capture_machines.py "$results/machines" "$neon" "$build/simt/librepops_cuda.so.1" || failed=1
else
    echo "other machines are left out: they need g++, qemu-aarch64 and what tests/system/cross.sh builds"
fi
[ -z "${failed:-}" ]
echo "$(grep -l '"result": "equal"' "$results"/main/*.json | wc -l) of $(ls "$results/main" | wc -l) models are captured"
