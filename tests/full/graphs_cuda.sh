#!/bin/sh
# 1,000 randomly changed graphs on the simulated CUDA kernels (`make test`: a few).
set -eu
exec sh tests/simt/graphs.sh "$1" 1000
