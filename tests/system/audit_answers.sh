#!/bin/sh
# `verde audit JOB --results DIR`: answers of every kind pass, on whatever backend they were made; each single change is reported
# with its place and both values.
. tests/support/system

says() {
    for words in "$@"; do grep -q -- "$words" "$work/out" || fail "not \"$words\""; done
}
json() {
    python3 -c "import json,sys; d = json.load(open('$work/out')); sys.exit(not ($1))" || fail "JSON: not $1"
}
cat > "$work/prompts.jsonl" << JSON
{"key": 7, "ids": [15, 2, 9, 33, 60]}
{"key": 1, "ids": [5]}
{"key": 9223372036854775807, "ids": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], "max_tokens": 4}
{"key": 8, "ids": [15, 2, 9, 33, 61]}
JSON
# job NAME MODEL SAMPLING: writes a job that generates from the prompts above.
job() {
    cat > "$work/$1.yaml" << YAML
verde: 1
task: generate
model: {kind: pretrained, dir: $2, sha256: $(take_model "$2")}
prompts: {file: prompts.jsonl, sha256: $(sum_of "$work/prompts.jsonl")}
$3
YAML
}
all='sampling: {temperature: 1.5, top_k: 40, top_p: 0.9, seed: 7}
max_tokens: 10
min_tokens: 3
stop: [3, 11, 40, 41, 42, 43, 44, 45]
repetition_penalty: 1.2
log_probabilities: 2'

# ---- honest answers ----

# honest NAME MODEL SAMPLING: made with one backend and batch size, checked with others.
honest() {
    job "$@"
    expect 0 'job root' "$verde" run "$work/$1.yaml" --out "$work/$1"
    expect 0 '^equal        yes: every line' "$verde" audit "$work/$1.yaml" --results "$work/$1"
    expect 0 '"equal":true' "$verde" audit "$work/$1.yaml" --results "$work/$1" --backend scalar --batch 1 --threads 1 --json
    json 'd["checked"] == d["prompts"] == 4 and d["not_checked"] == 0 and d["differences"] == [] and d["drawn"] is None'
}
honest greedy gpt2 'sampling: {greedy: true}
max_tokens: 10'
honest draws gpt2 'sampling: {seed: 3}
max_tokens: 10'
honest best llama 'sampling: {temperature: 0.7, top_p: 0.5, seed: 3}
max_tokens: 10
stop: []
log_probabilities: 20'
honest penalty gpt2 'sampling: {greedy: true}
max_tokens: 10
repetition_penalty: 1.3
log_probabilities: 0'
honest all llama "$all"
honest half llama-bf16 "$all"
honest window qwen2-window "$all"
honest integers qwen2 "$all
products: fixed16"
grep -q '"stopped":"stop"' "$work/all/results.jsonl" && grep -q '"stopped":"length"' "$work/all/results.jsonl" || fail "not both ends"


# For lines longer than a pass, and prompts of different lengths in one pass, see test_batch_answers.

# ---- changed answers ----

python3 tests/system/changed_answers.py "$verde" "$work" all greedy best || fail "a change is not named"

# A line that is no result is refused with one line.
mkdir "$work/broken"
broken() {
    printf '%s\n' "$1" > "$work/broken/results.jsonl"
    expect 6 "$2" "$verde" audit "$work/greedy.yaml" --results "$work/broken"
    one_line
}
broken '{"key":7' 'results.jsonl:1: '
broken '[7]' 'results.jsonl:1: expected a JSON object'
broken '{"ids":[1],"stopped":"length"}' 'results.jsonl:1: `key` must be'
broken '{"key":7,"ids":[1.5],"stopped":"length"}' 'results.jsonl:1: `ids` must be'
broken '{"key":7,"ids":[1],"stopped":"end"}' 'results.jsonl:1: `stopped` must be'
broken '{"key":7,"ids":[1],"stopped":"length","more":1}' 'unknown member `more`$'
broken '{"key":7,"ids":[1],"log_probabilities":[-1],"stopped":"length"}' 'the job tells none'
broken '{"key":7,"ids":[1],"stopped":"length"}
{"key":7,"ids":[1],"stopped":"length"}' 'two lines have the key 7'
printf '{"key":7,"ids":[1],"stopped":"length"}' > "$work/broken/results.jsonl"
expect 6 'must end with a newline' "$verde" audit "$work/greedy.yaml" --results "$work/broken"
rm "$work/broken/results.jsonl"
expect 2 'results.jsonl' "$verde" audit "$work/greedy.yaml" --results "$work/broken"
grep -v '"key": 1,\|max_tokens' "$work/prompts.jsonl" > "$work/texts.jsonl"
cat > "$work/score.yaml" << YAML
verde: 1
task: score
model: {kind: pretrained, dir: gpt2, sha256: $(sum_of "$work/referee/gpt2.manifest")}
prompts: {file: texts.jsonl, sha256: $(sum_of "$work/texts.jsonl")}
YAML
expect 2 'task: generate' "$verde" audit "$work/score.yaml" --results "$work/greedy"
one_line
rm -r "$work/gpt2"
cp "$work/referee/gpt2.manifest" "$work"
expect 2 'gpt2' "$verde" audit "$work/greedy.yaml" --results "$work/greedy"
one_line

