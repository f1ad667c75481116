#!/bin/sh
# What docs/compatibility.md promises is as the tables in tests/golden say. Each is printed anew from the sources: lines are added to
# the file, by `--write` in the commit that makes them true, and none changes or goes.
# Usage: golden.sh [BUILD]; golden.sh --write [TABLE...]
set -eu
tables='operators limits'
if python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2> /dev/null; then
    tables="$tables python_names commands jobs layout"
else
    echo "no Python 3.9: not all tables of promises are looked at"
fi
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
export LC_ALL=C

# print_TABLE: the lines as the sources have them now.
print_operators() {
    ${CC:-cc} -std=c11 -I. repops/tools/operators.c -o "$temp/operators"
    "$temp/operators" golden
}

# Those of docs/formats.md, which tests/lint/formats.sh compares with the code. They may rise, but for those of elements, names and
# steps (PROTOCOL.md 3.5).
print_limits() {
    awk -F ' *[|] *' '
        BEGIN { unit["KiB"] = 2 ^ 10; unit["MiB"] = 2 ^ 20; unit["GiB"] = 2 ^ 30; stays["RO_MAX_NUMEL"]; stays["VD_NAME_SIZE"]; stays["VD_STEPS_MAX"] }
        /^## / { limits = $0 == "## Limits" }
        limits && $4 ~ /^`[A-Z0-9_]+`$/ {
            gsub(/`/, "", $4); gsub(/,/, "", $3); split($3, part, " ")
            value = part[1] ~ /^2\^/ ? 2 ^ substr(part[1], 3) : part[1] * (part[2] ? unit[part[2]] : 1)
            printf "%s %s %.0f\n", $4, $4 in stays ? "=" : ">=", value }' docs/formats.md
}

print_python_names() {
    python3 tests/lint/golden/python_names.py | sort -u
}

print_commands() {
    python3 tests/lint/golden/commands.py | sort -u
}

print_jobs() {
    python3 tests/lint/golden/jobs.py
}

print_layout() {
    python3 tests/lint/golden/layout.py "$temp"
}

# lines FILE: without its comments, and in the order of comm.
lines() {
    grep -v '^#' "$1" | sort
}

# compare FILE NOW: each line of the file is one of NOW, and it has them all. For `NAME >= N` a line of NOW with a larger number will do,
# for `NAME <= N` one with a smaller number.
compare() {
    lines "$1" > "$temp/promised"
    sort "$2" > "$temp/sorted"
    gone=$(comm -23 "$temp/promised" "$temp/sorted" |
        awk 'NR == FNR { now[$1 $2] = $3; next }
            !($1 $2 in now && ($2 == ">=" && $3 < now[$1 $2] || $2 == "<=" && $3 > now[$1 $2]))' "$2" - | head -n 10)
    [ -z "$gone" ] || { printf '%s: this was promised (docs/compatibility.md), and is so no more:\n%s\n' "$1" "$gone"; return 1; }
    new=$(comm -13 "$temp/promised" "$temp/sorted" | head -n 10)
    [ -z "$new" ] || { printf '%s lacks what is new; add it by sh tests/lint/golden.sh --write:\n%s\n' "$1" "$new"; return 1; }
}

# add FILE NOW: adds the lines of NOW that the file lacks.
add() {
    lines "$1" > "$temp/promised"
    { grep '^#' "$1"
      sort -u "$temp/promised" "$2" | sort -n; } > "$temp/grown"
    cmp -s "$temp/grown" "$1" || cp "$temp/grown" "$1"
}

# fails WORD FILE NOW: a comparison that must fail, with this word.
fails() {
    ! compare "$2" "$3" > "$temp/said" && grep -q "$1" "$temp/said" || { echo "$0: a wrong table was compared with $2: expected an error with \"$1\""; exit 1; }
}

what=compare
[ "${1:-}" != --write ] || { what=add; shift; tables=${*:-$tables}; }
for table in $tables; do
    "print_$table" > "$temp/$table.txt"
    [ "$(wc -l < "$temp/$table.txt")" -gt 9 ] || { echo "$0: finds too few lines for $table.txt"; exit 1; }
    $what "tests/golden/$table.txt" "$temp/$table.txt" || exit 1
done
[ $what = compare ] || exit 0

# Prints functions of NOW in a version of the library that was released without them.
late() {
    lines "$1" > "$temp/released"
    lines "$2" | comm -13 "$temp/released" - > "$temp/since"
    awk 'NR == FNR { released[$2]; next } $2 in released' "$temp/released" "$temp/since"
}
symbols=tests/golden/symbols.txt
# A tarball, and a clone without tags, have no released ones.
for tag in $(git tag --list 'v*' 2> /dev/null || true); do
    git show "$tag:$symbols" > "$temp/tagged" 2> /dev/null || continue
    came=$(late "$temp/tagged" $symbols)
    [ -z "$came" ] || { printf '%s: %s was released without these (docs/linking.md: repops/next_node.sh):\n%s\n' $symbols "$tag" "$came"; exit 1; }
done
sed 2d $symbols > "$temp/tagged"
[ "$(late "$temp/tagged" $symbols)" = "$(sed -n 2p $symbols)" ] || { echo "$0: does not notice a function in a released version"; exit 1; }

# A line that goes, changes or comes is noticed in each table.
for table in $tables; do
    sed 1d "$temp/$table.txt" > "$temp/without"
    sed '1s/^/0/' "$temp/$table.txt" > "$temp/changed"
    { cat "$temp/$table.txt"; echo "1 more"; } > "$temp/more"
    fails 'promised' "tests/golden/$table.txt" "$temp/without"
    fails 'promised' "tests/golden/$table.txt" "$temp/changed"
    fails 'lacks' "tests/golden/$table.txt" "$temp/more"
done
# A limit that rises is new, and one that falls or ends was promised.
sed 's/^VD_PARTIES_MAX >= .*/&0/' "$temp/limits.txt" > "$temp/raised"
fails 'lacks' tests/golden/limits.txt "$temp/raised"
sed 's/^VD_PARTIES_MAX >= .*/VD_PARTIES_MAX >= 1/' "$temp/limits.txt" > "$temp/lowered"
fails 'promised' tests/golden/limits.txt "$temp/lowered"
for table in $tables; do
    cat "$temp/$table.txt"
done | wc -l | sed 's/$/ lines of promises are as they were/'
