#!/bin/sh
# 1,000 jobs of ten clients at one daemon, in four rounds: none leaves anything behind, and later rounds need no more memory.
set -eu
JOBS=25 ROUNDS=4 exec sh tests/system/provide_many.sh "$1"