# ---- a sample of the answers ----

expect 0 '^answers      2 of 4, drawn by this checker' "$verde" audit "$work/all.yaml" --results "$work/all" --answers 2
says '^not checked  2 answers' '^equal        yes: what was drawn'
expect 2 'has no results.proof' "$verde" audit "$work/all.yaml" --results "$work/all" --answers 2 --beacon "$work/none" \
    --beacon-source drand --beacon-round 5
# ---- a liar ----

# The liar's results lead to its job root; a dispute, with one run by the checker as the rival, leads to its signature.
fetched() {
    rm -rf "${work:?}/$1.results"
    expect 0 'results.jsonl' "$verde" fetch "$work/all.yaml" --provider "$(cat "$work/$1.url")" --out "$work/$1.results" \
        --run-root "$(sed -n 's/.*"job_root": *"\([0-9a-f]*\)".*/\1/p' "$work/$1/run.json")"
}
serve all --fetch
fetched all
expect 0 '^equal        yes: every line' "$verde" audit "$work/all.yaml" --results "$work/all.results"
says '^job root     ' '^collection   '
expect 0 '^answers      2 of 4, drawn by drand, round 5, and the job root' "$verde" audit "$work/all.yaml" --results "$work/all.results" \
    --answers 2 --beacon "$work/prompts.jsonl" --beacon-source drand --beacon-round 5
expect 0 '"source":"drand"' "$verde" audit "$work/all.yaml" --results "$work/all.results" --answers 2 \
    --beacon "$work/prompts.jsonl" --beacon-source drand --beacon-round 5 --json
json 'd["drawn"]["round"] == 5 and len(d["drawn"]["prompts"]) == 2 and d["not_checked"] == 2'
cp -r "$work/all.results" "$work/other.results"
sed -i '2s/"ids":\[/&1,/' "$work/other.results/results.jsonl"
expect 6 'results.jsonl: line 2, .* is not what results.proof proves' "$verde" audit "$work/all.yaml" --results "$work/other.results"
one_line
lie() {
    rm -rf "$work/liar" "$work/rival" "$work/verdict.json"
    expect 0 'job root' "$verde" run "$work/all.yaml" --out "$work/liar" --fault "8/$1"
    serve liar --fetch
    fetched liar
    expect 9 '^differs      prompt 4 of the file (key 8), '"$2" "$verde" audit "$work/all.yaml" --results "$work/liar.results"
    says '^dispute      with --provider' '^equal        no: 1 difference'
    expect 3 "$3" "$verde" audit "$work/all.yaml" --results "$work/liar.results" --provider "$(cat "$work/liar.url")" \
        --verdict "$work/verdict.json" --work "$work/rival" --key "$work/checker"
    expect 0 '' "$verde" verify "$work/verdict.json" --job "$work/all.yaml"
    expect 3 '"exit_code":3' "$verde" audit "$work/all.yaml" --results "$work/liar.results" --provider "$(cat "$work/liar.url")" \
        --verdict "$work/verdict.json" --work "$work/rival" --key "$work/checker" --force --json
    ! [ -e "$work/rival/prompts/7" ] || fail "another prompt was run"
    kill "$!" 2> /dev/null || true
}
lie element@2:choice.token 'ids\[2\]' 'step 2'
# What a dispute needs is checked before the passes. If the provider does not know the key, that speaks against nobody.
# disputed EXIT_CODE WORDS RESULTS [OPTION...]: audits the results, and disputes with the liar.
disputed() {
    want=$1 words=$2 of=$3
    shift 3
    expect "$want" "$words" "$verde" audit "$work/all.yaml" --results "$work/$of" --provider "$(cat "$work/liar.url")" \
        --work "$work/rival" "$@"
}
disputed 2 'exists already' liar.results --verdict "$work/verdict.json" --key "$work/checker"
! grep -q '^executed' "$work/out" || fail "a pass before the options were looked at"
cp -r "$work/liar.results" "$work/unproven"
rm "$work/unproven/results.proof"
disputed 2 'has no results.proof' unproven --verdict "$work/new.json" --key "$work/checker"
one_line
expect 9 'without results.proof nothing$' "$verde" audit "$work/all.yaml" --results "$work/unproven"
serve liar --referee "$(cat "$work/checker/key.pub")"
disputed 2 'takes no part, and there is no verdict: HTTP status 400: .*another referee.*--key must be' liar.results \
    --verdict "$work/new.json" --key "$work/stranger"
