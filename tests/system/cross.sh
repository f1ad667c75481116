#!/bin/sh
# The bits of other machines, in an emulator: aarch64 with NEON, and s390x, which is big-endian. Checks every golden hash with
# repops-conform, and the commitments of tests/portable and the states of captured models, which must be those of this machine.
# ALL_LEVELS=1: also aarch64 without NEON and with clang, the weights of the example programs, and that free kernels, which
# promise no bits, compile.
set -eu
build=$1
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
for tool in qemu-aarch64 aarch64-linux-gnu-gcc qemu-s390x s390x-linux-gnu-gcc; do
    command -v $tool > /dev/null || { echo "no $tool: the bits of other machines are not tested"; exit 77; }
done
work=$build/cross
mkdir -p "$work"
no_free=1
[ -z "${ALL_LEVELS:-}" ] || no_free=

# cross ARCH COMPILER OPT [BUILD]: builds repops-conform and tests/portable, and runs the latter. BUILD: take free kernels from
# there.
cross() {
    arch=$1 compiler=$2 opt=$3
    at=$work/$arch-${compiler%% *}$opt
    make -s BUILD="$at" PLAIN_BUILD="${4:-$at}" ARCH="$arch" CC="$compiler" AR="$arch-linux-gnu-ar" OPT="$opt" KERNEL_OPT="$opt" \
        CFLAGS=-g0 SANITIZE= LDFLAGS="-static -pthread" PKG_CFLAGS= PKG_LIBS= PORTABLE_SHA=own NO_FREE="$no_free" \
        "$at/bin/repops-conform" "$at/tests/portable" ${ALL_LEVELS:+"$at/examples/trainer" "$at/examples/gpt2"} > "$at.txt" 2>&1 || { tail -n 20 "$at.txt"; return 1; }
    "qemu-$arch" "$at/tests/portable" > "$at/portable.txt" 2> "$at.txt" || { head -n 20 "$at.txt"; return 1; }
    cmp "$work/native.txt" "$at/portable.txt" || { echo "$arch, $compiler $opt: other commitments"; return 1; }
    while read -r name last; do
        got=$("qemu-$arch" "$at/tests/portable" "tests/captured/$name" | sed -n 's/^state 3 //p')
        [ "$got" = "$last" ] || { echo "$arch, $compiler $opt: another last state of tests/captured/$name, $got"; return 1; }
    done < tests/golden/captured.txt
}

# conform ARGUMENT...: runs repops-conform of the last build.
conform() {
    "qemu-$arch" "$at/bin/repops-conform" --threads 2 "$@" > "$at.txt" 2>&1 ||
        { echo "$arch, $compiler $opt:"; grep -v ' ok *$' "$at.txt" | tail -n 20; return 1; }
    echo "$compiler $opt: $(tail -n 1 "$at.txt")"
}

# examples: runs the example programs of the last build.
examples() {
    [ -n "${ALL_LEVELS:-}" ] || return 0
    for pair in trainer:example gpt2:example_gpt2; do
        got=$("qemu-$arch" "$at/examples/${pair%:*}" 2 | sed -n 's/^weights //p')
        [ "$got" = "$(cat "tests/golden/${pair#*:}.txt")" ] || { echo "$arch: the weights of ${pair%:*} are $got"; return 1; }
    done
}

aarch64() {
    cross aarch64 aarch64-linux-gnu-gcc -O2 && conform --device neon && examples || return 1
    [ -n "${ALL_LEVELS:-}" ] || return 0
    conform --device scalar --operators || return 1
    command -v clang > /dev/null || return 0
    cross aarch64 "clang --target=aarch64-linux-gnu" -O3 "$at" && conform --operators
}

s390x() {
    cross s390x s390x-linux-gnu-gcc -O2 && conform && examples
}

"$build/tests/portable" > "$work/native.txt"
aarch64 > "$work/aarch64.log" 2>&1 &
first=$!
s390x > "$work/s390x.log" 2>&1 || failed=1
wait $first || failed=1
cat "$work/aarch64.log" "$work/s390x.log"
[ -z "${failed:-}" ] || exit 1
echo "aarch64 (NEON${ALL_LEVELS:+, scalar}) and s390x: golden hashes${ALL_LEVELS:+, the examples} and commitments are those of this machine"
