#!/bin/sh
# Tiles and the data of their operands fit into the shared memory of every kind of device.
. tests/simt/setup
"$simt/plans" || fail "a plan that a device refuses"
exit $bad
