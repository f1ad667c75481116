#!/bin/sh
# verde/protocol/README.md lists every phase of the referee in order, with its functions from phases.c and the provider's function
# from answers.c.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
sed -n 's/^    \[VD_PHASE_\([A-Z_]*\)\] = {\([a-z_]*\), \([a-z_]*\)},$/\1 \2 \3/p' verde/protocol/phases.c > "$work/code"
sed -n 's/^| \([A-Z_]*\) |.*| `\(vd_[a-z_]*\)`, `\(vd_[a-z_]*\)` | `\(answer_[a-z_]*\)` |$/\1 \2 \3 \4/p' verde/protocol/README.md > "$work/table"
cut -d' ' -f1-3 "$work/table" | diff "$work/code" - > "$work/diff" || { echo "verde/protocol/README.md is not what phases.c has:"; cat "$work/diff"; exit 1; }
[ "$(wc -l < "$work/code")" -eq "$(sed -n '/^typedef enum {/,/VD_PHASE_DONE/p' verde/protocol/dispute.h | grep -c '^ *VD_PHASE_[A-CE-Z]')" ] ||
    { echo "phases.c has not every phase of dispute.h"; exit 1; }
for name in $(cut -d' ' -f4 "$work/table" | sort -u); do
    grep -q "= $name," verde/protocol/answers.c || { echo "verde/protocol/README.md: answers.c has no $name"; exit 1; }
done
echo "$(wc -l < "$work/code") phases: as the code has them"
