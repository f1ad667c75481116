#!/bin/sh
# Runs every test program and every tests/system/*.sh; ends with "N passed, N failed[, N skipped]".
# Usage: tests/run.sh BUILD_DIR [SCRIPT...]. Run from the root of the project. With scripts: these alone.
set -u

build=$1
shift
passed=0 failed=0 skipped=0
log=$build/tests/log
mkdir -p "$log"

# A Criterion program: count from its closing line.
run_program() {
    name=$(basename "$1")
    "$1" --color=never > "$log/$name.txt" 2>&1
    code=$?
    line=$(grep -a 'Synthesis: Tested' "$log/$name.txt" | tail -n 1)
    ok=$(echo "$line" | sed -n 's/.*Passing: \([0-9]*\).*/\1/p')
    bad=$(echo "$line" | sed -n 's/.*Failing: \([0-9]*\).*/\1/p')
    crash=$(echo "$line" | sed -n 's/.*Crashing: \([0-9]*\).*/\1/p')
    skip=$(grep -ac '^\[SKIP\]' "$log/$name.txt")
    # Under sanitizers 99 means a report, and tests/asan.sh judges reports.
    [ -z "${SANITIZED:-}" ] || [ "$code" -ne 99 ] || code=0
    # A program that dies without a closing line, or exits badly without a failure, is a failure.
    [ -n "$line" ] || { ok=0; bad=1; crash=0; }
    [ "$code" -eq 0 ] || [ $((bad + crash)) -gt 0 ] || bad=1
    passed=$((passed + ok)) failed=$((failed + bad + crash)) skipped=$((skipped + skip))
    printf '%-28s %4d passed %3d failed %3d skipped\n' "$name" "$ok" $((bad + crash)) "$skip"
    [ $((bad + crash)) -eq 0 ] || grep -aE '^\[(FAIL|ERR|----|!!!!)|[Ee]rror|SUMMARY' "$log/$name.txt" | head -n 40
}

# A script: exit 0 passed, 77 skipped, anything else failed.
run_script() {
    name=$(basename "$1" .sh)
    sh "$1" "$build" > "$log/$name.txt" 2>&1
    code=$?
    case $code in
    0) passed=$((passed + 1)) word=passed ;;
    77) skipped=$((skipped + 1)) word=skipped ;;
    *) failed=$((failed + 1)) word=FAILED ;;
    esac
    printf '%-28s %s: %s\n' "$name" "$word" "$(tail -n 1 "$log/$name.txt")"
    [ "$word" != FAILED ] || tail -n 30 "$log/$name.txt"
}

if [ $# -eq 0 ]; then
    for program in $(ls "$build"/tests/test_*); do run_program "$program"; done
    set -- tests/lint/*.sh tests/system/*.sh tests/simt/*.sh
fi
for script in "$@"; do run_script "$script"; done
echo
if [ $skipped -gt 0 ]; then
    echo "$passed passed, $failed failed, $skipped skipped"
else
    echo "$passed passed, $failed failed"
fi
[ $failed -eq 0 ]
