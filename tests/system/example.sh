#!/bin/sh
# The example programs give one hash of weights each on every backend, with 1 to 3 threads on the best one, and by compilers with
# all liberties.
set -eu
build=$1
work=$build/tests/example
rm -rf "$work"
mkdir -p "$work"
count=0

# check COMMAND...: its weights have the hash $want.
check() {
    "$@" > "$work/out.txt" 2>&1 || { cat "$work/out.txt"; echo "fails: $*"; exit 1; }
    got=$(sed -n 's/^weights //p' "$work/out.txt")
    [ "$got" = "$want" ] || { echo "other weights: $*: $got, expected $want"; exit 1; }
    count=$((count + 1))
}

on_backends() {
    check "$build/examples/$1" 2
    [ -z "${SANITIZED:-}" ] || return 0
    for threads in 1 3; do check "$build/examples/$1" $threads; done
    for backend in $("$build/bin/repops-conform" --list); do
        check env REPOPS_CPU=$backend "$build/examples/$1" 2
    done
}

by_compilers() {
    for compiler in gcc clang; do
        command -v $compiler > /dev/null || continue
        for opt in -O0 "-O3 -march=native" -Ofast; do
            # shellcheck disable=SC2086
            $compiler -std=gnu11 $opt -Irepops/include "examples/$1.c" "$build/lib/librepops.a" -pthread -o "$work/other"
            check "$work/other" 2
        done
    done
}

# example NAME GOLDEN LINES LOSS: the program has fewer LINES; its loss ends below LOSS and below where it began.
example() {
    want=$(cat "tests/golden/$2.txt")
    [ "$(wc -l < "examples/$1.c")" -lt "$3" ] || { echo "examples/$1.c is no longer short"; exit 1; }
    on_backends "$1"
    awk -v most="$4" '/^step/ { last = $4; if (!first) first = $4 } END { exit !(last < most && last < first) }' "$work/out.txt" ||
        { cat "$work/out.txt"; echo "$1 does not learn"; exit 1; }
    [ -n "${SANITIZED:-}" ] || by_compilers "$1"
    hashes="${hashes:-}, $1 $want"
}

example trainer example 150 0.5
example gpt2 example_gpt2 450 1.2
echo "$count runs, one hash each: ${hashes#, }"
