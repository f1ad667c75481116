#!/bin/sh
# 1,000 jobs of ten clients at one daemon, in four rounds: nothing is left of them, and later rounds take no more memory than the first.
set -eu
JOBS=25 ROUNDS=4 exec sh tests/system/provide_many.sh "$1"
