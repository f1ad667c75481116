#!/bin/sh
# Prints the instruction sets that this machine has and kernels exist for, the best one last.
has() { grep -qw "$1" /proc/cpuinfo; }
isas=scalar
! has avx2 || isas="$isas avx2"
! has avx512bw || isas="$isas avx512"
! has asimd || isas="$isas neon"
echo "$isas"
