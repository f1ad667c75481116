#!/bin/sh
# Makes the evidence of a release: see tests/kept/README.md. Usage: make.sh BUILD FOLDER
set -eu
to=$2
for tag in $(git tag --list 'v*' 2> /dev/null); do
    ! git cat-file -e "$tag:./$to/said.jsonl" 2> /dev/null || { echo "$0: $to: $tag has it: expected the folder of a later release" >&2; exit 1; }
done
mkdir -p "$to"
# shellcheck source=/dev/null
. tests/support/system
evidence=$work/evidence
mkdir -p "$evidence/verdicts" "$evidence/runs" "$evidence/results" "$evidence/models" "$evidence/weights" "$evidence/jobs"

# Verdicts of every kind, and proofs of fraud. `pieces` is left out: it has an answer of half a megabyte,
# and is not of another kind.
VERDICTS=$evidence/verdicts "$build/tests/test_verdict_kinds" > "$work/kinds.log" 2>&1 || fail "test_verdict_kinds"
rm "$evidence/verdicts/pieces.json"

# dispute NAME JOB RUN RUN: the verdict must convict the second run.
dispute() {
    # shellcheck disable=SC2046
    expect 3 convicted "$verde" arbitrate "$2" --key "$work/referee" --verdict "$evidence/verdicts/$1.json" --timeout 120 $(providers "$3" "$4")
}

# A captured model, and a collection of captured answers.
for job in rnn answers; do
    expect 0 root "$verde" run tests/captured/$job --out "$work/$job" --threads 1
    expect 0 root "$verde" run tests/captured/$job --out "$work/$job-wrong" --threads 1 --fault element@0
    serve $job --key "$work/key-a" --threads 1
    serve $job-wrong --key "$work/key-b" --threads 1
    dispute captured-$job tests/captured/$job $job $job-wrong
    cp -r "$work/$job" "$evidence/runs/$job"
    find "$evidence/runs/$job" -name data.json -exec sed -i "s,$PWD/tests/captured,/elsewhere," {} +
done
expect 0 wrote "$verde" export "$work/rnn" --out "$evidence/models/rnn"

# Text generation from given weights.
printf '{"key": 7, "ids": [15, 2, 9]}\n{"key": 1, "ids": [5]}\n' > "$work/prompts.jsonl"
cat > "$work/generate.yaml" << YAML
verde: 1
task: generate
model: {kind: pretrained, dir: llama, sha256: $(take_model llama)}
prompts: {file: prompts.jsonl, sha256: $(sum_of "$work/prompts.jsonl")}
sampling: {temperature: 1.5, top_k: 40, top_p: 0.9, seed: 7}
max_tokens: 4
YAML
expect 0 root "$verde" run "$work/generate.yaml" --out "$work/generate" --threads 1
expect 0 root "$verde" run "$work/generate.yaml" --out "$work/generate-wrong" --threads 1 --fault 7/element@2:choice.token
serve generate --key "$work/key-a" --threads 1
serve generate-wrong --key "$work/key-b" --threads 1
dispute generation "$work/generate.yaml" generate generate-wrong
cp -r "$work/llama" "$evidence/weights"

# Rounding logs: a false record, and two logs of one run.
sed -e "s/^rounding: .*/rounding: {bits: 32, encoding: calls}/" -e "s,file: \.\./data,file: $PWD/models/data," \
    models/jobs/toy-log.yaml > "$work/log.yaml"
"$verde" keygen "$work/key-t" > /dev/null
for kind in forge-record two-logs; do
    expect 0 root "$verde" run "$work/log.yaml" --backend log --profile sim-wide --threads 1 --key "$work/key-t" --out "$work/$kind" --fault $kind@7
    expect 0 root "$verde" run "$work/log.yaml" --backend log --profile sim-deep --threads 1 --role auditor --follow "$work/$kind" \
        --trainer-key "$(cat "$work/key-t/key.pub")" --contest --out "$work/$kind-audit"
    serve $kind --key "$work/key-t" --threads 1
    serve $kind-audit --key "$work/key-b" --threads 1
    dispute log-$kind "$work/log.yaml" $kind $kind-audit
done

# An audit that finds fraud.
expect 0 root "$verde" run models/jobs/toy.yaml --out "$work/liar" --threads 1 --fault poison@7
serve liar --key "$work/key-b" --threads 1
expect 3 . "$verde" audit models/jobs/toy.yaml --provider "$(cat "$work/liar.url")" --key "$work/checker" --crumbs 13 --steps 13 \
    --proof "$evidence/verdicts/fraud-audited.json"

# A client's results, with their proofs.
"$verde" keygen "$work/client" > /dev/null
provide a 127.0.0.1:0
provide b 127.0.0.1:0
cp -r tests/captured/answers "$evidence/jobs"
expect 0 'every byte checked' "$verde" delegate "$evidence/jobs/answers" --key "$work/client" --provider "$a" --provider "$b" --out "$evidence/results/answers"

# tar archives with the same bytes on every machine; no content has a time.
pack() { (cd "$2" && tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 --mode=go=rX,u+rw -cf - .) | xz -9e > "$to/$1.tar.xz"; }
python3 tests/kept/ask.py say "$verde" "$evidence" > "$to/said.jsonl"
pack evidence "$evidence"
pack golden tests/golden
ls -l "$to"
