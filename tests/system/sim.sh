#!/bin/sh
# Disputes in memory (tests/sim): a part of what `make sim` plays, and planted bugs, which must be found.
set -eu
build=$1
programs="exhaustive games lives worst"
every=29 count=2000 lives=4 worst=500
planted="proof clock nonce"
[ -z "${SANITIZED:-}" ] || { every=499 count=150 lives=1 worst=20 planted=; } # many times slower
for name in $planted; do programs="$programs planted_$name"; done
# shellcheck disable=SC2086
make --no-print-directory -s BUILD="$build" $(for name in $programs; do echo "$build/sim/$name"; done) > "$build/sim.log" 2>&1 ||
    { tail -n 20 "$build/sim.log"; exit 1; }
"$build/sim/exhaustive" $every
"$build/sim/lives" $lives
"$build/sim/worst" $worst
# caught NAME WORDS: this planted bug is found within 10,000 disputes, by its effect.
caught() {
    case " $planted " in *" $1 "*) ;; *) return 0 ;; esac
    ! "$build/sim/planted_$1" until 10000 > "$build/sim/planted_$1.txt" || { echo "FAILED: $1 was not found"; exit 1; }
    grep -q "^FAILED: $2" "$build/sim/planted_$1.txt" || { tail -n 3 "$build/sim/planted_$1.txt"; exit 1; }
    echo "$1: $(tail -n 1 "$build/sim/planted_$1.txt")"
}
caught proof 'provider [0-9]* is honest, and convicted'
caught clock 'provider [0-9]* is honest and can be reached, and forfeited'
caught nonce 'the questions are of another assignment than before'
exec "$build/sim/games" $count
