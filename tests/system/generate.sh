#!/bin/sh
# Jobs with prompts: results as JSON Lines, runs that resume, and a conviction for lies about tokens, caches or log-probabilities.
. tests/support/system

# A model trained here from pretrained weights generates from prompts; the referee has neither weights nor states.
write_tokens "$work/tokens.bin" 601
model="model: {kind: pretrained, dir: llama, sha256: $(take_model llama)}"
cat > "$work/train.yaml" << YAML
verde: 1
$model
data: {kind: tokens, file: tokens.bin, sha256: $(sum_of "$work/tokens.bin")}
seed: 7
batch: 4
sequence: 12
steps: 10
checkpoint_interval: 5
optimizer: {kind: adamw, lr: 1e-2, beta1: 0.9, beta2: 0.99, eps: 1e-8, weight_decay: 0.1, clip_norm: 1.0}
schedule: {kind: constant, warmup: 0}
YAML
expect 0 'run root' "$verde" run "$work/train.yaml" --out "$work/trained"
expect 0 'proof.json' "$verde" export "$work/trained" --out "$work/export"
cp "$work/export/proof.json" "$work/referee/trained.proof.json"
cat > "$work/prompts.jsonl" << JSON
{"key": 7, "ids": [15, 2, 9, 33, 60]}
{"key": 1, "ids": [5]}
{"ids": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20], "key": 9223372036854775807}
JSON

# root_of RUN: prints its run root.
root_of() { "$verde" check "$1" | sed -n 's/^run root  *//p'; }

# job NAME TASK MORE: writes the job with the current prompts to $work, and for the referee.
job() {
    cp "$work/prompts.jsonl" "$work/$1.jsonl"
    cat > "$work/$1.yaml" << YAML
verde: 1
task: $2
$model
weights: {run: trained, root: $(state "$work/trained" 10)}
prompts: {file: $1.jsonl, sha256: $(sum_of "$work/$1.jsonl")}
$3
YAML
    cp "$work/$1.yaml" "$work/$1.jsonl" "$work/referee"
}
sampling='sampling: {temperature: 1.5, top_k: 40, top_p: 0.9, seed: 7}
max_tokens: 10
min_tokens: 3
stop: [3, 11]
repetition_penalty: 1.2
log_probabilities: 2'
job generate generate "$sampling"
expect 0 'job root' "$verde" run "$work/generate.yaml" --out "$work/honest"
job_root=$(sed -n 's/^job root *//p' "$work/out")
expect 0 "job root *$job_root" "$verde" inspect "$work/honest"
expect 0 'fits  *yes' "$verde" check "$work/honest" --job "$work/generate.yaml"
expect 0 'fits  *yes' "$verde" check "$work/honest/prompts/7" --job "$work/generate.yaml"
expect 0 'put_rows' "$verde" graph "$work/referee/generate.yaml" --prompt 7

# There is a line for each prompt, in order; the tokens do not depend on the order.
python3 - "$work/honest/results.jsonl" << 'PYTHON' || fail "other results"
import json
import sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert [line["key"] for line in lines] == [7, 1, 9223372036854775807], lines
for line in lines:
    assert 3 <= len(line["ids"]) <= 10 and all(0 <= i < 64 for i in line["ids"]), line
    assert len(line["log_probabilities"]) == len(line["ids"]) == len(line["best"]), line
    assert all(len(best) == 2 and best[0][1] >= best[1][1] for best in line["best"]), line
    assert (line["stopped"] == "stop") == (line["ids"][-1] in (3, 11)), line
    assert line["stopped"] == "stop" or len(line["ids"]) == 10, line
PYTHON
tac "$work/prompts.jsonl" > "$work/turned" && mv "$work/turned" "$work/prompts.jsonl"
job turned generate "$sampling"
expect 0 'job root' "$verde" run "$work/turned.yaml" --out "$work/turned" --threads 1 --backend scalar --batch 1
tac "$work/turned/results.jsonl" | cmp - "$work/honest/results.jsonl" || fail "the order of prompts changes what is said of them"

# With a fault in one prompt, all prompts run one after the other, in the other executor: the other runs are the same.
expect 0 'FAULT ON PURPOSE: element@2:.*This run is dishonest' \
    "$verde" run "$work/generate.yaml" --out "$work/alone" --fault 7/element@2:choice.token
[ -e "$work/honest/prompts/1/journal" ] && ! [ -e "$work/alone/prompts/1/journal" ] || fail "not two executors"
for key in 1 9223372036854775807; do
    a=$("$verde" check "$work/honest/prompts/$key" | grep 'run root') b=$("$verde" check "$work/alone/prompts/$key" | grep 'run root')
    [ -n "$a" ] && [ "$a" = "$b" ] || fail "key $key: another root alone"
