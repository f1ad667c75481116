#!/bin/sh
# Judges 100,000 altered verdicts (`make test`: 300). SEED=2: others.
set -eu
exec sh tests/system/altered.sh "$1" 100000 "${SEED:-1}"
