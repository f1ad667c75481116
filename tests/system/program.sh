#!/bin/sh
# A job whose program is given, as a folder or by `model: {kind: program}`: every command accepts it and gets the bits of the job
# that the program came from; a referee needs no data; a folder that reaches outside of itself is refused.
. tests/support/system

job=models/jobs/toy.yaml
run="$verde run --threads 1"
$run $job --out "$work/own" > "$work/out" 2> /dev/null
own=$(root)
$run $job --out "$work/wrong" --fault element@7 > /dev/null 2>&1
mkdir "$work/given"
cp "$work/own/program" "$work/own/data" "$work/own/data.json" "$work/given"
program=$("$verde" graph "$work/given" --json | sed 's/.*"program":"\([0-9a-f]*\)".*/\1/')
yaml() { printf 'verde: 1\nmodel: {kind: program, dir: %s, sha256: %s}\n' "$1" "$2"; }
yaml given "$program" > "$work/job.yaml"

# ---- one machine ----

expect 0 '12 steps/\|12/12' $run "$work/given" --out "$work/run"
grep -q 'a state of 86 tensors, .* 12 steps of 517 nodes' "$work/err" || fail "it does not say what it runs"
[ "$(root)" = "$own" ] || fail "another run root than that of $job, $own"
[ ! -e "$work/run/config.json" ] || fail "a config.json of no known model"
[ "$(grep -c tokens "$work/run/losses.jsonl")" -eq 0 ] || fail "losses.jsonl counts tokens that nobody knows of"
expect 0 'nothing was executed' $run "$work/job.yaml" --out "$work/run"
expect 0 'steps/s' $run "$work/job.yaml" --out "$work/kept" --keep 2
expect 0 'fits  *yes' "$verde" check "$work/run" --job "$work/job.yaml"
expect 0 "$program" "$verde" graph "$work/job.yaml"
expect 0 '' "$verde" run "$work/job.yaml" --dry-run
expect 0 'wrote' "$verde" export "$work/run" --out "$work/model"

# ---- places of nodes, from untrusted files ----

cp -r "$work/given" "$work/placed"
printf '{"verde_places": 1, "step": ["train.py:12", "", "x\\u001b[31m\\u00e9.py:3"]}' > "$work/placed/places.json"
expect 0 "$program" "$verde" graph "$work/placed"
grep -q '^%0 .*  # train.py:12$' "$work/out" || fail "the place of a node is not told"
grep -q '^%2 .*  # x?\[31m??.py:3$' "$work/out" || fail "a place is printed as it is"
grep -q '^%1 .*\]$' "$work/out" || fail "an empty place is printed"
printf '{"verde_places": 2, "step": []}' > "$work/placed/places.json"
expect 8 'places.json: version 2' "$verde" graph "$work/placed"
printf '{"verde_places": 1, "steps": []}' > "$work/placed/places.json"
expect 2 'places.json: unknown member `steps`' "$verde" graph "$work/placed"
for step in '"train.py:12"' '["a", 7]' "[$(printf '"x",%.0s' $(seq 517))\"x\"]"; do
    printf '{"verde_places": 1, "step": %s}' "$step" > "$work/placed/places.json"
    expect 2 'places.json: `step`.* must be a ' "$verde" graph "$work/placed"
done
printf '{"verde_places": 1, "step": []}' > "$work/placed/places.json"
expect 0 "$program" "$verde" graph "$work/placed"

# ---- models of PyTorch, captured by python/tests/capture_zoo.py (torch 2.15) ----

while read -r name last; do
    for setting in "1 scalar" "2 cpu"; do
        expect 0 'run root' "$verde" run "tests/captured/$name" --out "$work/$name" --threads "${setting% *}" --backend "${setting#* }"
        [ "$(state "$work/$name" 3)" = "$last" ] || fail "$name has another state after 3 steps, with $setting"
        rm -r "$work/$name"
    done
done < tests/golden/captured.txt

# ---- two providers: a referee needs only the program ----

mkdir "$work/bare"
cp "$work/given/program" "$work/bare"
serve run --key "$work/key-run" --threads 1
serve wrong --key "$work/key-wrong" --threads 1
expect 3 '"grade":"wrong-output"' "$verde" arbitrate "$work/bare" --key "$work/referee" --verdict "$work/verdict.json" --json \
    $(providers run wrong)
expect 0 'VERIFIED\|verified' "$verde" verify "$work/verdict.json" --job "$work/bare"
expect 2 'data.json' $run "$work/bare" --out "$work/no"

# ---- daemons ----

"$verde" keygen "$work/client" > /dev/null
provide a 127.0.0.1:0
provide b 127.0.0.1:0 --fault element@7
expect 3 'every byte checked' "$verde" delegate "$work/job.yaml" --key "$work/client" --provider "$a" --provider "$b" --out "$work/result"
cmp "$work/result/model.safetensors" "$work/model/model.safetensors" || fail "another model is delivered"

# ---- refused folders ----

# refused WORDS: $work/bad, which the lines before have changed, is refused, and is then restored.
refused() {
    expect 2 "$1" $run "$work/bad" --out "$work/no"
    rm -rf "$work/bad" "$work/no"
    cp -r "$work/given" "$work/bad"
}
cp -r "$work/given" "$work/bad"
ln -sf "$work/own/data" "$work/bad/data"
refused 'bad/data: must be a plain file, and no link'
for name in ../given/data /etc/passwd "$work/given/data" '' ..; do
    sed "s|\"file\": \"data\"|\"file\": \"$name\"|" "$work/given/data.json" > "$work/bad/data.json"
    refused '.file. must be the name of a file in that folder, got'
done
printf x | dd of="$work/bad/data" bs=1 seek=100 conv=notrunc 2> /dev/null
refused 'has changed, or is another file: not the data .tokens. of the program'
sed 's/"offset": 0/"offset": 1000000000/' "$work/given/data.json" > "$work/bad/data.json"
refused 'expected .* from byte 1000000000 on'
head -c 1000 "$work/given/program" > "$work/bad/program"
refused 'bad/program: '
rm "$work/bad/program"
refused 'bad/program'
yaml given "$(echo "$program" | tr 0-9 1-90)" > "$work/bad.yaml"
expect 2 "bad.yaml:2: .model.sha256. is not the hash of .*given/program, $program" $run "$work/bad.yaml" --out "$work/no"
for key in 'seed: 3' 'steps: 5' 'rounding: {bits: 20, encoding: calls}' 'batch: 4' 'data: {kind: text, file: x}'; do
    { yaml given "$program"; echo "$key"; } > "$work/bad.yaml"
    expect 2 "bad.yaml:3: .${key%%:*}. must not be there: the program says it" $run "$work/bad.yaml" --out "$work/no"
done
for task in evaluate:'takes no weights' generate:'train or evaluate, as .model.kind. is program'; do
    { yaml given "$program"; echo "task: ${task%%:*}"; } > "$work/bad.yaml"
    expect 2 "bad.yaml:3: .task. .*${task#*:}" $run "$work/bad.yaml" --out "$work/no"
done
printf 'verde: 1\nmodel: {kind: program, dir: given}\n' > "$work/bad.yaml"
expect 2 '.model.sha256. must be .* missing' $run "$work/bad.yaml" --out "$work/no"
echo "$count results and refusals of a program that is given"
