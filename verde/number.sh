#!/bin/sh
# Numbers the lines of its input that begin with two spaces and a capital, "  CC      a.c", of which there will be TOTAL:
# "[ 12 of 444, 0:41, 1:20 left]". Others pass as they are. Usage: COMMAND | sh verde/number.sh TOTAL
# The shell reads line by line: an awk may wait for 4 kB of a pipe before it says anything, as Debian's mawk does.
set -u
total=$1

# clock SECONDS: minutes and seconds, and hours if there are any.
clock() {
    if [ "$1" -ge 3600 ]; then
        printf '%d:%02d:%02d' $(($1 / 3600)) $(($1 / 60 % 60)) $(($1 % 60))
    else
        printf '%d:%02d' $(($1 / 60)) $(($1 % 60))
    fi
}

# number LINE: one more of them.
number() {
    done=$((done + 1))
    spent=$(($(date +%s) - start))
    left=0
    [ "$done" -ge "$total" ] || left=$((spent * (total - done) / done))
    after=
    [ "$spent" -le 4 ] || after=", $(clock "$left") left"
    printf "[%${#total}d of %d, %s%s]%s\\n" "$done" "$total" "$(clock "$spent")" "$after" "$1"
}

start=$(date +%s)
done=0
while IFS= read -r line || [ -n "$line" ]; do
    case $line in
    "  "[A-Z]*) number "$line" ;;
    *) printf '%s\n' "$line" ;;
    esac
done
