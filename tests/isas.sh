#!/bin/sh
# The instruction sets with kernels that this machine runs, the best one last.
has() { grep -qw "$1" /proc/cpuinfo; }
isas=scalar
! has avx2 || isas="$isas avx2"
! has avx512bw || isas="$isas avx512"
! has asimd || isas="$isas neon"
echo "$isas"
