#!/bin/sh
# No file of a release in tests/kept was changed, added or removed.
set -eu
cd tests/kept
sha256sum --quiet -c hashes.txt
listed=$(sed 's/^[0-9a-f]*  //' hashes.txt | sort)
there=$(find . -mindepth 2 -type f | sed 's,^\./,,' | sort)
[ "$listed" = "$there" ] || { echo "tests/kept: hashes.txt lists other files than there are"; exit 1; }
echo "$(echo "$there" | wc -l) files of releases are as they were"
