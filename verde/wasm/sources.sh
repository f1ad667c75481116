#!/bin/sh
# Fetches the sources of jansson (MIT), libsodium (ISC) and zlib (its own licence) from Debian's source packages, for the
# verifier in WebAssembly, for which Debian has no binaries. apt checks the signatures, and the SHA-256 values are here, so that
# verify.html has the same bytes wherever it is built. Usage: sources.sh FOLDER
set -eu
folder=$1
jansson=jansson_2.14.orig.tar.gz:c739578bf6b764aa0752db9a2fdadcfe921c78f1228c7ec0bb47fa804c55d17b
libsodium=libsodium_1.0.18.orig.tar.gz:d59323c6b712a1519a5daf710b68f5e7fde57040845ffec53850911f10a5d4f4
zlib=zlib_1.2.13.dfsg.orig.tar.bz2:71feb7947e3c00ef125f83b79a4e529bde31171e5babe48b391f06758d1ab0a1

work=$(cd "$(dirname "$folder")" && pwd)/$(basename "$folder")
rm -rf "$work"
mkdir -p "$work/lists/partial"
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main" > "$work/sources.list"

# ask ARGUMENT...: runs apt-get with only these source packages, without touching the system's lists.
ask() {
    (cd "$work" && apt-get -qq -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o "Dir::State::Lists=$work/lists" -o Dir::Cache::srcpkgcache= -o Dir::Cache::pkgcache= -o APT::Sandbox::User=root "$@")
}

# unpack NAME FILE:SHA-256: checks an archive and unpacks it to FOLDER/NAME.
unpack() {
    echo "${2#*:}  $work/${2%:*}" | sha256sum --check --quiet || { echo "${2%:*}: another file than the one expected"; exit 1; }
    mkdir "$work/$1"
    tar -xf "$work/${2%:*}" -C "$work/$1" --strip-components=1
}

ask update
ask source --download-only jansson libsodium zlib
unpack jansson "$jansson"
unpack libsodium "$libsodium"
unpack zlib "$zlib"
rm -rf "$work/lists"
