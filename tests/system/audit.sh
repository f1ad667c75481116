#!/bin/sh
# `verde audit` executes parts of a run again on another backend, narrows down what differs, continues after a stop, and tells
# apart what it proves and what the run states of itself.
. tests/support/system
job=models/jobs/toy.yaml
wrong=$build/tests/wrong_kernel
run() {
    name=$1
    shift
    rm -rf "${work:?}/$name"
    "$verde" run "$@" --out "$work/$name" > "$work/out" 2> "$work/err" || fail "$name: no run"
}
says() {
    for words in "$@"; do grep -q -- "$words" "$work/out" || fail "not \"$words\""; done
}
json() {
    python3 -c "import json,sys; d = json.load(open('$work/out')); sys.exit(not ($1))" || fail "JSON: not $1"
}
edited() {
    name=$1
    shift
    sed -e "s,file: \.\./data,file: $PWD/models/data," "$@" $job > "$work/$name.yaml"
}

# ---- an honest run ----

run honest $job
expect 0 '^equal        yes' "$verde" audit "$work/honest" --all
says '^stretches    4 of 4: all of the run' '^executed     13 steps'
ran=$(sed -n 's/^stated .* backend \([a-z0-9]*\),.*/\1/p' "$work/out") on=$(sed -n 's/^executed .* backend \([a-z0-9]*\),.*/\1/p' "$work/out")
[ "$ran" != "$on" ] || [ "$ran" = scalar ] || fail "the run's own backend, $ran, executed it again"
expect 0 '"equal":true' "$verde" audit "$work/honest" --json --all --backend scalar --threads 1
json 'd["stretches"] == 4 and d["not_checked"] == 0 and d["executed_on"]["backend"] == "scalar" and not d["differences"]'
json 'd["stated"][0]["host"] and d["stated"][0]["threads"] > 0 and d["stated"][0]["uuid"] == ""'
expect 0 '^stretches    2 of 4, by --seed 5: ' "$verde" audit "$work/honest" --intervals 2 --seed 5
says '^not checked  2 stretches' '^not checked  files of states that no stretch began from'
drawn=$(grep '^stretches' "$work/out")
expect 0 "^$drawn" "$verde" audit "$work/honest" --intervals 2 --seed 5
expect 0 '^not checked  3 stretches' "$verde" audit "$work/honest"
python3 - "$work/honest/run.json" << 'PYTHON' || fail "run.json does not state who ran"
import json, sys
d = json.load(open(sys.argv[1]))
m = d["machines"]
assert len(m) == 1 and m[0]["host"] and m[0]["backend"] and m[0]["version"], m
assert all(s["machine"] == 0 and s["microseconds"] > 0 for s in d["states"]), d["states"]
PYTHON

# Steps that a run did on another backend after it was continued are told apart; a run of an older version is read as before.
edited long -e 's/steps: 12/steps: 4000/'
"$verde" run "$work/long.yaml" --out "$work/short" --backend scalar > /dev/null 2>&1 &
pid=$!
pids="$pids $pid"
tries=0
until [ "$(cat "$work/short/checkpoints" 2> /dev/null | wc -l)" -gt 0 ]; do
    tries=$((tries + 1))
    [ $tries -lt 6000 ] || fail "the run writes no checkpoints"
    sleep 0.05
done
kill -9 $pid
wait $pid 2> /dev/null || true
"$verde" run "$work/long.yaml" --out "$work/long" --backend scalar > /dev/null 2>&1 &
pid=$!
pids="$pids $pid"
tries=0
until [ "$(cat "$work/long/checkpoints" 2> /dev/null | wc -l)" -gt 2 ]; do
    tries=$((tries + 1))
    [ $tries -lt 6000 ] || fail "the run writes no checkpoints"
    sleep 0.05
