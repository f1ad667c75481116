#!/bin/sh
# Every bad input gives one line of error and the right exit code, and destroys nothing.
set -eu
build=$1
verde=$build/bin/verde
work=$build/tests/errors
rm -rf "$work"
mkdir -p "$work"
count=0

# expect EXIT_CODE TEXT COMMAND...: runs the command; an error must be one line, and the output must have TEXT.
expect() {
    want=$1 text=$2
    shift 2
    code=0
    "$@" > "$work/out.txt" 2> "$work/err.txt" || code=$?
    [ $code -eq "$want" ] || { echo "$*: exit code $code, expected $want"; cat "$work/err.txt"; exit 1; }
    [ "$want" -eq 0 ] || [ "$(grep '^verde' "$work/err.txt" | grep -vc 'made a new key')" -eq 1 ] || { echo "$*: not one line:"; cat "$work/err.txt"; exit 1; }
    grep -qF -- "$text" "$work/err.txt" "$work/out.txt" ||
        { echo "$*: no \"$text\" in:"; cat "$work/err.txt" "$work/out.txt"; exit 1; }
    count=$((count + 1))
}

job=models/jobs/toy.yaml
expect 2 'no command "frobnicate"' "$verde" frobnicate
expect 0 'Usage' "$verde" --help
for command in keygen run serve arbitrate verify check inspect graph calibrate manifest export fetch delegate jobs provide; do
    expect 0 'Example' "$verde" $command --help
    expect 2 "verde $command: unrecognized option" "$verde" $command --no-such-option
    expect 2 'verde' "$verde" $command
done
expect 2 'nowhere.yaml' "$verde" run "$work/nowhere.yaml" --out "$work/run"
expect 2 'threads' "$verde" run $job --out "$work/run" --threads -1
expect 2 'threads' "$verde" run $job --out "$work/run" --threads ' 3'
expect 2 'backend' "$verde" run $job --out "$work/run" --backend ""
expect 2 'backend' "$verde" run $job --out "$work/run" --backend quantum
expect 2 'kind must be one of' "$verde" run $job --out "$work/run" --fault mischief
expect 2 'step must be' "$verde" run $job --out "$work/run" --fault element@99999
expect 2 'no node' "$verde" run $job --out "$work/run" --fault element@1:nonsense
expect 2 'need' "$verde" run $job --out "$work/run" --fault steer
expect 2 'has no input' "$verde" run $job --out "$work/run" --fault input@-1:0
expect 2 'not with --dot or --json' "$verde" graph $job --fused --dot
expect 0 ' functions run ' "$verde" graph $job --fused
expect 2 'verde run: --out is given twice, expected once' "$verde" run $job --out "$work/run" --out "$work/other"
expect 2 'verde run: --out is given twice, expected once' "$verde" run $job -o "$work/run" --ou "$work/other"
[ ! -e "$work/run" ] || { echo "a refused run leaves a folder"; exit 1; }
# A run of one interval has no state in the middle of its history, so that fault changes nothing.
sed -e "s,file: \.\./data,file: $PWD/models/data," -e 's/^steps: .*/steps: 2/' -e 's/^checkpoint_interval: .*/checkpoint_interval: 2/' \
    -e 's/^schedule: .*/schedule: {kind: constant, warmup: 0}/' $job > "$work/short.yaml"
expect 0 'The fault changed nothing' "$verde" run "$work/short.yaml" --out "$work/idle" --fault history
expect 0 'run root' "$verde" run "$work/short.yaml" --out "$work/faulty" --fault element
if grep -q 'changed nothing' "$work/err.txt"; then echo "a fault that changed something is said to have changed nothing"; exit 1; fi
"$verde" run $job --out "$work/run" > /dev/null 2>&1
cp "$work/run/run.json" "$work/before.json"
expect 2 'the page of a run has none' "$verde" inspect "$work/run" --html "$work/page.html" --verifier README.md
echo '{"equal":true,"compared":"runs"}' > "$work/report.json"
expect 2 'the page of a report has none' "$verde" inspect "$work/report.json" --html "$work/page.html" --verifier README.md
[ ! -e "$work/page.html" ] || { echo "a refused page is there"; exit 1; }
expect 2 'another job' "$verde" run models/jobs/mlp.yaml --out "$work/run"
expect 2 'with fault' "$verde" run $job --out "$work/run" --fault element
# An error in a file that a job names is reported with the job's name and line.
sed "s,file: \.\./data,file: $PWD/models/data," $job > "$work/job.yaml"
sum=$(sha256sum models/data/project.txt)
sed "s|^  sha256: .*|  sha256: $sum|" "$work/job.yaml" > "$work/named.yaml"
expect 2 "named.yaml:7: \`data.sha256\` must be 64 lower-case hexadecimal digits, got $sum" \
    "$verde" run "$work/named.yaml" --out "$work/no"
