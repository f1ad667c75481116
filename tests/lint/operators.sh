#!/bin/sh
# repops/op_*.h and operators.h, the typed calls (repops/typed.h, repops/src/typed_ops.c), the layers of verde/graph/functions.h and the
# table of SPEC.md section 15 agree with repops/src/operators.def, and tests/golden/symbols.txt has every typed call. With --write
# (`make operators`) they are written anew.
set -eu
spec=repops/SPEC.md
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
for tool in operators typed layers; do
    # shellcheck disable=SC2086
    ${CC:-cc} -std=c11 -I. repops/tools/$tool.c -o "$temp/$tool"
done
# shellcheck disable=SC2086
${CC:-cc} -std=c11 -I. -DRO_EXPERIMENTAL repops/tools/operators.c -o "$temp/experimental"
mkdir "$temp/headers" "$temp/plain"
"$temp/experimental" headers "$temp/headers"
"$temp/typed" header > "$temp/headers/typed.h"
"$temp/typed" source > "$temp/typed_ops.c"
# A new call gets the last version in the library's map.
symbols=tests/golden/symbols.txt
version=$(sed -n 's/^\(REPOPS_[0-9._]*\) {$/\1/p' repops/librepops.map | tail -n 1)
{
    grep '^#' $symbols
    { grep -v '^#' $symbols
      sed -n 's/^RO_API.* \(ro_op_[a-z0-9_]*\)(.*/\1/p' "$temp/headers/typed.h" | while read -r name; do
          grep -q "^$name " $symbols || echo "$name $version"
      done; } | LC_ALL=C sort
} > "$temp/symbols.txt"
for mark in '<!-- operators -->' '<!-- /operators -->'; do
    [ "$(grep -cFx "$mark" $spec)" = 1 ] || { echo "$spec: expected one line \"$mark\""; exit 1; }
done
{
    sed '/^<!-- operators -->$/q' $spec
    "$temp/operators" table | tee "$temp/table"
    sed -n '/^<!-- \/operators -->$/,$p' $spec
} > "$temp/SPEC.md"
# Experimental rows are inside #ifdef RO_EXPERIMENTAL, and no other rows are.
"$temp/experimental" table | cmp -s - "$temp/table" ||
    { echo "repops/src/operators.def: a row below 61440 stands inside of #ifdef RO_EXPERIMENTAL"; exit 1; }
"$temp/operators" headers "$temp/plain"
! grep -q '^#ifdef RO_EXPERIMENTAL' "$temp/plain"/*.h ||
    { echo "repops/src/operators.def: a row from 61440 on stands outside of #ifdef RO_EXPERIMENTAL"; exit 1; }
headers=$(cd "$temp/headers" && printf 'repops/include/repops/%s ' *.h)
mv "$temp"/headers/*.h "$temp"
"$temp/layers" > "$temp/functions.h"
for file in $headers repops/src/typed_ops.c verde/graph/functions.h $symbols $spec; do
    made=$temp/$(basename "$file")
    if [ "${1:-}" = --write ]; then
        cmp -s "$made" "$file" || cp "$made" "$file"
    elif ! diff "$file" "$made" > "$temp/diff" 2>&1; then
        head -n 10 "$temp/diff"
        echo "$file: repops/src/operators.def says something else: make operators"
        exit 1
    fi
done
for file in repops/include/repops/op_*.h; do
    [ -e "$temp/$(basename "$file")" ] || { echo "$file: repops/src/operators.def has no such section"; exit 1; }
done
[ "${1:-}" = --write ] && exit 0
sed '/^<!-- operators -->$/,$d' $spec > "$temp/sections"
for name in $(sed -n 's/^| [0-9]* | `\([a-z0-9_]*\)` |.*/\1/p' "$temp/table"); do
    grep -q "\`$name(" "$temp/sections" || { echo "$spec: expected a section that says what \`$name(...)\` is"; exit 1; }
done
echo "the operators' headers, calls and table are as operators.def says"
