#!/bin/sh
# Tiles fit the shared memory of every kind of device, with what their operands keep there.
. tests/simt/setup
"$simt/plans" || fail "a plan that a device refuses"
exit $bad
