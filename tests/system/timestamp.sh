#!/bin/sh
# An RFC 3161 time stamp beside a verdict, made by the commands of docs/delegation.md with a local authority: it is valid for
# these bytes only, and only by this authority.
. tests/support/system
command -v openssl > /dev/null || { echo "no openssl"; exit 77; }
EXAMPLE=$work/verdict.json "$build/tests/test_document" > "$work/example.txt" 2>&1 || fail "no example"
expect 0 verified "$verde" verify "$work/verdict.json"

# told VERB: prints the document's command, for this machine's files.
told() { sed -n "s/^    \(openssl ts -$1 .*\)/\1/p" docs/delegation.md; }

# checked EXIT_CODE WORDS: verifies the stamp.
checked() { expect "$1" "$2" sh -c "cd '$work' && $(told verify)"; }
for verb in query verify; do
    [ "$(told $verb | wc -l)" -eq 1 ] || fail "docs/delegation.md has not one command ts -$verb"
done

# authority NAME: makes a key, and a self-signed certificate for stamps.
authority() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/$1.key" -out "$work/$1.pem" \
        -subj "/CN=$1" -days 30 -addext keyUsage=critical,digitalSignature \
        -addext extendedKeyUsage=critical,timeStamping 2> "$work/err" || fail "no certificate"
}

authority authority
cat > "$work/authority.cnf" << CONFIG
[tsa]
serial = $work/serial
crypto_device = builtin
signer_cert = $work/authority.pem
signer_key = $work/authority.key
signer_digest = sha256
default_policy = 1.2.3.4
digests = sha256
ess_cert_id_alg = sha256
CONFIG
sh -c "cd '$work' && $(told query)" > "$work/out" 2> "$work/err" || fail "no query"
# The authority's server would do this.
openssl ts -reply -config "$work/authority.cnf" -section tsa -queryfile "$work/verdict.json.tsq" -out "$work/verdict.json.tsr" \
    > "$work/out" 2> "$work/err" || fail "no stamp"
checked 0 'Verification: OK'
expect 0 'Time stamp: ' sh -c "cd '$work' && openssl ts -reply -in verdict.json.tsr -text"

# The stamped file can still be verified; the stamp does not matter to verde.
expect 0 verified "$verde" verify "$work/verdict.json"
cp "$work/verdict.json" "$work/held"
for change in 's/"payload":"e/"payload":"f/' '$s/$/ /'; do
    sed -i "$change" "$work/verdict.json"
    cmp -s "$work/verdict.json" "$work/held" && fail "$change changes nothing"
    checked 1 'Verification: FAILED'
    cp "$work/held" "$work/verdict.json"
done
checked 0 'Verification: OK'
mv "$work/authority.pem" "$work/known.pem"
authority authority
checked 1 'Verification: FAILED'
mv "$work/known.pem" "$work/authority.pem"
checked 0 'Verification: OK'

echo "a stamp holds for its verdict alone: $count commands"
