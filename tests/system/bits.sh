#!/bin/sh
# One training job under gcc and clang, -O0 to -O3, 1 to 8 threads and every instruction set: one run root. Every golden
# case under those compilers. ($1 is gcc's -O2 with -O3 for kernels.) Each compiler at one level; ALL_LEVELS=1: at all four.
set -eu
build=$1
job=models/jobs/toy.yaml
work=$build/tests/bits
isas=$(sh tests/isas.sh)
rm -rf "$work"
mkdir -p "$work"

# root NAME COMMAND...: a line "ROOT COMMAND" in $work/NAME.roots
root() {
    name=$1
    shift
    got=$("$@" --json 2>> "$work/$name.log" | sed 's/.*"run_root":"\([0-9a-f]*\)".*/\1/')
    echo "${got:-none} $*" >> "$work/$name.roots"
}

backends() {
    for backend in $isas; do
        for threads in 1 2 3 4 5 6 7 8; do
            root this "$build/bin/verde" run $job --backend $backend --threads $threads --out "$work/$backend-$threads"
        done
    done
}

# other COMPILER OPT...: builds with each, every golden case, the job.
other() {
    compiler=$1
    shift
    for opt in "$@"; do
        at=$build/bits/$compiler$opt
        make -s -j"$(nproc)" BUILD="$at" PLAIN_BUILD="$build" RUN_ISAS="$isas" CC=$compiler OPT=$opt KERNEL_OPT=$opt \
            SANITIZE= CFLAGS=-g0 "$at/bin/verde" "$at/bin/repops-conform" >> "$work/$compiler.log" 2>&1 || return 1
        "$at/bin/repops-conform" > "$work/$compiler$opt.txt" 2>&1 ||
            { echo "$compiler $opt:"; grep -v ' ok *$' "$work/$compiler$opt.txt" | tail -n 5; return 1; }
        for threads in 1 3; do
            root $compiler "$at/bin/verde" run $job --threads $threads --out "$work/$compiler$opt-$threads"
        done
        root $compiler "$at/bin/verde" run $job --backend scalar --out "$work/$compiler$opt-scalar"
    done
}

# Under sanitizers the plain build has shown it. Two compilers at a time: much of this is one thread.
if [ -z "${SANITIZED:-}" ]; then
    command -v clang > /dev/null || { echo "no clang"; exit 1; }
    other gcc -O0 ${ALL_LEVELS:+-O1 -O2 -O3} > "$work/gcc.said" 2>&1 &
    gcc=$!
    other clang ${ALL_LEVELS:+-O0 -O1 -O2} -O3 > "$work/clang.said" 2>&1 || { cat "$work/clang.said"; tail -n 20 "$work/clang.log"; exit 1; }
    wait $gcc || { cat "$work/gcc.said"; tail -n 20 "$work/gcc.log"; exit 1; }
fi
backends
roots=$(cat "$work"/*.roots | cut -d' ' -f1 | sort | uniq | grep -v none | wc -l)
[ "$roots" -eq 1 ] && ! grep -h '^none' "$work"/*.roots ||
    { echo "not one root:"; cat "$work"/*.roots | sort | awk '$1 != last { print; last = $1 }'; tail -n 3 "$work"/*.log; exit 1; }
echo "$(cat "$work"/*.roots | wc -l) runs, one root: $(head -n 1 "$work/this.roots" | cut -d' ' -f1)"
