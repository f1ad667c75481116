#!/bin/sh
# Begins a version node in repops/librepops.map, after a release and before its first new function (docs/linking.md): the last node,
# which took every `ro_*`, names the functions that tests/golden/symbols.txt says it has, and the new one takes the pattern.
# Usage: repops/next_node.sh NODE > MAP, such as REPOPS_1.1
set -eu
awk -v new="$1" '
    NR == FNR { functions[$2] = functions[$2] "\n        " $1 ";"; next }
    / \{$/ { node = $1 }
    node == new { print "next_node.sh: the map has " new " already" > "/dev/stderr"; exit failed = 1 }
    /^    global: ro_\*;$/ { $0 = "    global:" functions[node] }
    { print }
    END { if (!failed) printf "\n%s {\n    global: ro_*;\n} %s;\n", new, node }' tests/golden/symbols.txt repops/librepops.map
