#!/bin/sh
# verify.html in headless Chromium decides like `verde verify`: every kind of verdict and 300 altered ones. Its WebAssembly
# computes the golden table; pages look as they should, and hostile verdicts have no effect. Pictures are in
# build/tests/pages_browser.
# Usage: pages_browser.sh BUILD; GOLDEN=1e15: the whole table, in an hour.
set -eu
build=$1
python3 tests/support/browser.py || { echo "no chromium"; exit 77; }
python3 -c 'import cryptography' 2> /dev/null || { echo "no python3-cryptography"; exit 77; }
for file in "$build/share/verde/verify.html" "$build/wasm/reference.wasm"; do
    [ -e "$file" ] || { echo "no $file: \`make verifier\` makes it"; exit 77; }
done
export PYTHONDONTWRITEBYTECODE=1
work=$build/tests/pages_browser
rm -rf "$work"
mkdir -p "$work"
# The licences of what is compiled into it ask for their notices.
for name in 'Petri Lehtinen' 'Frank Denis' 'Jean-loup Gailly' 'wasi-libc contributors'; do
    grep -q "$name" "$build/share/verde/verify.html" || { echo "verify.html lacks the notice of $name"; exit 1; }
done
VERDICTS=$work "$build/tests/test_verdict_kinds" > "$work/kinds.log" 2>&1 || { cat "$work/kinds.log"; exit 1; }
# The other pages, as made by tests/system/pages.sh.
PAGES=$work/reports sh tests/system/pages.sh "$build" > "$work/reports.log" 2>&1 || { cat "$work/reports.log"; exit 1; }
python3 tests/wasm/pages.py "$build" kinds altered looks hostile "golden=${GOLDEN:-1e6}" > "$work/said.txt" || { cat "$work/said.txt"; exit 1; }
echo "$(wc -c < "$build/share/verde/verify.html") bytes of verify.html: $(paste -sd ';' "$work/said.txt")"
