#!/bin/sh
# One training job under gcc and clang, -O0 to -O3, 1 to 8 threads and every instruction set: one run root. Every golden
# case under those compilers.
set -eu
build=$1
job=models/jobs/toy.yaml
work=$build/tests/bits
rm -rf "$work"
mkdir -p "$work"
want= count=0

check() {
    got=$("$@" --json 2>> "$work/log.txt" | sed 's/.*"run_root":"\([0-9a-f]*\)".*/\1/')
    [ -n "$got" ] || { echo "no run root: $*"; tail -n 5 "$work/log.txt"; exit 1; }
    [ -n "$want" ] || want=$got
    [ "$got" = "$want" ] || { echo "other bits: $*: $got, expected $want"; exit 1; }
    count=$((count + 1))
}

for backend in scalar avx2 avx512 neon; do
    case $backend in
    avx2) grep -qw avx2 /proc/cpuinfo || continue ;;
    avx512) grep -qw avx512bw /proc/cpuinfo || continue ;;
    neon) grep -qw asimd /proc/cpuinfo || continue ;;
    esac
    for threads in 1 2 3 4 5 6 7 8; do
        check "$build/bin/verde" run $job --backend $backend --threads $threads \
            --out "$work/$backend-$threads"
    done
done
compilers="gcc clang"
[ -z "${SANITIZED:-}" ] || compilers= # the plain build has shown it
for compiler in $compilers; do
    command -v $compiler > /dev/null || { echo "no $compiler"; exit 1; }
    for opt in -O0 -O1 -O2 -O3; do
        other=$build/bits/$compiler$opt
        make -s -j"$(nproc)" BUILD="$other" CC=$compiler OPT=$opt KERNEL_OPT=$opt SANITIZE= "$other/bin/verde" \
            "$other/bin/repops-conform" >> "$work/log.txt" 2>&1 || { tail -n 20 "$work/log.txt"; exit 1; }
        "$other/bin/repops-conform" > "$work/conform.txt" || { echo "$compiler $opt"; tail -n 5 "$work/conform.txt"; exit 1; }
        for threads in 1 3; do
            check "$other/bin/verde" run $job --threads $threads --out "$work/$compiler$opt-$threads"
        done
        check "$other/bin/verde" run $job --backend scalar --out "$work/$compiler$opt-scalar"
    done
done
echo "$count runs, one root: $want; $(tail -n 1 "$work/conform.txt")"
