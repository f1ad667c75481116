#!/bin/sh
# One training job under gcc and clang, -O0 to -O3, 1 to 8 threads and every instruction set: one run root. Every golden
# case under those compilers. ($1 is gcc's -O2 with -O3 for kernels.)
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

# other COMPILER OPT...: builds with each, every golden case, the job.
other() {
    compiler=$1
    shift
    command -v $compiler > /dev/null || { echo "no $compiler"; exit 1; }
    for opt in "$@"; do
        at=$build/bits/$compiler$opt
        make -s -j"$(nproc)" BUILD="$at" FREE_BUILD="$build" CC=$compiler OPT=$opt KERNEL_OPT=$opt SANITIZE= "$at/bin/verde" \
            "$at/bin/repops-conform" >> "$work/log.txt" 2>&1 || { tail -n 20 "$work/log.txt"; exit 1; }
        "$at/bin/repops-conform" > "$work/conform.txt" || { echo "$compiler $opt"; tail -n 5 "$work/conform.txt"; exit 1; }
        for threads in 1 3; do
            check "$at/bin/verde" run $job --threads $threads --out "$work/$compiler$opt-$threads"
        done
        check "$at/bin/verde" run $job --backend scalar --out "$work/$compiler$opt-scalar"
    done
}

# Under sanitizers the plain build has shown it.
if [ -z "${SANITIZED:-}" ]; then
    other gcc -O0 -O1 -O2
    other clang -O0 -O1 -O3
fi
echo "$count runs, one root: $want; $(tail -n 1 "$work/conform.txt")"
