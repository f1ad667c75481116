#!/bin/sh
# The inputs kept from `make fuzz`, and its seeds: each parser ends, and everything it accepts has only one spelling.
set -eu
build=$1
targets=$(cd tests/fuzz && ls ./*.c | sed 's|^\./||;s|\.c$||' | grep -vx -e fuzz -e replay)
# shellcheck disable=SC2086
make --no-print-directory -s BUILD="$build" $(for t in $targets; do echo "$build/fuzz/$t"; done) > "$build/fuzz.log" 2>&1 || { tail -n 20 "$build/fuzz.log"; exit 1; }
# shellcheck disable=SC2086
exec sh tests/fuzz/run.sh "$build" 0 $targets
