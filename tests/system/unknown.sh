#!/bin/sh
# Every reader reports files of a later version, or with unknown members or bytes, in the same way: first the version, by one
# sentence and exit code 8; otherwise what it does not know, by name. Signed and untrusted files are in unit tests
# (test_verdict_unknown, test_minutes, test_item_pack, test_log_file, test_log, test_provide_ledger, test_job).
. tests/support/system

# one_sentence: the last command printed one; `verde run` may first say what it is about.
one_sentence() {
    [ "$(grep -c '^verde: ' "$work/err")" -eq 1 ] || fail "not one sentence"
}

# altered FILE SED EXIT_CODE WORDS COMMAND...: runs the command on the changed file, then restores it.
altered() {
    file=$1 change=$2 want=$3 words=$4
    shift 4
    cp "$file" "$work/as-it-was"
    sed -i "$change" "$file"
    ! cmp -s "$file" "$work/as-it-was" || fail "$file has nothing for $change"
    expect "$want" "$words" "$@"
    one_sentence
    cp "$work/as-it-was" "$file"
}

# versions FILE MEMBER WHAT EXIT_CODE COMMAND...: changes a JSON file's version. EXIT_CODE: for a version that is none, or a
# member unknown in version 1.
versions() {
    file=$1 member=$2 what=$3 wrong=$4
    shift 4
    for number in 0 2 99; do
        altered "$file" "s/\"$member\": *1\b/\"$member\": $number/; 1s/{/{\"more\": 0,/" 8 \
            "$file: version $number of $what; this verde reads version 1" "$@"
    done
    for value in 1.0 1e0 '"1"' true null; do
        altered "$file" "s/\"$member\": *1\b/\"$member\": $value/" "$wrong" \
            "$file: \`$member\` must be an integer, the version of $what" "$@"
    done
    altered "$file" "s/\"$member\": *1\b/\"other\": 1/" "$wrong" "\`$member\` must be an integer" "$@"
    altered "$file" '1s/{/{"more": 0,/' "$wrong" "$file: unknown member \`more\`" "$@"
    altered "$file" '$s/$/x/' "$wrong" "$file: .*its last byte is 0x78" "$@"
    cp "$file" "$work/as-it-was"
    printf '\n\n' >> "$file"
    expect "$wrong" 'its last byte is 0x0a' "$@"
    cp "$work/as-it-was" "$file"
}

job=models/jobs/toy.yaml
expect 0 'run root' "$verde" run $job --out "$work/run" --threads 1
expect 0 'proof.json' "$verde" export "$work/run" --out "$work/model"

run=$work/run/run.json
versions "$run" verde_run 'the log of a run' 6 "$verde" inspect "$work/run"
altered "$run" '0,/"step"/s//"more": 0, "step"/' 6 "$run: unknown member \`more\` in states\[0\]" "$verde" inspect "$work/run"
altered "$run" 's/"fault"/"party": {"more": 0}, &/' 6 'unknown member `more` in party' "$verde" inspect "$work/run"
altered "$run" 's/"fault"/"party": {"profile": {"more": 0}}, &/' 6 'unknown member `more` in party.profile' "$verde" run $job \
    --out "$work/run" --threads 1
altered "$run" 's/"fault"/"rounding": {"more": 0}, &/' 6 'unknown member `more` in rounding' "$verde" serve "$work/run"
altered "$run" 's/"fault"/"party": [], &/' 6 'party must be an object' "$verde" inspect "$work/run"
printf '\n' >> "$run"
expect 0 finished "$verde" inspect "$work/run"

# program OFFSET BYTE WORDS: changes a byte of the run's program.
program() {
    cp "$work/run/program" "$work/as-it-was"
    printf "$2" | dd of="$work/run/program" bs=1 seek="$1" conv=notrunc 2> /dev/null
    expect 8 "$work/run/program: program: $3; this verde reads version 1" "$verde" inspect "$work/run"
    one_sentence
    cp "$work/as-it-was" "$work/run/program"
}
program 15 '\2' 'version 2 of a program'
program 17 '\2' 'version 2 of the specification'
printf '\310' >> "$work/run/program"
expect 8 "$work/run/program: program: part 200 is not known" "$verde" inspect "$work/run"
truncate -s -1 "$work/run/program"

data=$work/run/data.json
versions "$data" verde 'a list of data' 6 "$verde" serve "$work/run"
altered "$data" '0,/"file"/s//"more": 0, "file"/' 6 "$data: unknown member \`more\` in data\[0\]" "$verde" serve "$work/run"

versions "$work/model/proof.json" verde_proof 'the proof of a state' 6 "$verde" check "$work/model"

# A job with prompts that continues from the run.
printf '{"key": 1, "ids": [5, 6]}\n' > "$work/prompts.jsonl"
cat > "$work/generate.yaml" << YAML
verde: 1
task: generate
model: {kind: gpt2, vocab: 256, context: 32, layers: 2, heads: 2, channels: 32, dropout: 0}
weights: {run: run, root: $(state "$work/run" 12)}
prompts: {file: prompts.jsonl, sha256: $(sum_of "$work/prompts.jsonl")}
sampling: {seed: 1}
max_tokens: 3
YAML
expect 0 'job root' "$verde" run "$work/generate.yaml" --out "$work/items" --threads 1
versions "$work/items/run.json" verde_items 'the log of a job with prompts' 6 "$verde" inspect "$work/items"
altered "$work/items/run.json" 's/"key"/"more": 0, &/' 6 'run.json: unknown member `more` in prompts\[0\]' "$verde" inspect \
    "$work/items"
