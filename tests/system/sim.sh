#!/bin/sh
# Disputes in memory (tests/sim): a part of what `make sim` plays, and a bug on purpose, which must be found.
set -eu
build=$1
programs="$build/sim/exhaustive $build/sim/games $build/sim/planted_proof"
# shellcheck disable=SC2086
make --no-print-directory -s BUILD="$build" $programs > "$build/sim.log" 2>&1 || { tail -n 20 "$build/sim.log"; exit 1; }
every=29 count=2000
[ -z "${SANITIZED:-}" ] || { every=499 count=200; } # many times slower
"$build/sim/exhaustive" $every
"$build/sim/games" $count 2> /dev/null > "$build/sim/games.txt" || { cat "$build/sim/games.txt"; exit 1; }
cat "$build/sim/games.txt"
[ -z "${SANITIZED:-}" ] || exit 0
# caught NAME WHAT: this bug is found within 10,000 disputes, by what it does.
caught() {
    ! "$build/sim/planted_$1" until 10000 > "$build/sim/planted_$1.txt" || { echo "FAILED: $1 was not found"; exit 1; }
    grep -q "^FAILED: $2" "$build/sim/planted_$1.txt" || { tail -n 3 "$build/sim/planted_$1.txt"; exit 1; }
    echo "$1: $(tail -n 1 "$build/sim/planted_$1.txt")"
}
caught proof 'provider [0-9]* is honest, and convicted'
tail -n 1 "$build/sim/games.txt"