sed 's|project.txt|nothing.txt|' "$work/job.yaml" > "$work/missing.yaml"
expect 2 "missing.yaml:6: \`data.file\`: cannot open $PWD/models/data/nothing.txt: No such file" "$verde" run "$work/missing.yaml" --out "$work/no"
sed 's|^  sha256: 5b|  sha256: 6b|' "$work/job.yaml" > "$work/other.yaml"
expect 2 "other.yaml:7: \`data.sha256\` is 6b" "$verde" run "$work/other.yaml" --out "$work/no/such/folder"
[ ! -e "$work/no" ] || { echo "a refused run leaves a folder"; exit 1; }
cp -r tests/vectors/pretrained/llama "$work/llama"
"$verde" manifest "$work/llama" --out "$work/llama.manifest" > /dev/null 2>&1
model="model: {kind: pretrained, dir: llama, sha256: $(sha256sum "$work/llama.manifest" | cut -d ' ' -f 1)}"
python3 - "$work/tokens.bin" << 'PYTHON'
import struct
import sys
with open(sys.argv[1], "wb") as f:
    f.write(struct.pack("<256i", 20240520, 1, 4000, *[0] * 253) + struct.pack("<4000H", *[i % 60 for i in range(4000)]))
PYTHON
cat > "$work/lora.yaml" << YAML
verde: 1
$model
lora: {rank: 2, alpha: 4, targets: [attn.qkv]}
data: {kind: tokens, file: tokens.bin, sha256: $(sha256sum "$work/tokens.bin" | cut -d ' ' -f 1)}
$(sed -e '1,/sha256/d' -e 's/^sequence: .*/sequence: 8/' "$work/job.yaml")
YAML
expect 2 'lora: the model has no product named attn.qkv; it has attn.q, attn.k, attn.v, attn.proj' "$verde" run "$work/lora.yaml" --out "$work/no"
cat > "$work/score.yaml" << YAML
verde: 1
task: score
$model
prompts: {file: nothing.jsonl, sha256: $(printf %064d 0)}
YAML
expect 2 "score.yaml:4: \`prompts.file\`: cannot open $work/nothing.jsonl" "$verde" run "$work/score.yaml" --out "$work/no"
# A file that is no verdict is reported as such.
for file in "$work/job.yaml" "$work/llama/config.json" models/data/project.txt; do
    expect 6 "is no verdict, as" "$verde" verify "$file"
done
# A folder is created with its parents; other files in it are mentioned, and stay.
expect 0 'run root' "$verde" run "$work/job.yaml" --out "$work/deep/er/run"
expect 0 'run root' "$verde" export "$work/deep/er/run" --out "$work/model/of/it"
mkdir "$work/used"
echo mine > "$work/used/notes.txt"
expect 0 "used: another file lies there, notes.txt; it stays" "$verde" run "$work/job.yaml" --out "$work/used"
expect 0 "nothing was executed" "$verde" run "$work/job.yaml" --out "$work/used"
if grep -q notes.txt "$work/err.txt"; then echo "a run's own folder is told of"; exit 1; fi
[ "$(cat "$work/used/notes.txt")" = mine ]
# Files of the user in the folder of a new run.
for name in program data; do
    mkdir "$work/own-$name"
    echo mine > "$work/own-$name/$name"
    expect 2 "a $name that a run would overwrite" "$verde" run $job --out "$work/own-$name"
    [ "$(cat "$work/own-$name/$name")" = mine ]
