#!/bin/sh
# losses.jsonl of a run that is killed, and of one that diverges, and the pictures of both.
. tests/support/system

# picture RUN WORDS: the picture is well-formed and has the WORDS.
picture() {
    "$verde" inspect "$1" --plot "$work/loss.svg" || fail "$1: no picture"
    python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$work/loss.svg" || fail "$1: not well-formed"
    for word in 'class="loss" d="M' "$2"; do
        grep -q "$word" "$work/loss.svg" || fail "$1: the picture lacks \"$word\""
    done
}

# A run that was killed again and again has one line for each step.
steps=400
[ -z "${SANITIZED:-}" ] || steps=100 # many times slower
sed "s/^steps: .*/steps: $steps/; s|\.\./data|$PWD/models/data|" models/jobs/toy.yaml > "$work/job.yaml"
for life in 1 2 3 4; do
    "$verde" run "$work/job.yaml" --out "$work/run" --threads 1 > /dev/null 2>&1 &
    pids=$!
    sleep 0.$life
    kill -9 "$pids" 2> /dev/null || true
    wait "$pids" 2> /dev/null || true
    pids=
done
"$verde" run "$work/job.yaml" --out "$work/run" --threads 1 > /dev/null 2>&1
seq $steps > "$work/expected"
# So has one that was killed before its first checkpoint.
mkdir "$work/early"
cp "$work/run/program" "$work/early"
: > "$work/early/losses.jsonl"
"$verde" run "$work/job.yaml" --out "$work/early" --threads 1 > /dev/null 2> "$work/err" || fail "a file without a line is in the way"
[ "$(wc -l < "$work/early/losses.jsonl")" -eq $steps ] || fail "not one line for each step after an early kill"
sed 's/{"step":\([0-9]*\),.*/\1/' "$work/run/losses.jsonl" > "$work/steps"
cmp "$work/expected" "$work/steps" || fail "not one line for each step"
[ "$(grep -c '"loss":[0-9.]*,"lr":[0-9.e-]*,"grad_norm":[0-9.]*,"tokens":[0-9]*,"seconds":[0-9.e-]*}$' "$work/run/losses.jsonl")" -eq $steps ] ||
    fail "not every line has all numbers"
picture "$work/run" ">$steps<"

# A rate is printed once it means something; a single step is "1 step".
sed 's/^steps: .*/steps: 100000/' "$work/job.yaml" > "$work/long.yaml"
for life in 1 2; do
    : > "$work/err" # so that the loop below does not find the lines of the run before
    "$verde" run "$work/long.yaml" --out "$work/long" --threads 1 > /dev/null 2> "$work/err" &
    pids=$!
    until grep -q '^step ' "$work/err"; do sleep 0.1; done
    kill "$pids"
    wait "$pids" || true
    pids=
    grep -q '^step [0-9]*/100000  loss [0-9.]*$' "$work/err" || fail "life $life: no first line without a rate: $(cat "$work/err")"
done
sed 's/^steps: .*/steps: 1/; s/^checkpoint_interval: .*/checkpoint_interval: 1/; s/warmup: 2/warmup: 0/' "$work/job.yaml" > "$work/one.yaml"
"$verde" run "$work/one.yaml" --out "$work/one" --threads 1 > "$work/out" 2> "$work/err"
grep -q ', 1 step of ' "$work/err" && grep -q ' in 1 step, ' "$work/out" || fail "1 steps: $(cat "$work/err" "$work/out")"

# A run that diverges says at which step, once.
sed 's/lr: 3e-3/lr: 1000/; s/kind: adamw/kind: sgd/; s/beta1: 0.9, beta2: 0.95, eps: 1e-8,/momentum: 0, nesterov: false,/; s/clip_norm: 1.0/clip_norm: 0/' \
    "$work/job.yaml" > "$work/lost.yaml"
"$verde" run "$work/lost.yaml" --out "$work/lost" --threads 1 > /dev/null 2> "$work/err"
step=$(sed -n 's/{"step":\([0-9]*\),"loss":"nan".*/\1/p' "$work/lost/losses.jsonl" | head -n 1)
[ -n "$step" ] || fail "the run did not diverge"
[ "$(grep -c ': the loss is ' "$work/err")" -eq 1 ] || fail "not one line about the loss: $(cat "$work/err")"
grep -q "^step $step: the loss is nan" "$work/err" || fail "not the step at which it diverged: $(cat "$work/err")"
picture "$work/lost" "no number from step $step on"

printf '{"step":0}\n' > "$work/lost/losses.jsonl"
code=0
"$verde" inspect "$work/lost" --plot "$work/none.svg" 2> "$work/err" || code=$?
[ $code -eq 6 ] && grep -q 'losses.jsonl: expected {"step":N' "$work/err" || fail "a file of something else was drawn"
[ ! -e "$work/none.svg" ] || fail "a picture of nothing"
echo "losses of $steps steps in 5 lives, and of a run that diverges at step $step"