done
expect 0 'checkpoints so far$' "$verde" audit "$work/long" --intervals 1 # while it goes on
kill -9 $pid
wait $pid 2> /dev/null || true
expect 0 'all of the run so far$' "$verde" audit "$work/long" --all --state "$work/so-far"
before=$(sed -n 's/^stretches  *\([0-9]*\) of.*/\1/p' "$work/out")
expect 0 '^equal        yes, to the bit, so far' "$verde" diff "$work/long" "$work/short"
says 'equal as far as both have come'
case $ran in scalar) ;; *)
    "$verde" run "$work/long.yaml" --out "$work/long" > /dev/null 2>&1 &
    pid=$!
    pids="$pids $pid"
    tries=0
    until grep -q "\"backend\": \"$ran\"" "$work/long/run.json"; do
        tries=$((tries + 1))
        [ $tries -lt 6000 ] || fail "no second machine is stated"
        sleep 0.05
    done
    kill -9 $pid
    wait $pid 2> /dev/null || true
    grep -q '"backend": "scalar"' "$work/long/run.json" || fail "the first machine is forgotten"
    expect 0 'all of the run so far$' "$verde" audit "$work/long" --all --state "$work/so-far"
    after=$(sed -n 's/^stretches  *\([0-9]*\) of.*/\1/p' "$work/out")
    [ "$after" -gt "$before" ] && [ "$(sed -n 's/^executed  *\([0-9]*\).*/\1/p' "$work/out")" -eq $((4 * (after - before))) ] ||
        fail "an audit of a run that went on executed more than what is new: $before, then $after stretches"
    ;;
esac
rm -rf "$work/long"
cp -r "$work/honest" "$work/older"
python3 - "$work/older/run.json" << 'PYTHON'
import json, sys
d = json.load(open(sys.argv[1]))
del d["machines"]
for s in d["states"]:
    del s["machine"], s["microseconds"]
json.dump(d, open(sys.argv[1], "w"))
PYTHON
expect 0 '^stated       nothing' "$verde" audit "$work/older" --all
expect 0 'fits         yes' "$verde" check "$work/older"
sed 's/"machine": 0/"machine": 1/' "$work/honest/run.json" > "$work/older/run.json"
expect 6 'states\[0\]: expected machine, one of the 1 of machines' "$verde" audit "$work/older"
one_line
sed 's/"host": ".*"/"host": "\\u001b[31mred"/' "$work/honest/run.json" > "$work/older/run.json"
expect 0 'host ?\[31mred,' "$verde" audit "$work/older"

# ---- faults ----

run liar $job --fault element@5
expect 9 '^step         5 of' "$verde" audit "$work/liar" --all
says '^proven ' '(matmul)' "^reference .*: b's$" "^again        yes: backend $ran" '^stated       host ' \
    '^equal        no: 1 stretch'
expect 9 '"equal":false' "$verde" audit "$work/liar" --all --json
json 'len(d["differences"]) == 1 and d["differences"][0]["again"] and d["differences"][0]["proven"]["step"] == 5'
json 'd["differences"][0]["checkpoint"] == 8 and d["differences"][0]["stated"]["microseconds"] > 0'
run liar $job --fault history
expect 9 'a holds the state that its steps give, and commits to another' "$verde" audit "$work/liar" --all
run liar $job --fault field@1
expect 9 "^again        no: backend $ran gives the right state" "$verde" audit "$work/liar" --all
says '^shown ' '^step         one of ' '^tensor '
edited one -e 's/checkpoint_interval: 4/checkpoint_interval: 1/'
run liar "$work/one.yaml" --fault field@1
expect 9 '^shown ' "$verde" audit "$work/liar" --all
says '^step         [0-9]* of 0..11' '^made by ' "^reference .*: b's"
expect 2 'field@SEED' "$verde" run $job --out "$work/none" --fault field@x

# A wrong kernel is wrong again when repeated; a right build of the same backend is not.
"$wrong" run $job --out "$work/kernel" --backend scalar > "$work/out" 2>&1 || fail "the build with a wrong kernel"
case $ran in scalar) ;; *)
    expect 9 '^again        no: backend scalar' "$verde" audit "$work/kernel" --all
    expect 9 '^again        yes: backend scalar' "$wrong" audit "$work/kernel" --all --backend "$ran"
    says '(gelu_grad)' '^element      1000,' 'in bit 2 alone' 'equal        no: 3 stretches'
    ;;
esac

# ---- continuing ----

edited one -e 's/checkpoint_interval: 4/checkpoint_interval: 1/'

