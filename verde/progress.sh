#!/bin/sh
# Builds targets and numbers what is done: "[ 12 of 444, 0:41, 1:20 left]". A dry run counts beforehand.
# Usage: verde/progress.sh MAKE_ARGUMENT...
set -u
total=$("${MAKE:-make}" -n "$@" 2> /dev/null | grep -c '^ *echo "  [A-Z]')
[ "$total" -gt 0 ] || exec "${MAKE:-make}" --no-print-directory "$@"
code=$(mktemp)
trap 'rm -f "$code"' EXIT
{ "${MAKE:-make}" --no-print-directory "$@"; echo $? > "$code"; } | awk -v total="$total" '
    function clock(s) { return sprintf("%d:%02d", s / 60, s % 60) }
    function now(  t) { "date +%s" | getline t; close("date +%s"); return t }
    BEGIN { start = now(); format = "[%" length(total) "d of %d, %s%s]%s\n" }
    /^  [A-Z]/ {
        spent = now() - start
        done++
        left = done >= total ? 0 : spent * (total - done) / done
        printf format, done, total, clock(spent), (spent > 4 ? ", " clock(left) " left" : ""), $0
        fflush()
        next
    }
    { print; fflush() }'
exit "$(cat "$code")"
