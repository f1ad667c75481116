#!/bin/sh
# The manual pages of verde and of each of its commands, from their help texts. Usage: verde/man/pages.sh VERDE FOLDER
set -eu
verde=$1 folder=$2
here=$(dirname "$0")
version=$("$verde" --version | cut -d' ' -f2)
mkdir -p "$folder"
commands=$("$verde" --help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p')
page() {
    # shellcheck disable=SC2086
    awk -v command="$1" -v summary="$2" -v version="$version" -v commands="$(echo $commands)" -f "$here/page.awk"
}
"$verde" --help | page "" "use machines that you do not trust, and know that the result is right" > "$folder/verde.1"
for command in $commands; do
    summary=$("$verde" --help | sed -n "s/^  $command  *//p")
    "$verde" "$command" --help | page "$command" "$summary" > "$folder/verde-$command.1"
done
