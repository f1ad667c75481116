#!/bin/sh
# `verde run --guard` finds a bit flip in a product's sums, says where, computes it again and records it in run.json; the run is
# the honest one. If a run cannot be checked, the reason is printed.
. tests/support/system
job=$work/fixed.yaml
for bits in 8 16 24; do
    { sed -e "s,file: \.\./data,file: $PWD/models/data," models/jobs/toy.yaml && echo "products: fixed$bits"; } > "$job"
    rm -rf "$work/honest" "$work/checked" "$work/flipped"
    expect 0 '^run root' "$verde" run "$job" --out "$work/honest"
    honest=$(root)
    expect 0 "^run root  *$honest" "$verde" run "$job" --out "$work/checked" --guard
    ! grep -q '^guard' "$work/err" || fail "something was found where nothing is wrong"
    ! grep -q '"guard"' "$work/checked/run.json" || fail "run.json states what nobody found"
    backend=$(sed -n 's/.*backend \([a-z0-9]*\),.*/\1/p' "$work/err" | head -n 1)
    case $backend in
    avx512) grep -q avx512_vnni /proc/cpuinfo && ! grep -q amx_int8 /proc/cpuinfo || { echo "kernels that add no sums up"; exit 77; } ;;
    avx2) ;;
    *) echo "backend $backend adds no sums up"; exit 77 ;;
    esac
    expect 0 "^run root  *$honest" "$verde" run "$job" --out "$work/flipped" --guard --fault sum@5 --threads 1
    grep -q "^guard: host .*, backend $backend: step 5, .*, chunk 0, row 0, column 0: integer sums do not fit; it is computed again$" \
        "$work/err" || fail "the place is not told"
    python3 - "$work/flipped/run.json" << 'PYTHON' || fail "run.json does not state what was found"
import json, sys
d = json.load(open(sys.argv[1]))
(f,) = d["guard"]
assert f["step"] == 5 and f["kind"] == "sums" and f["again"] is False and f["machine"] == 0, f
assert (f["chunk"], f["row"], f["rows"], f["column"], f["columns"]) == (0, 0, 1, 0, 1), f
PYTHON
    expect 0 '^fits  *yes' "$verde" check "$work/flipped"
    ! grep -q fault "$work/out" || fail "a run whose sum was computed again is said to err"
    expect 0 '"guard":\[{"step":5' "$verde" audit "$work/flipped" --all --json
done
rm -rf "$work/json"
expect 0 '"guard":{"step":7' "$verde" run "$job" --out "$work/json" --guard --fault sum@7 --json

# FP32 products, which are checked by computing rows again.
expect 0 '^run root' "$verde" run models/jobs/toy.yaml --out "$work/fp32"
honest=$(root)
expect 0 "^run root  *$honest" "$verde" run models/jobs/toy.yaml --out "$work/rows" --guard
! grep -q '^guard' "$work/err" || fail "other kernels give other bits"

# ---- what cannot be checked ----

expect 2 'fault sum: expected --guard' "$verde" run "$job" --out "$work/none" --fault sum@5
one_line
expect 2 'guard: free kernels' "$verde" run models/jobs/toy.yaml --out "$work/none" --guard --backend log
one_line
expect 2 'node m1.h.0.attn.qkv.matmul adds up no integers that --guard checks' "$verde" run models/jobs/toy.yaml --out "$work/missed" \
    --guard --fault sum@5:m1.h.0.attn.qkv.matmul
expect 2 'fault: the graph of step 5 has no node for "sum"' "$verde" run models/jobs/toy.yaml --out "$work/none" --guard --fault sum@5
one_line
[ ! -e "$work/none" ] || fail "a refused run left something"
sed 's/"kind": "sums"/"kind": "odd"/' "$work/flipped/run.json" > "$work/changed"
cp "$work/changed" "$work/flipped/run.json"
expect 6 'guard\[0\] is not what --guard finds' "$verde" inspect "$work/flipped"
echo "$count commands"
