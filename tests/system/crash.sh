#!/bin/sh
# A run that is killed again and again continues from its last complete checkpoint to the same root.
set -eu
build=$1
verde=$build/bin/verde
job=models/jobs/toy.yaml
work=$build/tests/crash
rm -rf "$work"
mkdir -p "$work"

root() { sed -n 's/.*"run_root":"\([0-9a-f]*\)".*/\1/p'; }

steps=3000 interval=40
[ -z "${SANITIZED:-}" ] || steps=300 interval=5 # many times slower
sed -e "s/^steps: .*/steps: $steps/" -e "s/^checkpoint_interval: .*/checkpoint_interval: $interval/" \
    -e "s,file: \.\./data,file: $PWD/models/data," $job > "$work/job.yaml"
want=$("$verde" run "$work/job.yaml" --out "$work/whole" --json 2> /dev/null | root)

# kill_often NAME ARGUMENT...: runs the job into $work/NAME until it ends; counts the kills. Each time it is left alone a little
# longer, since a checkpoint takes long on a slow disk.
kill_often() {
    out=$work/$1
    shift
    kills=0 delay=5
    while ! [ -s "$out.done" ]; do
        "$verde" run "$work/job.yaml" --out "$out" --json "$@" > "$work/out.json" 2> "$work/err.txt" &
        pid=$!
        sleep $((kills / 4)).$delay
        if kill -9 $pid 2> /dev/null; then kills=$((kills + 1)); fi
        if wait $pid 2> /dev/null; then cp "$work/out.json" "$out.done"; fi
        delay=$((delay % 7 + 1))
        [ $kills -lt 60 ] || { echo "still not finished after $kills kills"; exit 1; }
    done
}

kill_often killed
[ "$(root < "$work/killed.done")" = "$want" ] || { echo "another root after $kills kills"; exit 1; }

# A torn checkpoint and a torn log are noticed.
last=$(ls -t "$work/killed"/state-* | head -n 1)
truncate -s 1000 "$last"
cp -r "$work/killed" "$work/torn"
got=$("$verde" run "$work/job.yaml" --out "$work/torn" --json 2> /dev/null | root)
[ "$got" = "$want" ] || { echo "another root after a torn checkpoint"; exit 1; }
head -c 100 "$work/whole/run.json" > "$work/short.json"
cp "$work/short.json" "$work/whole/run.json"
if "$verde" run "$work/job.yaml" --out "$work/whole" > /dev/null 2> "$work/err.txt"; then
    echo "a torn log was accepted"
    exit 1
fi
echo "$kills kills, the same root: $want"

# A trainer's log, which is written beside the steps, is complete up to its checkpoints: an auditor follows all of it to the
# trainer's root, and the states are those of an undisturbed run.
state() { sed -n 's/.*"final_state_root":"\([0-9a-f]*\)".*/\1/p'; }
sed -i -e "s/^steps: .*/steps: $((steps / 6))/" "$work/job.yaml"
log="--backend log --profile sim-wide"
want=$("$verde" run "$work/job.yaml" --out "$work/trainer" --json $log 2> /dev/null | state)
kill_often logged $log
[ "$(state < "$work/logged.done")" = "$want" ] || { echo "another state after $kills kills"; exit 1; }
got=$("$verde" run "$work/job.yaml" --out "$work/auditor" --json --backend log --profile sim-deep --role auditor \
    --follow "$work/logged" 2> "$work/err.txt" | root)
[ "$got" = "$(root < "$work/logged.done")" ] || { echo "the log does not lead to the trainer's root"; exit 1; }
echo "$kills kills of a trainer, its log leads to its root: $got"
