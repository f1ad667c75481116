#!/bin/sh
# Disputes over TLS between processes: grades, exit codes, and verdicts that hold without the providers.
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

# serve NAME [OPTIONS]: starts a provider; its URL is in NAME.url.
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
        [ $tries -lt 12000 ] || { echo "$name does not serve"; cat "$work/$name.log"; exit 1; }
        sleep 0.05
    done
}

# settle LABEL EXIT_CODE GRADE STEP FIRST SECOND [OPTIONS]: holds a dispute and checks its outcome.
settle() {
    label=$1 want=$2 grade=$3 step=$4 first=$5 second=$6
    shift 6
    code=0
    "$verde" arbitrate $job --key "$work/referee" --verdict "$work/$label.json" --timeout 60 --json \
        --provider "$(cat "$work/$first.url")" --provider "$(cat "$work/$second.url")" "$@" \
        > "$work/$label.out" 2> "$work/$label.log" || code=$?
    [ $code -eq "$want" ] ||
        { echo "$label: exit code $code, expected $want"; cat "$work/$label.log"; exit 1; }
    has "$label" "\"grade\":\"$grade\""
    has "$label" "\"step\":$step[,}]"
    "$verde" verify "$work/$label.json" --job $job --quiet
    echo "$label: $grade at step $step"
    settled=$((settled + 1))
}

# has LABEL PATTERN: the outcome has the pattern.
has() {
    grep -q "$2" "$work/$1.out" || { echo "$1: not $2"; cat "$work/$1.out" "$work/$1.log"; exit 1; }
}

port_of() { sed 's/.*:\([0-9]*\)#.*/\1/' "$work/$1.url"; }

settled=0
"$verde" run $job --out "$work/honest" --threads 1 2> /dev/null > /dev/null
for fault in element@0 attr@11 skip@5 weights; do
    "$verde" run $job --out "$work/${fault%%@*}" --threads 1 --fault $fault > /dev/null 2>&1
done

serve honest-1
serve honest-2
settle agree 0 none null honest-1 honest-2

# mistaken EXIT_CODE WORDS JOB URL URL: there is no dispute, and one line says why.
mistaken() {
    code=0
    "$verde" arbitrate "$3" --key "$work/referee" --verdict "$work/none.json" --timeout 60 \
        --provider "$4" --provider "$5" > "$work/none.out" 2> "$work/none.log" || code=$?
    [ $code -eq "$1" ] && grep '^verde: ' "$work/none.log" | grep -q "$2" && ! [ -e "$work/none.json" ] ||
        { echo "$2: exit code $code, expected $1"; cat "$work/none.out" "$work/none.log"; exit 1; }
}

# url NAME KEY_OF: prints the address of one provider with the key of another.
url() { echo "$(sed 's/#.*//' "$work/$1.url")#$(sed 's/.*#//' "$work/$2.url")"; }

# A key or name that does not fit is a mistake in a URL: nobody forfeits by it, whether it is in one URL or both.
key_of() { sed 's/.*#//' "$work/$1.url"; }
stranger=8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c
mistaken 1 "provider 1: .*$(key_of honest-2).*$(key_of honest-1)" $job "$(url honest-1 honest-2)" "$(url honest-2 honest-1)"
mistaken 1 "provider 2: .*expected $stranger, .* got $(key_of honest-2)" $job \
    "$(cat "$work/honest-1.url")" "$(sed "s/#.*/#$stranger/" "$work/honest-2.url")"
mistaken 1 'provider 2: .*resolve' $job "$(cat "$work/honest-1.url")" "https://no..name:1#$(key_of honest-2)"
mistaken 2 '`#KEY` is missing' $job "$(cat "$work/honest-1.url")" "$(sed 's/#.*//' "$work/honest-2.url")"
mistaken 2 'job served is program.*job served is program' models/jobs/mlp.yaml \
    "$(cat "$work/honest-1.url")" "$(cat "$work/honest-2.url")"
