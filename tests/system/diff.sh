#!/bin/sh
# `verde diff` finds where two runs diverge, for every kind of fault and for a build with a wrong kernel; compares models and
# programs; and says in one line what it cannot compare.
. tests/support/system
job=models/jobs/toy.yaml
wrong=$build/tests/wrong_kernel

# run NAME OPTION...: runs into $work/NAME.
run() {
    name=$1
    shift
    "$verde" run "$@" --out "$work/$name" > "$work/out" 2> "$work/err" || fail "$name: no run"
}
# says WORDS...: the last command's output has each of them.
says() {
    for words in "$@"; do grep -q -- "$words" "$work/out" || fail "not \"$words\""; done
}
# edited NAME SED...: writes the job with these changes to $work/NAME.yaml.
edited() {
    name=$1
    shift
    sed -e "s,file: \.\./data,file: $PWD/models/data," "$@" $job > "$work/$name.yaml"
}
json() {
    python3 -c "import json,sys; d = json.load(open('$work/out')); sys.exit(not ($1))" || fail "JSON: not $1"
}

# ---- every kind of fault ----

run honest $job
expect 0 '^equal        yes' "$verde" diff "$work/honest" "$work/honest"
fault() {
    run liar $job --fault "$1"
    expect 9 "$2" "$verde" diff "$work/honest" "$work/liar"
    shift 2
    says "$@"
    grep -q '^executed' "$work/out" || return 0
    [ "$(sed -n 's/^executed  *\([0-9]*\).*/\1/p' "$work/out")" -le 18 ] || fail "more than two intervals of each were executed"
}
twice() { rm -rf "$work/liar"; fault "$@"; }
twice element@7 '^step         7 of' 'm1.h.0.attn.qkv.matmul (matmul)' '^inputs       2, all equal' ': 1 of 6144' '^element      2047, \[0,21,31\]' \
    '^distance     4096 ULP, in bit 12 alone' "^reference .*: a's$" "fits .* a has the operator's value"
twice lr@6 '^step         6 of' 'adamw.learning_rate (lr_schedule)' 'b ran another node'
twice skip@4 '^step         4 of' 'b left the step out'
twice skip@7 '^step         7 of' 'b left the step out'
twice poison@9 '^step         9 of' '(read_batch)' 'in bit 0 alone'
twice seed@5 '^step         5 of' '(read_batch)' 'b ran another node'
twice attr@3 '^step         3 of' '(div_const)' 'b ran another node'
twice weights '^step         initialisation' 'init.wte (normal)' '8192 of 8192'
twice history 'b holds the state that its steps give, and commits to another'
twice input@8 '^step         8 of' '(read_batch)' "^reference .*: a's$"

edited calls
printf 'rounding:\n  bits: 32\n  encoding: calls\n' >> "$work/calls.yaml"
job=$work/calls.yaml
rm -rf "$work/honest"
run honest "$job" --backend log
run auditor "$job" --backend log --role auditor --follow "$work/honest"
expect 0 '^equal' "$verde" diff "$work/honest" "$work/auditor"
run again "$job" --backend log
expect 0 '^equal' "$verde" diff "$work/honest" "$work/again"
logs() {
    rm -rf "$work/liar"
    run liar "$job" --backend log --fault "$1"
    shift
    expect 9 "$1" "$verde" diff "$work/honest" "$work/liar"
    says "$@"
}
logs steer@5 '^step         5 of' '(reduce_sum)'
logs drop-record@6 '^step         6 of' '(reduce_sum)' 'some device may round to each'
logs forge-record@7 '^step         7 of' '^section ' 'the log of this node is another'
logs forge-both@6 '^step         6 of' 'only a has a value that some device may round to'
logs two-logs@7 'b commits to other rounding logs than it holds'
job=models/jobs/toy.yaml

# ---- a wrong kernel ----

