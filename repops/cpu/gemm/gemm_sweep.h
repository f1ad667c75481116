/* Products of one row of a with a b along n that is read once, in the order of addresses. */
#ifndef REPOPS_CPU_GEMM_SWEEP_H
#define REPOPS_CPU_GEMM_SWEEP_H

#include "repops/cpu/gemm/gemm.h"

/* Floats that ro_gemm_sweep needs; -1 if g is of another kind. */
int64_t RO_NAME(ro_gemm_sweep_workspace)(const gemm *g);

/* Computes g and returns 1, or returns 0 if it is of another kind. */
int RO_NAME(ro_gemm_sweep)(const gemm *g, float *workspace);

#endif
