/* Small products of one chunk, with operands in place or a b that is transposed first. */
#ifndef REPOPS_CPU_GEMM_SMALL_H
#define REPOPS_CPU_GEMM_SMALL_H

#include "repops/cpu/gemm/gemm.h"

/* Whether all operands are used where they are. */
int RO_NAME(ro_gemm_is_small)(const gemm *g);

/* Computes g and returns 1, or returns 0 if it is of another kind. */
int RO_NAME(ro_gemm_small)(const gemm *g);

/* For a b stored along k: floats that ro_gemm_turned needs; -1 if g is of another kind. */
int64_t RO_NAME(ro_gemm_turned_workspace)(const gemm *g);
/* Computes g and returns 1, or returns 0 if it is of another kind. */
int RO_NAME(ro_gemm_turned)(const gemm *g, float *workspace);

#endif