rm -rf "$work/honest" "$work/liar"
run honest $job
"$wrong" run $job --out "$work/liar" --backend scalar > "$work/out" 2>&1 || fail "the build with a wrong kernel"
expect 9 "b's state is not what the steps before it give here" "$verde" diff "$work/honest" "$work/liar"
says '^step         one of 0..3'
case $("$wrong" run $job --out "$work/best" > /dev/null 2>&1; "$wrong" inspect "$work/best" --json | grep -o '"run_root":"[^"]*"') in
"$("$verde" inspect "$work/honest" --json | grep -o '"run_root":"[^"]*"')")
    expect 9 'gelu_grad' "$wrong" diff "$work/honest" "$work/liar" # each on the backend that it states
    says '^b .* on backend scalar'
    expect 9 'gelu_grad' "$wrong" diff "$work/honest" "$work/liar" --backend cpu,scalar
    says '^step         0 of' '^element      1000,' 'in bit 2 alone' "^reference .*: a's$"
    ;;
esac
edited one -e 's/checkpoint_interval: 4/checkpoint_interval: 1/'
run one "$work/one.yaml"
"$wrong" run "$work/one.yaml" --out "$work/wrong" --backend scalar > "$work/out" 2>&1 || fail "the build with a wrong kernel"
expect 9 '^step         0 of' "$verde" diff "$work/one" "$work/wrong"

# ---- without execution; JSON ----

rm -rf "$work/liar"
run liar $job --fault element@5
expect 9 '^step         one of 4..7' "$verde" diff "$work/honest" "$work/liar" --no-run
says '^tensor       f32' '^value b'
! grep -q '^executed' "$work/out" || fail "--no-run executed steps"
cp -r "$work/honest" "$work/short"
for state in "$work"/short/state-*; do truncate -s 100 "$state"; done
expect 9 '^unread .*cut short' "$verde" diff "$work/short" "$work/liar" --no-run
says "^checkpoints  equal up to step 4, and step 8's differs"
expect 9 '"unread":".*cut short' "$verde" diff "$work/short" "$work/liar" --no-run --json
sed 's/lr: [^,]*,/lr: 6e-3,/' models/jobs/toy.yaml | sed "s,file: \.\./data,file: $PWD/models/data," > "$work/faster.yaml"
expect 0 '^run root' "$verde" run "$work/faster.yaml" --out "$work/faster"
expect 9 '^unread .*cut short' "$verde" diff "$work/short" "$work/faster" --no-run
says '^states       none compared'
expect 9 '"states_compared":0' "$verde" diff "$work/short" "$work/faster" --no-run --json
rm -r "$work/short" "$work/faster"
expect 9 '"differs_in":"node"' "$verde" diff "$work/honest" "$work/liar" --json
json 'd["step"] == 5 and d["node"]["operator"] == "matmul" and d["tensor"]["distance"] == 4096 and not d["equal"]'
expect 0 '"equal":true' "$verde" diff "$work/honest" "$work/honest" --json
mv "$work/honest/data" "$work/moved"
expect 2 '/data: No such file' "$verde" diff "$work/honest" "$work/liar"
one_line
expect 9 '^tensor' "$verde" diff "$work/honest" "$work/liar" --no-run
mv "$work/moved" "$work/honest/data"

# ---- programs, and runs of two different programs ----

edited faster -e 's/lr: 3e-3/lr: 6e-3/'
edited wide -e 's/channels: 32/channels: 48/'
expect 0 '^equal' "$verde" diff $job $job
expect 9 '%430 adamw.learning_rate: attribute base' "$verde" diff $job "$work/faster.yaml"
[ "$(grep -c attribute "$work/out")" -eq 1 ] || fail "one attribute differs"
expect 9 'more differences$' "$verde" diff $job "$work/wide.yaml"
expect 9 '"count":1,' "$verde" diff "$work/honest/program" "$work/faster.yaml" --json
run faster "$work/faster.yaml"
expect 9 '^step         0 of' "$verde" diff "$work/honest" "$work/faster"
says 'adamw.learning_rate (lr_schedule)' 'another program, attribute base: 0.003' '^inputs       1, all equal'

# ---- models ----

for name in honest liar; do
    "$verde" export "$work/$name" --out "$work/model-$name" > "$work/out" 2>&1 || fail "no export"
done
expect 0 '^equal' "$verde" diff "$work/model-honest" "$work/model-honest"
expect 9 '^tensor       transformer.h.0' "$verde" diff "$work/model-honest" "$work/model-liar"
says '^value a' 'ULP at most' 'elements differ$'
expect 9 '"compared":"models"' "$verde" diff "$work/model-honest/model.safetensors" "$work/model-liar/model.safetensors" --json
json 'd["differ"] > 0 and d["first"]["elements"] > 0 and not d["config_differs"]'

# ---- prompts ----

sha=$(take_model gpt2)
printf '{"key": 1, "ids": [1, 2, 3]}\n{"key": 7, "ids": [4, 5]}\n' > "$work/prompts.jsonl"
answers() {
    cat > "$work/$1.yaml" << JOB
verde: 1
task: generate
model: {kind: pretrained, dir: gpt2, sha256: $sha}
prompts: {file: prompts.jsonl, sha256: $(sum_of "$work/prompts.jsonl")}
sampling: {temperature: $2, seed: 7}
max_tokens: 4
JOB
    shift 2
    run "$@"
}
answers answers 1.5 answers "$work/answers.yaml"
expect 0 '^prompts      2 and 2, of which 0 differ' "$verde" diff "$work/answers" "$work/answers"
says '^equal        yes, to the bit'
answers answers 1.5 lies "$work/answers.yaml" --fault element@1
expect 9 '^prompts      2 and 2, of which [12] differ' "$verde" diff "$work/answers" "$work/lies"
says '^prompt  ' '^step         1 of' '^node ' "^reference .*: a's$"
answers cold 0.5 cold "$work/cold.yaml"
expect 9 '^prompt  ' "$verde" diff "$work/answers" "$work/cold"
says '^program a' 'attribute'

# ---- what cannot be compared ----

expect 2 'is a model, and .* is a run; expected two of one kind' "$verde" diff "$work/model-honest" "$work/honest"
one_line
expect 2 'no such file or directory' "$verde" diff "$work/honest" "$work/nowhere"
one_line
expect 2 'two runs, two models or two programs, got 1' "$verde" diff "$work/honest"
one_line
mkdir "$work/empty"
expect 2 'holds no run, no model and no program' "$verde" diff "$work/empty" "$work/honest"
one_line
expect 2 'no-run and --data go with two runs' "$verde" diff $job $job --no-run
one_line
expect 2 'must be one name, or two with a comma' "$verde" diff "$work/honest" "$work/liar" --backend avx2,
one_line
expect 2 'backend' "$verde" diff "$work/honest" "$work/liar" --backend cpu,strange
one_line
rm "$work/liar/run.json"
expect 9 'programs\|^program' "$verde" diff "$work/honest/program" "$work/faster/program"
head -c 100 "$work/honest/run.json" > "$work/faster/run.json"
expect 6 'run.json' "$verde" diff "$work/honest" "$work/faster"
one_line

echo "$count comparisons"
