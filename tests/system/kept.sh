#!/bin/sh
# Files written by earlier releases are judged as they were then, and the golden tables have only grown (tests/kept).
. tests/support/system
python3 -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2> /dev/null || { echo "no Python 3.8"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1

for kept in tests/kept/*/; do
    release=$(basename "$kept")
    for what in evidence golden; do
        python3 -m tarfile -e "$kept/$what.tar.xz" "$work/$release/$what"
    done
    evidence=$work/$release/evidence
    expect 0 'are judged as they were' python3 tests/kept/ask.py compare "$verde" "$evidence" "$kept/said.jsonl"
    echo "$release: $(cat "$work/out")"
    set --
    for verdict in "$evidence"/verdicts/*.json; do
        case $verdict in */log-* | */rounding.json) ;; *) set -- "$@" "$verdict" ;; esac # the other verifier does not judge logs
    done
    verify_independently "$evidence/verdicts/agreed.json" holds "$@"
    for table in "$work/$release/golden"/*; do
        sort -u "tests/golden/$(basename "$table")" > "$work/sorted"
        gone=$(sort -u "$table" | comm -23 - "$work/sorted")
        [ -z "$gone" ] || fail "$(basename "$table") lacks, or has changed, of $release: $gone"
    done
done

whole=$(cd "$build" && pwd)/bin/verde

# A verde that decides otherwise is noticed, by its output and by its exit code, for each kind of evidence.
# wrong SCRIPT DIFFERENCE [COMMANDS]: only asked these commands.
wrong() {
    printf '#!/bin/sh\n%s\n' "$1" > "$work/wrong"
    chmod +x "$work/wrong"
    expect 1 "$2" python3 tests/kept/ask.py compare "$work/wrong" "$evidence" "$kept/said.jsonl" "${3:-}"
}
# changed FROM TO DIFFERENCE COMMANDS: what it prints is edited.
changed() {
    wrong "[ \$1 != provide ] || exec \"$whole\" \"\$@\"
        code=0 out=\$(\"$whole\" \"\$@\") || code=\$?
        printf '%s\n' \"\$out\" | sed 's/$1/$2/g'
        exit \$code" "$3" "$4"
}
for words in wrong-output:element wrong-graph:graph wrong-input:input bad-proof:proof contradiction:skip conceded:conceded \
    timeout:silence log-incomplete:log-incomplete; do
    changed ${words%:*} other ".grade was \"${words%:*}\", is" "verdicts/${words#*:}.json"
done
for words in inconclusive:inconclusive dismissed:log-dismissed agreed:agreed forfeit:silence; do
    changed ${words%:*} other ".result was \"${words%:*}\", is" "verdicts/${words#*:}.json"
done
changed '"version":"0.9"' '"version":"1.0"' '.version was "0.9"' releases/
changed '"job_root":"[0-9a-f]' '"job_root":"' '.job_root was' 'check results/'
changed '"bytes":' '"bytes":1' '.bytes was' 'check runs/log'
changed '"equal":true' '"equal":false' '.equal was true' 'audit runs/'
changed '"step":0' '"step":1' '.step was 0' 'audit runs/rnn-wrong'
changed '"program":"[0-9a-f]' '"program":"' '.program was' 'graph yaml/toy-bf16.yaml'
changed '"state":"done"' '"state":"failed"' '.state was "done"' 'jobs --data'
wrong "\"$whole\" \"\$@\"; exit 6" '.exit was 0, is 6' --against
wrong "\"$whole\" \"\$@\"; for page in \"\$@\"; do :; done; sed -i s/backward/forward/g \"\$page\"" 'backward.matmul was true' inspect
wrong exit '.says was'
