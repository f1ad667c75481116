#!/bin/sh
# Races in cases of up to 40,000 elements (`make test`: half as many).
set -eu
exec sh tests/simt/races.sh "$1" 40000
