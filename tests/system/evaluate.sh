#!/bin/sh
# A job that evaluates: the loss of a run's weights on data is computed by a run that commits and can be disputed like any other.
. tests/support/system

# 50 windows of 12 tokens, which make 12 batches of 4, and a file of other tokens.
write_tokens "$work/tokens.bin" 601
write_tokens "$work/held.bin" 610 700

# job NAME MODEL DATA MORE: writes $work/NAME.yaml.
job() {
    cat > "$work/$1.yaml" << YAML
verde: 1
$2
data: {kind: tokens, file: $work/$3.bin, sha256: $(sha256sum "$work/$3.bin" | cut -d ' ' -f 1)}
seed: 7
batch: 4
sequence: 12
$4
YAML
}
adamw='optimizer: {kind: adamw, lr: 1e-2, beta1: 0.9, beta2: 0.99, eps: 1e-8, weight_decay: 0.1, clip_norm: 1.0}'
training="steps: 10
checkpoint_interval: 5
$adamw
schedule: {kind: constant, warmup: 0}"

# score DIR: prints the mean loss from the last line of a run's output.
score() {
    sed -n 's/^evaluation *\([0-9.]*\),.*/\1/p' "$work/out"
}

# mean FILE: prints the mean of the losses in losses.jsonl.
mean() {
    python3 -c '
import json, sys
losses = [json.loads(line)["loss"] for line in open(sys.argv[1])]
assert len(losses) == 12, len(losses)
print(sum(losses) / len(losses))' "$1/losses.jsonl"
}

near() {
    python3 -c 'import sys; sys.exit(abs(float(sys.argv[1]) - float(sys.argv[2])) > 2e-6)' "$1" "$2" ||
        fail "$1 is not $2"
}

# models NAME MODEL DATA [RELATION]: trains, and evaluates first and last state; the losses must have this RELATION (default `<`).
models() {
    job "$1" "$2" tokens "$training"
    expect 0 'run root' "$verde" run "$work/$1.yaml" --out "$work/$1.run"
    for step in 0 10; do
        job "$1.$step" "task: evaluate
$2" held "weights: {run: $1.run, root: $(state "$work/$1.run" $step)}"
        expect 0 'mean loss of 12 batches' "$verde" run "$work/$1.$step.yaml" --out "$work/$1.$step"
        near "$(score)" "$(mean "$work/$1.$step")"
        eval "at_$step=$(score)"
    done
    expect 0 'root' "$verde" check "$work/$1.10"
    # shellcheck disable=SC2154
    python3 -c "import sys; sys.exit(not $at_10 ${4-<} $at_0)" || fail "$1: from $at_0 to $at_10"
}
llama="model: {kind: pretrained, dir: llama, sha256: $(take_model llama)}"
models gpt2 'model: {kind: gpt2, vocab: 64, context: 16, layers: 1, heads: 2, channels: 16, dropout: 0.1}' tokens
models full "$llama" tokens
full_0=$at_0
models lora "$llama
lora: {rank: 2, alpha: 4, targets: [attn.q, attn.v]}" tokens
models bert 'model: {kind: bert, vocab: 64, context: 16, layers: 1, heads: 2, channels: 16, dropout: 0.1, mask_rate: 0.4}' tokens '!='

# Images: batch norm uses the running statistics, and the accuracy is printed as well.
"$build/bin/standin" 400 > "$work/images.bin" 2> "$work/err"
"$build/bin/standin" 560 2> "$work/err" | tail -c $((160 * 3073)) > "$work/other.bin"
# image NAME SOURCE MORE: writes a job, with MORE in place of the lines about training.
image() {
    sed -e "s,\.\./data/stripes.bin,$work/$2," -e "s/sha256: .*/sha256: $(sha256sum "$work/$2" | cut -d ' ' -f 1)/" models/jobs/resnet-tiny.yaml |
        if [ -n "$3" ]; then sed -e '/^steps\|^checkpoint\|^optimizer\|^ *clip_norm\|^schedule/d' && echo "$3"; else cat; fi > "$work/$1.yaml"
}
# right: prints the accuracy from the last line of a run's output.
right() {
    sed -n 's/^accuracy *\([0-9.]*\) of 160$/\1/p' "$work/out"
}
image resnet images.bin ''
echo "evaluate: {file: other.bin, sha256: $(sha256sum "$work/other.bin" | cut -d ' ' -f 1), every: 30}" >> "$work/resnet.yaml"
expect 0 'step 30: evaluation [0-9.]*, accuracy' "$verde" run "$work/resnet.yaml" --out "$work/resnet"
for step in 10 30; do
    image resnet.$step other.bin "task: evaluate
weights: {run: resnet, root: $(state "$work/resnet" $step)}"
    expect 0 'mean loss of 10 batches' "$verde" run "$work/resnet.$step.yaml" --out "$work/resnet.$step"
    shares="${shares-}$(right) "
done
python3 -c 'import sys; sys.exit(not float(sys.argv[2]) > max(0.3, float(sys.argv[1])))' $shares || fail "accuracy after 10 and 30 steps: $shares"
expect 0 'accuracy' "$verde" run "$work/resnet.30.yaml" --out "$work/resnet.30" --json
python3 -c '
import json, sys
committed, told = json.loads(open(sys.argv[1]).readlines()[-1]), json.loads(open(sys.argv[2]).readlines()[-1])
sys.exit(any(committed[k] != told[k] for k in ("evaluation", "accuracy")))' "$work/out" "$work/resnet/losses.jsonl" || fail "other numbers meanwhile"
expect 0 'root' "$verde" check "$work/resnet.30"

