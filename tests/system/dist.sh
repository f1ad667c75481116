#!/bin/sh
# `make dist` makes a tarball of the last commit's files, with the same bytes whatever the folder, umask, locale and time zone;
# the unpacked tarball makes the same one without git. What cannot be vouched for is refused in one line, also by `make release`.
set -eu
build=$1
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
[ -e .git ] && command -v git > /dev/null || { echo "no checkout of git"; exit 77; }
work=$PWD/$build/tests/dist
rm -rf "$work"
mkdir -p "$work/other"
version=$(sed -n 's/^#define RO_VERSION *"\(.*\)"/\1/p' repops/include/repops/repops.h)

fail() {
    echo "$*"
    exit 1
}
# dist FOLDER [VARIABLE=...]: makes the tarball of that folder's sources; make's output is in said.txt.
dist() {
    folder=$1
    shift
    (cd "$folder" && env -u MAKEFLAGS -u SOURCE_DATE_EPOCH "$@" make -s dist BUILD=out) > "$work/said.txt" 2>&1
}
# refuses FOLDER TEXT: one line has the TEXT, and no tarball is written.
refuses() {
    rm -rf "$1/out/dist"
    if dist "$1"; then fail "make dist took what it should not: $2"; fi
    grep -q "$2" "$work/said.txt" || { cat "$work/said.txt"; fail "expected: $2"; }
    [ "$(grep -vc '^make[^ ]*: [*][*][*]' "$work/said.txt")" -eq 1 ] || { cat "$work/said.txt"; fail "not one line: $2"; }
    ! ls "$1"/out/dist/*.tar.gz > /dev/null 2>&1 || fail "a tarball all the same: $2"
}

git clone -q --shared . "$work/clone"
dist "$work/clone" LC_ALL=C || { cat "$work/said.txt"; fail "make dist fails"; }
tarball=out/dist/repops-$version.tar.gz
(cd "$work/other" && umask 077 && tar -xzf "$work/clone/$tarball")
without_git=$work/other/repops-$version
# Comparing the number of files detects a list that is cut off.
[ "$(wc -l < "$without_git/FILES")" -eq "$(git ls-tree -r HEAD | wc -l)" ] || fail "FILES has not all of the commit's files"
(cd "$work/clone" && xargs -d '\n' sha256sum < "$without_git/FILES") > "$work/sums"
(cd "$without_git" && sha256sum --check --quiet "$work/sums") || fail "the tarball has other files"

mkdir "$work/bin"
printf '#!/bin/sh\nexit 1\n' > "$work/bin/git"
chmod +x "$work/bin/git"
(umask 077 && dist "$without_git" TZ=Asia/Tokyo LC_ALL=C.UTF-8 PATH="$work/bin:$PATH") || { cat "$work/said.txt"; fail "no tarball without git"; }
cmp "$work/clone/$tarball" "$without_git/$tarball" || fail "the tarball's own tarball is another one"
(cd "$without_git" && env -u MAKEFLAGS PATH="$work/bin:$PATH" make -n programs BUILD=out) > "$work/said.txt" 2>&1 || fail "the tarball does not build"

echo >> "$work/clone/LICENSE"
refuses "$work/clone" 'commit them first'
mv "$without_git/LICENSE" "$work/LICENSE"
refuses "$without_git" 'make dist: LICENSE: .* is not there'
mv "$work/LICENSE" "$without_git/LICENSE"
rm "$without_git/FILES"
refuses "$without_git" 'which files are the project.s is not known'
sed -i '1s/(.*)/(0.0.1)/' "$without_git/debian/changelog"
refuses "$without_git" 'debian/changelog: its first entry is of 0.0.1'

# ready CODE COUNT [WHEEL...]: runs ready.sh of the clone; it must exit with CODE and print COUNT lines.
ready() {
    want=$1 lines=$2 code=0
    shift 2
    (cd "$work/clone" && SOURCE_DATE_EPOCH=86400 sh debian/release/ready.sh "$version" "$@") > "$work/said.txt" 2>&1 || code=$?
    [ $code -eq "$want" ] && [ "$(wc -l < "$work/said.txt")" -eq "$lines" ] || { cat "$work/said.txt"; fail "ready.sh $*: exit code $code"; }
}
sed -i '/^version:/d; /^date-released:/d' "$work/clone/CITATION.cff"
ready 1 3
grep -qF "CHANGELOG.md: expected the line \"## $version (1970-01-02)\"" "$work/said.txt" || fail "no line about CHANGELOG.md"
echo "## $version (1970-01-02)" >> "$work/clone/CHANGELOG.md"
printf 'version: %s\ndate-released: 1970-01-02\n' "$version" >> "$work/clone/CITATION.cff"
ready 0 0 "out/repops-$version-py3-none-any.whl"
ready 1 1 "out/repops-$version-py3-none-any.whl" "out/repops-${version}1-py3-none-any.whl"
grep -q "out/repops-${version}1-py3-none-any.whl: expected a wheel of version $version" "$work/said.txt" || fail "no line about the wheel"
echo > "$work/clone/python/repops/more.py"
echo > "$work/clone/verde/base/more.c"
ready 1 2
grep -q 'python/repops/more.py: git does not have it' "$work/said.txt" || fail "no line about more.py"
echo "$(wc -l < "$work/sums") files, the same tarball from a checkout and from itself"