[ ! -e "$work/new.json" ] && [ ! -e "$work/new.json.journal" ] || fail "a verdict by a key that was refused"
kill "$!" 2> /dev/null || true
lie element@1:likely.log_probability 'log_probabilities\[1\]' 'step 1'
verify_independently "$work/verdict.json" holds
expect 2 'it is there for .verde serve' "$verde" check "$work/rival"
one_line
# A provider that delivered wrong answers and then states the right ones agrees with the rival: the answers stay wrong.
serve all
expect 9 '^equal        no' "$verde" audit "$work/all.yaml" --results "$work/liar.results" --provider "$(cat "$work/all.url")" \
    --verdict "$work/verdict.json" --work "$work/rival" --key "$work/checker" --force

# A provider that states other wrong answers than it delivered is not convicted by one run, and no verdict accepts its claim.
rm -rf "$work/another" "$work/verdict.json"
expect 0 'job root' "$verde" run "$work/all.yaml" --out "$work/another" --fault 7/element@2:choice.token
serve another
expect 5 'another job root than it delivered' "$verde" audit "$work/all.yaml" --results "$work/liar.results" \
    --provider "$(cat "$work/another.url")" --verdict "$work/verdict.json" --work "$work/rival" --key "$work/checker" --timeout 10
[ ! -e "$work/verdict.json" ] || fail "a verdict accepts what nobody checked"

# ---- results from a provider's daemon ----

"$verde" keygen "$work/client" > "$work/out"
provide a 127.0.0.1:0
provide wrong 127.0.0.1:0 --fault 8/element@2:choice.token
delegated() {
    want=$1 words=$2 url=$3 name=$4
    shift 4
    expect "$want" "$words" "$verde" delegate "$work/all.yaml" --key "$work/client" --provider "$url" --out "$work/$name" "$@"
}
# shellcheck disable=SC2154
delegated 0 '^equal        yes: every line' "$a" good --audit answers
cmp "$work/good/results.jsonl" "$work/all/results.jsonl" || fail "other results than an honest run's"
delegated 0 '"equal":true' "$a" some --audit answers=3 --json
json 'd["exit_code"] == 0 and d["audit"]["checked"] == 3 and len(d["audit"]["drawn"]["prompts"]) == 3 and d["result"]'
# shellcheck disable=SC2154
delegated 3 'ids\[2\]' "$wrong" refused --audit answers
! grep -q '^results .*every byte' "$work/out" || fail "a refused result is told as one"
grep -q 'the results are not accepted' "$work/err" || fail "not said to be refused"
[ -e "$work/refused/refused.jsonl" ] && ! [ -e "$work/refused/results.jsonl" ] || fail "a refused result has the name of one"
expect 0 '' "$verde" verify "$work/refused/verdict.json" --job "$work/all.yaml"
delegated 3 '"exit_code":3' "$wrong" again --audit answers --json
json 'd["audit"]["equal"] is False and d["audit"]["differences"][0]["prompt"] == 4 and d["audit"]["dispute"]["exit_code"] == 3'
json 'd["result"] is None and d["refused"].endswith("again/refused.jsonl")'
delegated 2 'is answers, or answers=N' "$a" none --audit crumbs=5
delegated 2 'or answers, or answers=N; got' "$a" none --audit answers=0
[ ! -e "$work/none" ] || fail "a folder for nothing"

echo "$count commands: honest answers pass, and what is changed is named"
