#!/bin/sh
# Logits whose largest is not finite: NaN, infinity, or minus infinity everywhere. No token, drawn or greedy, follows from them:
# results count such tokens, and every command that shows results warns. One impossible token beside others is another case.
. tests/support/system
take_model llama > "$work/sum"
printf '{"key": 7, "ids": [15, 2, 9]}\n{"key": 1, "ids": [5]}\n' > "$work/prompts.jsonl"

# alter TENSOR FIRST STEP BITS: sets elements FIRST, FIRST + STEP, ... of the model's tensor to BITS.
alter() {
    python3 - "$work/llama/model.safetensors" "$@" << 'PYTHON'
import json
import struct
import sys
path, name, first, step, bits = sys.argv[1:]
data = bytearray(open("tests/vectors/pretrained/llama/model.safetensors", "rb").read())
size = struct.unpack("<Q", data[:8])[0]
tensor = json.loads(data[8 : 8 + size])[name]
assert tensor["dtype"] == "F32", tensor
begin, end = (8 + size + n for n in tensor["data_offsets"])
for at in range(begin + 4 * int(first), end, 4 * int(step)):
    data[at : at + 4] = struct.pack("<I", int(bits, 16))
open(path, "wb").write(data)
PYTHON
    "$verde" manifest "$work/llama" --out "$work/altered.manifest" 2> "$work/err"
}

# job TASK MORE: writes a job with the altered model.
job() {
    cat > "$work/job.yaml" << YAML
verde: 1
task: $1
model: {kind: pretrained, dir: llama, sha256: $(sum_of "$work/altered.manifest")}
prompts: {file: prompts.jsonl, sha256: $(sum_of "$work/prompts.jsonl")}
$2
YAML
    rm -rf "$work/run"
}

# counted COUNT: the last command has warned of COUNT log-probabilities that are not finite.
counted() {
    [ "$1" -gt 0 ] || { ! grep warning "$work/err" || fail "a warning of nothing"; return 0; }
    [ "$(sed -n 's/^warning: \([0-9]*\) log-probabilit.*/\1/p' "$work/err")" = "$1" ] || fail "not $1 of them"
}

# tell SAMPLING LINES COUNT...: runs a job with log-probabilities; LINES has each line's tokens and its count.
tell() {
    job generate "sampling: $1
max_tokens: 3
log_probabilities: 1"
    expect 0 'job root' "$verde" run "$work/job.yaml" --out "$work/run"
    counted "$3"
    python3 - "$work/run/results.jsonl" "$2" "$3" << 'PYTHON' || fail "other results"
import json
import sys
lines = [json.loads(line) for line in open(sys.argv[1])]
said = "; ".join(" ".join(map(str, line["ids"])) + f' {line.get("not_finite", 0)}' for line in lines)
assert said == sys.argv[2], said
assert sum(line.get("not_finite", 0) for line in lines) == int(sys.argv[3])
for line in lines:
    assert line.get("not_finite", 0) == sum(p is None for p in line["log_probabilities"]), line
    assert "not_finite" not in line or line["not_finite"] > 0
PYTHON
    expect 0 'fits  *yes' "$verde" check "$work/run" --job "$work/job.yaml"
    # Without log-probabilities a run here still tells: with prompts together, and one after the other.
    job generate "sampling: $1
max_tokens: 3"
    for fault in '' '--fault element@0:next.more'; do
        rm -rf "$work/run"
        # shellcheck disable=SC2086
        expect 0 'job_root' "$verde" run "$work/job.yaml" --out "$work/run" --json $fault
        [ "$(sed -n 's/^warning: \([0-9]*\) token.* made here do.* not follow .*/\1/p' "$work/err")" = "$([ "$3" -eq 0 ] || echo "$3")" ] ||
            fail "not $3 tokens $fault"
        [ "$3" -eq 0 ] || grep -q "\"not_finite\":$3}" "$work/out" || fail "--json does not tell $fault"
    done
    ! grep -q not_finite "$work/run/results.jsonl" || fail "it cannot be known"
}

# NaN everywhere; infinities everywhere (the sign of the state decides which); one token of 64 whose logit is infinite in one step
# and minus infinity in the others; a single NaN after smaller numbers.
alter model.norm.weight 0 1 7fc00000
tell '{greedy: true}' '0 0 0 3; 0 0 0 3' 6
tell '{seed: 7}' '0 0 0 3; 0 0 0 3' 6
printf '{"key": 7, "ids": [15, 2, 9]}\n{"key": 1, "ids": [5, 3]}\n' > "$work/prompts.jsonl"
job score ''
expect 0 '"not_finite":3' "$verde" run "$work/job.yaml" --out "$work/run" --json
counted 3
grep -q '{"key":7,"log_probabilities":\[null,null\],"not_finite":2}' "$work/run/results.jsonl" || fail "scores do not tell"
printf '{"key": 7, "ids": [15, 2, 9]}\n{"key": 1, "ids": [5]}\n' > "$work/prompts.jsonl"
for bits in 7f800000 ff800000; do
    alter lm_head.weight 3 16 $bits
    tell '{greedy: true}' '0 0 0 3; 0 0 0 3' 6
    tell '{seed: 7, top_k: 5}' '0 0 0 3; 0 0 0 3' 6
done
alter lm_head.weight 83 99999 7f800000
tell '{greedy: true}' '47 5 33 1; 33 5 33 1' 2
tell '{seed: 7}' '51 0 49 1; 33 0 39 1' 2
alter lm_head.weight 83 99999 7fc00000
tell '{greedy: true}' '5 5 5 3; 5 5 5 3' 6
tell '{seed: 7, top_p: 0.9}' '0 0 0 3; 0 0 0 3' 6
# With the unaltered model there is neither the member nor a warning.
cp tests/vectors/pretrained/llama/model.safetensors "$work/llama"
"$verde" manifest "$work/llama" --out "$work/altered.manifest" 2> "$work/err"
job generate "sampling: {seed: 7}
max_tokens: 3
log_probabilities: 1"
expect 0 'job root' "$verde" run "$work/job.yaml" --out "$work/run"
counted 0
! grep -q not_finite "$work/run/results.jsonl" || fail "a member of nothing"
echo "$count commands: tokens that follow from no finite logits are counted, and said"
