#!/bin/sh
# The commands in README.md and docs/ about disputes, the library and rounding logs do exactly what the text says. README.md lists
# every command; every link to a file of the project is valid; no line of these documents has 100 columns.
set -eu
build=$1
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
work=$build/tests/docs
rm -rf "$work"
mkdir -p "$work"
top=$PWD
PATH=$(cd "$build/bin" && pwd):$PATH
export PATH

fail() {
    echo "$*"
    exit 1
}

# block FILE FROM TO: prints the commands between two lines that begin with these texts.
block() {
    awk -v from="$2" -v to="$3" 'index($0, to) == 1 { on = 0 } index($0, from) == 1 { on = 1 } on && /^    / { print substr($0, 5) }' "$1"
}

# try NAME FILE FROM TO: runs a block in $work/NAME, where the project's files are as the text assumes. A block that would wait
# for ever is stopped.
try() {
    mkdir "$work/$1"
    ln -s "$top"/* "$work/$1"
    rm -f "$work/$1/build"
    ln -s "$(cd "$build" && pwd)" "$work/$1/build"
    {
        echo "trap 'kill \$(jobs -p) 2> /dev/null; wait' EXIT"
        block "$2" "$3" "$4"
    } > "$work/$1/commands.sh"
    (cd "$work/$1" && HOME=$PWD/home timeout -k 10 600 bash commands.sh > said.txt 2> err.txt) || true
}

# expect NAME COUNT TEXT: COUNT lines of the block's output have the TEXT.
expect() {
    got=$(grep -c "$3" "$work/$1/said.txt" || true)
    [ "$got" -eq "$2" ] || { tail -n 20 "$work/$1/said.txt" "$work/$1/err.txt"; fail "$1: $got lines with \"$3\", expected $2"; }
}

command -v bash > /dev/null || { echo "no bash"; exit 77; }
try dispute README.md '### 1.' '### 2.'
expect dispute 2 '^result *convicted'
expect dispute 1 '^verified'
expect dispute 1 'it accepts this run$'
! grep 'verde serve:' "$work/dispute/err.txt" || fail "dispute: the servers talk into what the referee tells"
try link README.md '### 4.' '### 5.'
expect link 1 "^weights $(cat tests/golden/example.txt)\$"
expect link 1 'conform, 0 do not$'
try logs README.md '### 7.' '## Commands'
expect logs 2 '^run root'
[ "$(grep '^run root' "$work/logs/said.txt" | sort -u | wc -l)" -eq 1 ] || fail "logs: trainer and auditor end with two roots"
try contest docs/rounding-logs.md '## Disputes' '## Beside'
expect contest 1 '^result *convicted'
expect contest 1 'log-incomplete'

bad=
for command in $(verde --help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p'); do
    grep -q "^    verde $command " README.md || { echo "README.md does not list verde $command"; bad=yes; }
done
for file in README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs/*.md docs/tutorials/*.md; do
    awk -v f="$file" 'length > 99 { print f ":" FNR ": " length " columns"; e = 1 } END { exit e }' "$file" || bad=yes
    for link in $(grep -o '](\([^)]*\))' "$file" | sed 's/^](//; s/[)#].*//' | grep -v '^http' || true); do
        [ -e "$(dirname "$file")/$link" ] || { echo "$file: no $link"; bad=yes; }
    done
done
[ -z "$bad" ] || exit 1
echo "the commands of README.md and docs/ do what the text says; no link is broken"
