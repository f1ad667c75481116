#!/bin/sh
# docs/formats.md agrees with the code: each limit and version has its constant's value, each constant that limits input from files
# or peers is listed, and so is each tag of a hash; every test that it names exists.
set -eu
page=docs/formats.md
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

# Rows whose third cell is a constant: | what | value | `VD_NAME` | ...
awk -F ' *[|] *' '$4 ~ /^`(VD|RO)_[A-Z0-9_]+`$/ { gsub(/`/, "", $4); print $4 "\t" $3 }' $page > "$temp/rows"
[ "$(wc -l < "$temp/rows")" -gt 50 ] || { echo "$page: expected tables of limits"; exit 1; }
names=$(cut -f 1 "$temp/rows")

# Headers that define the constants; those in a library's own folder are not included elsewhere.
for name in $names; do
    grep -lwE "^ *(enum \{ )?$name +=|#define $name |[{,] *$name =" $(find verde repops/include -name '*.h') | head -n 1 ||
        echo "no header has $name" >&2
done | sort -u > "$temp/headers"
{
    echo '#include "verde/base/base.h"'
    sed 's/.*/#include "&"/' "$temp/headers"
    awk -F '\t' '
        function number(t,  n) {
            gsub(/,/, "", t)
            if (t ~ /^2\^[0-9]+$/) return "(INT64_C(1) << " substr(t, 3) ")"
            if (t ~ /^[0-9]+$/) return t
            n = t; sub(/ .*/, "", n); sub(/^[^ ]* /, "", t)
            if (n !~ /^[0-9]+$/ || !(t in unit)) return ""
            return "((int64_t)" n " << " unit[t] ")"
        }
        BEGIN { unit["KiB"] = 10; unit["MiB"] = 20; unit["GiB"] = 30 }
        { v = number($2)
          if (v == "") { print "#error docs/formats.md: " $1 ": " $2 " is no number, with KiB, MiB or GiB if it is bytes"; next }
          print "_Static_assert((int64_t)" $1 " == " v ", \"docs/formats.md: " $1 " is not " $2 "\");" }' "$temp/rows"
} > "$temp/check.c"
# shellcheck disable=SC2046
${CC:-cc} -std=c11 -D_GNU_SOURCE -I. -Irepops/include $(pkg-config --cflags jansson libcurl libevent 2> /dev/null) -fsyntax-only "$temp/check.c" \
    2> "$temp/said" || { grep -E 'error' "$temp/said" | head -n 10; exit 1; }

# Checks the limits of repops.jobs, whose names have no prefix.
awk -F ' *[|] *' '$4 ~ /^`[A-Z_]+`$/ && $4 !~ /^`(VD|RO)_/ { gsub(/`/, "", $4); gsub(/,/, "", $3); print $4, $3 }' $page > "$temp/captures"
[ "$(wc -l < "$temp/captures")" -ge 10 ] || { echo "$page: expected a table of limits of captures"; exit 1; }
while read -r name value unit; do
    case $value in 2^*) value="1 << ${value#2^}" ;; esac
    case $unit in '') ;; MiB) value="$value << 20" ;; *) echo "$page: $name: $unit is no unit"; exit 1 ;; esac
    is=$(grep -rhE --include='*.py' "^$name = [0-9_ <]+" python/repops/jobs | sed 's/^[A-Z_]* = //; s/ *#.*//; s/_//g')
    [ "$(($is))" -eq "$(($value))" ] || { echo "$page: $name is not $value, but $is"; exit 1; }
done < "$temp/captures"
grep -rhoE --include='*.py' '^[A-Z_]+(_MAX|GROWTH) = [0-9]' python/repops/jobs | sed 's/ .*//' | sort -u | while read -r name; do
    case $name in NAME_MAX | STEPS_MAX | INTERVAL_MAX | REPEATS_MAX | SHIFTED_MAX | SUMS_MAX) continue ;; esac # a program's own
    grep -q "^$name " "$temp/captures" || { echo "$page: lacks $name"; exit 1; }
done

# Every limit in a header is on the page, except limits of what a process handles at a time.
others='VD_ALIGNED_NODES_MAX VD_ANSWERERS_MAX VD_BATCH_PROGRAMS_MAX VD_BATCH_ROWS_MAX VD_CHILD_ARGS_MAX VD_DAEMON_BODIES_MAX VD_DAEMON_HELD_MAX
    VD_DATA_FILES_MAX VD_DESK_KNOWN_MAX VD_DESK_MAX VD_DESK_NEW_MAX VD_DIFF_KEPT_MAX VD_DIFF_LINES_MAX VD_DOWNLOAD_CONNECTIONS_MAX VD_DOWNLOAD_PROVIDERS_MAX
    VD_DOWNLOAD_THREADS_MAX VD_FRAME_MAX VD_KEPT_TREES_MAX VD_LOG_ENTRY_MAX VD_LOOPBACK_HEAD_MAX VD_NET_ASKER_MAX VD_NET_ASK_MAX
    VD_NET_CONNECTION_MAX VD_NET_HELD_MAX VD_NET_QUEUE_MAX VD_NET_READ_MAX VD_OFFERS_MAX VD_PAGE_LOG_MAX VD_PAGE_LOSSES_MAX
    VD_REQUEST_HEADER_MAX VD_RUNNING_MAX VD_SITTINGS_MAX VD_TEAM_MESSAGES_MAX VD_TEAM_RANKS_MAX VD_TRACE_BYTES_MAX
    VD_WEIGHTS_ELEMENTS_MAX'
grep -rhoE --include='*.h' '^ *(enum \{ )?VD_[A-Z0-9_]+_MAX +=|#define VD_[A-Z0-9_]+_MAX ' verde | grep -oE 'VD_[A-Z0-9_]+' | sort -u > "$temp/limits"
# shellcheck disable=SC2086
missing=$({ cut -f 1 "$temp/rows"; printf '%s\n' $others; } | sort -u | comm -13 - "$temp/limits")
[ -z "$missing" ] || { echo "$page: lacks $(echo $missing)"; exit 1; }

# Tags of hashes, in both directions.
grep -rhoE --include='*.[ch]' '"verde/[a-z]+/[0-9]+"' verde | tr -d '"' | sort -u > "$temp/tags"
grep -oE '`verde/[a-z]+/[0-9]+`' $page | tr -d '`' | sort -u > "$temp/named"
differ=$(comm -3 "$temp/tags" "$temp/named" | tr -d '\t')
[ -z "$differ" ] || { echo "$page and the code differ in tags: $(echo $differ)"; exit 1; }

# What the page says about a format's version occurs in the code.
sed -n '/Says its version by/,/^$/p' $page | awk -F ' *[|] *' '{ print $3 }' | grep -o '`[^`]*`' | tr -d '`' | sort -u > "$temp/said"
while read -r word; do
    grep -rqF --include='*.[ch]' "$word" verde || { echo "$page: no source has \"$word\""; exit 1; }
done < "$temp/said"

for file in $(grep -oE '`(tests|python/tests)/[a-z_/]+\.(c|sh|py)`' $page | tr -d '`' | sort -u); do
    [ -e "$file" ] || { echo "$page: there is no $file"; exit 1; }
done
echo "$(cat "$temp/rows" "$temp/captures" | wc -l) limits and versions, $(wc -l < "$temp/tags") tags: as the code has them"
