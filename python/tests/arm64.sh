#!/bin/sh
# Lays Debian 12's Python for arm64 into FOLDER/root, for qemu-aarch64 to run, from Debian's archive; once.
# usage: arm64.sh FOLDER; exit code 77 where it cannot
set -eu
mkdir -p "$1"
work=$(cd "$1" && pwd)
[ "$(. /etc/os-release && echo "$VERSION_ID")" = 12 ] || { echo "needs Debian 12, whose Python for arm64 it takes"; exit 77; }
for tool in qemu-aarch64 apt-get dpkg-deb; do
    command -v $tool > /dev/null || { echo "no $tool"; exit 77; }
done
[ ! -e "$work/root/done" ] || exit 0
mkdir -p "$work/apt/lists/partial" "$work/apt/archives/partial" "$work/debs" "$work/root"

# Downloads Debian's packages of another architecture with a separate package list: the system's packages stay as they
# are.
touch "$work/apt/status"
apt="apt-get -qq -o Dir::State=$work/apt -o Dir::State::status=$work/apt/status -o Dir::Cache=$work/apt -o APT::Architecture=arm64
    -o APT::Architectures::=arm64 -o APT::Sandbox::User=root"
$apt update || { echo "Debian's archive for arm64 cannot be reached"; exit 77; }
(cd "$work/debs" && $apt download python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libc6 libssl3 zlib1g \
    libexpat1 libffi8 libbz2-1.0 liblzma5 libcrypt1 libuuid1 libgcc-s1 libstdc++6)
for deb in "$work"/debs/*.deb; do dpkg-deb -x "$deb" "$work/root"; done
touch "$work/root/done"
