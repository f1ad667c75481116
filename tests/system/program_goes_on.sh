#!/bin/sh
# A job whose program is given continues from a state: of a run, of its export, of a proof, or of files. With a complete state its
# last steps have the bits of the whole run; what does not fit is told in one line; a provider that starts from another state is
# convicted.
. tests/support/system

run="$verde run --threads 1"
expect 0 'run root' $run models/jobs/toy.yaml --out "$work/own"
mkdir "$work/given"
cp "$work/own/program" "$work/own/data" "$work/own/data.json" "$work/given"
printf '{"verde_places": 1, "step": ["train.py:12"]}' > "$work/given/places.json"
program=$("$verde" graph "$work/given" --json | sed 's/.*"program":"\([0-9a-f]*\)".*/\1/')
expect 0 'run root' $run "$work/given" --out "$work/whole"
four=$(state "$work/whole" 4)
last=$(state "$work/whole" 12)
# job WEIGHTS: prints a job.
job() {
    printf 'verde: 1\nmodel: {kind: program, dir: given, sha256: %s}\nweights: {%s}\n' "$program" "$1"
}
# same A STEP B STEP: these states of the two runs have the same bytes.
same() {
    cmp "$work/$1/state-$(state "$work/$1" "$2")" "$work/$3/state-$(state "$work/$3" "$4")" || fail "$1 is not $3"
}

# ---- from a run, from its export, from a proof ----

job "run: whole, root: $four" > "$work/on.yaml"
expect 0 'goes on from step 4 .* what the optimizer keeps; .* steps 4 to 11' $run "$work/on.yaml" --out "$work/on"
same on 8 whole 12
expect 0 'fits  *yes' "$verde" check "$work/on" --job "$work/on.yaml"
expect 0 '^%4 .*  # train.py:12$' "$verde" graph "$work/on.yaml"
hash=$(sed -n 's/^# program //p' "$work/out")
[ "$hash" != "$program" ] || fail "another first state is the same program"
[ "$(grep -c '"file"' "$work/on/data.json")" -eq $(($(grep -c '"file"' "$work/given/data.json") + 86)) ] || fail "data is missing"
expect 0 'nothing was executed' $run "$work/on.yaml" --out "$work/on"
expect 0 'proof.json' "$verde" export "$work/whole" --step 4 --out "$work/weights"
expect 0 "^state  *$four" "$verde" check "$work/weights" --step 4
job "run: weights, root: $four, state: weights, first_step: 4" > "$work/bare.yaml"
expect 0 'goes on from step 4 .*: weights alone; what the optimizer keeps starts anew; .* steps 4 to 11' \
    $run "$work/bare.yaml" --out "$work/bare"
job "run: whole, root: $four, state: weights, first_step: 4" > "$work/bare.yaml"
expect 0 'weights alone' $run "$work/bare.yaml" --out "$work/alone"
same bare 8 alone 8
cmp "$work/bare/program" "$work/alone/program" || fail "a run and its export are two programs"
! cmp -s "$work/bare/state-$(state "$work/bare" 8)" "$work/on/state-$(state "$work/on" 8)" || fail "moments do not matter"
mkdir "$work/away"
cp -r "$work/given" "$work/on.yaml" "$work/away"
cp "$work/weights/proof.json" "$work/away/whole.proof.json"
expect 0 "$hash" "$verde" graph "$work/away/on.yaml"
expect 2 'where no run is' $run "$work/away/on.yaml" --out "$work/none"
one_line

# ---- from the beginning again, and from files ----

job "run: whole, root: $last, first_step: 0" > "$work/again.yaml"
expect 0 'goes on from step 12 of the run in .*what the optimizer keeps$' $run "$work/again.yaml" --out "$work/again"
[ "$(wc -l < "$work/again/losses.jsonl")" -eq 12 ] || fail "not all steps"
file=$work/weights/model.safetensors
sum=$("$verde" manifest "$file" 2> "$work/err" | sha256sum | cut -d ' ' -f 1)
job "dir: weights/model.safetensors, sha256: $sum, first_step: 4" > "$work/files.yaml"
expect 0 'begins with the tensors in .*: weights alone; what the optimizer keeps starts anew; .* steps 4 to 11' \
    $run "$work/files.yaml" --out "$work/files"
