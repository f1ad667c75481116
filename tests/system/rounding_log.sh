#!/bin/sh
# Rounding logs end to end: a trainer on one simulated device, auditors on all others and on a user-defined one, the same run
# root; a damaged log, another run's, and a truncated one are refused; both encodings.
set -eu
build=$1
work=$build/tests/rounding_log
verde=$build/bin/verde
job=models/jobs/toy.yaml
rm -rf "$work"
mkdir -p "$work"

root() { sed -n 's/.*"run_root":"\([0-9a-f]*\)".*/\1/p' "$1"; }
same() { [ "$(root "$1")" = "$(root "$2")" ] || { echo "$2: not the run root of $1"; exit 1; }; }
# refused WORDS COMMAND...: the command fails with a sentence that has these words.
refused() {
    words=$1
    shift
    if "$@" > "$work/out" 2> "$work/err"; then echo "not refused: $*"; exit 1; fi
    grep -q -- "$words" "$work/err" || { echo "expected \"$words\", got:"; cat "$work/err"; exit 1; }
}
audit() { # DIR PROFILE OUT
    "$verde" run $job --backend log --role auditor --follow "$1" --profile "$2" --out "$3" --json > "$3.json" 2> "$3.err" ||
        { cat "$3.err"; exit 1; }
}

"$verde" run $job --backend log --profile sim-wide --out "$work/trainer" --json > "$work/trainer.json" 2> "$work/trainer.err"
printf 'lanes: 4\nsplit: 64\ncontract: 1\ndescending: 1\n' > "$work/own.yaml"
for profile in sim-narrow sim-deep sim-plain "$work/own.yaml"; do
    name=$(basename "$profile" .yaml)
    audit "$work/trainer" "$profile" "$work/$name"
    same "$work/trainer.json" "$work/$name.json"
done
grep -q '"matmul":{"elements":[1-9]' "$work/trainer.json" || { echo "no counts of operators"; exit 1; }
echo "auditors on four other devices: the run root of the trainer"
# Another trainer has the same last state, but a run root of its own. Operators without log entries share one row.
"$verde" run $job --backend log --profile sim-wide --out "$work/again" > "$work/out" 2> "$work/err"
state=$(sed -n 's/^final state  *//p' "$work/out")
grep -q "\"final_state_root\":\"$state\"" "$work/trainer.json" || { echo "two trainers end with two states"; exit 1; }
! grep -q "\"run_root\":\"$(sed -n 's/^run root  *//p' "$work/out")\"" "$work/trainer.json" || { echo "two trainers have one run root"; exit 1; }
[ "$(grep -c ' 0  *0  *0$' "$work/out")" -eq 1 ] && tail -n 1 "$work/out" | grep -q '^[0-9]* others  *[1-9][0-9]*  *0  *0  *0$' ||
    { cat "$work/out"; echo "rows of operators of which the log says nothing"; exit 1; }

"$verde" run $job --out "$work/fixed" --json > "$work/fixed.json" 2> "$work/fixed.err"
[ "$(root "$work/fixed.json")" != "$(root "$work/trainer.json")" ] || { echo "a log without consequence"; exit 1; }

"$verde" calibrate $job --out "$work/thresholds" --against sim-plain > "$work/calibrate.out" 2> "$work/calibrate.err"
"$verde" run $job --backend log --encoding symbols --bits 27 --thresholds "$work/thresholds" --out "$work/symbols" --json \
    > "$work/symbols.json" 2> "$work/symbols.err" && echo "thresholds for other bits were accepted" && exit 1
grep -q "fewer than 16 elements" "$work/calibrate.err" || { echo "thresholds from nothing, and no warning"; exit 1; }
"$verde" run $job --backend log --encoding symbols --thresholds "$work/thresholds" --out "$work/symbols32" --json \
    > "$work/symbols32.json" 2> "$work/symbols32.err"
