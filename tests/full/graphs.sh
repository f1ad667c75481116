#!/bin/sh
# Randomly changed graphs (tests/graphs), fused and node by node: 100,000 with AVX2 kernels (or the best ones), 1,000 on each
# other backend available: scalar, AVX-512, NEON, and s390x under an emulator. For CUDA kernels see graphs_cuda.sh.
# Usage: graphs.sh BUILD_DIR [COUNT]; SEED=N: other graphs.
set -eu
build=$1 many=${2:-100000} few=1000 seed=${SEED:-1}
[ -z "${SANITIZED:-}" ] || { echo "tests/system/graphs.sh runs under sanitizers"; exit 77; }
work=$build/graphs/found programs=tests/graphs/corpus/*.program
mkdir -p "$work"
make --no-print-directory -s BUILD="$build" "$build/graphs/graphs" > "$build/graphs.log" 2>&1 || { tail -n 20 "$build/graphs.log"; exit 1; }
backends=$(sh tests/isas.sh)
case " $backends " in *" avx2 "*) most=avx2 ;; *) most=${backends##* } ;; esac

# on NAME COUNT SEED COMMAND...: runs the command and prints its last line; it fails if anything differs.
on() {
    name=$1 count=$2 from=$3
    shift 3
    # shellcheck disable=SC2086
    "$@" --seed "$from" --out "$work" "$count" $programs > "$work/$name-$from.txt" 2>&1 ||
        { tail -n 5 "$work/$name-$from.txt"; return 1; }
    echo "$name: $(tail -n 1 "$work/$name-$from.txt")"
}

parts=$(nproc) pids=
for part in $(seq "$parts"); do
    on "$most" $((many / parts)) $((seed + part)) "$build/graphs/graphs" --backend "$most" &
    pids="$pids $!"
done
for pid in $pids; do wait "$pid"; done
# Programs that generate tokens are also run several at a time.
programs=tests/graphs/corpus/generate-*.program
on prompts $((many / 10)) "$seed" "$build/graphs/graphs"
programs=tests/graphs/corpus/*.program
for backend in $backends; do
    [ "$backend" = "$most" ] || on "$backend" $few "$seed" "$build/graphs/graphs" --backend "$backend"
done

# emulated ARCH: builds as tests/system/cross.sh does, in the same place, and runs the graphs in the emulator.
emulated() {
    command -v "qemu-$1" > /dev/null && command -v "$1-linux-gnu-gcc" > /dev/null || { echo "no emulator of $1"; return 0; }
    at=$build/cross/$1-$1-linux-gnu-gcc-O2
    mkdir -p "$build/cross"
    make -s BUILD="$at" PLAIN_BUILD="$at" ARCH="$1" CC="$1-linux-gnu-gcc" AR="$1-linux-gnu-ar" OPT=-O2 KERNEL_OPT=-O2 CFLAGS=-g0 SANITIZE= \
        LDFLAGS="-static -pthread" PKG_CFLAGS= PKG_LIBS= PORTABLE_SHA=own NO_FREE=1 "$at/graphs/graphs" > "$at.txt" 2>&1 ||
        { tail -n 20 "$at.txt"; return 1; }
    on "$1" $few "$seed" "qemu-$1" "$at/graphs/graphs"
}
emulated aarch64
emulated s390x