done
expect 2 'has no prompts' "$verde" run "$work/train.yaml" --out "$work/none" --batch 2
one_line

# A FIFO in place of the file of results being written is refused, and never waited for.
mkdir "$work/piped"
mkfifo "$work/piped/results.jsonl.part"
expect 2 'not a regular file' timeout -k 1 6000 "$verde" run "$work/generate.yaml" --out "$work/piped"

# Killed again and again, the results are the same. A finished prompt is not run again.
job killed generate "$(echo "$sampling" | sed 's/max_tokens: 10/max_tokens: 30/')"
expect 0 'job root' "$verde" run "$work/killed.yaml" --out "$work/whole"
for delay in 0.05 0.15 0.3; do
    timeout -s KILL "$delay" "$verde" run "$work/killed.yaml" --out "$work/killed" > "$work/out" 2> "$work/err" || true
done
expect 0 'job root' "$verde" run "$work/killed.yaml" --out "$work/killed"
cmp "$work/killed/results.jsonl" "$work/whole/results.jsonl" || fail "another result after a kill"
cmp "$work/killed/run.json" "$work/whole/run.json" || fail "other roots after a kill"
expect 0 'job root' "$verde" run "$work/killed.yaml" --out "$work/killed"
expect 2 'holds another job' "$verde" run "$work/generate.yaml" --out "$work/killed"
one_line
# Without run.json the results are not overwritten, and the line says how to continue.
cp -r "$work/killed" "$work/lost"
rm "$work/lost/run.json"
expect 2 'run.json is missing, beside prompts and results.jsonl; bring it back, or delete results.jsonl' \
    "$verde" run "$work/killed.yaml" --out "$work/lost"
one_line
rm "$work/lost/results.jsonl"
expect 0 'job root' "$verde" run "$work/killed.yaml" --out "$work/lost"
for file in run.json results.jsonl; do cmp "$work/lost/$file" "$work/whole/$file" || fail "another $file after run.json was lost"; done
# A folder that is no run of a prompt is named.
mkdir "$work/lost/prompts/8"
expect 6 'lost/prompts/8: is no run of a prompt of this job' "$verde" check "$work/lost"
rmdir "$work/lost/prompts/8"
touch "$work/lost/prompts/07"
expect 6 'lost/prompts/07: is no run' "$verde" check "$work/lost"
rm "$work/lost/prompts/07"
expect 0 'fits  *yes' "$verde" check "$work/lost"

# A fault that its prompt cannot have is refused before anything runs, and leaves nothing; a fault that changes nothing says so.
for fault in 1/weights@99 7/element@0:nonsense 8/element mischief; do
    expect 2 '.' "$verde" run "$work/generate.yaml" --out "$work/none" --fault $fault
    one_line
    [ ! -e "$work/none" ] || fail "--fault $fault leaves a folder"
done
expect 0 'The fault changed nothing: .*/idle/prompts/1 holds an honest run' "$verde" run "$work/generate.yaml" --out "$work/idle" --fault 1/element@0
cmp "$work/idle/run.json" "$work/honest/run.json" || fail "a fault that changed nothing has another root"

