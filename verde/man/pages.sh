#!/bin/sh
# Makes the manual pages of verde and its commands from their help texts.
# Usage: verde/man/pages.sh VERDE FOLDER DOCDIR DATADIR; the last two as they are where the pages will be read.
set -eu
verde=$1 folder=$2 documents=$3 data=$4
here=$(dirname "$0")
version=$("$verde" --version | cut -d' ' -f2)
mkdir -p "$folder"
help() { "$verde" "$@" --help | sed -e "s|docs/jobs.md|$documents/jobs.md|g" -e "s|models/jobs|$data/jobs|g"; }
commands=$("$verde" --help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p')
page() {
    # shellcheck disable=SC2086
    awk -v command="$1" -v summary="$2" -v version="$version" -v commands="$(echo $commands)" -f "$here/page.awk"
}
help | page "" "use machines that you do not trust, and know that the result is right" > "$folder/verde.1"
for command in $commands; do
    summary=$("$verde" --help | sed -n "s/^  $command  *//p")
    help "$command" | page "$command" "$summary" > "$folder/verde-$command.1"
done
