#!/bin/sh
# A verifier that shares no code with this project, written from PROTOCOL.md and SPEC.md alone, decides like `verde verify`:
# disputes over several operators, lies and silence, a second hearing, altered verdicts, and a staged dispute about each operator
# on random bits.
set -eu
build=$1
verde=$build/bin/verde
work=$build/tests/independent
job=models/jobs/toy.yaml
own=tests/independent
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
python=
for candidate in python3 /usr/bin/python3; do
    if $candidate -c 'import sys, cryptography; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then
        python=$candidate
        break
    fi
done
[ -n "$python" ] || { echo "no Python 3.11 with cryptography (python3-cryptography)"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
rm -rf "$work"
mkdir -p "$work"
pids=
cleanup() {
    for pid in $pids; do kill "$pid" 2> /dev/null || true; done
    wait 2> /dev/null || true
    pids=
}
trap cleanup EXIT

# serve DIR KEYS [OPTIONS]: starts a provider; its URL is in KEYS.url.
serve() {
    dir=$1 keys=$2
    shift 2
    rm -f "$work/$keys.url"
    "$verde" serve "$work/$dir" --key "$work/$keys" --threads 1 "$@" > "$work/$keys.url" 2> "$work/$keys.log" &
    pids="$pids $!"
    tries=0
    while ! [ -s "$work/$keys.url" ]; do
        tries=$((tries + 1))
        [ $tries -lt 12000 ] || { echo "$keys does not serve"; cat "$work/$keys.log"; exit 1; }
        sleep 0.05
    done
}

# fight LABEL EXIT_CODE FIRST SECOND [OPTIONS of the second server]: holds a dispute; both verifiers accept the verdict.
fight() {
    label=$1 want=$2 first=$3 second=$4
    shift 4
    serve "$first" keys-1
    serve "$second" keys-2 "$@"
    code=0
    "$verde" arbitrate $job --key "$work/referee" --verdict "$work/$label.json" --timeout 10 --threads 1 \
        --provider "$(cat "$work/keys-1.url")" --provider "$(cat "$work/keys-2.url")" > "$work/$label.log" 2>&1 || code=$?
    cleanup
    [ $code -eq "$want" ] || { echo "$label: exit code $code, expected $want"; cat "$work/$label.log"; exit 1; }
    "$verde" verify "$work/$label.json" --quiet
    $python $own/verify.py "$work/$label.json" > "$work/$label.txt" ||
        { echo "$label: $(cat "$work/$label.txt")"; exit 1; }
    held=$((held + 1))
}

# run DIR FAULT: runs the job with this fault.
run() { "$verde" run $job --out "$work/$1" --threads 1 --fault "$2" > /dev/null 2>&1; }

held=0
"$verde" run $job --out "$work/honest" --threads 1 > /dev/null 2>&1
fight agreed 0 honest honest
for operator in matmul embedding_grad dropout layernorm attn_out gelu_grad adamw_w; do
    node=$("$verde" graph $job | awk -v name="$operator(" 'index($3, name) == 1 { print substr($1, 2); exit }')
    run $operator "element@7:$node"
    fight $operator 3 honest $operator
    grep -q wrong-output "$work/$operator.txt" || { cat "$work/$operator.txt"; exit 1; }
done
for fault in skip@5 attr@6 weights; do
    run ${fault%@*} $fault
    fight ${fault%@*} 3 ${fault%@*} honest
done
fight proof 3 honest matmul --fault proof
fight withhold 4 honest matmul --fault withhold
fight second-hearing 3 attr matmul

# A captured program whose forward and backward passes are loops, with a wrong element within an iteration of each. The reshape
# reads, in reverse, values of the forward pass whose numbers have two digits.
toy=$job job=tests/captured/lstm_loops
"$verde" run $job --out "$work/loops" --threads 1 > /dev/null 2>&1
for place in 'm2.cell.matmul matmul' 'm3.cell.backward.matmul matmul' 'm3.cell.backward.reshape reshape[(]%..;'; do
    name=${place% *}
    node=$("$verde" graph $job | awk -v name="$name" -v call="^${place#* }" '$2 == name && $3 ~ call { print substr($1, 2); exit }')
    [ -n "$node" ] || { echo "$job has no node $place"; exit 1; }
    run loops-$name "element@1:$node"
    fight loops-$name 3 loops loops-$name
    grep -q wrong-output "$work/loops-$name.txt" && "$verde" verify "$work/loops-$name.json" | grep -q "$name" ||
        { cat "$work/loops-$name.txt"; exit 1; }
done
job=$toy

# delivered EXIT_CODE RUN: both verifiers check the weights exported to $work/RUN-model.
delivered() {
    for check in "$verde check" "$python $own/delivered.py"; do
        verdict=$work/matmul.json
        [ "$check" = "$verde check" ] && verdict="--verdict $verdict"
        code=0
        # shellcheck disable=SC2086
        $check "$work/$2-model" $verdict > "$work/delivered.txt" 2>&1 || code=$?
        [ $code -eq "$1" ] || { echo "$check of $2: exit code $code, expected $1"; cat "$work/delivered.txt"; exit 1; }
    done
}
for name in honest matmul; do "$verde" export "$work/$name" --out "$work/$name-model" > /dev/null; done
delivered 0 honest
delivered 6 matmul
cp "$work/honest-model/proof.json" "$work/matmul-model"
delivered 6 matmul

# The examples of PROTOCOL.md, and its appendix.
EXAMPLE=$work/example.json "$build/tests/test_document" > "$work/example.log" 2>&1 || { cat "$work/example.log"; exit 1; }
$python $own/appendix.py "$work/example.json" verde/PROTOCOL.md tests/unit/test_tournament.c tests/unit/test_dispute_folds.c \
    tests/unit/test_audit_draw.c

# The structure hash, without names: of a run with repeats, and of its verdict.
structure=$(PYTHONPATH=$own $python -c 'import sys; from program import Program
print(Program(open(sys.argv[1], "rb").read()).structure.hex())' "$work/honest/program")
for command in "graph $job" "inspect $work/honest" "inspect $work/honest/program" "inspect $work/matmul.json"; do
    # shellcheck disable=SC2086
    "$verde" $command --json > "$work/structure.json" 2> /dev/null || { echo "$command fails"; exit 1; }
    grep -q "\"structure\":\"$structure\"" "$work/structure.json" ||
        { echo "$command: not the structure $structure"; cat "$work/structure.json"; exit 1; }
done

# Signatures in edge cases of the curve.
$python $own/signatures.py tests/vectors/commit_ed25519.txt > "$work/signatures.txt" ||
    { cat "$work/signatures.txt"; exit 1; }

# A file that is no verdict, and a missing file.
code=0
echo '{}' > "$work/none.json"
$python $own/verify.py "$work/none.json" > /dev/null || code=$?
[ $code -eq 6 ] || { echo "no verdict: exit code $code, expected 6"; exit 1; }
code=0
$python $own/verify.py > /dev/null 2>&1 || code=$?
[ $code -eq 2 ] || { echo "no file: exit code $code, expected 2"; exit 1; }

# Without the package that it needs, the verifier says so in one line.
code=0
$python -S $own/verify.py "$work/none.json" > "$work/bare.txt" 2>&1 || code=$?
[ $code -eq 1 ] && [ "$(wc -l < "$work/bare.txt")" -eq 1 ] && grep -q 'python3-cryptography' "$work/bare.txt" ||
    { echo "without cryptography: exit code $code"; cat "$work/bare.txt"; exit 1; }

changed=0
for label in matmul second-hearing; do
    $python $own/forge.py "$verde" "$work/$label.json" 80 "$work/keys-1" "$work/keys-2" "$work/referee" > "$work/$label.forged" ||
        { cat "$work/$label.forged"; exit 1; }
    changed=$((changed + 80))
done
# Every operator on random bits; calls that are nearly valid are accepted or refused alike.
$python $own/stage.py "$verde" 1 > "$work/staged" || { cat "$work/staged"; exit 1; }

echo "$held verdicts hold for both, and $changed changed ones are decided alike; $(cat "$work/staged")"
