#!/bin/sh
# The unit tests of a sanitizer build. Criterion passes a test whose process leaks, and one whose report comes at
# exit: every report goes to a log file, and any log file fails the run. Two planted errors show that this works.
# Usage: tests/asan.sh BUILD_DIR
set -u

build=$1
reports=$build/tests/reports
mkdir -p "$reports"
export ASAN_OPTIONS="detect_leaks=1:log_path=$reports/report:exitcode=99"
export UBSAN_OPTIONS="print_stacktrace=1:log_path=$reports/report"
export LSAN_OPTIONS="exitcode=99"
export SANITIZED=1

found() { [ -n "$(ls "$reports")" ]; }

for planted in "$build"/tests/planted_*; do
    rm -f "$reports"/*
    "$planted" > /dev/null 2>&1
    if ! found; then
        echo "$(basename "$planted"): the planted error left no report"
        echo "0 passed, 1 failed"
        exit 1
    fi
    echo "$(basename "$planted"): caught, as it should be"
done
rm -f "$reports"/*

sh tests/run.sh "$build"
code=$?
if found; then
    echo "Sanitizer reports:"
    head -n 25 "$reports"/*
    exit 1
fi
exit $code
