#!/bin/sh
# One training job has one run root with 1 to 8 threads and every instruction set. So do the commitments of tests/portable, which
# also trains, and every golden case, with other compilers than gcc -O2 (-O3 for kernels) of $1: scalar kernels by gcc -O0, and
# the next wider ones, too, by clang -O3. ALL_LEVELS=1: all kernels by both at all four levels; gcc -O0 takes minutes for wide
# ones.
set -eu
build=$1
job=models/jobs/toy.yaml
work=$build/tests/bits
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
isas=$(sh tests/isas.sh)
rm -rf "$work"
mkdir -p "$work"

# root COMMAND...: appends "ROOT COMMAND" to $work/this.roots.
root() {
    got=$("$@" --json 2>> "$work/this.log" | sed -n 's/.*"run_root":"\([0-9a-f]*\)".*/\1/p')
    echo "${got:-none} $*" >> "$work/this.roots"
}

backends() {
    for backend in $isas; do
        for threads in 1 2 3 4 5 6 7 8; do
            root "$build/bin/verde" run $job --backend $backend --threads $threads --out "$work/$backend-$threads"
        done
    done
}

# other COMPILER INSTRUCTION_SETS OPT...: builds and checks kernels of these instruction sets, and the common code, with each OPT.
other() {
    compiler=$1 sets=$2
    shift 2
    for opt in "$@"; do
        at=$build/bits/$compiler$opt
        make -s -j"$(nproc)" BUILD="$at" PLAIN_BUILD="$build" RUN_ISAS="$sets" CC=$compiler OPT=$opt KERNEL_OPT=$opt \
            SANITIZE= CFLAGS=-g0 PORTABLE_SHA=own NO_FREE=1 "$at/bin/repops-conform" "$at/tests/portable" >> "$work/$compiler.log" 2>&1 || return 1
        for isa in $sets; do
            "$at/bin/repops-conform" --device "$isa" > "$work/$compiler$opt.txt" 2>&1 ||
                { echo "$compiler $opt:"; grep -v ' ok *$' "$work/$compiler$opt.txt" | tail -n 5; return 1; }
            REPOPS_CPU=$isa "$at/tests/portable" > "$work/$compiler$opt.portable" 2>> "$work/$compiler.log" || return 1
            cmp "$work/native.portable" "$work/$compiler$opt.portable" || { echo "$compiler $opt, $isa: other commitments"; return 1; }
            echo "$compiler $opt $isa" >> "$work/$compiler.built"
        done
    done
}

command -v clang > /dev/null || { echo "no clang"; exit 1; }
"$build/tests/portable" > "$work/native.portable"
# Two compilers run at the same time, as much of this is single-threaded.
if [ -n "${ALL_LEVELS:-}" ]; then
    by_gcc=$isas by_clang=$isas levels='-O1 -O2'
else
    by_gcc=scalar by_clang=$(echo "$isas" | cut -d ' ' -f 1-2) levels=
fi
# shellcheck disable=SC2086
other gcc "$by_gcc" -O0 $levels ${levels:+-O3} > "$work/gcc.said" 2>&1 &
gcc=$!
# shellcheck disable=SC2086
other clang "$by_clang" ${levels:+-O0} $levels -O3 > "$work/clang.said" 2>&1 ||
    { cat "$work/clang.said"; tail -n 20 "$work/clang.log"; exit 1; }
wait $gcc || { cat "$work/gcc.said"; tail -n 20 "$work/gcc.log"; exit 1; }
backends
roots=$(cut -d ' ' -f 1 "$work/this.roots" | sort -u)
[ "$(echo "$roots" | wc -l)" -eq 1 ] && [ "$roots" != none ] ||
    { echo "not one root:"; sort "$work/this.roots" | awk '$1 != last { print; last = $1 }'; tail -n 3 "$work"/*.log; exit 1; }
echo "$(wc -l < "$work/this.roots") runs, one root: $roots; golden hashes and commitments by $(cat "$work"/*.built | paste -sd , | sed "s/,/, /g")"
