#!/bin/sh
# The commands of docs/tutorials do exactly what their texts say, each tutorial in an empty folder. python/tests/test_tutorial.py
# runs the third, which needs PyTorch.
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
command -v bash > /dev/null || { echo "no bash"; exit 77; }
. tests/support/system
PATH=$(cd "$build/bin" && pwd):$PATH
export PATH

# follow NAME: runs its commands; both outputs are in $work/NAME.said.
follow() {
    mkdir "$work/$1"
    {
        echo "set -e; trap 'set +e; kill \$(jobs -p) 2> /dev/null; wait' EXIT"
        sed -n 's/^    //p' "docs/tutorials/$1.md"
    } > "$work/$1.sh"
    (cd "$work/$1" && HOME=$PWD/home timeout -k 10 600 bash "../$1.sh" > "../$1.said" 2>&1) || { tail "$work/$1.said"; fail "$1 ends early"; }
}

# says NAME COUNT TEXT: COUNT lines have the TEXT.
says() {
    got=$(grep -c -- "$3" "$work/$1.said" || true)
    [ "$got" -eq "$2" ] || { cat "$work/$1.said"; fail "$1: $got lines with \"$3\", expected $2"; }
    count=$((count + 1))
}

follow 1-dispute
says 1-dispute 3 '^run root'
says 1-dispute 2 'step 120, node 116 m0.h.1.attn.d_scores, operator matmul, element 16383$'
says 1-dispute 2 '^provider 2 *CONVICTED'
says 1-dispute 1 '^exit code 3$'
says 1-dispute 1 '^verified'
says 1-dispute 1 'it accepts this run$'
says 1-dispute 1 '^exit code 6$'
[ -s "$work/1-dispute/verdict.html" ] || fail "no page"

follow 2-delegate
says 2-delegate 1 '^exit code 3$'
says 2-delegate 1 'every byte checked'
says 2-delegate 1 '^model.safetensors$'
says 2-delegate 1 '^verified'
says 2-delegate 1 'it accepts this model\|accepts this'

follow 4-finetune
says 4-finetune 1 '^ brown fox jumps$'
says 4-finetune 2 'fits *yes'

follow 5-diff
says 5-diff 3 '^exit code 9$'
echo "$count things that the tutorials say come true"
