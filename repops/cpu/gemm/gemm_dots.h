/* Sizes of products of few rows (or columns) whose other operand is stored along k. */
#ifndef REPOPS_CPU_GEMM_DOTS_H
#define REPOPS_CPU_GEMM_DOTS_H

#include "repops/cpu/isa.h"

/* Most rows that run together, and most groups of VW columns that run together for few rows. */
#if defined(RO_ISA_avx512)
enum { DOTS_ROWS = 8, DOTS_GROUPS = 2 };
#elif defined(RO_ISA_avx2)
enum { DOTS_ROWS = 4, DOTS_GROUPS = 2 };
#else
enum { DOTS_ROWS = 4, DOTS_GROUPS = 4 };
#endif

#endif