# A prompt with its own limit: its text is the beginning of the text with the job's limit; it has a program of its own.
cp "$work/prompts.jsonl" "$work/kept.jsonl"
printf '%s\n' '{"key": 7, "ids": [15, 2, 9, 33, 60]}' '{"key": 1, "ids": [5], "max_tokens": 4}' > "$work/prompts.jsonl"
job limited generate "$(echo "$sampling" | sed 's/^stop: .*/stop: []/; /^min_tokens/d')"
expect 0 'job root' "$verde" run "$work/limited.yaml" --out "$work/limited"
! grep -q 'which end at' "$work/err" || fail "stop: [] names a stop"
expect 0 'fits  *yes' "$verde" check "$work/limited" --job "$work/limited.yaml"
printf '%s\n' '{"key": 7, "ids": [15, 2, 9, 33, 60]}' '{"key": 1, "ids": [5]}' > "$work/prompts.jsonl"
job unlimited generate "$(echo "$sampling" | sed 's/^stop: .*/stop: []/; /^min_tokens/d')"
expect 0 'job root' "$verde" run "$work/unlimited.yaml" --out "$work/unlimited"
python3 - "$work" << 'PYTHON' || fail "a limit of its own changes other tokens"
import json
import sys
short, long = ([json.loads(line) for line in open(f"{sys.argv[1]}/{name}/results.jsonl")] for name in ("limited", "unlimited"))
assert short[0] == long[0] and len(long[0]["ids"]) == len(long[1]["ids"]) == 10, long
assert short[1]["ids"] == long[1]["ids"][:4] and short[1]["stopped"] == "length", short[1]
PYTHON
# Without `stop`, the texts of a pretrained model end with eos_token_id of config.json, which the manifest gives the referee.
greedy='sampling: {greedy: true}
max_tokens: 10'
job eos generate "$greedy"
job two generate "$greedy
stop: [2]"
expect 0 'which end at 2,' "$verde" run "$work/eos.yaml" --out "$work/eos"
eos_root=$(sed -n 's/^job root *//p' "$work/out")
expect 0 "job root *$eos_root" "$verde" run "$work/two.yaml" --out "$work/two"
"$verde" graph "$work/referee/eos.yaml" --prompt 7 > "$work/by_referee"
"$verde" graph "$work/eos.yaml" --prompt 7 | cmp - "$work/by_referee" || fail "the referee has another program"
# generation_config.json is in no manifest: if it differs, the job must state the stops.
echo '{"eos_token_id": [2, 3], "transformers_version": "5"}' > "$work/llama/generation_config.json"
expect 2 'generation_config.json has other eos tokens than config.json, .*expected stop: \[2, 3\]' "$verde" run "$work/eos.yaml" --out "$work/none"
one_line
expect 0 "job root *$eos_root" "$verde" run "$work/two.yaml" --out "$work/two"
echo '{"eos_token_id": 2}' > "$work/llama/generation_config.json"
expect 0 "job root *$eos_root" "$verde" run "$work/eos.yaml" --out "$work/eos"
rm "$work/llama/generation_config.json"
mv "$work/kept.jsonl" "$work/prompts.jsonl"

# A score is the log-probability of each token but the first, and the loss of all.
sed -i '/"key": 1,/d' "$work/prompts.jsonl"
job score score ''
expect 0 'perplexity' "$verde" run "$work/score.yaml" --out "$work/score"
python3 - "$work/score/results.jsonl" "$(sed -n 's/^loss *\([0-9.]*\) of 23 tokens$/\1/p' "$work/out")" << 'PYTHON' || fail "another loss"
import json
import sys
each = [x for line in open(sys.argv[1]) for x in json.loads(line)["log_probabilities"]]
assert len(each) == 23 and abs(sum(each) / 23 + float(sys.argv[2])) < 1e-5, each
PYTHON
expect 0 'fits  *yes' "$verde" check "$work/score"

# With a classifier, a score is the classes of a sequence.
printf '{"key": 7, "ids": [15, 2, 9]}\n' > "$work/prompts.jsonl"
cat > "$work/class.yaml" << YAML
verde: 1
task: score
model: {kind: pretrained, dir: bert-classes, sha256: $(take_model bert-classes)}
prompts: {file: prompts.jsonl, sha256: $(sum_of "$work/prompts.jsonl")}
YAML
expect 0 'job root' "$verde" run "$work/class.yaml" --out "$work/class"
grep -q '^{"key":7,"class":[012],"log_probabilities":\[-[0-9.e-]*,-[0-9.e-]*,-[0-9.e-]*\]}$' "$work/class/results.jsonl" || fail "no class"
expect 0 'fits  *yes' "$verde" check "$work/class" --job "$work/class.yaml"

# A line of results that does not follow from a state, and a root that no run has.
cp -r "$work/score" "$work/changed"
sed -i '2s/-/-1/' "$work/changed/results.jsonl"
expect 6 'not what the last states' "$verde" check "$work/changed"
sed -i 's/"job_root": "./"job_root": "x/' "$work/changed/run.json"
expect 6 'job root' "$verde" inspect "$work/changed"
expect 2 'what a model said' "$verde" export "$work/score/prompts/7" --out "$work/none"

# A verifier that shares no code with this one decides alike, if Python can verify signatures.
independent() {
    if python3 -c 'import sys, cryptography; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then
        expect 0 'holds' env PYTHONDONTWRITEBYTECODE=1 python3 tests/independent/verify.py "$work/verdict.json"
    fi
}

