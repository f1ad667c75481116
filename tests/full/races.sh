#!/bin/sh
# Races in cases of up to 40,000 elements, of which `make test` has those of half as many.
set -eu
exec sh tests/simt/races.sh "$1" 40000
