#!/bin/sh
# Programs of strangers (tests/graphs): for any graph, a fused step has the bits of its nodes. A few hundred randomly changed
# graphs on the best kernels; those that generate tokens also run several at a time. Four planted bugs must be found.
# tests/full/graphs.sh has many more graphs.
set -eu
build=$1
planted="reader levels slice stop" some=200 more=500
[ -z "${SANITIZED:-}" ] || planted='' some=50 more=100 # many times slower
# shellcheck disable=SC2086
make --no-print-directory -s BUILD="$build" "$build/graphs/graphs" $(for name in $planted; do echo "$build/graphs/planted_$name"; done) \
    > "$build/graphs.log" 2>&1 || { tail -n 20 "$build/graphs.log"; exit 1; }
work=$build/graphs/found
mkdir -p "$work/planted"
for name in $planted; do
    programs=tests/graphs/corpus/*.program said='fused.*, node by node '
    [ $name != stop ] || { programs=tests/graphs/corpus/generate-*.program said='together: '; }
    # shellcheck disable=SC2086
    ! "$build/graphs/planted_$name" --out "$work/planted" 10000 $programs > "$work/planted/$name.txt" 2>&1 ||
        { echo "FAILED: the planted bug $name was not found"; exit 1; }
    grep -q "^FAILED: $said" "$work/planted/$name.txt" || { tail -n 3 "$work/planted/$name.txt"; exit 1; }
    echo "$name: $(grep '^FAILED' "$work/planted/$name.txt" | sed 's/FAILED/found/')"
done
"$build/graphs/graphs" --replay 2 tests/graphs/corpus/*.program
"$build/graphs/graphs" --out "$work" "$some" tests/graphs/corpus/generate-*.program
exec "$build/graphs/graphs" --out "$work" "$more" tests/graphs/corpus/*.program
