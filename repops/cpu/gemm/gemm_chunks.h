/* Products of so few elements that their chains of fmas would leave the processor waiting. */
#ifndef REPOPS_CPU_GEMM_CHUNKS_H
#define REPOPS_CPU_GEMM_CHUNKS_H

#include "repops/cpu/gemm/gemm.h"

/* Floats that ro_gemm_chunks needs; -1 if g is of another kind. */
int64_t RO_NAME(ro_gemm_chunks_workspace)(const gemm *g);

/* Computes g and returns 1, or returns 0 if it is of another kind. */
int RO_NAME(ro_gemm_chunks)(const gemm *g, float *workspace);

#endif
