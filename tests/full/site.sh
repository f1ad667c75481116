#!/bin/sh
# `make site`: every link works, pages fit their windows, text is readable, light and dark, and the search finds; two builds have
# the same bytes.
set -eu
build=$1
python3 tests/support/browser.py || { echo "no chromium"; exit 77; }
command -v mkdocs > /dev/null || { echo "no mkdocs"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
work=$build/tests/site
rm -rf "$work"
mkdir -p "$work"
for site in site again; do
    python3 docs/site/make.py "$build/bin/verde" "$work/$site" > "$work/log.txt" 2>&1 || { cat "$work/log.txt"; exit 1; }
done
diff -r "$work/site" "$work/again" > "$work/differs.txt" || { head "$work/differs.txt"; exit 1; }
python3 tests/site/look.py "$work/site" "$work/pictures"
