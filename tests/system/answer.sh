#!/bin/sh
# The example of a model that is trained and then generates from prompts repeats what it has learnt, and its run fits.
[ -z "${SANITIZED:-}" ] || { echo "not under sanitizers: nothing new to see, and slow"; exit 77; }
. tests/support/system
expect 0 'fits  *yes' env VERDE="$verde" sh examples/answer.sh "$work/answer"
grep -qx ' on a wall,' "$work/out" && grep -qx " and all the king's men" "$work/out" || fail "it does not know the rhyme"
[ "$(wc -l < "$work/answer/answers/results.jsonl")" -eq 2 ] || fail "not two lines of results"
echo "a model that learnt a rhyme goes on with it"
