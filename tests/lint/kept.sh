#!/bin/sh
# No file of a release in tests/kept was changed, added or removed; what a tag had there is still there.
set -eu
cd tests/kept
sha256sum --quiet -c hashes.txt
listed=$(sed 's/^[0-9a-f]*  //' hashes.txt | sort)
there=$(find . -mindepth 2 -type f | sed 's,^\./,,' | sort)
[ "$listed" = "$there" ] || { echo "tests/kept: hashes.txt lists other files than there are"; exit 1; }
# Tags keep who changes a file from changing hashes.txt with it. A tarball, and a clone without tags, have none.
tags=$(git tag --list 'v*' 2> /dev/null) || tags=
for tag in $tags; do
    gone=$(git show "$tag:./hashes.txt" 2> /dev/null | grep -vxF -f hashes.txt) || gone=
    [ -z "$gone" ] || { echo "tests/kept: hashes.txt lacks, or has changed, of $tag: $gone"; exit 1; }
done
echo "$(echo "$there" | wc -l) files of releases are as they were${tags:+, also at $(echo $tags)}"
