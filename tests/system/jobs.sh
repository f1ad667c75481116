#!/bin/sh
# `verde jobs` with real daemons: a client lists, cancels and deletes only its own jobs, the operator everybody's; Ctrl-C in
# `verde delegate` prints the command that cancels, which works at all providers.
. tests/support/system
for name in client other; do
    "$verde" keygen "$work/$name" > /dev/null
done
other="--client $(cat "$work/other/key.pub")"
# shellcheck disable=SC2086
provide a 127.0.0.1:0 $other
# shellcheck disable=SC2086
provide b 127.0.0.1:0 $other
job=models/jobs/toy.yaml
mine="--key $work/client --provider $a"

expect 0 'no job is there' "$verde" jobs $mine
expect 0 'every byte checked' "$verde" delegate $job --key "$work/client" --provider "$a" --provider "$b" --out "$work/result"
expect 0 '^[0-9a-f]\{12\}  done  *12/12 .*  toy.yaml$' "$verde" jobs $mine
id=$(sed -n '2s/ .*//p' "$work/out")
expect 0 "\"run_root\":\"$(sed -n 's/.*"run_root":"\([0-9a-f]*\)".*/\1/p' "$work/result/proof.json")" "$verde" jobs list $mine --json
expect 6 'the job is done already' "$verde" jobs cancel "$id" $mine
one_line
# Another client neither sees the job nor can change it.
expect 0 'no job is there' "$verde" jobs --key "$work/other" --provider "$a"
expect 2 'there is no such job' "$verde" jobs delete "$id" --key "$work/other" --provider "$a"
expect 0 "^$id" "$verde" jobs $mine

# A job of minutes is stopped by Ctrl-C, then cancelled by the printed command.
sed -e 's/^steps: .*/steps: 1000000/' -e 's/^checkpoint_interval: .*/checkpoint_interval: 1000/' -e "s|\.\./data|$PWD/models/data|" $job > "$work/long.yaml"
code=0
timeout --preserve-status -s INT 4 "$verde" delegate "$work/long.yaml" --key "$work/client" --provider "$a" --provider "$b" --out "$work/long" \
    > "$work/out" 2> "$work/err" || code=$?
[ $code -eq 130 ] || fail "Ctrl-C: exit code $code, expected 130"
cancel=$(sed -n 's/^verde: stopped; .*; to end the job there: `verde \(.*\)`$/\1/p' "$work/err")
[ -n "$cancel" ] || fail "Ctrl-C does not say how to cancel"
expect 0 'running .*/1000000 .*long.yaml' "$verde" jobs $mine
long=$(sed -n 's/ .*long.yaml$//p' "$work/out")
expect 6 'the job is running: cancel it first' "$verde" jobs delete "$long" $mine
eval "set -- $cancel"
expect 0 "$long  cancelled at ${b%%#*}" "$verde" "$@"
[ "$(grep -c ' cancelled at ' "$work/out")" -eq 2 ] || fail "it is not cancelled at both"

# The operator sees and ends everybody's jobs, by the daemon's own key, which has no other rights.
expect 0 "$(head -c 8 "$work/client/key.pub").*long.yaml" "$verde" jobs --data "$work/a"
expect 0 '"client":"' "$verde" jobs --data "$work/a" --json
expect 0 "$long  deleted at" "$verde" jobs delete "$long" "$id" --data "$work/a"
expect 0 'no job is there' "$verde" jobs $mine
[ -z "$(ls "$work/a/jobs")" ] || fail "what was deleted is still on disk"
code=0
"$verde" delegate "$work/long.yaml" --key "$work/other" --provider "$a" --provider "$b" --out "$work/theirs" > "$work/out" 2> "$work/err" &
client=$!
pids="$pids $client"
tries=0
until "$verde" jobs --data "$work/a" 2> /dev/null | grep -q 'running'; do
    tries=$((tries + 1))
    [ $tries -lt 1200 ] || fail "the other client's job does not run"
    sleep 0.1
done
expect 0 ' cancelled at ' "$verde" jobs cancel "$("$verde" jobs --data "$work/a" | sed -n '2s/ .*//p')" --data "$work/a"
wait $client || code=$?
[ $code -eq 5 ] || fail "a job that the operator cancelled: exit code $code, expected 5"
expect 5 'the key .* is not enrolled' "$verde" delegate $job --key "$work/a/keys" --provider "$a" --provider "$b" --out "$work/no"
# Another daemon's key has no rights here.
expect 6 'is not enrolled' "$verde" jobs --key "$work/b/keys" --provider "$a"

# ---- refused requests ----

expect 2 'jobs takes' "$verde" jobs
expect 2 'jobs takes' "$verde" jobs cancel $mine
expect 2 'is no job: a job is named by the first 4 or more of its 64 digits' "$verde" jobs cancel 9f2 $mine
expect 2 'there is no such job' "$verde" jobs cancel 0123456789 $mine
expect 2 'is .* the --dir of a .verde provide. that runs' "$verde" jobs --data "$work/client"
expect 2 'KEY. is missing' "$verde" jobs --key "$work/client" --provider "${a%%#*}"
expect 1 'Connection refused' "$verde" jobs --key "$work/client" --provider "https://127.0.0.1:1#$(cat "$work/client/key.pub")" --provider "$b" --timeout 1
grep -q long.yaml "$work/out" || fail "one that does not answer keeps the next one's jobs"
echo "$count lists, ends and refusals of jobs at two daemons"