audit "$work/symbols32" sim-plain "$work/symbols32-audit"
same "$work/symbols32.json" "$work/symbols32-audit.json"
"$verde" inspect "$work/symbols32-audit" | grep -q "to 32 bits, symbols; auditor on profile sim-plain" || { echo "inspect does not tell the role"; exit 1; }
"$verde" calibrate $job --bits 27 --out "$work/thresholds27" --against sim-plain > "$work/calibrate.out" 2> "$work/calibrate.err"
"$verde" run $job --backend log --encoding symbols --bits 27 --thresholds "$work/thresholds27" --out "$work/symbols" --json \
    > "$work/symbols.json" 2> "$work/symbols.err"
audit "$work/symbols" sim-plain "$work/symbols-audit"
same "$work/symbols.json" "$work/symbols-audit.json"
echo "symbols as published: an auditor has the run root of the trainer"

# One bit of a file is changed.
cp -r "$work/trainer" "$work/flipped"
file=$work/flipped/log/step-00000004.vlog
size=$(stat -c %s "$file")
printf '\125' | dd of="$file" bs=1 seek=$((size / 2)) conv=notrunc 2> "$work/dd"
if cmp -s "$file" "$work/trainer/log/step-00000004.vlog"; then
    printf '\252' | dd of="$file" bs=1 seek=$((size / 2)) conv=notrunc 2> "$work/dd"
fi
refused "step-00000004.vlog, step [4-7]" "$verde" run $job --backend log --role auditor --follow "$work/flipped" --profile sim-deep --out "$work/f"
# Truncated; of another step; of another run.
cp -r "$work/trainer" "$work/short"
truncate -s -1 "$work/short/log/step-00000000.vlog"
refused "step-00000000.vlog, step 0: cut short" "$verde" run $job --backend log --role auditor --follow "$work/short" --profile sim-deep --out "$work/s"
cp -r "$work/trainer" "$work/swapped"
cp "$work/trainer/log/step-00000004.vlog" "$work/swapped/log/step-00000008.vlog"
refused "step-00000008.vlog, step 8: a log of step 4" "$verde" run $job --backend log --role auditor --follow "$work/swapped" --profile sim-deep --out "$work/w"
"$verde" run $job --backend log --profile sim-wide --out "$work/second" > "$work/second.out" 2> "$work/second.err"
cp -r "$work/trainer" "$work/foreign"
cp "$work/second/log/step-00000004.vlog" "$work/foreign/log/step-00000004.vlog"
refused "step-00000004.vlog, step 4: a log of another run" "$verde" run $job --backend log --role auditor --follow "$work/foreign" --profile sim-deep --out "$work/o"
echo "a flipped bit, a cut file, another step's and another run's are refused"

refused "another job" "$verde" run models/jobs/mlp.yaml --backend log --role auditor --follow "$work/trainer" --out "$work/j"
refused "without a rounding log" "$verde" run $job --backend log --role auditor --follow "$work/fixed" --out "$work/n"
refused "no profile" "$verde" run $job --backend log --profile sim-none --out "$work/p"
refused "belong to --backend log" "$verde" run $job --role trainer --out "$work/b"
printf 'lanes: 3\n' > "$work/bad.yaml"
refused "power of two" "$verde" run $job --backend log --profile "$work/bad.yaml" --out "$work/q"
printf 'split: 64\nlanes: 4\nestrin: 2\n' > "$work/bad.yaml"
refused "bad.yaml:3: .*must be 0 or 1, got 2" "$verde" run $job --backend log --profile "$work/bad.yaml" --out "$work/q"
: > "$work/bad.yaml"
refused "a profile must be a mapping" "$verde" run $job --backend log --profile "$work/bad.yaml" --out "$work/q"
for other in "--bits 24" "--encoding symbols --thresholds $work/thresholds"; do
    refused "with other --bits" "$verde" run $job --backend log --profile sim-wide --out "$work/trainer" $other
    refused "are the trainer's" "$verde" run $job --backend log --role auditor --follow "$work/trainer" --out "$work/t" $other
done
sed 's/^matmul .*/matmul 0x1p-30/' "$work/thresholds" > "$work/moved"
refused "with other --bits" "$verde" run $job --backend log --encoding symbols --thresholds "$work/moved" --out "$work/symbols32"
refused "follows it" "$verde" serve "$work/trainer"
echo "what does not fit together is refused"
