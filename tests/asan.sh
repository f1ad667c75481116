#!/bin/sh
# Runs the tests of a sanitizer build. Criterion passes a test whose process leaks: so AddressSanitizer and
# LeakSanitizer write to log files, UndefinedBehaviorSanitizer to standard error, and a report in either fails the
# run. Two planted errors, one of each kind, show that this works.
# Usage: tests/asan.sh BUILD_DIR [TEST...]; without tests: all.
set -u

build=$1
shift
reports=$build/tests/reports
mkdir -p "$reports"
export ASAN_OPTIONS="detect_leaks=1:log_path=$reports/report:exitcode=99"
export UBSAN_OPTIONS="print_stacktrace=1:log_path=$reports/report"
export LSAN_OPTIONS="exitcode=99"
export SANITIZED=1

log=$build/tests/log
mkdir -p "$log"

# Prints names of files with a report. libcriterion itself sometimes leaks a block of 48 bytes (the first frame is its
# own): that is ignored.
reported() {
    found=1
    for file in $(grep -lraE 'runtime error:|ERROR: (Address|Leak)Sanitizer' "$reports" "$log"); do
        if grep -qa 'runtime error:' "$file" || grep -a '^ *#1 ' "$file" | grep -qv 'libcriterion\.so'; then
            echo "$file"
            found=0
        fi
    done
    return $found
}

for planted in "$build"/tests/planted_*; do
    rm -f "$reports"/* "$log"/*
    "$planted" > "$log/planted.txt" 2>&1
    if ! reported > /dev/null; then
        echo "$(basename "$planted"): the planted error left no report"
        echo "0 passed, 1 failed"
        exit 1
    fi
    echo "$(basename "$planted"): caught, as it should be"
done
rm -f "$reports"/* "$log"/*

sh tests/run.sh "$build" "$@"
code=$?
if reported > /dev/null; then
    echo "Sanitizer reports:"
    reported | while read -r file; do echo "$file"; grep -aE -A 12 'runtime error:|ERROR: ' "$file" | head -n 25; done
    exit 1
fi
exit $code