# A dispute about all prompts: the first prompt whose runs differ is found, and only its program is in the verdict.
all() {
    # shellcheck disable=SC2046
    expect "$1" "$2" "$verde" arbitrate "$work/referee/generate.yaml" --key "$work/keys" --force --verdict "$work/verdict.json" $(providers honest "$3")
    cp "$work/err" "$work/story"
    expect 0 '' "$verde" verify "$work/verdict.json" --job "$work/generate.yaml"
    independent
}
serve honest
honest_pid=$!
"$verde" run "$work/generate.yaml" --out "$work/same" --backend scalar > "$work/out"
serve same
all 0 'agreed' same
# A restarted provider listens first, and says that it works while it hashes the runs of all prompts. Reading a journal waits
# until a file is gone.
if [ -z "${SANITIZED:-}" ]; then
    cat > "$work/hold.c" << 'C'
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
ssize_t pread(int fd, void *to, size_t size, off_t at) {
    while (access(getenv("HOLD"), F_OK) == 0)
        usleep(10000);
    return syscall(SYS_pread64, fd, to, size, at);
}
ssize_t pread64(int fd, void *to, size_t size, off_t at) { return pread(fd, to, size, at); }
C
    ${CC:-cc} -w -shared -fPIC -o "$work/hold.so" "$work/hold.c"
    port=$(sed 's/.*:\([0-9]*\)#.*/\1/' "$work/honest.url")
    kill "$honest_pid"
    wait "$honest_pid" || fail "the server did not end well"
    pids=$(echo "$pids" | sed "s/ $honest_pid / /; s/ $honest_pid\$//")
    touch "$work/hold"
    HOLD=$work/hold LD_PRELOAD=$work/hold.so "$verde" serve "$work/honest" --listen "127.0.0.1:$port" > "$work/again.url" 2> "$work/again.log" &
    pids="$pids $!"
    (sleep 6; [ ! -s "$work/again.url" ] || touch "$work/early"; rm "$work/hold") &
    # shellcheck disable=SC2046
    expect 0 "hashing the prompts' runs first: 0 of 3" "$verde" arbitrate "$work/referee/generate.yaml" --key "$work/keys" --force \
        --verdict "$work/verdict.json" --timeout 3 $(providers honest same)
    [ ! -e "$work/early" ] || fail "the URL was said before the runs were hashed"
    cmp "$work/honest.url" "$work/again.url"
    # Stopped while it hashes, it exits normally.
    touch "$work/hold"
    HOLD=$work/hold LD_PRELOAD=$work/hold.so "$verde" serve "$work/same" > "$work/out" 2> "$work/err" &
    sleep 0.5
    kill $!
    rm "$work/hold"
    wait $! || fail "stopped while it hashed: exit code $?"
fi
# A run that does not fit is not served, whether or not it has a key.
cp -r "$work/same" "$work/unfit"
sed -i '1s/-/-1/' "$work/unfit/results.jsonl"
expect 6 'not what the last states' "$verde" serve "$work/unfit"
rm -r "$work/unfit/keys"
expect 6 'not what the last states' "$verde" serve "$work/unfit"
[ ! -e "$work/unfit/keys" ] || fail "a key was made for runs that do not fit"
"$verde" run "$work/generate.yaml" --out "$work/liar" --fault '1/element@4:m0.logits.matmul' > "$work/out"
serve liar
all 3 'prompt 2 of the file (item 1), step 4' liar
grep -q 'Prompt 2 of the file (item 1) is the first whose runs differ' "$work/story" || fail "the story counts prompts in another way"
expect 0 '"item":1' "$verde" verify --json "$work/verdict.json"
expect 0 'accepts this job root' "$verde" check "$work/honest" --verdict "$work/verdict.json"
expect 6 'accepts job root' "$verde" check "$work/liar" --verdict "$work/verdict.json"
expect 6 'another job' "$verde" check "$work/turned" --verdict "$work/verdict.json"
# A finished prompt that is damaged stops the run, and nothing is lost.
cp -r "$work/honest" "$work/broken"
truncate -s -5 "$work/broken/prompts/1/journal"
expect 6 'prompts/1/journal' "$verde" run "$work/generate.yaml" --out "$work/broken"
cmp "$work/broken/results.jsonl" "$work/honest/results.jsonl" || fail "results were lost"
# A journal that is empty or invalid is named in one line by all commands that read it.
for bytes in '' 'no journal'; do
    printf %s "$bytes" > "$work/broken/prompts/1/journal"
    for run in broken broken/prompts/1; do
        for command in check serve; do
            expect 6 'prompts/1/journal: not a journal of this run' "$verde" $command "$work/$run"
            one_line
        done
    done
    expect 6 'prompts/1/journal: not a journal of this run' "$verde" inspect "$work/broken/prompts/1"
    one_line
    expect 6 'prompts/1/journal: not a journal of this run' "$verde" run "$work/generate.yaml" --out "$work/broken"
