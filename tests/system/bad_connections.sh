#!/bin/sh
# 1,000 bad connections from eight addresses, to a served run and to a daemon, during an honest dispute: it ends as it does
# without them, and the provider's open files and memory stay bounded.
. tests/support/system
client=tests/system/provide_client.py
if ! command -v python3 > /dev/null || ! python3 -c 'import ssl' 2> /dev/null; then
    echo "no python3 with ssl: nobody dials"
    exit 77
fi
for name in client referee stranger; do
    "$verde" keygen "$work/$name" > /dev/null
done
# Limits of a provider: 128 connections and its own files; 128 MiB from peers, and memory of its own.
files_most=200 grows_most_kib=$((192 << 10))
bad=1000
open=$(ulimit -n)
[ "$open" -gt $((bad + 100)) ] || bad=$((open - 100))

# settle NAME HONEST WRONG: holds a dispute; the outcome is in $work/NAME.outcome.
settle() {
    expect 3 'wrong-output' "$verde" arbitrate models/jobs/toy.yaml --key "$work/referee" --verdict "$work/$1.json" --json \
        --provider "$2" --provider "$3"
    python3 - "$work/out" > "$work/$1.outcome" << 'PYTHON'
import json
import sys
cost = ["bytes_in", "bytes_out", "seconds", "cpu_seconds", "peak_bytes", "level_seconds"]
print(json.dumps({name: value for name, value in json.load(open(sys.argv[1])).items() if name not in cost}, sort_keys=True))
PYTHON
}

memory_kib() {
    awk '$1 == "VmRSS:" { print $2 }' "/proc/$1/status"
}

# watch PID FILE: writes the most files and memory (KiB) that the process has had, until it is told to end.
watch() {
    files=0 memory=0
    while sleep 0.05; do
        now=$(ls "/proc/$1/fd" | wc -l)
        [ "$now" -le "$files" ] || files=$now
        now=$(memory_kib "$1")
        [ "$now" -le "$memory" ] || memory=$now
        echo "$files $memory" > "$2.new"
        mv "$2.new" "$2"
    done
}

# amid NAME PID HONEST WRONG: holds the dispute during bad connections to HONEST.
amid() {
    settle "$1-before" "$3" "$4"
    before=$(memory_kib "$2")
    port=$(echo "$3" | sed 's/.*:\([0-9]*\)#.*/\1/')
    python3 tests/system/bad_connections.py "$port" $bad "$work/stranger" > "$work/$1.bad" 2>&1 &
    dialler=$!
    watch "$2" "$work/$1.most" &
    watcher=$!
    pids="$pids $dialler $watcher"
    until grep -q dialled "$work/$1.bad"; do
        kill -0 $dialler 2> /dev/null || fail "nobody dials: $(cat "$work/$1.bad")"
        sleep 0.1
    done
    sleep 2
    settle "$1-amid" "$3" "$4"
    kill -0 "$2" || fail "$1 has ended"
    kill $dialler $watcher
    wait $dialler || fail "the connections were not bad to their end: $(cat "$work/$1.bad")"
    cmp "$work/$1-before.outcome" "$work/$1-amid.outcome" || fail "$1: another outcome"
    read -r files memory < "$work/$1.most"
    [ "$memory" -ge "$before" ] || fail "$1: its memory was not seen"
    grown=$((memory - before))
    [ "$files" -le $files_most ] || fail "$1 had $files files open, expected $files_most at most"
    [ -n "${SANITIZED:-}" ] || [ $grown -le $grows_most_kib ] || fail "$1 grew by $grown KiB, expected $grows_most_kib at most"
    # Connections of all kinds were made, and were cut.
    tail -n 1 "$work/$1.bad" | grep -qv ' 0 dialled' || fail "$(cat "$work/$1.bad")"
    echo "$1: $files files, $grown KiB more; $(tail -n 1 "$work/$1.bad")"
}

"$verde" run models/jobs/toy.yaml --out "$work/right" --threads 1 > /dev/null 2>&1
"$verde" run models/jobs/toy.yaml --out "$work/wrong" --threads 1 --fault element@7 > /dev/null 2>&1
key=$(cat "$work/referee/key.pub")
serve wrong --threads 1 --referee "$key"
serve right --threads 1 --referee "$key"
amid serve "${pids##* }" "$(cat "$work/right.url")" "$(cat "$work/wrong.url")"

provide honest 127.0.0.1:0
daemon=$pid
python3 "$client" "$(cat "$work/honest.url")" "$work/client" submit "$work/right" --referee "$key" > "$work/job" ||
    fail "the daemon does not take the job"
python3 "$client" "$(cat "$work/honest.url")" "$work/client" wait "$(cat "$work/job")" done failed > "$work/done.json"
amid provide $daemon "$(cat "$work/honest.url")" "$(cat "$work/wrong.url")"
echo "two disputes amid $bad bad connections each"