mistaken 1 'neither provider takes part' $job "$(sed 's/:[0-9]*#/:1#/' "$work/honest-1.url")" \
    "$(sed 's/:[0-9]*#/:1#/' "$work/honest-2.url")"
# An address where nobody listens is silence: the provider may be starting.
sed 's/:[0-9]*#/:1#/' "$work/honest-2.url" > "$work/absent.url"
settle absent 4 timeout null honest-1 absent --timeout 10
has absent '"accepted":true'
serve element-1
settle element-second 3 wrong-output 0 honest-1 element-1
settle element-first 3 wrong-output 0 element-1 honest-1
serve attr-1
settle attr 3 wrong-graph 11 honest-1 attr-1
serve skip-1
settle skip 3 contradiction 5 skip-1 honest-1
serve attr-2
settle both-wrong 3 wrong-output 0 element-1 attr-2
has both-wrong '"accepted":false'
has both-wrong '"end":"upheld"'
settle not-contested 3 wrong-output 0 element-1 attr-2 --no-challenge
has not-contested '"accepted":true'
if grep -q '"challenge"' "$work/not-contested.out"; then echo "a challenge that nobody wanted"; exit 1; fi
serve weights-1
settle weights 3 wrong-output -1 honest-1 weights-1
serve element-2 --fault proof
settle lying-proof 3 bad-proof null honest-1 element-2
serve element-3 --fault silence
settle silence 4 timeout null honest-1 element-3 --timeout 10

# Another key in the middle of a dispute is silence: otherwise a provider could escape by it what it has said.
serve element-4 --fault silence
switching=$!
port=$(port_of element-4)
(
    until [ "$(grep -c 'answered in' "$work/element-4.log")" -ge 2 ]; do sleep 0.02; done
    kill -9 "$switching"
    exec "$verde" serve "$work/honest" --key "$work/keys-impostor" --threads 1 \
        --listen "127.0.0.1:$port" > "$work/impostor.url" 2> "$work/impostor.log"
) 2> /dev/null &
pids="$pids $!"
settle switched 4 timeout null honest-1 element-4 --timeout 10
has switched '"accepted":true'
has switched 'another key answers'

# An honest provider that is killed, and comes back during the dispute, keeps its claim.
port=$(port_of honest-1)
honest=$(echo "$pids" | awk '{ print $1 }')
kill -9 "$honest"
(sleep 0.7; exec "$verde" serve "$work/honest" --key "$work/keys-honest-1" --threads 1 \
    --listen "127.0.0.1:$port" > "$work/again.url" 2> "$work/again.log") &
pids="$pids $!"
settle restarted 3 wrong-output 0 honest-1 element-1

# A second run that was killed continues when its provider is back, and fells the other wrong claim.
steps=3000 interval=40
[ -z "${SANITIZED:-}" ] || steps=300 interval=5 # many times slower
sed -e "s/^steps: .*/steps: $steps/" -e "s/^checkpoint_interval: .*/checkpoint_interval: $interval/" \
    -e "s,file: \.\./data,file: $PWD/models/data," $job > "$work/long.yaml"
job=$work/long.yaml
"$verde" run "$job" --out "$work/early" --threads 1 --fault element@0 > /dev/null 2>&1
"$verde" run "$job" --out "$work/late" --threads 1 --fault attr@$((steps / 2)) > /dev/null 2>&1
serve late-1
serve early-1
early=$!
port=$(port_of early-1)
(
    until [ -s "$work/early/again/run.json" ]; do sleep 0.02; done
    kill -9 "$early"
    cp "$work/early/again/run.json" "$work/killed.json"
    exec "$verde" serve "$work/early" --key "$work/keys-early-1" --threads 1 \
        --listen "127.0.0.1:$port" > "$work/resumed.url" 2> "$work/resumed.log"
) &
pids="$pids $!"
settle resumed 3 wrong-output 0 early-1 late-1 --timeout 600
has resumed '"end":"upheld"'
has resumed '"accepted":false'
[ "$(grep -c '"state"' "$work/killed.json")" -lt "$(grep -c '"state"' "$work/early/again/run.json")" ] ||
    echo "SKIP: the second run was at its end before it could be killed"
