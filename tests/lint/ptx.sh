#!/bin/sh
# Checks the CUDA backend's device code, for the architectures of tests/ptx/archs: no approximation, no flush of subnormals,
# every rounding as written in the source, so that nothing is or can be contracted, no float atomics; no kernel spills a
# register. The library exports one function and needs nothing of CUDA's.
# Usage: tests/lint/ptx.sh [BUILD_DIR]. Skipped without nvcc.
set -u
build=${1:-build}
nvcc=$(sh repops/cuda/find_nvcc 2>&1) || { echo "$nvcc: device code was neither compiled nor looked at"; exit 77; }
[ -z "${SANITIZED:-}" ] || { echo "the compiler's output is the same under sanitizers"; exit 77; }
objects=$build/obj/repops/cuda
. tests/ptx/archs
# tests/ptx uses the same objects, and may build them at the same time.
flock "$build/cuda.lock" make --no-print-directory -j"$(nproc)" BUILD="$build" cuda > "$build/cuda.log" 2>&1 || { tail -n 20 "$build/cuda.log"; exit 1; }
bad=0
sh tests/lint/cuda_library "$build/lib/librepops_cuda.so.1" || bad=1
of_all='\.approx|\.ftz|\.full\.|(ex2|lg2|sin|cos|tanh)\.|(atom|red)\.[a-z.]*\.f(16|32|64)|(add|sub|mul|fma)\.(sat\.)?f32 |\.r[zmp]\.f32'
forbidden="$of_all|\.f64"
# Free kernels may only contract where the source says so, as their bounds count roundings; that also holds for binary64.
forbidden_free="$of_all|(add|sub|mul|fma)\.(sat\.)?f64 |\.r[zmp]\.f64"

# A planted contraction: the scan must find what the compiler may do without this project's flags.
planted=$build/planted_ptx
printf '%s\n' '__global__ void k(float *x) { x[0] = x[1] * x[2] + __expf(x[3]); x[4] = x[5] + x[6]; }' > "$planted.cu"
$nvcc -arch=compute_80 -ptx "$planted.cu" -o "$planted.ptx" || exit 1
[ "$(grep -cE "$forbidden" "$planted.ptx")" -ge 2 ] || { echo "planted: the scan sees no contraction"; bad=1; }
printf '%s\n' '__global__ void k(double *x) { x[0] = x[1] * x[2] + x[3]; x[4] = x[5] + x[6]; }' > "$planted.cu"
$nvcc -arch=compute_80 -ptx "$planted.cu" -o "$planted.ptx" || exit 1
grep -qE "$forbidden_free" "$planted.ptx" || { echo "planted: the scan sees no contraction in binary64"; bad=1; }

sources=$(cd repops/cuda && ls ./*.cu ./*/*.cu | grep -v /free/ | sed "s/\.cu$//")
# scan FILE PATTERN
scan() {
    [ -s "$1" ] || { echo "$1 is missing"; bad=1; return; }
    hits=$(grep -nE "$2" "$1")
    [ -z "$hits" ] || { echo "$1:"; echo "$hits" | head -n 5; bad=1; }
}
for name in $sources; do
    pattern=$forbidden
    case $name in ./elements/wide | ./movement/along) pattern=$forbidden_free ;; esac # SPEC.md 2.9 and 6.1 are of binary64
    newer=80
    case $name in ./gemm/wgmma) newer=90a ;; esac
    scan "$objects/$name.compute_75.ptx" "$pattern"
    scan "$objects/$name.compute_$newer.ptx" "$pattern"
done
scan "$objects/free/f32/free.ptx" "$forbidden_free"
scan "$objects/free/f64/free.ptx" "$forbidden_free"

