#!/bin/sh
# `make install` installs, besides the library (tests/system/link.sh), the command, a manual page for each of its commands,
# documents, example jobs, and a completion with every command and option. The help names installed files. `make uninstall`
# removes everything.
set -eu
build=$1
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
work=$build/tests/install
rm -rf "$work"
mkdir -p "$work"
prefix=$PWD/$work/prefix

fail() {
    echo "$*"
    exit 1
}
make -s install NVCC=absent BUILD="$build" PREFIX="$prefix" > "$work/log.txt" 2>&1 || { cat "$work/log.txt"; exit 1; }
verde=$prefix/bin/verde
case $("$verde" --version) in "verde "[0-9]*) ;; *) fail "--version says: $("$verde" --version)" ;; esac
"$verde" --version --verbose | grep -q "^library  *OpenSSL [0-9]" || fail "--version --verbose names no OpenSSL"

# Every command that the help lists has a page with its options; man shows every page without warnings.
commands=$("$verde" --help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p')
[ "$(echo "$commands" | wc -l)" -ge 8 ] || fail "the help lists too few commands: $commands"
pages=0
for command in "" $commands; do
    page=$prefix/share/man/man1/verde${command:+-$command}.1
    [ -s "$page" ] || fail "no manual page of verde $command"
    if [ -n "$command" ]; then
        for option in $("$verde" "$command" --help | sed -n 's/^  \(--[a-z-]*\).*/\1/p'); do
            grep -qF "$(echo "$option" | sed 's/-/\\-/g')" "$page" || fail "$page lacks $option"
        done
        [ "$("$verde" "$command" -h)" = "$("$verde" help "$command")" ] || fail "verde $command -h and verde help $command differ"
    fi
    if command -v man > /dev/null; then
        said=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 > /dev/null)
        [ -z "$said" ] || fail "$page: $said"
    fi
    pages=$((pages + 1))
done

# Files that help and pages name exist, from any folder; the first example runs as printed.
named() { grep -oE '[^ `,]*(docs/jobs\.md|/jobs\.md|models/jobs|verde/jobs)[^ `,]*' | sed 's/\\//g' | sort -u; }
for source in "$verde --help" "$verde run --help" "$verde graph --help" "cat $prefix/share/man/man1/verde.1" "cat $prefix/share/man/man1/verde-run.1"; do
    files=$($source | named)
    [ -n "$files" ] || fail "$source names no job"
    for file in $files; do [ -e "$file" ] || fail "$source names $file, which is not there"; done
done
(cd / && "$verde" run "$prefix/share/verde/jobs/toy.yaml" --out "$OLDPWD/$work/run") > "$work/run.txt" 2>&1 || fail "an installed example: $(cat "$work/run.txt")"
for job in "$prefix"/share/verde/jobs/*.yaml; do
    "$verde" graph "$job" > /dev/null 2> "$work/graph.txt" || fail "$job: $(cat "$work/graph.txt")"
done

for tutorial in docs/tutorials/*.md; do
    cmp -s "$tutorial" "$prefix/share/doc/verde/${tutorial#docs/}" || fail "$tutorial is not installed"
    for link in $(grep -o '](\([^)]*\))' "$tutorial" | sed 's/^](//; s/[)#].*//' | grep -v '^http'); do
        [ -e "$prefix/share/doc/verde/tutorials/$link" ] || fail "$tutorial, as it is installed: no $link"
    done
done

# complete WORD...: prints what the completion offers for the last word.
complete() {
    command -v bash > /dev/null || { echo "$want"; return; }
    PATH=$prefix/bin:$PATH bash -c '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _verde; echo "${COMPREPLY[*]}"' \
        "$prefix/share/bash-completion/completions/verde" "$@"
}
want=arbitrate
[ "$(complete verde arb)" = "$want" ] || fail "completion of \"verde arb\": $(complete verde arb)"
want=--verdict
[ "$(complete verde arbitrate --verd)" = "$want" ] || fail "completion of --verd: $(complete verde arbitrate --verd)"

unit=$prefix/lib/systemd/system/verde-provide.service
grep -qF "ExecStart=$prefix/bin/verde provide" "$unit" || fail "the unit for systemd does not start what was installed"
if command -v systemd-analyze > /dev/null; then
    systemd-analyze verify --man=no "$unit" > "$work/unit" 2>&1 || fail "the unit for systemd: $(cat "$work/unit")"
    [ ! -s "$work/unit" ] || fail "the unit for systemd: $(cat "$work/unit")"
    # The unit allows the system calls by which the daemon's children confine themselves.
    for call in landlock_create_ruleset landlock_add_rule landlock_restrict_self seccomp; do
        grep -q "^SystemCallFilter=.* $call" "$unit" || fail "the unit for systemd forbids $call"
    done
fi

make -s uninstall BUILD="$build" PREFIX="$prefix" >> "$work/log.txt" 2>&1 || { cat "$work/log.txt"; exit 1; }
left=$(find "$prefix" ! -type d -o -path "*/verde" -o -path "*/repops")
[ -z "$left" ] || fail "uninstall leaves: $left"
echo "verde with $pages manual pages, documents, examples and completion; all of it goes again"
