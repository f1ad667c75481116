#!/bin/sh
# More than two providers in processes of their own, over TLS: one dispute, one verdict.
. tests/support/system
job=models/jobs/toy.yaml

# offer NAME [OPTIONS]: serves the run NAME (without its -1); the URL is in NAME.url.
offer() {
    name=$1
    shift
    "$verde" serve "$work/${name%-*}" --key "$work/keys-$name" --threads 1 "$@" \
        > "$work/$name.url" 2> "$work/$name.log" &
    pids="$pids $!"
    tries=0
    while ! [ -s "$work/$name.url" ]; do
        tries=$((tries + 1))
        [ $tries -lt 12000 ] || fail "$name does not serve"
        sleep 0.05
    done
}

# settle LABEL EXIT_CODE NAME... [-- OPTIONS]: holds a dispute between these; its verdict must hold.
settle() {
    label=$1 want=$2
    shift 2
    urls=
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        urls="$urls --provider $(cat "$work/$1.url")"
        shift
    done
    [ $# -eq 0 ] || shift
    code=0
    "$verde" arbitrate $job --key "$work/referee" --verdict "$work/$label.json" --timeout 10 --json \
        $urls "$@" > "$work/$label.out" 2> "$work/$label.log" || code=$?
    [ $code -eq "$want" ] ||
        fail "$label: exit code $code, expected $want"
    "$verde" verify "$work/$label.json" --job $job --quiet
    python3 tests/independent/verify.py "$work/$label.json" > "$work/$label.again" ||
        { echo "$label: written from the documents:"; cat "$work/$label.again"; exit 1; }
    echo "$label: $(cat "$work/$label.again")"
}

# has FILE PATTERN: the file has the pattern.
has() {
    grep -q "$2" "$work/$1" || { echo "$1: not $2"; cat "$work/$1"; exit 1; }
}

# refused WORDS OPTIONS: one line has the WORDS, and nothing is written.
refused() {
    words=$1
    shift
    code=0
    "$verde" arbitrate $job --key "$work/referee" --verdict "$work/none.json" "$@" \
        > "$work/none.out" 2> "$work/none.log" || code=$?
    [ $code -eq 2 ] && grep '^verde: ' "$work/none.log" | grep -q "$words" && ! [ -e "$work/none.json" ] ||
        { echo "$words: exit code $code"; cat "$work/none.log"; exit 1; }
}

"$verde" run $job --out "$work/honest" --threads 1 > /dev/null 2>&1
for fault in attr@11 skip@5 weights; do
    "$verde" run $job --out "$work/${fault%%@*}" --threads 1 --fault $fault > /dev/null 2>&1
done
for name in honest-1 honest-2 attr-1 skip-1 weights-1; do offer $name; done

# One honest provider among three that are wrong in different ways.
settle one 3 attr-1 skip-1 honest-1 weights-1
has one.out '"accepted":true'
for grade in wrong-graph contradiction wrong-output; do has one.out "\"grade\":\"$grade\""; done
has one.log 'provider  claim'
has one.log 'Game 1: provider 1 against provider 2'
root=$(sed 's/.*"rounds":[0-9]*,"run_root":"\([0-9a-f]*\)".*/\1/' "$work/one.out")
"$verde" check "$work/honest" --verdict "$work/one.json" > /dev/null
"$verde" verify "$work/one.json" > "$work/one.told"
has one.told '^game 1 '
has one.told "^accepted     $root"

# Three providers that fill each answer with useless data: the referee spends almost nothing on it.
for name in attr-2 skip-2 weights-2; do offer $name --fault pad; done
settle padded 3 attr-2 skip-2 honest-1 weights-2
has padded.out '"accepted":true'
peak=$(sed 's/.*"peak_bytes":\([0-9]*\).*/\1/' "$work/padded.out")
[ -n "${SANITIZED:-}" ] || [ "$peak" -lt 48000000 ] || fail "padded: the referee takes $peak bytes"

# A liar speaks first for the honest claim and then is silent: the next member of its group speaks.
offer honest-3 --fault silence
settle joined 3 honest-3 attr-1 honest-1 honest-2
has joined.out '"grade":"timeout"'
has joined.out '"accepted":true'

# All agree, and one is missing.
"$verde" keygen "$work/keys-gone" > /dev/null
echo "https://127.0.0.1:1#$(cat "$work/keys-gone/key.pub")" > "$work/gone.url"
settle absent 0 honest-1 honest-2 gone
has absent.out '"result":"agreed"'
has absent.out '"standing":"forfeited"'

honest=$(cat "$work/honest-1.url")
attr=$(cat "$work/attr-1.url")
refused 'providers 1 and 3 .* have the same key' --provider "$honest" --provider "$attr" --provider "$honest"
many=
for i in $(seq 65); do many="$many --provider https://127.0.0.1:$i#$(printf %064x $i)"; done
refused 'takes 2 to 64 providers' $many
