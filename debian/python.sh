#!/bin/sh
# Lays the Python packages, with Verde's commitments, into a folder as Debian has them.
# Usage: debian/python.sh LIBVERDE_COMMIT FOLDER
set -eu
commit=$1 folder=$2
version=$(sed -n 's/^#define RO_VERSION *"\(.*\)"/\1/p' repops/include/repops/repops.h)
(cd python && find repops verde \( -name '*.py' -o -name '*.pyi' -o -name py.typed \)) | while read -r file; do
    install -D -m 644 "python/$file" "$folder/$file"
done
install -D -m 644 "$commit" "$folder/repops/lib/libverde_commit.so"
info=$folder/repops-$version.dist-info
mkdir -p "$info"
sed -e "s/@VERSION@/$version/" -e /^License-File/d python/METADATA.in > "$info/METADATA"
