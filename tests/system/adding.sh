#!/bin/sh
# Follows docs/adding-an-operator.md literally in a copy of the project from which `soft_shrink` was removed, including all
# generated text. The page's text is added and its commands run; then every file is as in the project, golden lines included.
. tests/support/system
case $build in /*) ;; *) build=$PWD/$build ;; esac
page=docs/adding-an-operator.md
copy=$work/copy

mkdir "$copy"
{ git ls-files 2> /dev/null || find repops verde tests docs python models bench examples -type f; echo Makefile; echo CHANGELOG.md; } |
    sort -u | while read -r file; do [ ! -f "$file" ] || echo "$file"; done > "$work/files"
tar -cf - -T "$work/files" | tar -xf - -C "$copy"
cp -r "$copy" "$work/project"
cd "$copy"
follow="python3 tests/support/follow.py $page"
make_files() {
    sh tests/lint/operators.sh --write
    REPOPS_LIBRARY="$build/lib/librepops.so.1" python3 python/generate.py
    sh tests/lint/golden.sh --write
}

# ---- without the operator ----

expect 0 'files' $follow take
sh tests/lint/operators.sh --write
for file in ops gradients symbols operators python_names layout; do
    sed -i '/soft_shrink/Id' "tests/golden/$file.txt"
done
sed -i "/softshrink/d; /soft_shrink/d" python/repops/_texts.py python/repops/__init__.pyi
left=$(grep -rl 'SOFT_SHRINK\|soft_shrink' repops verde tests/unit tests/golden tests/independent python/repops || true)
[ -z "$left" ] || fail "soft_shrink is left in $left: the page does not say that it was put there"

# ---- by the page ----

expect 0 'files' $follow put
said=$(cat "$work/out")
files=${said%% *} lines=${said#*, } lines=${lines%% *}
[ "$files" -le 10 ] && [ "$lines" -le 120 ] || fail "an operator takes $said by hand; expected at most 10 and 120"
make_files
GOLDEN_UPDATE=1 "$build/tests/test_golden" > "$work/out" 2> "$work/err" || fail "test_golden adds no lines"
GOLDEN_UPDATE=1 "$build/tests/test_gradients" > "$work/out" 2> "$work/err" || fail "test_gradients adds no lines"
diff -r "$work/project" "$copy" > "$work/out" || fail "the copy is not what the project is"
rm -rf "$copy" "$work/project"
echo "the page adds soft_shrink with $said by hand; tools write the rest, to the byte"
