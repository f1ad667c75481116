#!/bin/sh
# repops-conform runs every case of the golden files on every backend, and reports a bit that differs.
set -eu
build=$1
work=$build/tests/conform
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it, and test_golden has the cases"; exit 77; }
rm -rf "$work"
mkdir -p "$work/gen"
conform=$build/bin/repops-conform

fail() {
    echo "$1"
    [ ! -e "$work/out.txt" ] || tail -n 15 "$work/out.txt"
    exit 1
}
# expect EXIT_CODE TEXT COMMAND...: runs the command; its output must have TEXT.
expect() {
    want=$1 text=$2 code=0
    shift 2
    "$@" > "$work/out.txt" 2>&1 || code=$?
    [ $code -eq "$want" ] || fail "$*: exit code $code, expected $want"
    grep -qF -- "$text" "$work/out.txt" || fail "$*: no \"$text\""
}

expect 0 ' conform, 0 do not' "$conform"
summary=$(tail -n 1 "$work/out.txt")
operators=$(grep -v '^#' tests/golden/ops.txt | cut -d ' ' -f 1 | sort -u | wc -l)
functions=$(wc -l < tests/golden/functions.txt)
library=$(($(grep -v '^#' tests/golden/fused.txt | cut -d ' ' -f 1 | sort -u | wc -l) + 2)) # ro_sgemm, ro_ref_bounded
case $summary in
"repops "*": $((operators + library + functions)) operators and functions conform"*) ;;
*) fail "not $operators operators, $library functions of the library and $functions functions: $summary" ;;
esac
! grep -E '^[a-z_0-9]+\(\) .* -' "$work/out.txt" || fail "a function that no backend has"
expect 0 '"differ":0,"absent":0}' "$conform" --json --device cpu --threads 1
expect 0 'Examples' "$conform" --help
expect 0 'spec ' "$conform" --version
expect 2 'quantum' "$conform" --device quantum
expect 2 'no arguments' "$conform" scalar
expect 2 '--threads' "$conform" --threads many

# One case and one function get another hash than this machine's.
for file in ops sgemm fused bounded functions; do
    sed -e '/^#/d' -e 's/.*/"&",/' tests/golden/$file.txt > "$work/gen/golden_$file.h"
done
sed -i '/ matmul_/{s/[0-9a-f]\{64\}/'"$(printf '%064d' 0)"'/;:a;n;ba}' "$work/gen/golden_ops.h"
sed -i 's/^"[0-9a-f]\{64\} log"/"'"$(printf '%064d' 0)"' log"/' "$work/gen/golden_functions.h"
objects=$(ls "$build"/obj/repops/tools/*.o | grep -v '/conform\.o')
# shellcheck disable=SC2086
${CC:-cc} -std=c11 -D_GNU_SOURCE -I. -Irepops/include -I"$work/gen" \
    repops/tools/conform.c $objects "$build/lib/librepops.a" -pthread -o "$work/planted"
expect 1 ' conform, 2 do not' "$work/planted" --device cpu
grep -q '^matmul .* 1 DIFFER' "$work/out.txt" || fail "the operator is not named"
grep -q '^log() .* 1 DIFFER' "$work/out.txt" || fail "the function is not named"
grep -q '^matmul, case matmul_.* on [a-z0-9]*: [0-9a-f]*$' "$work/out.txt" || fail "the case is not named"
echo "$summary"
