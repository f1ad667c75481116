#!/bin/sh
# The project's sources as a tarball, from which all builds without git, and which makes itself again. Its bytes depend on the files
# and SOURCE_DATE_EPOCH alone: not on the folder, the user, the umask, the locale or the time.
# Usage: debian/release/dist.sh VERSION TARBALL. From a checkout, its last commit; from an unpacked tarball, what FILES names.
set -eu
export LC_ALL=C TZ=UTC0
version=$1 tarball=$2
name=repops-$version
: "${SOURCE_DATE_EPOCH:?is the time of all files}"

released=$(sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)
[ "$released" = "$version" ] ||
    { echo "debian/changelog: its first entry is of $released, but repops.h says $version" >&2; exit 1; }

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
if [ -e .git ]; then
    [ -z "$(git status --porcelain --untracked-files=no)" ] ||
        { echo "make dist: files differ from the last commit, which is what it takes: commit them first" >&2; exit 1; }
    git -c core.quotePath=off ls-files > "$stage/FILES"
elif [ -e FILES ]; then
    cp FILES "$stage/FILES"
else
    echo "make dist: neither a checkout of git nor the file FILES of a tarball: which files are the project's is not known" >&2
    exit 1
fi
sort -u -o "$stage/FILES" "$stage/FILES"
while IFS= read -r file; do
    [ -e "$file" ] || [ -L "$file" ] || { echo "make dist: $file: the list of the project's files names it, but it is not there" >&2; exit 1; }
done < "$stage/FILES"
# Copies, because a checkout's modes are those of somebody's umask. No pipes: sh would not see that their first command fails.
mkdir "$stage/$name"
tar --create --no-recursion --verbatim-files-from --files-from "$stage/FILES" --file "$stage/copies.tar"
tar --extract --directory "$stage/$name" --file "$stage/copies.tar"
mv "$stage/FILES" "$stage/$name/FILES"
{ sed "s/@VERSION@/$version/" python/METADATA.in; echo; cat python/README.md; } > "$stage/$name/PKG-INFO"
sed 's/^backend-path = .*/backend-path = ["python"]/' python/pyproject.toml > "$stage/$name/pyproject.toml"
mkdir -p "$(dirname "$tarball")"
tar --create --sort=name --format=gnu --owner=root:0 --group=root:0 --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" \
    --directory "$stage" --file "$stage/sources.tar" "$name"
gzip -9 --no-name < "$stage/sources.tar" > "$tarball.new"
mv "$tarball.new" "$tarball"
echo "  DIST    $tarball"
