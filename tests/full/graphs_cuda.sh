#!/bin/sh
# 1,000 graphs that were changed at random on the simulated CUDA kernels, of which `make test` has a few.
set -eu
exec sh tests/simt/graphs.sh "$1" 1000
