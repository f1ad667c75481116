#!/bin/sh
# `verde diff RUN URL` reports the same as for two folders, although one run is a provider's and only what differs is asked for.
. "$(dirname "$0")/../support/system"
job=models/jobs/toy.yaml
diff="$verde diff --key $work/checker"

# compared WORDS [OPTION...]: compares the honest run with the liar's, as folders, and with the liar's URL on either side: the
# reports are equal, except for names of runs and who executed.
told() { grep -v -e '^[ab]  ' -e '^executed' "$work/out"; }
compared() {
    words=$1
    shift
    expect 9 "$words" $diff "$work/honest" "$work/liar" "$@"
    told > "$work/folders"
    expect 9 "$words" $diff "$work/honest" "$liar" "$@"
    told | cmp -s - "$work/folders" || fail "not the report of two folders"
    ! grep '^executed' "$work/out" > "$work/line" ||
        { grep -q 'a alone here' "$work/line" && [ "$(sed 's/^executed  *\([0-9]*\).*/\1/' "$work/line")" -le 9 ]; } ||
        fail "more than two intervals were executed"
}
serve_liar() {
    rm -rf "$work/liar"
    "$verde" run "$@" --out "$work/liar" --threads 1 > /dev/null 2>&1
    start liar "$verde" serve "$work/liar" --key "$work/keys-liar" --threads 1
}

"$verde" run $job --out "$work/honest" --threads 1 > /dev/null 2>&1
start honest "$verde" serve "$work/honest" --key "$work/keys-honest" --threads 1
expect 0 '^equal        yes' $diff "$work/honest" "$honest"
[ "$(grep -c 'answered in' "$work/honest.log")" -eq 2 ] || fail "more was asked than the run root"
for fault in element@7 lr@6 skip@4 poison@9 seed@5 weights history input@8; do
    serve_liar $job --fault $fault
    compared '^fits'
    compared '^checkpoints' --no-run
    [ $fault = history ] || expect 9 "^reference .*: b's$\|^fits" $diff "$liar" "$work/honest"
    expect 9 '"differs_in":"' $diff "$work/honest" "$liar" --json
    kill "$pid"
done

# Every step has a checkpoint; products are long folds, whose inputs differ.
sed -e "s,file: \.\./data,file: $PWD/models/data," -e 's/^checkpoint_interval: .*/checkpoint_interval: 1/' $job > "$work/single.yaml"
rm -rf "$work/honest"
"$verde" run "$work/single.yaml" --out "$work/honest" --threads 1 > /dev/null 2>&1
serve_liar "$work/single.yaml" --fault element@6
compared '^step         6 of'
kill "$pid"

# What cannot be compared is told in one line.
expect 2 'must be a run of your own' $diff "$honest" "$honest"
expect 2 'with a provider a run is compared' $diff $job "$honest"
expect 2 'KEY. is missing' $verde diff --key "$work/none" "$work/honest" "$(echo "$honest" | sed 's/#.*//')"
[ ! -e "$work/none" ] || fail "a key for nothing"
expect 2 'job served is program' $diff "$work/honest" "$honest"
one_line
expect 1 'does not say what it has run' $diff "$work/honest" "$(echo "$honest" | sed 's/:[0-9]*#/:1#/')" --timeout 2
start silent "$verde" serve "$work/liar" --key "$work/keys-silent" --threads 1 --fault silence
expect 1 'no answer' $diff "$work/honest" "$silent" --timeout 2
start lies "$verde" serve "$work/liar" --key "$work/keys-lies" --threads 1 --fault proof
expect 6 . $diff "$work/honest" "$lies"
one_line
echo "$count comparisons with a provider"
