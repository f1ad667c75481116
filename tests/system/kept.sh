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
    for verdict in "$evidence"/verdicts/*.json; do
        case $verdict in */log-* | */rounding.json) continue ;; esac # the other verifier does not judge logs
        verify_independently "$verdict" holds
    done
    for table in "$work/$release/golden"/*; do
        sort -u "tests/golden/$(basename "$table")" > "$work/sorted"
        gone=$(sort -u "$table" | comm -23 - "$work/sorted")
        [ -z "$gone" ] || fail "$(basename "$table") lacks, or has changed, of $release: $gone"
    done
done

whole=$(cd "$build" && pwd)/bin/verde
# A verifier that decides otherwise is noticed, by its output and by its exit code.
wrong() {
    printf '#!/bin/sh\n%s\n' "$1" > "$work/wrong"
    chmod +x "$work/wrong"
    expect 1 "$2" python3 tests/kept/ask.py compare "$work/wrong" "$evidence" "$kept/said.jsonl"
}
wrong "\"$whole\" \"\$@\" | sed s/wrong-output/wrong-graph/g" '.grade was "wrong-output", is "wrong-graph"'
wrong "\"$whole\" \"\$@\"; exit 6" '.exit was 0, is 6'
wrong exit '.says was'
