#!/bin/sh
# A missing device, an old driver, no memory, a lost device: each gives one clear line that blames this machine, and no result.
. tests/simt/setup
sed -e "s|file: \.\.|file: $PWD/models|" models/jobs/toy.yaml > "$temp/job.yaml"

# refused FAULT EXIT_CODE TEXT COMMAND...
refused() {
    fault=$1 want=$2 text=$3 code=0
    shift 3
    SIMT_FAULT=$fault "$@" > "$temp/out" 2> "$temp/err" || code=$?
    [ $code -eq "$want" ] || fail "$fault: exit code $code, expected $want: $*"
    [ "$(grep -vcE '^(step |[0-9]+ checkpoints of |.* backend (cuda|avx|scalar|neon))' "$temp/err")" -eq 1 ] && grep -qF "$text" "$temp/err" ||
        { cat "$temp/err"; fail "$fault: no single line with \"$text\": $*"; }
    [ ! -s "$temp/out" ] || { cat "$temp/out"; fail "$fault: a result"; }
}
run() {
    rm -rf "$temp/run"
    refused "$1" 1 "$2" "$build/bin/verde" run "$temp/job.yaml" --out "$temp/run" --backend cuda:0
}
run none "no CUDA-capable device"
run driver "driver version is insufficient for CUDA runtime version: it is for CUDA 12.0, this library was built by 13.0"
run no_driver "cuda:0: this machine has no NVIDIA driver"
run version "cuda:0: the driver is too old: CUDA 12.1 is needed"
run architecture "cuda:0: the device is too old: sm_75 is needed"
run pools "cuda:0: no memory pools on simulated"
# A second device, and one in use by others: nothing runs on the first device instead.
SIMT_DEVICES=2 "$build/bin/verde" run "$temp/job.yaml" --out "$temp/second" --backend cuda:1 > "$temp/log" 2>&1 || { tail -n 3 "$temp/log"; fail "cuda:1"; }
SIMT_DEVICES=2 SIMT_FAULT=occupied "$build/bin/verde" run "$temp/job.yaml" --out "$temp/run" --backend cuda:1 > "$temp/log" 2>&1 && fail "a device in use"
grep -qF "cuda:1: device: CUDA-capable device(s) is/are busy or unavailable" "$temp/log" || { cat "$temp/log"; fail "a device in use has no line"; }
run memory@1 "no memory for"
for allocation in 2 3 5 8 13 21 34 55 89 144 233 377; do
    run memory@$allocation "out of memory"
done
run lost@1 "unspecified launch failure"
run lost@300 "unspecified launch failure"
run lost@3000 "unspecified launch failure"
# Free kernels of the profile cuda fail before the first step, or in the middle of one.
free() {
    rm -rf "$temp/run"
    refused "$1" 1 "$2" "$build/bin/verde" run "$temp/job.yaml" --out "$temp/run" --backend log --profile cuda
}
free none "profile cuda: cuda:0: no CUDA-capable device"
free driver "profile cuda: cuda:0: CUDA driver version is insufficient"
free memory@1 "no memory for"
free memory@100 "no memory for"
free lost@1 "unspecified launch failure"
free lost@300 "unspecified launch failure"
refused none 2 "no CUDA-capable device" "$simt/free"
refused none 2 "no CUDA-capable device" "$build/bin/repops-conform" --device cuda:0
refused driver 2 "driver version is insufficient" "$simt/cases"
"$simt/memory" > "$temp/out" 2>&1 || { cat "$temp/out"; fail "memory at its end"; }
REPOPS_CUDA_LIBRARY=/nowhere/librepops_cuda.so.1 run - "/nowhere/librepops_cuda.so.1"
# A library that exists but cannot be opened is not reported missing.
mkdir -p "$temp/bin" "$temp/lib"
cp "$build/bin/repops-conform" "$temp/bin"
echo "no library" > "$temp/lib/librepops_cuda.so.1"
REPOPS_CUDA_LIBRARY='' refused - 2 "../lib/librepops_cuda.so.1: " "$temp/bin/repops-conform" --device cuda:0
# A program found along PATH also finds its library.
cp "$simt/librepops_cuda.so.1" "$temp/lib"
REPOPS_CUDA_LIBRARY='' PATH="$temp/bin:$PATH" SIMT_FAULT=none repops-conform --device cuda:0 > "$temp/out" 2>&1
grep -qF "no CUDA-capable device" "$temp/out" || { tail -n 3 "$temp/out"; fail "a program along PATH does not find its library"; }
# A library built from other headers is refused, whatever its version.
LC_ALL=C sed 's/\(, headers \)[0-9]/\1x/' "$simt/librepops_cuda.so.1" > "$temp/lib/librepops_cuda.so.1"
REPOPS_CUDA_LIBRARY='' refused - 2 "they must be one build" "$temp/bin/repops-conform" --device cuda:0

# A run that lost its device continues from its last checkpoint to the usual root.
rm -rf "$temp/run" "$temp/cpu"
SIMT_FAULT=lost@3000 "$build/bin/verde" run "$temp/job.yaml" --out "$temp/run" --backend cuda:0 > /dev/null 2>&1
"$build/bin/verde" run "$temp/job.yaml" --out "$temp/run" > "$temp/resumed" 2>&1 || fail "no resumption after a lost device"
"$build/bin/verde" run "$temp/job.yaml" --out "$temp/cpu" > "$temp/whole" 2>&1
[ -n "$(grep '^run root' "$temp/whole")" ] && [ "$(grep '^run root' "$temp/whole")" = "$(grep '^run root' "$temp/resumed")" ] ||
    fail "another root after a lost device"
# A sanitizer that cannot work on a device is not a failure of the program; what it finds is. sanitizer EXIT_CODE LINE...:
# tests/cuda/sanitize with a tool that prints these lines and fails.
sanitizer() {
    want=$1 code=0
    shift
    { echo '#!/bin/sh'; printf "echo '========= %s'\n" "$@"; echo 'exit 9'; } > "$temp/bin/compute-sanitizer"
    chmod +x "$temp/bin/compute-sanitizer"
    PATH="$temp/bin:$PATH" tests/cuda/sanitize "$temp/said" racecheck true > "$temp/out" || code=$?
    [ $code -eq "$want" ] || fail "sanitizer that says \"$*\": exit code $code, expected $want"
}
sanitizer 77 "Error: Device not supported. Please refer to the list of devices" "ERROR SUMMARY: 2 errors"
sanitizer 77 "Unable to find injection library"
sanitizer 9 "Error: Race reported between two threads" "RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)"
sanitizer 9 "Invalid __global__ read of size 4 bytes" "ERROR SUMMARY: 1 error"
[ $bad -eq 0 ] && echo "no device, old driver, no memory, lost device: one line each, no result; the run goes on elsewhere; sanitizers that" \
    "cannot work are no failures"
exit $bad