printf '{"key": 1, "ids": [5, 6], "more": 0}\n' > "$work/more.jsonl"
sed "s/{file: .*/{file: more.jsonl, sha256: $(sum_of "$work/more.jsonl")}/" "$work/generate.yaml" > "$work/more.yaml"
expect 2 'more.jsonl:1: has a member `more`' "$verde" run "$work/more.yaml" --out "$work/more"

# binary FILE WHAT COMMAND...: sets the version, a u16 behind the name and its zero, to 2.
binary() {
    file=$1 what=$2
    shift 2
    cp "$file" "$work/as-it-was"
    printf '\2' | dd of="$file" bs=1 seek=14 conv=notrunc 2> /dev/null
    expect 8 "$file: version 2 of $what; this verde reads version 1" "$@"
    one_sentence
    cp "$work/as-it-was" "$file"
}
binary "$work/items/prompts/1/journal" 'a journal' "$verde" check "$work/items/prompts/1"
binary "$work/items/prompts/1/journal" 'a journal' "$verde" run "$work/generate.yaml" --out "$work/items" --threads 1
printf 'verde dispute\0\1\0' > "$work/v.json.journal"
one=https://127.0.0.1:1#8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c
two=https://127.0.0.1:1#8139770ea87d175f56a35466c34c7ecccb8d8a91b4ee37a25df60f5b8fc9b394
"$verde" keygen "$work/keys" > /dev/null
binary "$work/v.json.journal" 'the journal of a dispute' "$verde" arbitrate $job --key "$work/keys" --verdict "$work/v.json" \
    --provider $one --provider $two

cp -r tests/vectors/pretrained/llama "$work/llama"
"$verde" manifest "$work/llama" --out "$work/manifest" 2> /dev/null
manifest=$work/manifest
altered "$manifest" '1s/1/2/' 8 "$manifest:1: version 2 of a manifest; this verde reads version 1" "$verde" manifest "$work/llama" \
    --against "$manifest"
altered "$manifest" '1s/$/ /' 2 "$manifest:1: expected the line" "$verde" manifest "$work/llama" --against "$manifest"
altered "$manifest" '2s/^/more 1\n/' 2 "$manifest:2: " "$verde" manifest "$work/llama" --against "$manifest"
altered "$manifest" '$s/$/\n/' 2 'expected the end' "$verde" manifest "$work/llama" --against "$manifest"

cp $job "$work/job.yaml"
cp models/data/project.txt "$work/project.txt"
sed -i 's|../data/project.txt|project.txt|' "$work/job.yaml"
altered "$work/job.yaml" 's/^seed/more: 1\n&/; s/^verde: 1/verde: 2/' 8 'version 2 of a job file; this verde reads version 1' \
    "$verde" graph "$work/job.yaml"
altered "$work/job.yaml" 's/^seed/more: 1\n&/' 2 '`more` is not a key' "$verde" graph "$work/job.yaml"
altered "$work/job.yaml" '$s/$/\n--- {}/' 2 'job.yaml:' "$verde" graph "$work/job.yaml"

# A verdict: its file, and a key of a later type, whose signatures cannot be checked.
EXAMPLE=$work/verdict.json "$build/tests/test_document" > "$work/example.log" 2>&1 || fail "no example"
expect 0 verified "$verde" verify "$work/verdict.json"
decides_nothing='this verde cannot decide: .*; it takes a verde that knows it'
altered "$work/verdict.json" 's/"keyid":"[0-9a-f]*"/"keyid":"ml-dsa-65:00"/' 8 "$decides_nothing" "$verde" verify \
    "$work/verdict.json"
altered "$work/verdict.json" 's/"keyid":"[0-9a-f]*"/"keyid":"ml-dsa-65:00"/' 8 "$decides_nothing" "$verde" check "$work/model" \
    --verdict "$work/verdict.json"
altered "$work/verdict.json" '1s/{/{"more":0,/' 6 'verdict.json: note: ' "$verde" verify "$work/verdict.json"
altered "$work/verdict.json" '$s/$/x/' 6 'verdict.json: ' "$verde" verify "$work/verdict.json"
truncate -s 50G "$work/large.json"
expect 8 'large.json: this verde cannot decide: 53687091200 bytes; this verde reads at most' "$verde" verify "$work/large.json"
rm "$work/large.json"
expect 8 '--referee: a key of type ml-dsa-65' "$verde" verify "$work/verdict.json" --referee ml-dsa-65:00
verify_independently "$work/verdict.json" holds
sed -i 's/"keyid":"[0-9a-f]*"/"keyid":"ml-dsa-65:00"/' "$work/verdict.json"
[ -z "$python" ] || expect 8 'not decided' env PYTHONDONTWRITEBYTECODE=1 "$python" tests/independent/verify.py "$work/verdict.json"

echo "$count sentences about what is not known are as expected"
