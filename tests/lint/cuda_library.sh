#!/bin/sh
# What the CUDA library shows and needs: one function, and nothing of CUDA but what is linked into it.
# Usage: tests/lint/cuda_library.sh [BUILD_DIR]. Looks at what `make cuda` and `make test-cuda` built, skipped where that is nothing:
# tests/lint/ptx.sh builds it, beside this script in a first run of the tests.
set -u
build=${1:-build}
[ -z "${SANITIZED:-}" ] || { echo "the library is the same under sanitizers"; exit 77; }
command -v "${NVCC:-nvcc}" > /dev/null || { echo "no nvcc: there is no CUDA library to look at"; exit 77; }
bad=0 count=0
for lib in "$build/lib/librepops_cuda.so.1" "$build/gpu/lib/librepops_cuda.so.1"; do
    [ -e "$lib" ] || continue
    count=$((count + 1))
    shows=$(nm -D --defined-only "$lib" | sed 's/.* //' | tr '\n' ' ')
    [ "$shows" = "ro_cuda_open_device " ] || { echo "$lib exports: $shows"; bad=1; }
    needs=$(readelf -d "$lib" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p')
    echo "$needs" | grep -q '^libc\.so' || { echo "$lib: its needs cannot be read"; bad=1; }
    more=$(echo "$needs" | grep -vE '^(libc|libm|libgcc_s|libstdc\+\+|libdl|librt|libpthread|ld-linux[a-z0-9_-]*)\.so')
    [ -z "$more" ] || { echo "$lib needs" $more; bad=1; }
    readelf -d "$lib" | grep -q 'SONAME.*\[librepops_cuda\.so\.1\]' || { echo "$lib: no soname"; bad=1; }
    readelf -d "$lib" | grep -E 'RPATH|RUNPATH' && { echo "$lib names folders of the machine that built it"; bad=1; }
done
[ $count -gt 0 ] || { echo "no CUDA library has been built: make cuda"; exit 77; }
[ $bad -eq 0 ] && echo "exports one function, needs no library of CUDA's"
exit $bad