expect 0 '^executed     ' "$verde" audit "$work/honest" --intervals 2 --seed 3 --state "$work/state"
first=$(sed -n 's/^executed  *\([0-9]*\).*/\1/p' "$work/out")
expect 0 '^stretches    4 of 4' "$verde" audit "$work/honest" --all --state "$work/state"
second=$(sed -n 's/^executed  *\([0-9]*\).*/\1/p' "$work/out")
[ $((first + second)) -eq 13 ] || fail "$first and $second steps, expected 13 together"
expect 0 '^executed     0 steps' "$verde" audit "$work/honest" --all --state "$work/state"
run liar $job --fault element@5
expect 9 '^step         5 of' "$verde" audit "$work/liar" --all --state "$work/found"
expect 9 '^step         5 of' "$verde" audit "$work/liar" --all --state "$work/found"
expect 2 'is of an audit of another run' "$verde" audit "$work/honest" --all --state "$work/found"
one_line
printf '9 equal\n' >> "$work/state"
expect 2 'state:7: expected two checkpoints, a state' "$verde" audit "$work/honest" --all --state "$work/state"
one_line
run other "$work/one.yaml"
expect 2 'found:2: is of an audit of another program' "$verde" audit "$work/other" --all --state "$work/found"
one_line
sed 's/verde audit 1/verde audit 2/' "$work/found" > "$work/newer"
expect 8 'version 2' "$verde" audit "$work/liar" --all --state "$work/newer"
echo nonsense > "$work/nonsense"
expect 2 'expected the line' "$verde" audit "$work/liar" --all --state "$work/nonsense"
one_line

# ---- few states; damage; runs of other kinds ----

run few $job --keep 2
expect 0 '^stretches    2 of 2' "$verde" audit "$work/few" --all
run few $job --keep 2 --fault element@5
expect 9 "step 8's differs" "$verde" audit "$work/few" --all
says '^step         5 of' '^not checked  steps 8..11, which go on from the wrong state'
run damaged $job
file=$work/damaged/state-$(state "$work/damaged" 4)
printf x | dd of="$file" bs=1 seek=100 conv=notrunc 2> /dev/null
expect 6 'damaged: it is not the state of step 4' "$verde" audit "$work/damaged" --all
says 'from there nothing was executed: steps 4..7' '^executed     9 steps' '^equal        no: 1 state is damaged'
expect 6 '"equal":false' "$verde" audit "$work/damaged" --all --json
json 'd["damaged"][0]["checkpoint"] == 4 and d["damaged"][0]["not_checked_up_to"] == 8 and "damaged" in d["damaged"][0]["reason"]'
rm "$file"
expect 6 'No such file' "$verde" audit "$work/damaged" --all
run liar $job --fault element@5
file=$work/liar/state-$(state "$work/liar" 8)
truncate -s 100 "$file"
expect 9 'cut short' "$verde" audit "$work/liar" --all
says '^step         5 of' '^damaged ' '^equal        no: 1 stretch'
for bad in program run.json; do
    cp -r "$work/honest" "$work/broken"
    head -c 100 "$work/honest/$bad" > "$work/broken/$bad"
    for command in audit inspect check serve 'export --out none'; do
        # shellcheck disable=SC2086
        expect 6 "broken/$bad: " "$verde" ${command%% *} "$work/broken" $(echo "$command" | cut -s -d ' ' -f 2-)
        one_line
    done
    expect 6 "broken/$bad: " "$verde" diff "$work/honest" "$work/broken"
    one_line
    rm -r "$work/broken"
done
cp -r "$work/honest" "$work/broken"
sed '/"states": \[/,/^ \],/c\ "states": [],' "$work/honest/run.json" > "$work/broken/run.json"
expect 6 'broken/run.json: expected a list `states`' "$verde" audit "$work/broken"
one_line
sed 's/"fault": ""/"fault": "mischief"/' "$work/honest/run.json" > "$work/broken/run.json"
expect 6 'broken/run.json: `fault` is "mischief": fault: kind must be' "$verde" audit "$work/broken"
one_line
edited calls
printf 'rounding:\n  bits: 32\n  encoding: calls\n' >> "$work/calls.yaml"
run logs "$work/calls.yaml" --backend log
expect 2 'verde run --role auditor' "$verde" audit "$work/logs"
one_line
expect 2 'is no folder; expected the folder of a run, or with a job --provider URL or --results' "$verde" audit $job
one_line
expect 2 'crumbs is of .verde audit JOB --provider URL., and this is .verde audit RUN' "$verde" audit "$work/honest" --crumbs 5
one_line
expect 2 'takes --all or --intervals, not both' "$verde" audit "$work/honest" --all --intervals 2
one_line
expect 2 'state is given twice, expected once' "$verde" audit "$work/honest" --state "$work/a" --state "$work/b"
one_line
expect 2 'one run' "$verde" audit
one_line
expect 2 'intervals must be 1' "$verde" audit "$work/honest" --intervals 0
mv "$work/honest/data" "$work/moved"
expect 2 '/data: No such file' "$verde" audit "$work/honest" --all
one_line

echo "$count commands audit runs"
