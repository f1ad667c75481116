/* Products of few rows (or columns) whose other operand is stored along k. */
#ifndef REPOPS_CPU_GEMM_DOTS_H
#define REPOPS_CPU_GEMM_DOTS_H

#include "repops/cpu/gemm.h"

#if defined(RO_ISA_avx512)
enum { DOTS_ROWS = 8 };
#else
enum { DOTS_ROWS = 4 };
#endif

/* Computes g and returns 1, or returns 0 if it is of another kind. */
int RO_NAME(ro_gemm_dots)(const gemm *g);

#endif
