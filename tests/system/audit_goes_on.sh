#!/bin/sh
# An audit whose checker was killed continues with the same draws: secrets, beacon and places. Places that were right are not
# asked about again; a liar is convicted however often the checker is killed.
. "$(dirname "$0")/../support/system"
job=models/jobs/toy.yaml
journal=$work/fraud.json.journal

audit="$verde audit $job --proof $work/fraud.json"
answers() { grep -c 'answered in' "$work/$1.log" || true; }

# killed NAME ANSWERS OPTION...: audits NAME, and is killed after this many answers.
killed() {
    of=$1 upto=$(($(answers "$1") + $2))
    shift 2
    eval "url=\$$of"
    $audit --key "$work/checker" --provider "$url" "$@" > "$work/out" 2> "$work/err" &
    checker=$!
    while [ "$(answers "$of")" -lt $upto ]; do
        kill -0 $checker 2> /dev/null || fail "the audit ended before it was killed"
        sleep 0.02
    done
    kill -9 $checker
    wait $checker 2> /dev/null || true
    [ -s "$journal" ] || fail "no journal"
    count=$((count + 1))
}

# secrets.py JOURNAL: prints the assignment, the beacon's value, and the secrets for steps and elements, one per line; on standard
# error, the number of places that are right.
cat > "$work/secrets.py" << 'END_PYTHON'
import struct
import sys

data = open(sys.argv[1], "rb").read()
assert data.startswith(b"verde dispute\0\1\0")
at = 16
while at + 16 <= len(data):
    (size,) = struct.unpack_from("<Q", data, at)
    end = at + 16 + size
    entry = at + 16
    if end + 32 > len(data):
        break
    while entry < end:
        kind, _, _, number, length = struct.unpack_from("<BI32sQI", data, entry)
        body = data[entry + 49 : entry + 49 + length]
        entry += 49 + length
        if kind in (1, 8) or (kind == 7 and number == 0):
            print(kind, body.hex())
        if kind == 9:
            print(number, file=sys.stderr)
    at = end + 32
END_PYTHON

# goes_on_with: the draws now begin with all draws from before the last kill.
goes_on_with() {
    python3 "$work/secrets.py" "$journal" > "$work/now" 2> "$work/passed"
    if [ -e "$work/before" ]; then
        head -n "$(wc -l < "$work/before")" "$work/now" | cmp -s - "$work/before" || fail "another draw than before"
    fi
    mv "$work/now" "$work/before"
}

"$verde" run $job --out "$work/honest" --threads 1 > /dev/null 2>&1
start honest "$verde" serve "$work/honest" --key "$work/keys-honest" --threads 1

# Killed at the beginning, within a step, and after some steps; once within a write. The last command ends the audit.
for many in 2 25 120 400 200; do
    killed honest $many --crumbs 120 --steps 5
    goes_on_with
    [ $many -ne 120 ] || truncate -s -7 "$journal"
done
[ "$(wc -l < "$work/before")" -ge 5 ] || fail "too little was drawn before the last kill"
truncate -s -7 "$journal"
expect 0 'Going on with the audit' $audit --key "$work/checker" --provider "$honest" --crumbs 120 --steps 5 --json
grep -q 'bytes are cut short' "$work/err" || fail "a journal that was cut is not said to be"
[ ! -e "$journal" ] || fail "the journal stays"
python3 - "$work/out" "$work/before" "$(tail -n 1 "$work/passed")" << 'END_PYTHON' || fail "the report of an audit that went on"
import json
import sys

report = json.load(open(sys.argv[1]))
drawn = [line.split()[1] for line in open(sys.argv[2]) if line.startswith("7 ")]
told = [s[name] for s in report["steps"] for name in ("interval_secret", "secret") if name in s]
assert set(drawn) <= set(told), (drawn, told)
assert len(report["steps"]) == 5 and report["checked"]["crumbs"] == 120, report["checked"]
left = 120 + report["checked"]["whole"] + 5 - int(sys.argv[3])  # at most; some 5 questions about each
assert int(sys.argv[3]) >= 100 and report["cost"]["questions"] < 6.5 * left, (sys.argv[3], report["cost"])
END_PYTHON

