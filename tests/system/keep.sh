#!/bin/sh
# --keep: few checkpoints stay on disk, evenly spaced; the run commits to the same states, resumes, can be checked, and answers a
# referee about steps whose checkpoints were deleted.
. tests/support/system

# kept RUN: prints the steps whose states are on disk.
kept() {
    sed -n 's/.*"step": \([0-9]*\),*/\1/p; s/.*"state": "\(.*\)".*/\1/p' "$1/run.json" | paste - - |
        while read -r step state; do [ ! -e "$1/state-$state" ] || printf '%s ' "$step"; done
}

sed "s/^steps: .*/steps: 20/; s/^checkpoint_interval: .*/checkpoint_interval: 2/; s|\.\./data|$PWD/models/data|" \
    models/jobs/toy.yaml > "$work/job.yaml"
expect 0 '11 checkpoints of' "$verde" run "$work/job.yaml" --out "$work/all" --threads 1
root=$(root)
expect 0 "$root" "$verde" run "$work/job.yaml" --out "$work/few" --threads 1 --keep 4
[ "$(kept "$work/few")" = "0 8 16 20 " ] || fail "kept: $(kept "$work/few")"
expect 0 "$root" "$verde" check "$work/few"
expect 0 'not kept     7 states, by --keep 4' "$verde" check "$work/few"
expect 0 'all states that were kept' "$verde" inspect "$work/few"

# Killed and continued.
"$verde" run "$work/job.yaml" --out "$work/again" --threads 1 --keep 3 > /dev/null 2>&1 &
pid=$!
sleep 0.1
kill -9 "$pid" 2> /dev/null || true
wait "$pid" 2> /dev/null || true
expect 0 "$root" "$verde" run "$work/job.yaml" --out "$work/again" --threads 1 --keep 3
[ "$(kept "$work/again")" = "0 16 20 " ] || fail "kept: $(kept "$work/again")"
expect 0 "$root" "$verde" check "$work/again"
expect 2 'holds a run with --keep 3, got 4' "$verde" run "$work/job.yaml" --out "$work/again" --keep 4
expect 0 'nothing was executed' "$verde" run "$work/job.yaml" --out "$work/again"
expect 2 'keep must be 2' "$verde" run "$work/job.yaml" --out "$work/none" --keep 1

# Disputing a run that keeps so little would take days; a larger N for the same folder would not.
sed "s/^steps: .*/steps: 2000000000/; s/^checkpoint_interval: .*/checkpoint_interval: 4096/" \
    "$work/job.yaml" > "$work/long.yaml"
expect 2 '--keep 2 leaves 2000000000 steps between two states; .*and a referee waits for 3600 s: give --keep [0-9]* or more' \
    "$verde" run "$work/long.yaml" --out "$work/long" --keep 2
[ "$(grep -c '^verde: ' "$work/err")" -eq 1 ] || fail "more than one line"
[ "$(kept "$work/long")" = "0 " ] || fail "the first state is gone"
expect 2 'give --keep' "$verde" run "$work/long.yaml" --out "$work/long"
enough=$(sed -n 's/.*give --keep \([0-9]*\) or more/\1/p' "$work/err")
expect 124 'stopped after step' timeout -s INT 3 "$verde" run "$work/long.yaml" --out "$work/long" --keep "$((8 * enough))"

# A missing state is noticed if it should be kept, otherwise not.
rm "$work/again/state-$(sed -n 's/.*"state": "\(.*\)".*/\1/p' "$work/again/run.json" | sed -n 9p)"
expect 6 'state-' "$verde" check "$work/again"
sed 's/"keep": 4/"keep": 1/' "$work/few/run.json" > "$work/run.json"
cp "$work/few/run.json" "$work/saved.json"
cp "$work/run.json" "$work/few/run.json"
expect 6 'expected keep, 2 or more, and kept_every' "$verde" check "$work/few"
cp "$work/saved.json" "$work/few/run.json"

# A dispute about step 13, for which the nearest checkpoint is that of step 8.
expect 0 'run root' "$verde" run "$work/job.yaml" --out "$work/wrong" --threads 1 --keep 2 --fault element@13
serve few --threads 1
serve wrong --threads 1
# shellcheck disable=SC2046
expect 3 'step 13' "$verde" arbitrate "$work/job.yaml" --verdict "$work/verdict.json" $(providers few wrong)
expect 0 "$root" "$verde" check "$work/few" --verdict "$work/verdict.json"
echo "$count checks of runs that keep few checkpoints"
