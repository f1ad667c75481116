#!/bin/sh
# Builds targets and numbers what is done: "[ 12 of 444, 0:41, 1:20 left]". A dry run counts beforehand.
# The shell reads line by line: an awk may wait for 4 kB of a pipe before it says anything, as Debian's mawk does.
# Usage: verde/progress.sh MAKE_ARGUMENT...
set -u
total=$("${MAKE:-make}" -n "$@" 2> /dev/null | grep -c '^ *echo "  [A-Z]')
[ "$total" -gt 0 ] || exec "${MAKE:-make}" --no-print-directory "$@"

# clock SECONDS: minutes and seconds, and hours if there are any.
clock() {
    if [ "$1" -ge 3600 ]; then
        printf '%d:%02d:%02d' $(($1 / 3600)) $(($1 / 60 % 60)) $(($1 % 60))
    else
        printf '%d:%02d' $(($1 / 60)) $(($1 % 60))
    fi
}

# number LINE: one more is being made.
number() {
    done=$((done + 1))
    spent=$(($(date +%s) - start))
    left=0
    [ "$done" -ge "$total" ] || left=$((spent * (total - done) / done))
    after=
    [ "$spent" -le 4 ] || after=", $(clock "$left") left"
    printf "[%${#total}d of %d, %s%s]%s\\n" "$done" "$total" "$(clock "$spent")" "$after" "$1"
}

code=$(mktemp)
trap 'rm -f "$code"' EXIT
start=$(date +%s)
done=0
{ "${MAKE:-make}" --no-print-directory "$@"; echo $? > "$code"; } | while IFS= read -r line || [ -n "$line" ]; do
    case $line in
    "  "[A-Z]*) number "$line" ;;
    *) printf '%s\n' "$line" ;;
    esac
done
exit "$(cat "$code")"
