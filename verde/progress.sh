#!/bin/sh
# Builds targets and numbers the steps (verde/number.sh), which a dry run counts first.
# Usage: verde/progress.sh MAKE_ARGUMENT...
set -u
total=$("${MAKE:-make}" -n "$@" 2> /dev/null | grep -c '^ *echo "  [A-Z]')
[ "$total" -gt 0 ] || exec "${MAKE:-make}" --no-print-directory "$@"
code=$(mktemp)
trap 'rm -f "$code"' EXIT
{ "${MAKE:-make}" --no-print-directory "$@"; echo $? > "$code"; } | sh "$(dirname "$0")/number.sh" "$total"
exit "$(cat "$code")"
