#!/bin/sh
# Runs every test program and every script of tests/lint, tests/system, tests/simt and tests/ptx, one more at a time than there are
# CPU cores, as many have one thread or wait; ends with "N passed, N failed[, N skipped]".
# Usage: tests/run.sh BUILD_DIR [SCRIPT...]. Run from the root of the project. With scripts: only these.
set -u

# Limit in seconds for a program or script. The longest takes 350 on one machine and 1,130 on another; one that exceeds this hangs,
# and is named.
limit=2400

# Runs a command with the limit. timeout makes a new process group, which the terminal's Ctrl-C does not reach: so it is killed
# here.
limited() {
    timeout -k 10 $limit "$@" &
    job=$!
    trap 'kill $job' INT TERM
    wait $job
}

# report NAME PASSED FAILED SKIPPED TEXT: prints the text in one piece, as others report at the same time, and adds wall-clock and
# CPU seconds to its first line; stores the counts for the sum.
report() {
    times > "$log/$1.times" # in a subshell it would print the subshell's
    cpu=$(tr ms '  ' < "$log/$1.times" | awk '{ s += 60 * ($1 + $3) + $2 + $4 } END { printf "%.0f", s }')
    echo "$2 $3 $4 $1" > "$log/$1.count"
    printf '%s\n' "$5" | sed "1s/\$/ ($(($(date +%s) - started)) s, CPU $cpu s)/"
}

# heartbeat TOTAL: prints once a minute how many have reported and which still run, namely those with a log but no counts.
heartbeat() {
    began=$(date +%s)
    while sleep 60 > /dev/null 2>&1; do # its output would hold a pipe open
        running=$(for file in "$log"/*.txt; do
            name=$(basename "$file" .txt)
            [ -e "$log/$name.count" ] || printf ' %s' "$name"
        done)
        minutes=$((($(date +%s) - began) / 60))
        echo "-- $minutes min: $(ls "$log" | grep -c '\.count$') of $1 done; running:$running"
    done
}

# Runs a Criterion program; its closing line has the counts, where crashes count as failures.
run_program() {
    name=$(basename "$1")
    limited "$1" --color=never > "$log/$name.txt" 2>&1
    code=$?
    [ $code -ne 124 ] || echo "[ERR] not done after $limit s" >> "$log/$name.txt"
    line=$(grep -a 'Synthesis: Tested' "$log/$name.txt" | tail -n 1)
    ok=$(echo "$line" | sed -n 's/.*Passing: \([0-9]*\).*/\1/p')
    bad=$(echo "$line" | sed -n 's/.*Failing: \([0-9]*\).*/\1/p')
    skip=$(grep -ac '^\[SKIP\]' "$log/$name.txt")
    # Under sanitizers exit code 99 means a report, which tests/asan.sh judges.
    [ -z "${SANITIZED:-}" ] || [ "$code" -ne 99 ] || code=0
    # A program without a closing line, or with a bad exit code but no failure, counts as a failure.
    [ -n "$line" ] || { ok=0; bad=1; }
    [ "$code" -eq 0 ] || [ $bad -gt 0 ] || bad=1
    said=$(printf '%-28s %4d passed %3d failed %3d skipped' "$name" "$ok" $bad "$skip")
    [ $bad -eq 0 ] || said="$said
$(grep -aE '^\[(FAIL|ERR|----|!!!!)|[Ee]rror|SUMMARY' "$log/$name.txt" | head -n 40)"
    report "$name" "$ok" $bad "$skip" "$said"
}

# drop_work NAME: removes the directory of a script that has passed; all together take 4 GB. tests/full's stay for reading.
drop_work() {
    case $1 in
    system/*) rm -rf "$build/tests/${1#system/}" "$build/tests/$(echo "$1" | tr / _)" ;;
    simt/*) rm -rf "$build/tests/$(echo "$1" | tr / _)" ;;
    esac
}

# Runs a script: exit code 0 is passed, 77 skipped, anything else failed.
run_script() {
    name=$(basename "$(dirname "$1")")/$(basename "$1" .sh)
    file=$(echo "$name" | tr / -)
    limited sh "$1" "$build" > "$log/$file.txt" 2>&1
    code=$?
    [ $code -ne 124 ] || echo "not done after $limit s" >> "$log/$file.txt"
    case $code in
    0) counts='1 0 0' word=passed ;;
    77) counts='0 0 1' word=skipped ;;
    *) counts='0 1 0' word=FAILED ;;
    esac
    said=$(printf '%-28s %s: %s' "$name" "$word" "$(tail -n 1 "$log/$file.txt")")
    [ "$word" != FAILED ] || said="$said
$(tail -n 30 "$log/$file.txt")"
    [ "$word" != passed ] || drop_work "$name"
    # shellcheck disable=SC2086
    report "$file" $counts "$said"
}

if [ "$1" = --one ]; then
    build=$2
    log=$build/tests/log
    started=$(date +%s)
    case $3 in
    *.sh) run_script "$3" ;;
    *) run_program "$3" ;;
    esac
    exit 0
fi

build=$1
shift
log=$build/tests/log
mkdir -p "$log"
rm -f "$log"/*.count "$log"/*.times "$log"/*.txt
# The longest come first, so that none runs alone at the end.
longest='lint/ptx system/cross system/bits simt/orders system/dispute ptx/bits simt/races test_dispute test_attention test_cpu test_sgemm
    system/provide system/fuzz system/delegate simt/training system/example system/learns test_tournament'
ordered() {
    for name in $longest; do printf '%s\n' "$@" | grep -E "/$name(\.sh)?\$"; done
    # shellcheck disable=SC2086
    printf '%s\n' "$@" | grep -vE "/($(echo $longest | tr ' ' '|'))(\.sh)?\$"
}
[ $# -gt 0 ] || set -- tests/lint/*.sh tests/system/*.sh tests/simt/*.sh tests/ptx/*.sh "$build"/tests/test_*
heartbeat $# &
beat=$!
trap 'kill $beat 2> /dev/null' EXIT
ordered "$@" | xargs -P "$(($(nproc) + 1))" -n 1 sh "$0" --one "$build"
kill $beat
ended=$(ls "$log" | grep -c '\.count$')
read -r passed failed skipped << EOF
$(cat "$log"/*.count | awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }')
EOF
[ "$ended" -eq $# ] || { echo "$(($# - ended)) of $# did not report" && failed=$((failed + $# - ended)); }
echo
# Repeats failures at the end, where people look.
for name in $(awk '$2 > 0 { print $4 }' "$log"/*.count); do
    echo "Failed: $name"
    tail -n 5 "$log/$name.txt"
done
counts="$passed passed, $failed failed"
[ "$skipped" -eq 0 ] || counts="$counts, $skipped skipped"
echo "$counts${OP:+; tests of all operators were tests of $OP alone}"
[ "$failed" -eq 0 ]
