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
for folder in verdicts runs results models weights manifests jobs reports releases providers; do
    mkdir -p "$evidence/$folder"
done
# shellcheck source=tests/kept/jobs.sh
. tests/kept/jobs.sh

# Verdicts of every kind, and proofs of fraud. `pieces` is left out: it has an answer of half a megabyte,
# and is not of another kind.
for test in test_verdict_kinds test_verdict_grades; do
    VERDICTS=$evidence/verdicts "$build/tests/$test" > "$work/$test.log" 2>&1 || fail "$test"
done
rm "$evidence/verdicts/pieces.json"

# dispute NAME JOB RUN RUN: the verdict must convict the second run.
dispute() {
    # shellcheck disable=SC2046
    expect 3 convicted "$verde" arbitrate "$2" --key "$work/referee" --verdict "$evidence/verdicts/$1.json" --timeout 120 $(providers "$3" "$4")
}

# keep RUN AS: without the names of this machine and of its folders.
keep() {
    cp -r "$work/$1" "$evidence/$2"
    find "$evidence/$2" -name data.json -exec sed -i "s,$PWD,/elsewhere," {} +
    find "$evidence/$2" -name run.json -exec sed -i 's/"host": ".*"/"host": "there"/' {} +
}

# A captured model, and a collection of captured answers. Scalar kernels are on every machine that audits these runs.
for job in rnn answers; do
    expect 0 root "$verde" run tests/captured/$job --out "$work/$job" --threads 1 --backend scalar
    expect 0 root "$verde" run tests/captured/$job --out "$work/$job-wrong" --threads 1 --backend scalar --fault element@0
    serve $job --key "$work/key-a" --threads 1
    serve $job-wrong --key "$work/key-b" --threads 1
    dispute captured-$job tests/captured/$job $job $job-wrong
    cp -r tests/captured/$job "$evidence/jobs"
    keep $job runs/$job
done
expect 0 wrote "$verde" export "$work/rnn" --out "$evidence/models/rnn"

# Jobs of that program: from its own state, from one of the run, and from files.
program=$("$verde" graph tests/captured/rnn --json | sed 's/.*"program":"\([0-9a-f]*\)".*/\1/')
given() { printf 'verde: 1\nmodel: {kind: program, dir: ../jobs/rnn, sha256: %s}\n%s\n' "$program" "$2" > "$jobs/given-$1.yaml"; }
given whole ''
given run "weights: {run: ../runs/rnn, root: $(state "$work/rnn" 2)}"
given files "weights: {dir: ../models/rnn, sha256: $("$verde" manifest "$evidence/models/rnn" 2> "$work/err" | sha256sum | cut -d ' ' -f 1)}"

# Reports of an audit and of a comparison.
keep rnn-wrong runs/rnn-wrong
expect 9 . "$verde" audit "$evidence/runs/rnn-wrong" --all --seed 1 --backend scalar --data tests/captured/rnn --json
sed 's/"host":"[^"]*"/"host":"there"/g' "$work/out" > "$evidence/reports/audit.json"
expect 9 . "$verde" diff "$evidence/runs/rnn" "$evidence/runs/rnn-wrong" --data tests/captured/rnn --json
cp "$work/out" "$evidence/reports/diff.json"

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
cp "$work/referee/llama.manifest" "$evidence/manifests"

# A run with a rounding log.
sed -e 's/^model:.*/model: {kind: mlp, vocab: 256, layers: 1, channels: 2, hidden: 2}/; s/^steps:.*/steps: 4/' "$jobs/toy-log.yaml" \
    > "$jobs/mlp-log.yaml"
expect 0 root "$verde" run "$jobs/mlp-log.yaml" --backend log --threads 1 --key "$work/key-a" --out "$work/log"
keep log runs/log

# An audit that finds fraud.
expect 0 root "$verde" run models/jobs/toy.yaml --out "$work/liar" --threads 1 --fault poison@7
serve liar --key "$work/key-b" --threads 1
expect 3 . "$verde" audit models/jobs/toy.yaml --provider "$(cat "$work/liar.url")" --key "$work/checker" --crumbs 13 --steps 13 \
    --proof "$evidence/verdicts/fraud-audited.json"

# A client's results, with their proofs, and the folder of a daemon that has made them, with its ledger.
"$verde" keygen "$work/client" > /dev/null
provide a 127.0.0.1:0
provide b 127.0.0.1:0
expect 0 'every byte checked' "$verde" delegate "$evidence/jobs/answers" --key "$work/client" --provider "$a" --provider "$b" --out "$evidence/results/answers"
cleanup
keep a providers/a
rm "$evidence/providers/a/url"

# The signed list of a release.
mkdir "$evidence/releases/list"
cp "$evidence/manifests/llama.manifest" "$jobs/toy.yaml" "$evidence/releases/list"
expect 0 SUMS sh debian/release/sums.sh "$work/client/key.pem" "$(basename "$to")" "$evidence/releases/list"

# tar archives with the same bytes on every machine; no content has a time.
pack() { (cd "$2" && tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 --mode=go=rX,u+rw -cf - .) | xz -9e > "$to/$1.tar.xz"; }
! grep -rlF "$PWD" "$evidence" || fail "evidence names folders of this machine"
python3 tests/kept/ask.py say "$verde" "$evidence" > "$to/said.jsonl"
# Each result, grade, and end of a challenge that there can be.
sed -n '/= {/,/};/p' verde/protocol/judgement.c | grep -o '"[a-z-]*"' | while read -r word; do
    grep -q "$word" "$to/said.jsonl" || fail "no evidence says $word"
done
pack evidence "$evidence"
pack golden tests/golden
case $to in tests/kept/*) (cd tests/kept && sha256sum */* > hashes.txt) ;; esac
ls -l "$to"
