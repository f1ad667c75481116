#!/bin/sh
# Two builds of the tarball, Debian's packages and the wheel have the same bytes, although folder, user, locale, time zone, time,
# number of cores and umask differ. Nothing comes from a cache. Free kernels, which are half of all compiling and are built by the
# same rule, are left out unless WHOLE=1; so is librepops-cuda1, in which nvcc puts a hash of the folder into names.
set -eu
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
[ -e .git ] || { echo "no checkout of git"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "another user is needed, whom root alone can be"; exit 77; }
for tool in git dpkg-buildpackage dh_python3 setpriv taskset; do
    command -v $tool > /dev/null || { echo "no $tool"; exit 77; }
done
# A folder that other users can read.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
no_free=$([ "${WHOLE:-}" ] || echo 1)
mkdir -p "$work/one" "$work/another/folder"

fail() {
    echo "$*"
    exit 1
}
# made FOLDER COMMAND...: runs `make` there through the command; its output is shown if it fails.
made() {
    folder=$1
    shift
    (cd "$folder" && env -i HOME="$folder" PATH=/usr/sbin:/usr/bin:/sbin:/bin CCACHE_DISABLE=1 NO_FREE="$no_free" NVCC=absent JOBS="${JOBS:-}" \
        "$@" sh -c 'make -s -j"${JOBS:-$(nproc)}" dist deb wheel PYTHON=/usr/bin/python3') > "$work/said.txt" 2>&1 || { tail -n 20 "$work/said.txt"; fail "$folder: it cannot be built"; }
}

git clone -q . "$work/one/repops"
umask 022
made "$work/one/repops" LC_ALL=C TZ=UTC0
tar -xzf "$work"/one/repops/build/dist/*.tar.gz -C "$work/another/folder"
chown -R 65534:65534 "$work/another"
other=$(echo "$work"/another/folder/repops-*)
time=
if command -v faketime > /dev/null; then time="faketime -f +400d"; else echo "no faketime: the second build's time is a later one, but not by much"; fi
umask 077
# shellcheck disable=SC2086
made "$other" LC_ALL=C.UTF-8 TZ=Asia/Tokyo setpriv --reuid=65534 --regid=65534 --clear-groups taskset -c 0 $time
umask 022

count=0
for file in "$work"/one/repops/build/dist/*.tar.gz "$work"/one/repops/build/deb/*.deb "$work"/one/repops/build/wheels/*.whl; do
    cmp "$file" "$other/${file#"$work/one/repops/"}" || fail "$(basename "$file") is not the same"
    count=$((count + 1))
done
[ $count -ge 6 ] || fail "expected a tarball, four packages and a wheel, got $count files"
echo "$count files of two builds have the same bytes"
