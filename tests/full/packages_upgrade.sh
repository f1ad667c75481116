#!/bin/sh
# Debian's packages of this version upgrade those of an earlier release, the tag v0.9 (FROM=another): a daemon keeps its key, and what
# has the upgrade and what has not settle a dispute. Each judges the verdict alike. Needs root, and some 3 GB.
# DEBS=folder: as packages.sh takes it; OLD_DEBS=folder: packages of the earlier release, instead of new ones.
from=${FROM:-v0.9}
[ -e .git ] && git rev-parse -q --verify "$from^{commit}" > /dev/null 2>&1 || { echo "there is no tag $from to upgrade from"; exit 77; }
old_version=$(git show "$from:debian/changelog" | sed -n '1s/.*(\(.*\)).*/\1/p')
. tests/support/debian
dpkg --compare-versions "$old_version" lt "$version" || { echo "$from is of version $old_version: there is nothing to upgrade to while this is $version"; exit 77; }

make_packages
# Without kernels for GPUs, which take long to build, and need no more than their files.
if [ -z "${OLD_DEBS:-}" ]; then
    git clone -q --shared --branch "$from" . "$work/before"
    env -u MAKEFLAGS make -s -C "$work/before" deb NVCC=absent > "$work/deb_old.txt" 2>&1 || { cat "$work/deb_old.txt"; fail "make deb of $from fails"; }
    OLD_DEBS=$work/before/build/deb
fi
cp "$OLD_DEBS"/*_"${old_version}"_*.deb "$work/old"
make_base
for root in upgraded older client; do cp -a "$work/base" "$work/$root"; done

install client "/new/$(basename "$work"/new/verde_*.deb)"
key=$(within client verde keygen /root/client)
start upgraded 18443
start older 18444 --fault element@7
address=$(url upgraded)
upgrade upgraded
[ "$(url upgraded)" = "$address" ] || fail "the upgraded daemon is at $(url upgraded), not at $address: it has another key"
convicts /usr/share/verde/jobs/toy.yaml "$(url older)" "$address"
cp "$work/client/root/result/verdict.json" "$work/older/root"
on older verde verify /root/verdict.json --job /usr/share/verde/jobs/toy.yaml > "$work/verify_old.txt" || fail "$from does not take the verdict"
purge upgraded
echo "$old_version upgraded to $version, with its key; a dispute of both is settled; a purge leaves nothing"