# Evaluating while a job trains gives the same scores, and a curve of them; a stop does not change the scores.
job meanwhile "$llama
lora: {rank: 2, alpha: 4, targets: [attn.q, attn.v]}
evaluate: {file: held.bin, sha256: $(sha256sum "$work/held.bin" | cut -d ' ' -f 1), every: 5}" tokens "$training"
expect 0 'step 10: evaluation' "$verde" run "$work/meanwhile.yaml" --out "$work/meanwhile"
[ "$(state "$work/meanwhile" 10)" = "$(state "$work/lora.run" 10)" ] || fail "evaluating changes the run"
sed -n 's/.*"step":\([0-9]*\),"evaluation":\([0-9.]*\)}/\1 \2/p' "$work/meanwhile/losses.jsonl" > "$work/scores"
[ "$(cut -d ' ' -f 1 "$work/scores" | tr '\n' ' ')" = '5 10 ' ] || fail "evaluations at other steps than 5 and 10"
expect 0 'evaluation' "$verde" run "$work/lora.10.yaml" --out "$work/lora.10" --json
python3 -c '
import json, sys
committed = json.loads(open(sys.argv[1]).readlines()[-1])["evaluation"]
sys.exit(committed != float(sys.argv[2]))' "$work/out" "$(sed -n 's/^10 //p' "$work/scores")" || fail "not the number of the job that evaluates"
[ "$(wc -l < "$work/meanwhile/losses.jsonl")" -eq 12 ] || fail "other lines than of 10 steps and 2 evaluations"
"$verde" inspect "$work/meanwhile" --plot "$work/loss.svg" || fail "no picture"
python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$work/loss.svg" || fail "the picture is not well-formed"
grep -q 'class="evaluation" d="M' "$work/loss.svg" || fail "no curve of evaluations"
cp "$work/meanwhile/losses.jsonl" "$work/lines"
expect 0 'finished: nothing was executed' "$verde" run "$work/meanwhile.yaml" --out "$work/meanwhile"
cmp "$work/lines" "$work/meanwhile/losses.jsonl" || fail "lines were lost"

# The weights as they are in their files; adapters that are zero change nothing.
job files "task: evaluate
$llama" held ''
expect 0 'evaluation' "$verde" run "$work/files.yaml" --out "$work/files"
[ "$(score)" = "$full_0" ] || fail "the files give $(score), and a run that begins with them $full_0"

# A score that is too low is disputed like anything else; the referee only has proof and manifest.
# dispute RUN STEP JOB FAULT: the run of JOB with this FAULT is convicted.
dispute() {
    expect 0 'proof.json' "$verde" export "$work/$1" --out "$work/$1.out"
    cp "$work/$1.out/proof.json" "$work/referee/$1.proof.json"
    cp "$work/$3.yaml" "$work/referee/$3.yaml"
    expect 0 'run root' "$verde" run "$work/$3.yaml" --out "$work/$3.wrong" --fault "$4"
    serve "$3"
    serve "$3.wrong"
    # shellcheck disable=SC2046
    expect 3 "step $2" "$verde" arbitrate "$work/referee/$3.yaml" --key "$work/keys" --verdict "$work/$1.verdict.json" \
        $(providers "$3" "$3.wrong")
    expect 0 '' "$verde" verify "$work/$1.verdict.json"
}
expect 2 'the run is an evaluation' "$verde" export "$work/resnet.30" --out "$work/none"
one_line
expect 2 'the run is an evaluation' "$verde" export "$work/files" --out "$work/none"
dispute lora.run 7 lora.10 element@7:mean.loss_so_far
dispute resnet 4 resnet.30 element@4:mean.accuracy_so_far

# Jobs that are refused.
refused() {
    expect 2 "$1" "$verde" run "$work/bad.yaml" --out "$work/none"
    one_line
}
job bad "task: evaluate
model: {kind: gpt2, vocab: 64, context: 16, layers: 1, heads: 2, channels: 16, dropout: 0.1}" held ''
refused '.weights. is missing'
job bad "task: evaluate
$llama" held "steps: 3"
refused 'it belongs to training'
job bad "task: evaluate
$llama" held "$adamw"
refused 'it belongs to training'
job bad "task: evaluate
$llama" held "weights: {run: gpt2.run, root: $(state "$work/gpt2.run" 10)}"
refused 'the state to \(evaluate\|go on from\)'
sed 's/every: 5/every: 4/' "$work/meanwhile.yaml" > "$work/bad2.yaml"
expect 2 'evaluate.every. must be a multiple' "$verde" run "$work/bad2.yaml" --out "$work/none"
sed 's/held.bin/tokens.bin/' "$work/meanwhile.yaml" > "$work/bad2.yaml"
expect 2 'evaluate: ' "$verde" run "$work/bad2.yaml" --out "$work/none"
sed -i 's/batch: 4/batch: 51/; /^weights/d' "$work/bad.yaml"
refused 'the data has no 51 sequences'
echo "evaluations are runs: their scores are the mean of their losses, and a wrong one is convicted"
