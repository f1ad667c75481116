#!/bin/sh
# Numbers the input lines that begin with two spaces and a capital, such as "  CC      a.c", of which TOTAL will come:
# "[ 12 of 444, 0:41, 1:20 left]". Other lines pass unchanged. Usage: COMMAND | sh verde/number.sh TOTAL
# The shell reads line by line; an awk, such as Debian's mawk, may wait for 4 kB from a pipe before it prints anything.
set -u
total=$1

# clock SECONDS: prints minutes and seconds, and hours if there are any.
clock() {
    if [ "$1" -ge 3600 ]; then
        printf '%d:%02d:%02d' $(($1 / 3600)) $(($1 / 60 % 60)) $(($1 % 60))
    else
        printf '%d:%02d' $(($1 / 60)) $(($1 % 60))
    fi
}

# number LINE: counts the line and prints it with its number.
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
