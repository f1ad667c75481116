#!/bin/sh
# Disputes over TLS between processes: grades, exit codes, verdicts that outlive the providers.
set -eu
build=$1
verde=$build/bin/verde
job=models/jobs/toy.yaml
work=$build/tests/dispute
rm -rf "$work"
mkdir -p "$work"
pids=
cleanup() {
    for pid in $pids; do kill "$pid" 2> /dev/null || true; done
    wait 2> /dev/null || true
    pids=
}
trap cleanup EXIT

# serve NAME [OPTIONS]: its URL is in NAME.url.
serve() {
    name=$1
    shift
    rm -f "$work/$name.url"
    "$verde" serve "$work/${name%-*}" --key "$work/keys-$name" --threads 1 "$@" \
        > "$work/$name.url" 2> "$work/$name.log" &
    pids="$pids $!"
    tries=0
    while ! [ -s "$work/$name.url" ]; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || { echo "$name does not serve"; cat "$work/$name.log"; exit 1; }
        sleep 0.05
    done
}

# settle LABEL EXIT_CODE GRADE STEP FIRST SECOND
settle() {
    code=0
    "$verde" arbitrate $job --key "$work/referee" --verdict "$work/$1.json" --timeout 5 --json \
        --provider "$(cat "$work/$5.url")" --provider "$(cat "$work/$6.url")" \
        > "$work/$1.out" 2> "$work/$1.log" || code=$?
    [ $code -eq "$2" ] || { echo "$1: exit code $code, expected $2"; cat "$work/$1.log"; exit 1; }
    grep -q "\"grade\":\"$3\"" "$work/$1.out" || { echo "$1: not $3"; cat "$work/$1.out"; exit 1; }
    grep -q "\"step\":$4[,}]" "$work/$1.out" || { echo "$1: not step $4"; cat "$work/$1.out"; exit 1; }
    "$verde" verify "$work/$1.json" --job $job --quiet
    echo "$1: $3 at step $4"
}

"$verde" run $job --out "$work/honest" --threads 1 2> /dev/null > /dev/null
for fault in element@0 attr@11 skip@5 weights; do
    "$verde" run $job --out "$work/${fault%%@*}" --threads 1 --fault $fault > /dev/null 2>&1
done

serve honest-1
serve honest-2
settle agree 0 none null honest-1 honest-2
serve element-1
settle element-second 3 wrong-output 0 honest-1 element-1
settle element-first 3 wrong-output 0 element-1 honest-1
serve attr-1
settle attr 3 wrong-graph 11 honest-1 attr-1
serve skip-1
settle skip 3 contradiction 5 skip-1 honest-1
serve attr-2
settle both-wrong 3 wrong-output 0 element-1 attr-2
grep -q '"accepted":false' "$work/both-wrong.out" || { echo "both wrong: a claim is accepted"; exit 1; }
grep -q '"end":"upheld"' "$work/both-wrong.out" || { echo "both wrong: the second one got away"; exit 1; }
serve weights-1
settle weights 3 wrong-output -1 honest-1 weights-1
serve element-2 --fault proof
settle lying-proof 3 bad-proof null honest-1 element-2
serve element-3 --fault silence
settle silence 4 timeout null honest-1 element-3

# An honest provider that is killed, and comes back in the middle of the dispute, keeps its claim.
port=$(sed 's/.*:\([0-9]*\)#.*/\1/' "$work/honest-1.url")
honest=$(echo "$pids" | awk '{ print $1 }')
kill -9 "$honest"
(sleep 0.7; exec "$verde" serve "$work/honest" --key "$work/keys-honest-1" --threads 1 \
    --listen "127.0.0.1:$port" > "$work/again.url" 2> "$work/again.log") &
pids="$pids $!"
settle restarted 3 wrong-output 0 honest-1 element-1

# Nobody is there any more: the verdicts stand, on another "machine" (an empty directory).
cleanup
mkdir "$work/elsewhere"
cp "$work/element-first.json" "$work/elsewhere/verdict.json"
here=$PWD
(cd "$work/elsewhere" && case $verde in /*) ;; *) verde=$here/$verde ;; esac && "$verde" verify verdict.json)
sed 's/"payload":"\(....\)/"payload":"\1AAAA/' "$work/element-first.json" > "$work/forged.json"
if "$verde" verify "$work/forged.json" 2> /dev/null; then echo "a forged verdict was accepted"; exit 1; fi
echo "11 disputes over TLS"
