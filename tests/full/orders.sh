#!/bin/sh
# The CUDA kernels in 20 random schedules, of which `make test` has 8.
set -eu
exec sh tests/simt/orders.sh "$1" 20