# The journal is used by one process, and belongs to one audit.
rm -f "$work/before"
killed honest 30 --crumbs 50 --steps 2
expect 2 'holds an audit that was stopped, of crumbs=50,steps=2' $audit --key "$work/checker" --provider "$honest" --crumbs 51 --steps 2
expect 2 'of another beacon' $audit --key "$work/checker" --provider "$honest" --crumbs 50 --steps 2 --beacon - --beacon-source x --beacon-round 1
expect 2 "of another checker's key" $audit --provider "$honest" --crumbs 50 --steps 2 --key "$work/other"
flock "$journal" sleep 20 &
holder=$!
while flock -n "$journal" true; do sleep 0.05; done
expect 2 'another process is at this' $audit --key "$work/checker" --provider "$honest" --crumbs 50 --steps 2
wait $holder
cp "$journal" "$work/kept"
expect 0 'passed' $audit --key "$work/checker" --provider "$honest" --crumbs 5 --steps 1 --force
mv "$work/kept" "$journal"
printf x | dd of="$journal" bs=1 seek=300 conv=notrunc 2> /dev/null
expect 2 'damaged at byte' $audit --key "$work/checker" --provider "$honest" --crumbs 50 --steps 2
echo 'something else, of no audit' > "$journal"
expect 2 'not the journal of a dispute or an audit' $audit --key "$work/checker" --provider "$honest" --crumbs 50 --steps 2
printf 'verde disp' > "$journal"
expect 0 'begins anew, with another draw' $audit --key "$work/checker" --provider "$honest" --crumbs 5 --steps 1
rm -f "$journal"

# The beacon's value is not waited for again.
echo 1234 > "$work/value"
killed honest 40 --crumbs 50 --steps 2 --beacon "$work/value" --beacon-source drand --beacon-round 7
rm "$work/value"
expect 0 '"value":"1234"' $audit --key "$work/checker" --provider "$honest" --crumbs 50 --steps 2 --beacon "$work/value" --beacon-source drand --beacon-round 7 --json

# Intervals that were right are not executed again.
killed honest 75 --steps 0 --intervals 4 --work "$work/again"
expect 0 '4 of 4 intervals again: 4 have' $audit --key "$work/checker" --provider "$honest" --steps 0 --intervals 4 --work "$work/again"
[ "$(grep -c 'Executing' "$work/err")" -lt 4 ] || fail "all intervals were executed again"

# Executing a whole run again continues from its last state.
sed -e "s,file: \.\./data,file: $PWD/models/data," -e 's/^steps: .*/steps: 400/' $job > "$work/long.yaml"
"$verde" run "$work/long.yaml" --out "$work/long" --threads 1 > /dev/null 2>&1
start long "$verde" serve "$work/long" --key "$work/keys-long" --threads 1
whole="$verde audit $work/long.yaml --provider $long --key $work/checker --proof $work/fraud.json --steps 0 --all --work $work/whole --threads 1"
$whole > "$work/out" 2> "$work/err" &
checker=$!
until [ "$(find "$work/whole" -name 'state-*' 2> /dev/null | wc -l)" -gt 10 ]; do
    kill -0 $checker 2> /dev/null || fail "the audit ended before it was killed"
    sleep 0.02
done
kill -9 $checker
wait $checker 2> /dev/null || true
expect 0 'found with 100' $whole
grep -q 'Going on with the audit' "$work/err" || fail "another audit"
sed -n 's/.*step \([0-9]*\)\/400.*/\1/p' "$work/err" | head -n 1 > "$work/first"
[ "$(cat "$work/first")" -gt 20 ] || fail "the run began again"
kill "$pid"

# A liar is still convicted.
"$verde" run $job --out "$work/liar" --threads 1 --fault poison@7 > /dev/null 2>&1
start liar "$verde" serve "$work/liar" --key "$work/keys-liar" --threads 1
for many in 3 20 40; do
    killed liar $many --crumbs 40 --steps 13
done
expect 3 'wrong-output' $audit --key "$work/checker" --provider "$liar" --crumbs 40 --steps 13
expect 0 'decided again' "$verde" verify "$work/fraud.json" --job $job
verify_independently "$work/fraud.json" "holds: convicted, wrong-output"
[ ! -e "$journal" ] || fail "the journal stays beside a proof"

echo "$count commands went on with the audits that they should"
