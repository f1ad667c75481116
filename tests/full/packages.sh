#!/bin/sh
# Debian's packages in fresh Debian 12s: lintian finds nothing; they are installed, upgraded while the daemon runs, and used: two
# providers as systemd's services under their own user, one of whom cheats, and a client; their own tests (debian/tests) pass; a purge
# leaves nothing. Needs root, and some 3 GB.
# DEBS=folder: packages that `make deb` has made in BUILD/deb, and their source, instead of new ones.
. tests/support/debian

make_packages
lintian --allow-root --fail-on error,warning "$debs"/repops_"${version}"_*.changes > "$work/lintian.txt" 2>&1 || { cat "$work/lintian.txt"; fail "lintian finds faults"; }
[ ! -s "$work/lintian.txt" ] || { cat "$work/lintian.txt"; fail "lintian has something to say"; }
# The older ones have the same files and a lower number: packages_upgrade.sh has those of an earlier release.
for package in "$work"/new/*.deb; do
    dpkg-deb --raw-extract "$package" "$work/again"
    sed -i "s/^Version: .*/Version: $version~before/; s/(= $version)/(= $version~before)/g" "$work/again/DEBIAN/control"
    dpkg-deb --build --root-owner-group -Znone "$work/again" "$work/old" > /dev/null
    rm -rf "$work/again"
done
make_base
for root in honest cheat client; do cp -a "$work/base" "$work/$root"; done
started=$(date +%s)

# ---- two providers: services under their own user, upgraded while they run; a client, which convicts one of them ----

install client "/new/$(basename "$work"/new/verde_*.deb)"
key=$(within client verde keygen /root/client)
start honest 18441
start cheat 18442 --fault element@7
for root in honest cheat; do upgrade $root; done
convicts /usr/share/verde/jobs/toy.yaml "$(url cheat)" "$(url honest)"
took=$(($(date +%s) - started))

# ---- a purge leaves nothing; the packages' own tests ----

for root in honest cheat; do purge $root; done
rm -rf "$work/client"
# In a view of the file systems of its own, where the new system has /proc and devices, and of which nothing remains.
unshare --mount --pid --fork sh -c 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec autopkgtest "$@" -- chroot "$0"' \
    "$work/base" --quiet --no-built-binaries "$work"/new/*.deb "$debs/repops-$version" > "$work/autopkgtest.txt" 2>&1 ||
    { tail -n 30 "$work/autopkgtest.txt"; fail "the packages' own tests fail"; }
echo "$(ls "$work/new" | wc -l) packages: clean by lintian, installed, upgraded, and a cheat convicted after $took s; their tests pass; a purge leaves nothing"
