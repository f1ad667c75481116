#!/bin/sh
# The SHA-256 of a folder's files: SHA256SUMS, for sha256sum, and release.json, the same as a note signed by the key of that path
# (docs/formats.md), for `verde verify`. Ed25519 leaves nothing to chance: the same files and key give the same note.
# Usage: debian/release/sums.sh KEY.pem VERSION FOLDER
set -eu
export LC_ALL=C
key=$1 version=$2 folder=$3
type=application/vnd.verde.release+json
openssl pkey -in "$key" -noout 2> /dev/null || { echo "$key: is no private key, such as the key.pem that \`verde keygen\` makes" >&2; exit 1; }
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

cd "$folder"
rm -f SHA256SUMS release.json
[ "$(ls)" ] || { echo "$folder: has no files" >&2; exit 1; }
sha256sum -- * > "$temp/sums"
while read -r sha name; do
    printf '{"name":"%s","sha256":"%s","size":%d}\n' "$name" "$sha" "$(stat -c %s -- "$name")"
done < "$temp/sums" | paste -s -d , > "$temp/files"
printf '{"files":[%s],"verde":1,"version":"%s"}' "$(cat "$temp/files")" "$version" > "$temp/payload"
{ printf 'DSSEv1 %d %s %d ' ${#type} $type "$(stat -c %s "$temp/payload")"; cat "$temp/payload"; } > "$temp/signed"
cd - > /dev/null
openssl pkeyutl -sign -inkey "$key" -rawin -in "$temp/signed" -out "$temp/signature"
keyid=$(openssl pkey -in "$key" -pubout -outform DER | tail -c 32 | od -An -v -tx1 | tr -d ' \n')
printf '{"payload":"%s","payloadType":"%s","signatures":[{"keyid":"%s","sig":"%s"}]}\n' "$(base64 -w 0 "$temp/payload")" $type \
    "$keyid" "$(base64 -w 0 "$temp/signature")" > "$folder/release.json"
cp "$temp/sums" "$folder/SHA256SUMS"
echo "  SUMS    $folder/release.json, $(wc -l < "$temp/sums") files, signed by $keyid"
