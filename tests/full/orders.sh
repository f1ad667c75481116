#!/bin/sh
# The CUDA kernels in 20 random schedules (`make test`: 8).
set -eu
exec sh tests/simt/orders.sh "$1" 20
