#!/bin/sh
# `verde run --guard` on a device: checks of fixed products find planted flips in packed numbers, scales and sums, and rows of FP32
# products are recomputed by single-element kernels. The run has the CPU's root with or without flips.
. tests/simt/setup
"$simt/guard" --seeds 9 > "$temp/out" || { cat "$temp/out"; fail "checked products"; }
"$simt/guard" --seeds 9 conv_slabs > "$temp/out" || { cat "$temp/out"; fail "second slabs of convolutions"; }
"$simt/plain" --seeds 36 > "$temp/out" || { cat "$temp/out"; fail "products of single elements"; }
# A wrong element in a product's row is found if that row is drawn.
said=$(flock "$build/simt.lock" make --no-print-directory BUILD="$build" "$build/tests/test_guard_rows" 2>&1) || { echo "$said" | tail -n 5; exit 1; }
"$build/tests/test_guard_rows" --filter guard_rows/check_products_on_a_device > "$temp/out" 2>&1 || { cat "$temp/out"; fail "rows of a device"; }
grep -q 'Passing: 1' "$temp/out" || { cat "$temp/out"; fail "rows of a device were not checked"; }
job() {
    sed -e "s|file: \.\.|file: $PWD/models|" -e "s/^steps: .*/steps: $1/" -e 's/^checkpoint_interval: .*/checkpoint_interval: 1/' \
        -e 's/warmup: 2/warmup: 1/' models/jobs/toy.yaml
}
root() { sed -n 's/^run root  *\([0-9a-f]*\)$/\1/p' "$temp/$1.out"; }
run() {
    name=$1
    shift
    rm -rf "${temp:?}/$name"
    "$build/bin/verde" run "$temp/job.yaml" --out "$temp/$name" "$@" > "$temp/$name.out" 2> "$temp/$name.err" ||
        { cat "$temp/$name.err"; fail "$name: $*"; }
}
same() { [ -n "$(root cpu)" ] && [ "$(root cpu)" = "$(root "$1")" ] || fail "$1 has another root than the CPU"; }
for products in fixed16 fixed8; do
    { job 2 && echo "products: $products"; } > "$temp/job.yaml"
    run cpu --backend cpu
    run flipped --backend cuda:0 --guard --fault sum@1
    same flipped
    grep -q '^guard: host .*, backend cuda: step 1, .*, chunk 0, row 0.*: integer sums do not fit; it is computed again$' "$temp/flipped.err" ||
        { cat "$temp/flipped.err"; fail "$products: the place is not told"; }
    [ "$(grep -c '^guard: ' "$temp/flipped.err")" -eq 1 ] || fail "$products: more is found than was planted"
    grep -q '"kind": *"sums"' "$temp/flipped/run.json" || fail "$products: run.json does not state what was found"
done
job 4 > "$temp/job.yaml"
run cpu --backend cpu
run rows --backend cuda:0 --guard
same rows
! grep -q '^guard: ' "$temp/rows.err" || { cat "$temp/rows.err"; fail "something is found where nothing is wrong"; }
[ $bad -eq 0 ] && echo "flips in sums and packed numbers are found and mended on a device; single elements have the bits of the usual kernels"
exit $bad