job=models/jobs/toy.yaml

# Computing for longer than the referee's patience is not silence, since the provider says that it works.
steps=3000
[ -z "${SANITIZED:-}" ] || steps=300
sed -e "s/^steps: .*/steps: $steps/" -e "s/^checkpoint_interval: .*/checkpoint_interval: $steps/" \
    -e "s,file: \.\./data,file: $PWD/models/data," $job > "$work/slow.yaml"
job=$work/slow.yaml
"$verde" run "$job" --out "$work/slow" --threads 1 > /dev/null 2>&1
"$verde" run "$job" --out "$work/slowly" --threads 1 --fault attr@$((steps - 1)) > /dev/null 2>&1
serve slow-1
serve slowly-1
settle slow 3 wrong-graph $((steps - 1)) slow-1 slowly-1 --timeout 2 --no-challenge
grep -q 'computing again: step' "$work/slow.log" || echo "SKIP: it was all computed within a moment"
job=models/jobs/toy.yaml

# A provider that cannot make its second run says so at once, and says why in one line of its log.
rm -rf "$work/attr/again"
mkdir "$work/attr/again"
echo '{' > "$work/attr/again/run.json"
serve attr-3
settle broken 3 wrong-graph 11 attr-3 honest-2 --timeout 600
has broken '"end":"declined"'
[ "$(grep -c 'the second run failed' "$work/attr-3.log")" -eq 1 ] ||
    { echo "broken: not one line"; cat "$work/attr-3.log"; exit 1; }

# The referee does not wait for a provider that is gone as long as for one that works.
serve skip-2
gone=$!
(
    until grep -q 'may run the job again' "$work/gone.log"; do sleep 0.02; done
    kill "$gone"
) 2> /dev/null &
pids="$pids $!"
settle gone 3 contradiction 5 honest-2 skip-2 --timeout 10
has gone '"standing":"stands"'

# The providers are gone: verdicts can still be verified, on another "machine" (an empty directory).
cleanup
mkdir "$work/elsewhere"
cp "$work/element-first.json" "$work/elsewhere/verdict.json"
here=$PWD
(cd "$work/elsewhere" && case $verde in /*) ;; *) verde=$here/$verde ;; esac && "$verde" verify verdict.json) > "$work/told"
# For people: each provider's element in decimal, and its distance from the reference.
for words in '^reference    -*[0-9.e-]* (0x' 'element -*[0-9.e-]* (0x[0-9a-f]*), as the reference' \
    'element -*[0-9.e-]* (0x[0-9a-f]*), [0-9.e-]* \(above\|below\) the reference'; do
    grep -q "$words" "$work/told" || { echo "not \"$words\""; cat "$work/told"; exit 1; }
done
# A file is the note and one line feed; a reader removes exactly this line feed and nothing else.
tr -d '\n' < "$work/element-first.json" > "$work/bare.json"
[ $(($(wc -c < "$work/element-first.json") - $(wc -c < "$work/bare.json"))) -eq 1 ] || { echo "not one line feed"; exit 1; }
"$verde" verify "$work/bare.json" --quiet
for more in '\n' ' ' '\r\n'; do
    { cat "$work/bare.json"; printf "$more\n"; } > "$work/more.json"
    if "$verde" verify "$work/more.json" 2> /dev/null; then echo "more bytes after a verdict were accepted"; exit 1; fi
done
sed 's/"payload":"\(....\)/"payload":"\1AAAA/' "$work/element-first.json" > "$work/forged.json"
if "$verde" verify "$work/forged.json" 2> /dev/null; then echo "a forged verdict was accepted"; exit 1; fi
echo "$settled disputes over TLS"
