#!/bin/sh
# Randomly changed graphs (tests/graphs): the simulated CUDA kernels, fused, have the bits of the CPU's kernels, node by node.
# Usage: graphs.sh BUILD_DIR [COUNT]
. tests/simt/setup
make --no-print-directory -s BUILD="$build" "$build/graphs/graphs" > "$temp/log" 2>&1 || { tail -n 20 "$temp/log"; exit 1; }
exec "$build/graphs/graphs" --backend cuda:0 --out "$build/graphs" "${2:-15}" tests/graphs/corpus/*.program