same files 8 bare 8
"$verde" manifest "$file" 2> "$work/err" > "$work/away/model.safetensors.manifest"
sed 's|weights/model|model|' "$work/files.yaml" > "$work/away/files.yaml"
expect 0 "$("$verde" graph "$work/files.yaml" --json | sed 's/.*"program":"\([0-9a-f]*\)".*/\1/')" \
    "$verde" graph "$work/away/files.yaml"
expect 2 'where no files of a model are' $run "$work/away/files.yaml" --out "$work/none"
expect 0 'wrote' "$verde" export "$work/whole" --step 4 --dtype bf16 --out "$work/narrow"
job "dir: narrow, sha256: $("$verde" manifest "$work/narrow" 2> "$work/err" | sha256sum | cut -d ' ' -f 1)" > "$work/narrow.yaml"
expect 0 'weights alone' $run "$work/narrow.yaml" --out "$work/narrowed"

# ---- jobs that are refused ----

refused() {
    expect "$1" "$2" $run "$work/bad.yaml" --out "$work/none"
    one_line
}
job "run: whole, root: $last" > "$work/bad.yaml"
refused 2 'the state is of step 12, and the program has 12 steps; `first_step: 0`'
job "run: whole, root: $program" > "$work/bad.yaml"
refused 2 'which is no state of the run'
job "run: weights, root: $last, state: weights" > "$work/bad.yaml"
refused 2 "not the state that .* proves, $four"
job "run: weights, root: $four" > "$work/bad.yaml"
refused 2 'has no .*, which is part of the state; take the run itself'
job "run: narrow, root: $four, state: weights" > "$work/bad.yaml"
refused 6 'is BF16 .*, and not as the run has it'
job "dir: weights, sha256: $program" > "$work/bad.yaml"
refused 2 "bad.yaml:3: .weights.sha256. is not that of the manifest of .*weights, "
job "dir: weights, sha256: $sum, root: $four" > "$work/bad.yaml"
refused 2 'weights.root. must not be there: there is a .dir.'
job "first_step: 0" > "$work/bad.yaml"
refused 2 'weights.run. must be .* missing'
sed "s|context: 32|context: 64|; s|../data|$PWD/models/data|" models/jobs/toy.yaml > "$work/longer.yaml"
expect 0 'run root' $run "$work/longer.yaml" --out "$work/longer"
job "run: longer, root: $(state "$work/longer" 4)" > "$work/bad.yaml"
refused 2 'wpe.* is F32 .64,.*, expected F32 .32,'
cp -r "$work/weights" "$work/changed"
printf 'x' | dd of="$work/changed/model.safetensors" bs=1 seek=100000 conv=notrunc 2> "$work/err"
job "run: changed, root: $four, state: weights" > "$work/bad.yaml"
refused 6 'is not what proof.json commits to'

# ---- a dispute about the first state, and daemons ----

expect 0 'run root' $run "$work/on.yaml" --out "$work/wrong" --fault element@-1:h.0.attn.qkv.weight
serve on --key "$work/key-on" --threads 1
serve wrong --key "$work/key-wrong" --threads 1
# shellcheck disable=SC2046
expect 3 'initialisation, node' "$verde" arbitrate "$work/away/on.yaml" --key "$work/referee" --verdict "$work/verdict.json" \
    $(providers on wrong)
"$verde" keygen "$work/client" > /dev/null
provide a 127.0.0.1:0
provide b 127.0.0.1:0
expect 0 'every byte checked' "$verde" delegate "$work/on.yaml" --key "$work/client" --provider "$a" --provider "$b" \
    --out "$work/result"
expect 0 'wrote' "$verde" export "$work/on" --out "$work/end"
cmp "$work/result/model.safetensors" "$work/end/model.safetensors" || fail "another model is delivered"
echo "$count results and refusals of a program that goes on"
