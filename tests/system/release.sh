#!/bin/sh
# The signed list of a release's files (debian/release/sums.sh): `verde verify` accepts it while the files are those released, and
# says in one line what is wrong with others. OpenSSL makes the signature, not this project's code.
set -eu
build=$1
work=$build/tests/release
verde=$build/bin/verde
rm -rf "$work"
mkdir -p "$work/files"

fail() {
    echo "$*"
    exit 1
}
# verify CODE TEXT [ARGUMENT...]: it exits with CODE, and a line has the TEXT.
verify() {
    want=$1 text=$2 code=0
    shift 2
    "$verde" verify "$work/files/release.json" "$@" > "$work/said.txt" 2>&1 || code=$?
    [ $code -eq "$want" ] || { cat "$work/said.txt"; fail "exit code $code, expected $want: $text"; }
    grep -q -- "$text" "$work/said.txt" || { cat "$work/said.txt"; fail "expected: $text"; }
    [ "$want" -eq 0 ] || [ "$(wc -l < "$work/said.txt")" -eq 1 ] || grep -q '^same\|^not here' "$work/said.txt" || fail "more than one line"
}
# sign PAYLOAD: makes a list with this text and a valid signature.
sign() {
    type=application/vnd.verde.release+json
    printf '%s' "$1" > "$work/payload"
    { printf 'DSSEv1 %d %s %d ' ${#type} $type "$(stat -c %s "$work/payload")"; cat "$work/payload"; } > "$work/signed"
    openssl pkeyutl -sign -inkey "$work/key/key.pem" -rawin -in "$work/signed" -out "$work/signature"
    printf '{"payload":"%s","payloadType":"%s","signatures":[{"keyid":"%s","sig":"%s"}]}' "$(base64 -w 0 "$work/payload")" $type "$key" \
        "$(base64 -w 0 "$work/signature")" > "$work/files/release.json"
}

command -v openssl > /dev/null || { echo "no openssl"; exit 77; }
key=$("$verde" keygen "$work/key")
other=$("$verde" keygen "$work/other")
echo one > "$work/files/one.deb"
echo two > "$work/files/two.whl"
sh debian/release/sums.sh "$work/key/key.pem" 1.2.3 "$work/files" > "$work/sums.txt"
(cd "$work/files" && sha256sum --check --quiet SHA256SUMS) || fail "SHA256SUMS does not hold"
cp "$work/files/release.json" "$work/first.json"
sh debian/release/sums.sh "$work/key/key.pem" 1.2.3 "$work/files" > "$work/sums.txt"
cmp "$work/first.json" "$work/files/release.json" || fail "the same files and key give another note"

verify 0 "release 1.2.3, signed by $key; 2 of its 2 files are here"
verify 0 '"files":2,"here":2' --json --referee "$key"
verify 6 "signed by $key, expected $other" --referee "$other"
verify 2 'which has no job' --job models/jobs/toy.yaml
rm "$work/files/one.deb"
verify 0 '1 of its 2 files are here'
echo tow > "$work/files/two.whl"
verify 6 'two.whl is not what was released: its SHA-256 is not the listed one'
echo three > "$work/files/two.whl"
verify 6 'two.whl is not what was released: it has 6 bytes, expected 4'
mkdir "$work/files/one.deb"
verify 2 'one.deb'
rmdir "$work/files/one.deb"
echo two > "$work/files/two.whl"
sed -i 's/"sig":"./"sig":"/' "$work/files/release.json"
verify 6 'note: sig'

sha=$(printf '%064d' 0)
sign "{\"files\":[{\"name\":\"../x\",\"sha256\":\"$sha\",\"size\":1}],\"verde\":1,\"version\":\"1\"}"
verify 6 'files\[0\]: name must be that of a file beside the list'
sign "{\"files\":[{\"name\":\"x\\nsame y\",\"sha256\":\"$sha\",\"size\":1}],\"verde\":1,\"version\":\"1\"}"
verify 6 'files\[0\]: name must be that of a file beside the list'
sign "{\"files\":[{\"name\":\"x\",\"sha256\":\"$sha\",\"size\":1}],\"verde\":1,\"version\":\"1, signed by somebody else\"}"
verify 6 'version must be 1 to 255 printable'
sign "{\"files\":[{\"name\":\"x\",\"sha256\":\"00\",\"size\":1}],\"verde\":1,\"version\":\"1\"}"
verify 6 'files\[0\]: sha256 must have 64'
sign "{\"files\":[{\"name\":\"x\",\"sha256\":\"$sha\",\"size\":-1}],\"verde\":1,\"version\":\"1\"}"
verify 6 'files\[0\]: size must be'
sign '{"files":[],"verde":1,"version":"1"}'
verify 6 'files must be a list of 1 to 1024 files, got 0'
sign "{\"files\":[3],\"verde\":1,\"version\":\"1\"}"
verify 6 'files\[0\] is no object'
sign '{"files":[],"verde":2,"version":"1"}'
verify 8 'verde'
sign '{"files":[],"verde":1,"version":"1","more":1}'
verify 6 'more'

echo nothing > "$work/no.pem"
if sh debian/release/sums.sh "$work/no.pem" 1.2.3 "$work/files" > "$work/said.txt" 2>&1; then fail "no key is one"; fi
grep -q 'no.pem: is no private key' "$work/said.txt" || fail "no line about the key: $(cat "$work/said.txt")"
echo "a release's list holds, and fourteen that do not are told apart"
