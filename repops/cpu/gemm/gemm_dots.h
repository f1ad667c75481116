/* Products of few rows (or columns) whose other operand is stored along k. */
#ifndef REPOPS_CPU_GEMM_DOTS_H
#define REPOPS_CPU_GEMM_DOTS_H

#include "repops/cpu/gemm/gemm.h"

/* Most rows that run together, and groups of VW columns that run together where rows are few. */
#if defined(RO_ISA_avx512)
enum { DOTS_ROWS = 8, DOTS_GROUPS = 2 };
#elif defined(RO_ISA_avx2)
enum { DOTS_ROWS = 4, DOTS_GROUPS = 2 };
#else
enum { DOTS_ROWS = 4, DOTS_GROUPS = 4 };
#endif

/* Floats that ro_gemm_dots needs; -1 if g is of another kind. */
int64_t RO_NAME(ro_gemm_dots_workspace)(const gemm *g);

/* Computes g and returns 1, or returns 0 if it is of another kind. */
int RO_NAME(ro_gemm_dots)(const gemm *g, float *workspace);

#endif
