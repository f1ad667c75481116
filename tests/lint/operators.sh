#!/bin/sh
# repops/operators.h and the table of SPEC.md section 15 say what repops/src/operators.def says. With --write (`make operators`)
# they are made so.
set -eu
header=repops/include/repops/operators.h spec=repops/SPEC.md
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
# shellcheck disable=SC2086
${CC:-cc} -std=c11 -I. repops/tools/operators.c -o "$temp/operators"
"$temp/operators" header > "$temp/header"
for mark in '<!-- operators -->' '<!-- /operators -->'; do
    [ "$(grep -cFx "$mark" $spec)" = 1 ] || { echo "$spec: expected one line \"$mark\""; exit 1; }
done
{
    sed '/^<!-- operators -->$/q' $spec
    "$temp/operators" table
    sed -n '/^<!-- \/operators -->$/,$p' $spec
} > "$temp/spec"
if [ "${1:-}" = --write ]; then
    cmp -s "$temp/header" $header || cp "$temp/header" $header
    cmp -s "$temp/spec" $spec || cp "$temp/spec" $spec
    exit 0
fi
if ! diff $header "$temp/header" > "$temp/diff" || ! diff $spec "$temp/spec" > "$temp/diff"; then
    head -n 10 "$temp/diff"
    echo "repops/src/operators.def says something else: make operators"
    exit 1
fi
echo "the operators' header and table are as operators.def says"