# An fma by contraction looks like any other: so each must come from a source line that has one (for inlined functions, the
# innermost). CUDA_LINES builds code with line numbers; unspelled FILE... prints lines whose code has an fma, but which do not
# say so.
unspelled() {
    for code in "$@"; do
        awk '$1 == ".loc" { at = $2 ":" $3 } $1 == ".file" { split($0, q, "\""); file[$2] = q[2] } /^[^a-z]*fma\.rn/ { seen[at] = 1 }
            END { for (s in seen) { split(s, p, ":"); print file[p[1]] ":" p[2] } }' "$code"
    done | sort -u | while IFS=: read -r file line; do sed -n "${line}p" "$file" | grep -qi fma || echo "$file:$line"; done
}
printf '%s\n' '__global__ void k(float *x) {' 'x[0] = __fmaf_rn(x[1], x[2], x[3]);' 'x[4] = x[1] * x[2] + x[5]; }' > "$planted.cu"
$nvcc -arch=compute_80 -lineinfo -ptx "$planted.cu" -o "$planted.ptx" || exit 1
[ "$(unspelled "$planted.ptx" | sed 's/.*://')" = 3 ] || { echo "planted: the contraction on line 3 is not seen"; bad=1; }
lines=$objects
if [ -z "$CUDA_LINES" ]; then # the library here was built to be used, without them
    lines=$build/lines/obj/repops/cuda
    CUDA_LINES=1 CUDA_ARCHS=80 make --no-print-directory -j"$(nproc)" BUILD="$build/lines" cuda-objects > "$build/cuda.log" 2>&1 ||
        { tail -n 20 "$build/cuda.log"; exit 1; }
fi
set -- "$lines"/*.lines "$lines"/*/*.lines "$lines"/free/*/*.lines
spelled=$(cat "$@" | grep -c '^[^a-z]*fma\.rn')
hits=$(unspelled "$@")
[ -z "$hits" ] || { echo "the code has fmas that the source does not spell:"; echo "$hits" | head -n 5; bad=1; }
[ $spelled -ge 1000 ] || { echo "only $spelled fmas in $lines"; bad=1; }

# Finds vectors of four that the compiler stores element by element: stores at one register between two branches. torn FILE:
# prints their kernels.
torn() {
    awk '/^\$|^[^a-z]*bra|\.entry/ { delete at; if (/\.entry/) kernel = $3 }
        /st\.global\.f32/ { split($0, q, /[][]/); split(q[2], p, "+"); at[p[1], p[2] + 0] = 1; first = p[2] - p[2] % 16
            if (((p[1], first) in at) && ((p[1], first + 4) in at) && ((p[1], first + 8) in at) && ((p[1], first + 12) in at)) print kernel }' "$1"
}
printf '%s\n' '__global__ void k(float *x) { x[4] = x[0]; x[5] = x[1]; x[6] = x[2]; x[7] = x[3]; }' > "$planted.cu"
$nvcc -arch=compute_80 -ptx "$planted.cu" -o "$planted.ptx" || exit 1
[ -n "$(torn "$planted.ptx")" ] || { echo "planted: four stores are not seen"; bad=1; }
for name in $sources; do
    newer=80
    case $name in ./gemm/wgmma) newer=90a ;; esac
    hits=$(torn "$objects/$name.compute_$newer.ptx" | sort -u)
    [ -z "$hits" ] || { echo "vectors are stored one by one:"; echo "$hits"; bad=1; }
done

# Lines: ARCHITECTURE KERNEL STORES LOADS, for kernels that spill registers.
cat "$objects"/*.ptxas "$objects"/*/*.ptxas "$objects"/free/*/*.ptxas | awk '/Compiling entry function/ { split($0, q, "\047"); kernel = q[2]; arch = q[4] }
    / bytes spill stores/ { all[arch] = 1; entries++; if ($5 + $9 > 0) print arch, kernel, $5, $9 }
    END { n = 0; for (a in all) n++; print "total", n, entries }' > "$build/spills.txt"
spilled=$(grep -v '^total' "$build/spills.txt")
[ -z "$spilled" ] || { echo "registers spilled:"; echo "$spilled"; bad=1; }
read -r _ archs entries << EOF
$(grep '^total' "$build/spills.txt")
EOF
[ "${archs:-0}" -ge 2 ] || { echo "no report of the compiler in $objects"; bad=1; }
[ $bad -eq 0 ] && echo "$entries kernels for $archs architectures: every rounding and all $spelled fmas spelled, no approximation, no register in memory"
exit $bad
