/* Products of few rows of a, as a decoded token's are, with a b of 16-bit elements that lies along
 * n: memory decides how long they take. */
#ifndef REPOPS_CPU_GEMM_SWEPT_H
#define REPOPS_CPU_GEMM_SWEPT_H

#include "repops/cpu/gemm/gemm.h"

/* Floats of workspace; -1: not a product of this kind. */
int64_t RO_NAME(ro_gemm_swept_workspace)(const gemm *g);
/* Returns whether it was one. b has the strides of g, whose own b is ignored. */
int RO_NAME(ro_gemm_swept)(const gemm *g, const uint16_t *b, int dtype, float *workspace);

#endif