done
# A folder cannot present a program that neither generates nor scores as one that does: here the training run.
mkdir -p "$work/trains/prompts"
cp -r "$work/trained" "$work/trains/prompts/1"
python3 - "$work/trains" "$(root_of "$work/trained")" << 'PYTHON'
import hashlib
import json
import sys
folder, run_root = sys.argv[1:]
program = json.load(open(folder + "/prompts/1/run.json"))["program"]
root = hashlib.sha256(b"\0" + bytes.fromhex(program)).digest()
collection = hashlib.sha256(b"verde/collection/1\0" + (1).to_bytes(8, "little") + root).hexdigest()
job_root = hashlib.sha256(b"\0" + bytes.fromhex(run_root)).hexdigest()
items = [{"key": 1, "program": program, "run_root": run_root}]
json.dump({"verde_items": 1, "collection": collection, "prompts": items, "job_root": job_root}, open(folder + "/run.json", "w"))
PYTHON
for command in check serve; do
    expect 6 'the program of key 1 has not the leaves of one that generates, scores or answers' "$verde" $command "$work/trains"
    one_line
done
# shellcheck disable=SC2046
expect 3 'prompt 2 of the file' "$verde" arbitrate "$work/referee/generate.yaml" --key "$work/keys" --force --verdict "$work/verdict.json" \
    $(providers honest liar) --provider "$(cat "$work/same.url")"
expect 0 '' "$verde" verify "$work/verdict.json"
independent
# shellcheck disable=SC2086
kill $pids
pids=

# The verifier that shares no code with this project, if it has what it needs.
python=
for candidate in python3 /usr/bin/python3; do
    if $candidate -c 'import sys, cryptography; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then
        python=$candidate
        break
    fi
done
export PYTHONDONTWRITEBYTECODE=1

# bounded: the costs that the verdict states are within limits, except times.
bounded() {
    "$verde" verify --json "$work/verdict.json" > "$work/costs"
    for most in rounds:25 bytes_in:500000 bytes_out:500000 ${SANITIZED:-peak_bytes:64000000}; do
        cost=$(sed -n "s/.*\"${most%:*}\":\([0-9]*\).*/\1/p" "$work/costs")
        [ "$most" = "${SANITIZED:-}" ] || { [ -n "$cost" ] && [ "$cost" -le "${most#*:}" ]; } || fail "$1: ${most%:*} are $cost"
    done
}

# lie JOB WHERE FAULT: a run of the prompt with key 7 and this FAULT is convicted. The honest run is already served.
lie() {
    rm -rf "$work/$1.wrong"
    expect 0 'job root' "$verde" run "$work/$1.yaml" --out "$work/$1.wrong" --fault "7/$3"
    cmp "$work/$1.wrong/run.json" "$work/$1.right/run.json" > "$work/out" && fail "$3 changes nothing"
    serve "$1.wrong/prompts/7"
    # shellcheck disable=SC2046
    expect 3 "$2" "$verde" arbitrate "$work/referee/$1.yaml" --prompt 7 --key "$work/keys" --force --verdict "$work/verdict.json" \
        --no-challenge $(providers "$1.right/prompts/7" "$1.wrong/prompts/7")
    bounded "$3"
    [ -z "$python" ] || expect 0 '' "$python" tests/independent/verify.py "$work/verdict.json"
    kill "$!"
}
grep '"key": 7,' "$work/generate.jsonl" > "$work/prompts.jsonl"
job one generate "$(echo "$sampling" | sed 's/max_tokens: 10/max_tokens: 4/')"
expect 0 'job root' "$verde" run "$work/one.yaml" --out "$work/one.right"
mv "$work/score" "$work/score.right"
serve one.right/prompts/7
lie one 'initialisation is in dispute' element@-1:m0.h.0.attn.v_kept
expect 0 '' "$verde" verify "$work/verdict.json"
lie one 'initialisation is in dispute' element@-1:prompt.before
lie one 'step 1' element@1:m0.h.1.attn.k_kept
lie one 'step 2' element@2:m0.logits.matmul
lie one 'step 0' element@0:draw.index
lie one 'step 2' element@2:choice.token
lie one 'step 1' seed@1:draw.words
lie one 'step 2' element@2:next.stopped
lie one 'step 1' element@1:likely.log_probability
lie one 'step 1' weights@1:m0.h.0.mlp.up.matmul
serve score.right/prompts/7
lie score 'step 0' element@0:score.log_probability
echo "$count commands: the same whatever the order, after kills too; lies about caches, logits, tokens, seeds, stops, weights are convicted"