done
# A run that was killed before its first checkpoint has left its program there.
cp "$work/run/program" "$work/own-program/program"
expect 0 'run root' "$verde" run $job --out "$work/own-program"
# The difference is named: a longer run is another job.
longer() { sed -e "s,file: \.\./data,file: $PWD/models/data," -e "$1" $job > "$work/changed.yaml"; }
longer 's/^steps: .*/steps: 24/'
expect 2 'another job: steps: 12 there, 24 here; give another directory' "$verde" run "$work/changed.yaml" --out "$work/run"
longer 's/^seed: .*/seed: 77/'
expect 2 'there, 77 here' "$verde" run "$work/changed.yaml" --out "$work/run"
longer 's/lr: [0-9.e-]*/lr: 7e-5/'
expect 2 'nodes of a step, from node' "$verde" run "$work/changed.yaml" --out "$work/run"
cmp "$work/before.json" "$work/run/run.json"
expect 2 'program' "$verde" inspect "$work"
expect 2 'STEP:VALUE:LEAF' "$verde" inspect "$work/run" --proof 1:2
expect 2 'STEP must be -1..11' "$verde" inspect "$work/run" --proof 12:0:0
expect 2 'one of --trace, --proof and --plot' "$verde" inspect "$work/run" --trace 1 --proof 1:200:0
expect 0 '"leaves":8' "$verde" inspect "$work/run" --proof 1:200:0 --json
expect 0 '"operator":"matmul"' "$verde" inspect "$work/run" --trace 3 --json
expect 0 'holds' "$verde" inspect "$work/run" --proof 1:200:0
expect 0 'matmul' "$verde" inspect "$work/run" --trace 3
echo '{"payload":' > "$work/bad.json"
expect 6 'bad.json: is no verdict' "$verde" verify "$work/bad.json"
echo '{"payloadType":' > "$work/bad-note.json"
expect 6 'bad-note.json: note' "$verde" verify "$work/bad-note.json"
expect 2 'got "abc"' "$verde" verify "$work/bad.json" --referee abc
# Keys that are not on the curve (y = 2), or of small order, wherever a key is read.
for key in "02$(printf %062d 0):no point of the curve" "01$(printf %062d 0):small order"; do
    why=${key#*:} key=${key%%:*}
    expect 2 "$why" "$verde" verify "$work/bad.json" --referee $key
    expect 2 "$why" "$verde" check "$work/run" --verdict "$work/bad.json" --referee $key
    expect 2 "$why" "$verde" serve "$work/run" --referee $key
    expect 2 "$why" "$verde" provide "$work/provide" --client $key
    expect 2 "$why" "$verde" run $job --out "$work/run" --backend log --role auditor \
        --follow "$work/trainer" --trainer-key $key
    expect 2 "$why" "$verde" delegate $job --out "$work/delegated" --key "$work/referee" --provider https://127.0.0.1:1#$key \
        --provider https://127.0.0.1:2#$key
    expect 2 "$why" "$verde" arbitrate $job --key "$work/referee" --verdict "$work/v.json" \
        --provider https://127.0.0.1:1#$key --provider https://127.0.0.1:2#$key
done
expect 2 'nothere' "$verde" verify "$work/nothere.json"
expect 2 'http' "$verde" arbitrate $job --key "$work/referee" --verdict "$work/v.json" \
    --provider http://127.0.0.1:1 --provider http://127.0.0.1:2
"$verde" keygen "$work/k1" > "$work/k1.txt"
expect 2 'same key' "$verde" arbitrate $job --key "$work/referee" --verdict "$work/v.json" \
    --provider "https://127.0.0.1:1#$(cat "$work/k1.txt")" \
    --provider "https://127.0.0.1:2#$(cat "$work/k1.txt")"
expect 2 'key.pem' "$verde" keygen "$work/k1"
"$verde" keygen "$work/k2" > "$work/k2.txt"
expect 2 'cannot create' "$verde" arbitrate $job --key "$work/referee" --verdict "$work/nowhere/v.json" \
    --provider "https://127.0.0.1:1#$(cat "$work/k1.txt")" --provider "https://127.0.0.1:2#$(cat "$work/k2.txt")"
[ ! -e "$work/v.json" ]

# What is not a regular file is refused and never waited for: here a FIFO without a writer.
# unopened EXIT_CODE FILE COMMAND...: runs the command with a FIFO in place of FILE, then restores it.
unopened() {
    code=$1 file=$2
    shift 2
    mv "$file" "$work/moved"
    mkfifo "$file"
    expect "$code" 'not a regular file' timeout -k 1 6000 "$@"
    rm "$file"
    mv "$work/moved" "$file"
}
"$verde" keygen "$work/run/keys" > /dev/null
for file in program run.json data keys/key.pem keys/tls.crt; do
    unopened 2 "$work/run/$file" "$verde" serve "$work/run"
done
for file in run.json losses.jsonl; do
    unopened 2 "$work/run/$file" "$verde" run $job --out "$work/run"
done
mkfifo "$work/run/checkpoints"
expect 2 'not a regular file' timeout -k 1 6000 "$verde" run $job --out "$work/run"
expect 2 'not a regular file' timeout -k 1 6000 "$verde" inspect "$work/run"
expect 2 'not a regular file' timeout -k 1 6000 "$verde" serve "$work/run"
expect 6 'not a regular file' timeout -k 1 6000 "$verde" check "$work/run"
rm "$work/run/checkpoints"
# A link is refused, too: its target would be truncated here.
mv "$work/run/losses.jsonl" "$work/moved"
echo mine > "$work/mine"
ln -s ../mine "$work/run/losses.jsonl"
expect 2 'losses.jsonl: it is a symbolic link' "$verde" run $job --out "$work/run"
[ "$(cat "$work/mine")" = mine ]
mv "$work/moved" "$work/run/losses.jsonl"
# Files that only a daemon has.
for file in ledger.db keys/key.pem keys/tls.crt; do
    mkdir -p "$work/provide/keys"
    cp "$work/run/keys"/* "$work/provide/keys"
    rm -f "$work/provide/$file"
    mkfifo "$work/provide/$file"
    expect 2 'not a regular file' timeout -k 1 6000 "$verde" provide --dir "$work/provide" --listen 127.0.0.1:0 \
        --client "$(cat "$work/k1.txt")"
    rm -r "$work/provide"
done
unopened 2 "$work/bad.json" "$verde" verify "$work/bad.json"
cp $job "$work/job.yaml"
unopened 2 "$work/job.yaml" "$verde" run "$work/job.yaml" --out "$work/run"
unopened 2 "$work/k1/key.pem" "$verde" arbitrate $job --key "$work/k1" --verdict "$work/v.json" \
    --provider "https://127.0.0.1:1#$(cat "$work/k1.txt")" --provider "https://127.0.0.1:2#$(cat "$work/k2.txt")"
expect 2 'not a regular file' "$verde" arbitrate $job --key "$work/referee" --verdict "$work/v.json" --cacert /dev/null \
    --provider "https://127.0.0.1:1#$(cat "$work/k1.txt")" --provider "https://127.0.0.1:2#$(cat "$work/k2.txt")"
# States that cannot be read are computed again.
cp -r "$work/run" "$work/states"
for state in "$work/states"/state-*; do
    rm "$state"
    mkfifo "$state"
done
code=0
timeout -k 1 600 "$verde" inspect "$work/states" --trace 9 > "$work/out.txt" 2> "$work/err.txt" || code=$?
[ $code -ne 124 ] && [ $code -ne 137 ] || { echo "a FIFO in place of a state is waited for"; exit 1; }

# Files that were signed or measured are not overwritten without --force. That is said before any work, whatever else is wrong.
echo signed > "$work/signed"
expect 2 'exists already' "$verde" arbitrate $job --key "$work/referee" --verdict "$work/signed" \
    --provider "https://127.0.0.1:1#$(cat "$work/k1.txt")" --provider "https://127.0.0.1:2#$(cat "$work/k2.txt")"
expect 2 'exists already' "$verde" calibrate $job --out "$work/signed"
[ "$(cat "$work/signed")" = signed ]
expect 0 'threshold' "$verde" calibrate $job --out "$work/signed" --force --steps 1
grep -q '^verde thresholds' "$work/signed"

# Errors that are reported before anything is measured.
expect 2 'cannot create' "$verde" calibrate $job --out "$work/nowhere/thresholds"
expect 2 'it is a directory' "$verde" calibrate $job --out "$work"
expect 2 'the same device' "$verde" calibrate $job --out "$work/thresholds" --against sim-wide
if grep -q 'step 1' "$work/err.txt"; then echo "measured first"; exit 1; fi
if [ -w /dev/full ]; then
    expect 1 'cannot write to standard output' sh -c '"$1" inspect "$2" > /dev/full' - "$verde" "$work/run"
fi

# A folder takes one run at a time; the next can start when it has ended.
"$verde" run models/jobs/demo.yaml --out "$work/busy" > "$work/busy.txt" 2>&1 &
busy=$!
until [ -e "$work/busy/run.json" ]; do
    kill -0 $busy 2> /dev/null || { echo "the demo job does not run:"; cat "$work/busy.txt"; exit 1; }
    sleep 0.1
done
expect 1 'another process is running there' "$verde" run models/jobs/demo.yaml --out "$work/busy"
kill -9 $busy
wait $busy 2> /dev/null || true
# An unfinished run can be inspected, and is reported as unfinished.
expect 0 'unfinished, 40 steps' "$verde" inspect "$work/busy"
expect 0 'as far as the run came' "$verde" check "$work/busy"
expect 2 'not finished: ' "$verde" inspect "$work/busy" --trace 1
expect 2 'with fault' "$verde" run models/jobs/demo.yaml --out "$work/busy" --fault element

echo "$count bad inputs and help texts"
