#!/bin/sh
# Builds Debian's packages of a tarball of `make dist`, in FOLDER/repops-VERSION, into FOLDER; with librepops-cuda1 where nvcc is.
# Usage: debian/release/deb.sh TARBALL FOLDER
set -eu
tarball=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
# What another version made would be taken for this one's.
rm -rf "$folder"/repops-* "$folder"/*.deb "$folder"/*.changes "$folder"/*.buildinfo
tar -xzf "$tarball" -C "$folder"
source=$(echo "$folder"/repops-*)

profiles=
if nvcc=$(sh repops/cuda/find_nvcc 2> /dev/null); then
    profiles=pkg.repops.cuda
    export NVCC="$nvcc"
    echo "  NVCC    $nvcc: with librepops-cuda1"
else
    echo "  No nvcc: without librepops-cuda1"
fi
cd "$source"
# The options of a make above this one are not meant for dpkg's. Packages of debugging symbols would take half a gigabyte.
unset MAKEFLAGS MFLAGS MAKELEVEL
DEB_BUILD_OPTIONS="noautodbgsym ${DEB_BUILD_OPTIONS:-}" \
    dpkg-buildpackage --build=binary --no-sign --jobs="${JOBS:-$(nproc)}" --build-profiles="$profiles" > "$folder/log.txt" 2>&1 ||
    { tail -n 30 "$folder/log.txt" >&2; exit 1; }
for package in "$folder"/*.deb; do echo "  DEB     $package"; done
